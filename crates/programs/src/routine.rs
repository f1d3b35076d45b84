//! CREATE, ALTER and DROP of procedures, functions and libraries, and the right to define programs for another account.

use std::sync::Arc;

use catalog::{
    Account, CatalogSnapshot, Edit, PrivilegeSet, Routine, RoutineKind, routine_grant_key,
};
use errors::{Error, ErrorCode, Result, bail, err};
use plugin_api::{OkInfo, ResultSink};
use syntax::ast::{self, BodyKind, CreateRoutine, DataAccess, RoutineOptions, SqlSecurity};
use types::CollationId;

use crate::external::{altered_external, check_external, external_of, warn_of_language};
use crate::host::DefinitionHost;
use crate::load::{load_routine, routine_parameters, routine_returns};
use crate::running::Running;

/// Maximum length of a routine name in characters.
pub(crate) const NAME_CHARS_MAX: usize = 64;

/// The catalog's word for a kind of routine.
fn kind_of(kind: ast::RoutineKind) -> RoutineKind {
    match kind {
        ast::RoutineKind::Procedure => RoutineKind::Procedure,
        ast::RoutineKind::Function => RoutineKind::Function,
    }
}

fn access_text(access: Option<DataAccess>) -> &'static str {
    match access {
        None | Some(DataAccess::ContainsSql) => "CONTAINS SQL",
        Some(DataAccess::NoSql) => "NO SQL",
        Some(DataAccess::ReadsSqlData) => "READS SQL DATA",
        Some(DataAccess::ModifiesSqlData) => "MODIFIES SQL DATA",
    }
}

/// CREATE PROCEDURE and CREATE FUNCTION.
///
/// # Errors
/// 1304, 1064, missing privileges, types that do not exist.
pub fn create_routine<H: DefinitionHost + ?Sized>(
    host: &mut H,
    create: &CreateRoutine,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let kind = kind_of(create.kind);
    let (schema, name) = host.qualify(&create.name)?;
    if create.aggregate {
        return Err(Error::not_supported("aggregate stored functions"));
    }
    let external = external_of(host, &create.options)?;
    if kind == RoutineKind::Function && external.is_none() && !create.has_return {
        bail!(SP_NORETURN, format!("{schema}.{name}"));
    }
    if external.as_ref().is_some_and(|external| host.language(&external.language).is_none()) {
        warn_of_language(host);
    }
    let Some(collation) = check_new_name(host, create.flags, kind, &schema, &name)? else {
        return host.send_ok(sink, OkInfo::default());
    };
    let definer = definer_text(host, create.definer.as_ref())?;
    let text = |span: ast::Span| {
        Arc::<str>::from(String::from_utf8_lossy(span.of(running.source)).trim_end())
    };
    let mode = host.settings().sql_mode;
    let options = &create.options;
    let routine = Routine {
        parameters: routine_parameters(mode, create, collation)?,
        returns: routine_returns(mode, create, collation, running)?,
        parameter_text: text(create.params_span),
        body: match &create.body.kind {
            BodyKind::Sql(_) => text(create.body.span),
            BodyKind::External(source) => (**source).into(),
        },
        definer,
        invoker: options.security == Some(SqlSecurity::Invoker),
        deterministic: options.deterministic == Some(true),
        data_access: access_text(options.data_access).into(),
        comment: options.comment.as_deref().unwrap_or("").into(),
        ..new_routine(host, schema, name, kind, collation)
    };
    let routine = Routine { external, ..routine };
    if kind == RoutineKind::Function && host.has_native_function(&routine.name) {
        host.conditions().working.note(ErrorCode::NATIVE_FCT_NAME_COLLISION, &[&routine.name]);
    }
    // A routine that cannot run is not stored: types that do not exist are found now.
    match &routine.external {
        Some(external) => check_external(host, &routine, external)?,
        None => {
            load_routine(&|name| host.has_variable(name), &Arc::new(routine.clone()))?;
        }
    }
    store_new(host, routine, sink)
}

