//! Routines in languages other than SQL: how they are compiled and called, and the libraries that they use.

use std::sync::Arc;

use catalog::{External, PrivilegeSet, Routine, RoutineKind, UsedLibrary};
use errors::{Error, ErrorCode, Result, bail, err};
use plugin_api::{
    CompiledProgram, OkInfo, ParameterMode, ProgramLanguage, ProgramLibrary, ProgramParameter,
    ProgramText, ResultSink,
};
use syntax::ast::{self, CreateLibrary, DropObject, Ident, ObjectName};

use crate::frame::store_local;
use crate::host::{DefinitionHost, ProgramHost};
use crate::load::{Code, Loaded, Made, Variable};
use crate::routine::{check_new_name, drop_one, find_routine, new_routine};

/// A compiled routine, and what it was compiled from besides its own definition.
pub(crate) struct ExternalCode {
    language: Arc<dyn ProgramLanguage>,
    libraries: Vec<Arc<Routine>>,
    compiled: Box<dyn CompiledProgram>,
}

impl std::fmt::Debug for ExternalCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ExternalCode({})", self.language.name())
    }
}

/// The language, if a plugin has it.
///
/// # Errors
/// 6001.
fn language_of<H: ProgramHost + ?Sized>(
    host: &H,
    external: &External,
) -> Result<Arc<dyn ProgramLanguage>> {
    host.language(&external.language).ok_or_else(|| err!(LANGUAGE_COMPONENT_NOT_AVAILABLE))
}

fn libraries_of<H: ProgramHost + ?Sized>(
    host: &H,
    routine: &Routine,
    external: &External,
) -> Result<Vec<Arc<Routine>>> {
    let snapshot = host.snapshot();
    let find = |used: &UsedLibrary| {
        let known = snapshot.routine(&used.schema, RoutineKind::Library, &used.name).cloned();
        let shown = || format!("{}.{}", routine.schema, routine.name);
        known.ok_or_else(|| err!(SP_MISSING_LIBRARY, shown(), used.schema, used.name))
    };
    external.libraries.iter().map(find).collect()
}

fn mode_of(mode: &str) -> ParameterMode {
    match mode {
        "OUT" => ParameterMode::Out,
        "INOUT" => ParameterMode::InOut,
        _ => ParameterMode::In,
    }
}

fn compile(
    language: &dyn ProgramLanguage,
    routine: &Routine,
    external: &External,
    libraries: &[Arc<Routine>],
) -> Result<Box<dyn CompiledProgram>> {
    debug_assert_eq!(external.libraries.len(), libraries.len(), "each was found");
    let used = external.libraries.iter().zip(libraries);
    let text = ProgramText {
        schema: &routine.schema,
        name: &routine.name,
        parameters: routine
            .parameters
            .iter()
            .map(|parameter| ProgramParameter {
                name: &parameter.name,
                mode: mode_of(&parameter.mode),
                ty: &parameter.ty,
            })
            .collect(),
        returns: routine.returns.as_ref().map(|(_, ty)| ty),
        source: &routine.body,
        libraries: used
            .map(|(used, library)| ProgramLibrary {
                alias: used.alias.as_ref().unwrap_or(&used.name),
                schema: &library.schema,
                name: &library.name,
                language: library.external.as_ref().map_or("", |external| &external.language),
                source: &library.body,
            })
            .collect(),
    };
    language.compile(&text)
}

/// Compiles a routine with the libraries as they are now.
///
/// # Errors
/// 6001, 6435; errors in its text.
pub(crate) fn load_external<H: ProgramHost + ?Sized>(
    host: &H,
    routine: &Arc<Routine>,
    external: &External,
) -> Result<Loaded> {
    let language = language_of(host, external)?;
    let libraries = libraries_of(host, routine, external)?;
    let compiled = compile(&*language, routine, external, &libraries)?;
    let parameters = routine.parameters.iter();
    let variables: Vec<Variable> = parameters
        .map(|parameter| Variable { name: (*parameter.name).into(), ty: parameter.ty.clone() })
        .collect();
    Ok(Loaded {
        made: Made::Routine(routine.clone()),
        schema: routine.schema.clone(),
        definer: routine.definer.clone(),
        invoker: routine.invoker,
        sql_mode: routine.sql_mode,
        row: Vec::new(),
        source: Box::default(),
        code: Code::External(ExternalCode { language, libraries, compiled }),
        types: variables.iter().map(|variable| variable.ty.clone()).collect(),
        variables,
        cursors: 0,
    })
}

