//! Stored procedures and functions: their definitions here, CALL in `call`, calls of functions in `function`, triggers in `trigger`,
//! programs that run while a statement runs in `within`, their statements in `run`, handlers in `conditions`, variables and cursors in `frame`.

mod call;
mod conditions;
pub(crate) mod event;
pub(crate) mod frame;
mod function;
mod load;
mod run;
pub(crate) mod show;
mod trigger;
mod within;

use ::accounts::PrivilegeChecks;
use std::sync::Arc;

use catalog::{Account, Edit, PrivilegeSet, Routine, RoutineKind, routine_grant_key};
use errors::{Error, ErrorCode, Result, bail, err};
use plugin_api::{OkInfo, ResultSink};
use syntax::ast::{self, BodyKind, CreateRoutine, DataAccess, RoutineOptions, SqlSecurity};

pub(crate) use load::Programs;
pub(crate) use trigger::{follow_tables, trigger_view};

use crate::session::Session;
use crate::statement::Running;

/// Longest name of a routine, characters.
const NAME_CHARS_MAX: usize = 64;

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

impl Session {
    /// CREATE PROCEDURE and CREATE FUNCTION.
    pub(crate) fn create_routine(
        &mut self,
        create: &CreateRoutine,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        if matches!(create.body.kind, BodyKind::External(_)) {
            return Err(Error::not_supported("stored programs in other languages"));
        }
        let kind = kind_of(create.kind);
        let (schema, name) = self.qualify(&create.name)?;
        if create.aggregate {
            return Err(Error::not_supported("aggregate stored functions"));
        }
        if kind == RoutineKind::Function && !create.has_return {
            bail!(SP_NORETURN, format!("{schema}.{name}"));
        }
        if name.is_empty() || name.ends_with(' ') {
            bail!(SP_WRONG_NAME, name);
        }
        if name.chars().count() > NAME_CHARS_MAX {
            bail!(TOO_LONG_IDENT, name);
        }
        self.require_on_schema(&schema, PrivilegeSet::CREATE_ROUTINE)?;
        self.check_writable()?;
        let snapshot = self.server.catalog.snapshot();
        let known = snapshot.schema(&schema).ok_or_else(|| err!(BAD_DB_ERROR, schema))?;
        if snapshot.routine(&schema, kind, &name).is_some() && !create.flags.or_replace {
            if !create.flags.if_not_exists {
                bail!(SP_ALREADY_EXISTS, kind.as_str(), name);
            }
            self.working.note(ErrorCode::SP_ALREADY_EXISTS, &[&kind.as_str(), &name]);
            return self.send_ok(sink, OkInfo::default());
        }
        let definer = self.definer_text(create.definer.as_ref())?;
        let text = |span: ast::Span| {
            Arc::<str>::from(String::from_utf8_lossy(span.of(running.source)).trim_end())
        };
        let now = self.statement_micros();
        let options = &create.options;
        let routine = Routine {
            parameters: self.routine_parameters(create, known.default_collation)?,
            returns: self.routine_returns(create, known.default_collation, running)?,
            schema,
            name,
            kind,
            parameter_text: text(create.params_span),
            body: text(create.body.span),
            definer,
            invoker: options.security == Some(SqlSecurity::Invoker),
            deterministic: options.deterministic == Some(true),
            data_access: access_text(options.data_access).into(),
            comment: options.comment.as_deref().unwrap_or("").into(),
            sql_mode: self.settings.sql_mode.0,
            created_micros: now,
            altered_micros: now,
            charset_client: self.session_text("character_set_client").into(),
            collation_connection: self.settings.collation_connection.name.into(),
            database_collation: known.default_collation,
        };
        if kind == RoutineKind::Function
            && self.server.registry.function(&routine.name.to_ascii_uppercase()).is_some()
        {
            self.working.note(ErrorCode::NATIVE_FCT_NAME_COLLISION, &[&routine.name]);
        }
        // What cannot be run is not kept: types that do not exist are found now.
        self.load_routine(&Arc::new(routine.clone()))?;
        let grant = self.grant_to_maker(&routine.schema, kind, &routine.name);
        let edits: Vec<_> =
            [Edit::PutRoutine(Arc::new(routine))].into_iter().chain(grant).collect();
        self.commit_routine(&edits, sink)
    }

    /// The time that the statement goes by: the clock's, or what SET timestamp says.
    fn statement_micros(&self) -> i64 {
        self.services.fixed_now_micros.unwrap_or(self.started_micros)
    }

    /// The definer of a new program.
    ///
    /// # Errors
    /// 1227 when it is somebody else and the account may not name others.
    fn definer_text(&mut self, written: Option<&ast::UserName>) -> Result<Arc<str>> {
        let own = self.account.to_string();
        let definer = match written {
            Some(user) if !user.current => {
                format!("{}@{}", user.user, user.host.as_deref().unwrap_or("%"))
            }
            _ => own.clone(),
        };
        if definer != own {
            self.require_dynamic("SET_ANY_DEFINER")?;
            let account = ::accounts::parse_account(&definer);
            if self.server.catalog.snapshot().accounts().get(&account).is_none() {
                let no_such_user = ErrorCode::NO_SUCH_USER;
                self.working.note(no_such_user, &[&account.user, &account.host]);
            }
        }
        Ok(definer.into())
    }