/// Checks that a routine or library of this name may be created now, and returns the collation of its schema; `None` when one exists
/// and that is no error.
///
/// # Errors
/// 1304, 1458, 1059, 1044, 1049.
pub(crate) fn check_new_name<H: DefinitionHost + ?Sized>(
    host: &mut H,
    flags: ast::CreateFlags,
    kind: RoutineKind,
    schema: &str,
    name: &str,
) -> Result<Option<CollationId>> {
    if name.is_empty() || name.ends_with(' ') {
        bail!(SP_WRONG_NAME, name);
    }
    if name.chars().count() > NAME_CHARS_MAX {
        bail!(TOO_LONG_IDENT, name);
    }
    host.require_on_schema(schema, PrivilegeSet::CREATE_ROUTINE)?;
    host.check_writable(schema)?;
    let snapshot = host.snapshot();
    let known = snapshot.schema(schema).ok_or_else(|| err!(BAD_DB_ERROR, schema))?;
    if snapshot.routine(schema, kind, name).is_some() && !flags.or_replace {
        if !flags.if_not_exists {
            bail!(SP_ALREADY_EXISTS, kind.as_str(), name);
        }
        host.conditions().working.note(ErrorCode::SP_ALREADY_EXISTS, &[&kind.as_str(), &name]);
        return Ok(None);
    }
    Ok(Some(known.options.collation))
}

/// A routine without parameters and body, with the settings of the session that creates it.
pub(crate) fn new_routine<H: DefinitionHost + ?Sized>(
    host: &H,
    schema: Arc<str>,
    name: Arc<str>,
    kind: RoutineKind,
    collation: CollationId,
) -> Routine {
    let facts = host.facts();
    Routine {
        schema,
        name,
        kind,
        parameter_text: "".into(),
        parameters: Vec::new(),
        returns: None,
        body: "".into(),
        external: None,
        definer: "".into(),
        invoker: false,
        deterministic: false,
        data_access: access_text(None).into(),
        comment: "".into(),
        sql_mode: host.settings().sql_mode.0,
        created_micros: facts.now_micros,
        altered_micros: facts.now_micros,
        charset_client: facts.charset_client,
        collation_connection: host.settings().collation_connection.name.into(),
        database_collation: collation,
    }
}

/// Stores a new routine or library, and lets its creator use it.
pub(crate) fn store_new<H: DefinitionHost + ?Sized>(
    host: &mut H,
    routine: Routine,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let grant = grant_to_maker(host, &routine.schema, routine.kind, &routine.name);
    let edits: Vec<_> = [Edit::PutRoutine(Arc::new(routine))].into_iter().chain(grant).collect();
    host.commit(&edits, sink)
}

/// The definer of a new program.
///
/// # Errors
/// 1227 when it is another account and this one may not name others.
pub(crate) fn definer_text<H: DefinitionHost + ?Sized>(
    host: &mut H,
    written: Option<&ast::UserName>,
) -> Result<Arc<str>> {
    let own = host.account().to_string();
    let definer = match written {
        Some(user) if !user.current => {
            accounts::check_lengths(user)?;
            format!("{}@{}", user.user, user.host.as_deref().unwrap_or("%"))
        }
        _ => own.clone(),
    };
    if definer != own {
        host.require_dynamic("SET_ANY_DEFINER")?;
        let account = accounts::parse_account(&definer);
        if host.snapshot().accounts().get(&account).is_none() {
            let no_such_user = ErrorCode::NO_SUCH_USER;
            host.conditions().working.note(no_such_user, &[&account.user, &account.host]);
        }
    }
    Ok(definer.into())
}

/// ALTER PROCEDURE: its characteristics.
///
/// # Errors
/// 1305, 1370.
pub fn alter_routine<H: DefinitionHost + ?Sized>(
    host: &mut H,
    alter: &ast::AlterRoutine,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let kind = kind_of(alter.kind);
    let (schema, name) = host.qualify(&alter.name)?;
    host.check_writable(&schema)?;
    host.require_on_routine(&schema, kind, &name, PrivilegeSet::ALTER_ROUTINE)?;
    let known = find_routine(&host.snapshot(), &schema, kind, &name)?;
    require_over_definer(host, &known.definer)?;
    let mut routine = Routine::clone(&known);
    let RoutineOptions { comment, data_access, security, .. } = &alter.options;
    routine.external = altered_external(host, &known, &alter.options)?;
    if let Some(comment) = comment {
        routine.comment = Arc::from(&**comment);
    }
    if data_access.is_some() {
        routine.data_access = access_text(*data_access).into();
    }
    if let Some(security) = security {
        routine.invoker = *security == SqlSecurity::Invoker;
    }
    routine.altered_micros = host.facts().now_micros;
    host.commit(&[Edit::PutRoutine(Arc::new(routine))], sink)
}

