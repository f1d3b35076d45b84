//! Routines in SHOW and the information tables.

use std::sync::Arc;

use catalog::{AccountName, EffectivePrivileges, External, PrivilegeSet, Routine, RoutineKind};
use definitions::{literal, quote, quote_for, type_text};
use errors::{Result, err};
use plugin_api::{ColumnMeta, ParameterView, ResultSink, RoutineView, ValueRow};
use syntax::ast::ObjectName;
use types::{CollationId, DataType, SqlMode, TypeKind, Value};

use crate::external::quoted_source;
use crate::host::ProgramHost;
use crate::system_routine::routine_of;

/// How much of a routine an account may see.
pub enum RoutineVisibility {
    /// Not even that it exists.
    Hidden,
    /// That it exists, but not its text.
    NameOnly,
    /// Its text too.
    Full,
}

/// Returns how much of a routine an account may see.
pub fn visibility_of(
    routine: &Routine,
    privileges: &EffectivePrivileges,
    account: &AccountName,
) -> RoutineVisibility {
    let held = privileges.on_routine(&routine.schema, routine.kind, &routine.name);
    let listed = PrivilegeSet::ALL_ROUTINE | PrivilegeSet::CREATE_ROUTINE;
    if *routine.definer == *account.to_string()
        || privileges.has_dynamic("SHOW_ROUTINE")
        || privileges.global().contains(PrivilegeSet::SELECT)
    {
        RoutineVisibility::Full
    } else if held.intersects(listed) {
        RoutineVisibility::NameOnly
    } else {
        RoutineVisibility::Hidden
    }
}

/// RETURNS with the character set of a text.
fn returns_text(ty: &DataType) -> String {
    let charset = charset::collation(ty.collation).filter(|_| ty.is_text());
    match charset {
        Some(collation) => format!(" RETURNS {} CHARSET {}", type_text(ty), collation.charset.name),
        None => format!(" RETURNS {}", type_text(ty)),
    }
}

/// The text of SHOW CREATE PROCEDURE.
fn create_text(routine: &Routine) -> String {
    let definer = accounts::parse_account(&routine.definer);
    // As the text that it was made with.
    let quote =
        |name: &str| quote_for(SqlMode(routine.sql_mode).contains(SqlMode::ANSI_QUOTES), name);
    let mut text = format!(
        "CREATE DEFINER={}@{} {} {}({}){}\n",
        quote(&definer.user),
        quote(&definer.host),
        routine.kind.as_str(),
        quote(&routine.name),
        routine.parameter_text,
        routine.returns.as_ref().map_or_else(String::new, |(_, ty)| returns_text(ty))
    );
    if &*routine.data_access != "CONTAINS SQL" {
        text.push_str(&format!("    {}\n", routine.data_access));
    }
    if routine.deterministic {
        text.push_str("    DETERMINISTIC\n");
    }
    if routine.invoker {
        text.push_str("    SQL SECURITY INVOKER\n");
    }
    match &routine.external {
        Some(external) => {
            text.push_str(&format!("    LANGUAGE {}\n", external.language));
            push_comment(&mut text, routine);
            push_libraries(&mut text, external);
            text.push_str(&format!("AS {}", quoted_source(&external.language, &routine.body)));
        }
        None => {
            push_comment(&mut text, routine);
            text.push_str(&routine.body);
        }
    }
    text
}

fn push_comment(text: &mut String, routine: &Routine) {
    if !routine.comment.is_empty() {
        text.push_str(&format!("    COMMENT {}\n", literal(&routine.comment)));
    }
}

fn push_libraries(text: &mut String, external: &External) {
    if external.libraries.is_empty() {
        return;
    }
    let used = external.libraries.iter().map(|library| {
        let alias = library.alias.as_deref().map(|alias| format!(" AS {}", quote(alias)));
        let (schema, name) = (quote(&library.schema), quote(&library.name));
        format!("{schema}.{name}{}", alias.unwrap_or_default())
    });
    text.push_str(&format!("    USING ({})\n", used.collect::<Vec<_>>().join(", ")));
}

/// The text of SHOW CREATE LIBRARY.
fn library_text(library: &Routine) -> String {
    let mut text = format!("CREATE LIBRARY {}\n", quote(&library.name));
    push_comment(&mut text, library);
    let language = library.external.as_ref().map_or("", |external| &external.language);
    let source = quoted_source(language, &library.body);
    text.push_str(&format!("    LANGUAGE {language}\nAS {source}"));
    text
}