/// Whether the language and the libraries of a compiled routine are still the ones that it was compiled with.
pub(crate) fn is_current<H: ProgramHost + ?Sized>(host: &H, code: &ExternalCode) -> bool {
    let snapshot = host.snapshot();
    let is_same = |library: &Arc<Routine>| {
        let known = snapshot.routine(&library.schema, RoutineKind::Library, &library.name);
        known.is_some_and(|known| Arc::ptr_eq(known, library))
    };
    let language = host.language(code.language.name());
    language.is_some_and(|known| Arc::ptr_eq(&known, &code.language))
        && code.libraries.iter().all(is_same)
}

/// Runs the program whose frame is the last: one statement of the transaction.
pub(crate) fn run_external<H: ProgramHost + ?Sized>(
    host: &mut H,
    code: &ExternalCode,
) -> Result<()> {
    host.check_running()?;
    host.begin_part();
    host.begin_scope();
    match invoke_in_scope(host, code) {
        Ok(()) => {
            host.end_part();
            Ok(())
        }
        Err(error) => {
            host.abort_scope(&error);
            Err(error)
        }
    }
}

fn invoke_in_scope<H: ProgramHost + ?Sized>(host: &mut H, code: &ExternalCode) -> Result<()> {
    let values = host.state_mut().frame_mut()?.values.clone();
    let count = values.len();
    let outcome = host.invoke(&*code.compiled, &values)?;
    for (slot, out) in &outcome.out {
        debug_assert!(*slot < count, "a parameter");
        store_local(host, *slot, &out.value, &out.ty)?;
    }
    host.state_mut().frame_mut()?.returned = outcome.returned.map(|typed| (typed.value, typed.ty));
    host.finish_scope()
}

/// The language and libraries of a new routine; `None` when it is in SQL.
///
/// # Errors
/// 6433, 1305, 1370.
pub(crate) fn external_of<H: DefinitionHost + ?Sized>(
    host: &H,
    options: &ast::RoutineOptions,
) -> Result<Option<External>> {
    let Some(language) = options.language.as_ref().filter(|language| !language.is("SQL")) else {
        refuse_libraries(options)?;
        return Ok(None);
    };
    let libraries = used_libraries(host, options.libraries.as_deref().unwrap_or_default())?;
    Ok(Some(External { language: language.text.to_uppercase().into(), libraries }))
}

/// 6433 for USING of a routine in SQL.
fn refuse_libraries(options: &ast::RoutineOptions) -> Result<()> {
    match &options.libraries {
        Some(_) => Err(err!(LIBRARIES_NOT_SUPPORTED, "SQL")),
        None => Ok(()),
    }
}

/// The libraries that ALTER gives to a routine.
///
/// # Errors
/// 6004 for another language, 6433, 1305, 1370.
pub(crate) fn altered_external<H: DefinitionHost + ?Sized>(
    host: &H,
    routine: &Routine,
    options: &ast::RoutineOptions,
) -> Result<Option<External>> {
    let own = routine.external.as_ref().map_or("SQL", |external| &external.language);
    if options.language.as_ref().is_some_and(|language| !language.is(own)) {
        bail!(SP_CANT_ALTER_LANGUAGE);
    }
    let Some(external) = &routine.external else {
        refuse_libraries(options)?;
        return Ok(None);
    };
    let libraries = match &options.libraries {
        Some(written) => used_libraries(host, written)?,
        None => external.libraries.clone(),
    };
    Ok(Some(External { language: external.language.clone(), libraries }))
}

fn used_libraries<H: DefinitionHost + ?Sized>(
    host: &H,
    written: &[(ObjectName, Option<Ident>)],
) -> Result<Vec<UsedLibrary>> {
    let snapshot = host.snapshot();
    let find = |(library, alias): &(ObjectName, Option<Ident>)| {
        let (schema, name) = host.qualify(library)?;
        let Some(known) = snapshot.routine(&schema, RoutineKind::Library, &name) else {
            bail!(SP_DOES_NOT_EXIST, "LIBRARY", name);
        };
        host.require_on_routine(&schema, RoutineKind::Library, &name, PrivilegeSet::EXECUTE)?;
        let alias = alias.as_ref().map(|alias| Arc::from(&*alias.text));
        Ok(UsedLibrary { schema, name: known.name.clone(), alias })
    };
    written.iter().map(find).collect()
}