    /// ALTER PROCEDURE: its characteristics.
    pub(crate) fn alter_routine(
        &mut self,
        alter: &ast::AlterRoutine,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let kind = kind_of(alter.kind);
        let (schema, name) = self.qualify(&alter.name)?;
        self.check_writable()?;
        self.require_on_routine(&schema, kind, &name, PrivilegeSet::ALTER_ROUTINE)?;
        let known = self.find_routine(&schema, kind, &name)?;
        self.require_over_definer(&known.definer)?;
        let mut routine = Routine::clone(&known);
        let RoutineOptions { comment, data_access, security, .. } = &alter.options;
        if let Some(comment) = comment {
            routine.comment = Arc::from(&**comment);
        }
        if data_access.is_some() {
            routine.data_access = access_text(*data_access).into();
        }
        if let Some(security) = security {
            routine.invoker = *security == SqlSecurity::Invoker;
        }
        routine.altered_micros = self.statement_micros();
        self.commit_routine(&[Edit::PutRoutine(Arc::new(routine))], sink)
    }

    /// DROP PROCEDURE and DROP FUNCTION.
    pub(crate) fn drop_routine(
        &mut self,
        drop: &ast::DropRoutine,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let kind = kind_of(drop.kind);
        let (schema, name) = self.qualify(&drop.name)?;
        self.check_writable()?;
        let snapshot = self.server.catalog.snapshot();
        self.require_on_routine(&schema, kind, &name, PrivilegeSet::ALTER_ROUTINE)?;
        let Some(known) = snapshot.routine(&schema, kind, &name) else {
            let shown = format!("{schema}.{name}");
            if !drop.if_exists {
                bail!(SP_DOES_NOT_EXIST, kind.as_str(), shown);
            }
            self.working.note(ErrorCode::SP_DOES_NOT_EXIST, &[&kind.as_str(), &shown]);
            return self.send_ok(sink, OkInfo::default());
        };
        self.require_over_definer(&known.definer)?;
        let mut edits = self.revoke_of_dropped(&schema, kind, &name);
        edits.push(Edit::DropRoutine { schema, kind, name });
        self.commit_routine(&edits, sink)
    }

    fn commit_routine(&mut self, edits: &[Edit], sink: &mut dyn ResultSink) -> Result<()> {
        let commit = self.commit_definitions(edits)?;
        if edits.len() > 1 {
            self.refresh_privileges();
        }
        self.services.row_count = 0;
        self.send_ok(sink, OkInfo { commit: Some(commit), ..OkInfo::default() })
    }

    /// What lets the maker of a routine run and change it (`automatic_sp_privileges`), when the account may not anyway.
    fn grant_to_maker(&self, schema: &str, kind: RoutineKind, name: &str) -> Option<Edit> {
        let held = self.privileges.on_routine(schema, kind, name);
        let snapshot = self.server.catalog.snapshot();
        let known = snapshot.accounts().get(&self.account)?;
        if self.server.globals.integer("automatic_sp_privileges") == 0
            || held.contains(PrivilegeSet::ALL_ROUTINE)
        {
            return None;
        }
        let mut account = Account::clone(known);
        let key = routine_grant_key(schema, kind, name);
        *account.routines.entry(key).or_default() |= PrivilegeSet::ALL_ROUTINE;
        Some(Edit::PutAccount(account))
    }

    /// What takes everybody's privileges on a routine that goes away (`automatic_sp_privileges`).
    fn revoke_of_dropped(&self, schema: &str, kind: RoutineKind, name: &str) -> Vec<Edit> {
        if self.server.globals.integer("automatic_sp_privileges") == 0 {
            return Vec::new();
        }
        let key = routine_grant_key(schema, kind, name);
        let snapshot = self.server.catalog.snapshot();
        let holders = snapshot.accounts().iter().filter(|one| one.routines.contains_key(&key));
        let without = |account: &Arc<Account>| {
            let mut account = Account::clone(account);
            account.routines.remove(&key);
            Edit::PutAccount(account)
        };
        holders.map(without).collect()
    }

    /// 1227 unless the account may change what a SYSTEM_USER has made.
    fn require_over_definer(&self, definer: &str) -> Result<()> {
        let snapshot = self.server.catalog.snapshot();
        let account = ::accounts::parse_account(definer);
        let is_system = |account: &Arc<Account>| account.dynamic.contains_key("SYSTEM_USER");
        if snapshot.accounts().get(&account).is_some_and(is_system)
            && !self.privileges.has_dynamic("SYSTEM_USER")
        {
            bail!(SPECIFIC_ACCESS_DENIED_ERROR, "SYSTEM_USER");
        }
        Ok(())
    }

    /// A routine that must exist.
    fn find_routine(&self, schema: &str, kind: RoutineKind, name: &str) -> Result<Arc<Routine>> {
        let snapshot = self.server.catalog.snapshot();
        let known = snapshot.routine(schema, kind, name).cloned();
        known.ok_or_else(|| err!(SP_DOES_NOT_EXIST, kind.as_str(), format!("{schema}.{name}")))
    }
}