/// DROP PROCEDURE and DROP FUNCTION.
///
/// # Errors
/// 1305, 1370.
pub fn drop_routine<H: DefinitionHost + ?Sized>(
    host: &mut H,
    drop: &ast::DropRoutine,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    drop_one(host, kind_of(drop.kind), &drop.name, drop.if_exists, sink)
}

/// Drops a routine or library.
///
/// # Errors
/// 1305, 1370.
pub(crate) fn drop_one<H: DefinitionHost + ?Sized>(
    host: &mut H,
    kind: RoutineKind,
    name: &ast::ObjectName,
    if_exists: bool,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let (schema, name) = host.qualify(name)?;
    host.check_writable(&schema)?;
    let snapshot = host.snapshot();
    host.require_on_routine(&schema, kind, &name, PrivilegeSet::ALTER_ROUTINE)?;
    let Some(known) = snapshot.routine(&schema, kind, &name) else {
        let shown = format!("{schema}.{name}");
        if !if_exists {
            bail!(SP_DOES_NOT_EXIST, kind.as_str(), shown);
        }
        host.conditions().working.note(ErrorCode::SP_DOES_NOT_EXIST, &[&kind.as_str(), &shown]);
        return host.send_ok(sink, OkInfo::default());
    };
    require_over_definer(host, &known.definer)?;
    let mut edits = revoke_of_dropped(host, &schema, kind, &name);
    edits.push(Edit::DropRoutine { schema, kind, name });
    host.commit(&edits, sink)
}

/// The grants that let the creator of a routine run and change it (`automatic_sp_privileges`), unless the account may already.
fn grant_to_maker<H: DefinitionHost + ?Sized>(
    host: &H,
    schema: &str,
    kind: RoutineKind,
    name: &str,
) -> Option<Edit> {
    let held = host.privileges().on_routine(schema, kind, name);
    let snapshot = host.snapshot();
    let known = snapshot.accounts().get(host.account())?;
    if !host.grants_to_makers() || held.contains(PrivilegeSet::ALL_ROUTINE) {
        return None;
    }
    let mut account = Account::clone(known);
    let key = routine_grant_key(schema, kind, name);
    *account.routines.entry(key).or_default() |= PrivilegeSet::ALL_ROUTINE;
    Some(Edit::PutAccount(account))
}

/// The edits that revoke all accounts' privileges on a dropped routine (`automatic_sp_privileges`).
fn revoke_of_dropped<H: DefinitionHost + ?Sized>(
    host: &H,
    schema: &str,
    kind: RoutineKind,
    name: &str,
) -> Vec<Edit> {
    if !host.grants_to_makers() {
        return Vec::new();
    }
    let key = routine_grant_key(schema, kind, name);
    let snapshot = host.snapshot();
    let holders = snapshot.accounts().iter().filter(|one| one.routines.contains_key(&key));
    let without = |account: &Arc<Account>| {
        let mut account = Account::clone(account);
        account.routines.remove(&key);
        Edit::PutAccount(account)
    };
    holders.map(without).collect()
}

/// 1227 unless the account may change an object made by a SYSTEM_USER.
pub(crate) fn require_over_definer<H: DefinitionHost + ?Sized>(
    host: &H,
    definer: &str,
) -> Result<()> {
    let snapshot = host.snapshot();
    let account = accounts::parse_account(definer);
    let is_system = |account: &Arc<Account>| account.dynamic.contains_key("SYSTEM_USER");
    if snapshot.accounts().get(&account).is_some_and(is_system)
        && !host.privileges().has_dynamic("SYSTEM_USER")
    {
        bail!(SPECIFIC_ACCESS_DENIED_ERROR, "SYSTEM_USER");
    }
    Ok(())
}

/// A routine that must exist.
pub(crate) fn find_routine(
    snapshot: &CatalogSnapshot,
    schema: &str,
    kind: RoutineKind,
    name: &str,
) -> Result<Arc<Routine>> {
    let known = snapshot.routine(schema, kind, name).cloned();
    known.ok_or_else(|| err!(SP_DOES_NOT_EXIST, kind.as_str(), format!("{schema}.{name}")))
}