/// Finds the errors in the text of a new routine, if a plugin has its language: it may be loaded later.
///
/// # Errors
/// Errors in the text.
pub(crate) fn check_external<H: DefinitionHost + ?Sized>(
    host: &H,
    routine: &Routine,
    external: &External,
) -> Result<()> {
    let Some(language) = host.language(&external.language) else { return Ok(()) };
    let libraries = libraries_of(host, routine, external)?;
    compile(&*language, routine, external, &libraries).map(drop)
}

/// Warning 6001.
pub(crate) fn warn_of_language<H: ProgramHost + ?Sized>(host: &mut H) {
    let not_available = ErrorCode::LANGUAGE_COMPONENT_NOT_AVAILABLE;
    host.conditions().working.warn(not_available, &[]);
}

/// CREATE LIBRARY.
///
/// # Errors
/// 1304, 1064, missing privileges, errors in its text.
pub fn create_library<H: DefinitionHost + ?Sized>(
    host: &mut H,
    create: &CreateLibrary,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let kind = RoutineKind::Library;
    let (schema, name) = host.qualify(&create.name)?;
    let language = create.language.text.to_uppercase();
    if language == "SQL" {
        return Err(Error::not_supported("libraries in SQL"));
    }
    match host.language(&language) {
        Some(language) => language.check_library(&name, &create.source)?,
        None => warn_of_language(host),
    }
    let Some(collation) = check_new_name(host, create.flags, kind, &schema, &name)? else {
        return host.send_ok(sink, OkInfo::default());
    };
    let routine = Routine {
        body: (*create.source).into(),
        external: Some(External { language: language.into(), libraries: Vec::new() }),
        comment: create.comment.as_deref().unwrap_or("").into(),
        definer: host.account().to_string().into(),
        ..new_routine(host, schema, name, kind, collation)
    };
    crate::routine::store_new(host, routine, sink)
}

/// ALTER LIBRARY: its comment.
///
/// # Errors
/// 1305, 1370.
pub fn alter_library<H: DefinitionHost + ?Sized>(
    host: &mut H,
    alter: &ast::AlterLibrary,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let kind = RoutineKind::Library;
    let (schema, name) = host.qualify(&alter.name)?;
    host.check_writable(&schema)?;
    host.require_on_routine(&schema, kind, &name, PrivilegeSet::ALTER_ROUTINE)?;
    let mut routine = Routine::clone(&*find_routine(&host.snapshot(), &schema, kind, &name)?);
    routine.comment = (*alter.comment).into();
    routine.altered_micros = host.facts().now_micros;
    host.commit(&[catalog::Edit::PutRoutine(Arc::new(routine))], sink)
}

/// DROP LIBRARY.
///
/// # Errors
/// 1305, 1370.
pub fn drop_library<H: DefinitionHost + ?Sized>(
    host: &mut H,
    drop: &DropObject,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    drop_one(host, RoutineKind::Library, &drop.name, drop.if_exists, sink)
}

/// The text after AS in a dollar quote that it does not contain. A text of digits from a hexadecimal literal becomes that literal again.
pub(crate) fn quoted_source(language: &str, source: &str) -> String {
    let is_hex = |digits: &str| {
        digits.len().is_multiple_of(2) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    if source.strip_prefix("0x").is_some_and(is_hex) {
        return source.to_owned();
    }
    let holds = |tag: &str| source.contains(tag) || source.ends_with('$');
    if !holds("$$") {
        return format!("$${source}$$");
    }
    let mut tag = format!("${language}$");
    let mut number = 0;
    while source.contains(&tag) {
        number += 1;
        tag = format!("${language}{number}$");
    }
    debug_assert!(!source.contains(&tag));
    format!("{tag}{source}{tag}")
}

#[cfg(test)]
mod tests {
    use super::quoted_source;

    #[test]
    fn a_source_is_quoted_by_a_tag_that_it_does_not_contain() {
        assert_eq!(quoted_source("JS", "return a"), "$$return a$$");
        assert_eq!(quoted_source("JS", ""), "$$$$");
        assert_eq!(quoted_source("JS", "a $$ b"), "$JS$a $$ b$JS$");
        // The lexer ends a text at the first mark.
        assert_eq!(quoted_source("JS", "a $"), "$JS$a $$JS$");
        assert_eq!(quoted_source("JS", "$$ $JS$"), "$JS1$$$ $JS$$JS1$");
        assert_eq!(quoted_source("WASM", "0x6162"), "0x6162");
        assert_eq!(quoted_source("WASM", "0x616"), "$$0x616$$");
    }
}