/// A routine as information tables see it; `full`: its text may be seen.
pub fn routine_view(routine: &Routine, full: bool) -> RoutineView {
    let parameter = |parameter: &catalog::RoutineParameter| ParameterView {
        name: parameter.name.to_string(),
        mode: parameter.mode.to_string(),
        type_text: type_text(&parameter.ty),
        ty: parameter.ty.clone(),
    };
    RoutineView {
        schema: routine.schema.to_string(),
        name: routine.name.to_string(),
        kind: routine.kind.as_str(),
        parameters: routine.parameters.iter().map(parameter).collect(),
        returns: routine.returns.as_ref().map(|(_, ty)| ParameterView {
            name: String::new(),
            mode: String::new(),
            type_text: type_text(ty),
            ty: ty.clone(),
        }),
        body: full.then(|| routine.body.to_string()),
        language: routine.external.as_ref().map_or("SQL", |own| &own.language).to_owned(),
        libraries: routine.external.as_ref().map_or_else(Vec::new, |own| {
            let used = own.libraries.iter();
            used.map(|library| (library.schema.to_string(), library.name.to_string())).collect()
        }),
        definer: routine.definer.to_string(),
        security: if routine.invoker { "INVOKER" } else { "DEFINER" },
        deterministic: routine.deterministic,
        data_access: routine.data_access.to_string(),
        comment: routine.comment.to_string(),
        sql_mode: SqlMode(routine.sql_mode).to_text(),
        created_micros: routine.created_micros,
        altered_micros: routine.altered_micros,
        session_charset: routine.charset_client.to_string(),
        session_collation: routine.collation_connection.to_string(),
        database_collation: charset::collation_or_binary(routine.database_collation)
            .name
            .to_owned(),
    }
}

/// The columns of SHOW CREATE for a program: its name under `title`, its text under `create`, and the settings of its creation.
pub(crate) fn create_columns(title: &str, create: &str) -> [ColumnMeta; 6] {
    let text = |length| DataType::varchar(length, CollationId::UTF8MB4_0900_AI_CI);
    let column =
        |name: &str, length: u32| ColumnMeta::computed(name, text(length).with_nullable(false));
    let long = DataType {
        collation: CollationId::UTF8MB4_0900_AI_CI,
        ..DataType::new(TypeKind::LongText, u32::MAX, 0)
    };
    [
        column(title, 64),
        column("sql_mode", 256),
        ColumnMeta::computed(create, long),
        column("character_set_client", 32),
        column("collation_connection", 32),
        column("Database Collation", 32),
    ]
}

/// SHOW CREATE PROCEDURE and SHOW CREATE FUNCTION.
///
/// # Errors
/// 1305.
pub fn show_create_routine<H: ProgramHost + ?Sized>(
    host: &mut H,
    name: &ObjectName,
    kind: RoutineKind,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let (routine, is_full) = shown_routine(host, name, kind)?;
    let columns = match kind {
        RoutineKind::Procedure => create_columns("Procedure", "Create Procedure"),
        RoutineKind::Function | RoutineKind::Library => {
            create_columns("Function", "Create Function")
        }
    };
    let view = routine_view(&routine, true);
    let row = vec![
        Value::text(&routine.name),
        Value::text(&view.sql_mode),
        if is_full { Value::text(&create_text(&routine)) } else { Value::Null },
        Value::text(&view.session_charset),
        Value::text(&view.session_collation),
        Value::text(&view.database_collation),
    ];
    send_row(host, sink, &columns, &row)
}

/// A routine or library that the account may see, and whether it may see its text.
fn shown_routine<H: ProgramHost + ?Sized>(
    host: &H,
    name: &ObjectName,
    kind: RoutineKind,
) -> Result<(Arc<Routine>, bool)> {
    let (schema, name) = host.qualify(name)?;
    let snapshot = host.snapshot();
    let system = host.system_procedure(&schema, &name).filter(|_| kind == RoutineKind::Procedure);
    let system = system.map(|found| routine_of(&found).map(Arc::new)).transpose()?;
    let known = system.as_ref().or_else(|| snapshot.routine(&schema, kind, &name));
    let visible = known.map(|routine| visibility_of(routine, host.privileges(), host.account()));
    match (known, visible) {
        (Some(routine), Some(RoutineVisibility::Full)) => Ok((routine.clone(), true)),
        (Some(routine), Some(RoutineVisibility::NameOnly)) => Ok((routine.clone(), false)),
        (_, Some(RoutineVisibility::Hidden) | None) | (None, Some(_)) => {
            Err(err!(SP_DOES_NOT_EXIST, kind.as_str(), name))
        }
    }
}

/// SHOW CREATE LIBRARY.
///
/// # Errors
/// 1305.
pub fn show_create_library<H: ProgramHost + ?Sized>(
    host: &mut H,
    name: &ObjectName,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let (library, is_full) = shown_routine(host, name, RoutineKind::Library)?;
    let columns = create_columns("Library", "Create Library");
    let row = [
        Value::text(&library.name),
        Value::text(&SqlMode(library.sql_mode).to_text()),
        if is_full { Value::text(&library_text(&library)) } else { Value::Null },
    ];
    send_row(host, sink, &columns[..3], &row)
}

/// Sends a result set of one row.
pub(crate) fn send_row<H: ProgramHost + ?Sized>(
    host: &mut H,
    sink: &mut dyn ResultSink,
    columns: &[ColumnMeta],
    row: &[Value],
) -> Result<()> {
    let state = host.state_info();
    sink.columns(columns)?;
    sink.row(&ValueRow(row))?;
    sink.end(&state)
}
