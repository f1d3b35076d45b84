//! Checks the assignments of SET, and computes the values.

use ::accounts::PrivilegeChecks;
use errors::{Condition, Error, ErrorCode, Level, Result, bail, err};
use syntax::ast::{Expr, ExprKind, Ident, VarScope};
use types::Value;
use variables::{
    Definition, Globals, KeyCachePart, Kind, Scope, VariableId, as_text, as_u64, convert, shown,
};

use super::{Assignment, log_options};
use crate::server::Server;
use crate::session::Session;
use programs::Running;

/// Variables that sessions show but only SET GLOBAL changes.
const GLOBAL_TO_SET: &[&str] = &["max_allowed_packet", "max_user_connections", "net_buffer_length"];

/// The assignments of a statement that are checked so far.
pub(super) struct Checker<'a> {
    pub(super) session: &'a mut Session,
    pub(super) assignments: Vec<Assignment>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(session: &'a mut Session) -> Checker<'a> {
        Checker { session, assignments: Vec::new() }
    }

    /// One `[scope] name = value`.
    pub(super) fn check_variable(
        &mut self,
        scope: Option<VarScope>,
        at_at: bool,
        name: &Ident,
        value: &Expr,
        running: &Running<'_>,
    ) -> Result<()> {
        let definitions = &self.session.server.globals.definitions;
        let Some(id) = definitions.find(&name.text) else {
            return self.check_key_cache(scope, name, value, running);
        };
        let id = definitions.canonical(id);
        let definition = definitions.get(id);
        check_scope(self.session, definition, scope)?;
        log_options::check(self.session, definition.name)?;
        if definition.name == "gtid_purged" {
            check_gtid_purged(self.session, scope, value)?;
        }
        if let Some((code, message)) = variables::warning_of_set(definition.name) {
            let condition = Condition::new(Level::Warning, code, code.sqlstate(), message);
            self.session.working.push(condition);
        }
        let is_global =
            matches!(scope, Some(VarScope::Global | VarScope::Persist | VarScope::System));
        let wanted = match &value.kind {
            ExprKind::Default(None) => None,
            // Bare words: ON, BINARY, utf8mb4.
            ExprKind::Column(column) if column.table.is_none() => {
                Some(Value::text(&column.name.text))
            }
            _ => Some(self.session.evaluate(value, running)?.0),
        };
        let value = match wanted {
            Some(wanted) => self.converted(id, definition, &wanted, is_global)?,
            None => {
                let value = default_of(&self.session.server.globals, id, definition, scope);
                self.check_account_rule(definition.name, &value)?;
                // As in the reference.
                if definition.kind != Kind::SqlMode {
                    self.note(definition, &value);
                }
                value
            }
        };
        self.assignments.push(match scope {
            Some(VarScope::Global) => Assignment::Global { id, value },
            Some(VarScope::Persist) => Assignment::Persist { id, value, only: false },
            Some(VarScope::PersistOnly) => Assignment::Persist { id, value, only: true },
            Some(VarScope::System) => Assignment::Rebind { id, value },
            None if at_at
                && definition.name.starts_with("transaction_")
                && matches!(definition.name, "transaction_isolation" | "transaction_read_only") =>
            {
                if self.session.transactions.explicit || self.session.transactions.is_started() {
                    bail!(CANT_CHANGE_TX_CHARACTERISTICS);
                }
                Assignment::NextTransaction { id, value }
            }
            Some(VarScope::Session) | None => Assignment::Session { id, value },
        });
        self.push_partner()
    }

    /// `cache.key_buffer_size` and its kin.
    fn check_key_cache(
        &mut self,
        scope: Option<VarScope>,
        name: &Ident,
        value: &Expr,
        running: &Running<'_>,
    ) -> Result<()> {
        let part = KeyCachePart::named(&name.text);
        let part = part.ok_or_else(|| err!(UNKNOWN_SYSTEM_VARIABLE, name.text))?;
        if scope != Some(VarScope::Global) {
            bail!(GLOBAL_VARIABLE, part.variable());
        }
        self.session.require_variable_admin()?;
        let wanted = match matches!(value.kind, ExprKind::Default(None)) {
            true => None,
            false => Some(self.session.evaluate(value, running)?.0),
        };
        let value = part.converted(wanted.as_ref(), &mut self.session.working)?;
        self.assignments.push(Assignment::KeyCache { part, value });
        Ok(())
    }

    /// The value that the variable takes; raises its warnings.
    fn converted(
        &mut self,
        id: VariableId,
        definition: &Definition,
        wanted: &Value,
        is_global: bool,
    ) -> Result<Value> {
        let current = if is_global {
            self.session.server.globals.get(id)
        } else {
            self.session.services.values.get(id).clone()
        };
        let converted = convert(definition, wanted, &current)?;
        if converted.truncated {
            let words: [&dyn std::fmt::Display; 2] = [&definition.name, &shown(wanted)];
            self.session.working.warn(ErrorCode::TRUNCATED_WRONG_VALUE, &words);
        }
        check_value(&self.session.server, definition, &converted.value)?;
        self.check_account_rule(definition.name, &converted.value)?;
        let is_encryption = ENCRYPTION_CHOICES.contains(&definition.name);
        if is_encryption && as_u64(&converted.value) != as_u64(&current) {
            self.session.require_encryption_admin()?;
        }
        let value = spelled(&self.session.server, definition, converted.value)?;
        let globals = &self.session.server.globals;
        globals.check(id, &value)?;
        let (value, reason) = globals.kept(id, value);
        if let Some(reason) = reason {
            self.session.working.push_error(Level::Warning, &reason);
        }
        self.note(definition, &value);
        log_options::note(self.session, definition.name, &value, is_global);
        Ok(value)
    }

    /// Raises the warnings about a value that is accepted.
    fn note(&mut self, definition: &Definition, value: &Value) {
        let session = &mut *self.session;
        let mode = session.settings.sql_mode;
        variables::note_value(definition.name, value, mode, &mut session.working);
    }

    /// Checks of variables about all accounts.
    fn check_account_rule(&self, name: &str, value: &Value) -> Result<()> {
        let snapshot = self.session.server.catalog.snapshot();
        let privileges = &self.session.privileges;
        ::accounts::check_rule(snapshot.accounts(), privileges, name, &as_text(value))
    }

    /// Character set and collation of a pair change together: the other one follows the last assignment.
    fn push_partner(&mut self) -> Result<()> {
        let definitions = &self.session.server.globals.definitions;
        let Some(
            Assignment::Session { id, value }
            | Assignment::Global { id, value }
            | Assignment::Persist { id, value, .. },
        ) = self.assignments.last()
        else {
            return Ok(());
        };
        let Some((id, value)) = definitions.partner(*id, &as_text(value))? else { return Ok(()) };
        self.assignments.push(match self.assignments.last() {
            Some(Assignment::Global { .. }) => Assignment::Global { id, value },
            Some(Assignment::Persist { only, .. }) => {
                Assignment::Persist { id, value, only: *only }
            }
            _ => Assignment::Session { id, value },
        });
        Ok(())
    }

    /// SET NAMES.
    pub(super) fn check_names(
        &mut self,
        charset: Option<&Ident>,
        collation: Option<&Ident>,
    ) -> Result<()> {
        let charset_name = match charset {
            Some(name) => name.text.to_string(),
            None => self.session.server.globals.text("character_set_client"),
        };
        let charset = definitions::find_charset(&charset_name)?;
        if charset.min_length() > 1 {
            bail!(WRONG_VALUE_FOR_VAR, "character_set_client", charset.name);
        }
        let collation = match collation {
            Some(name) => definitions::find_collation(&name.text)?,
            None if charset.name == "utf8mb4" => {
                let name = as_text(&self.session.value("default_collation_for_utf8mb4"));
                definitions::find_collation(&name)?
            }
            None => charset::collation_or_binary(charset.default_collation),
        };
        if collation.charset.name != charset.name {
            bail!(COLLATION_CHARSET_MISMATCH, collation.name, charset.name);
        }
        for (name, value) in [
            ("character_set_client", charset.name),
            ("character_set_connection", charset.name),
            ("character_set_results", charset.name),
            ("collation_connection", collation.name),
        ] {
            self.push_session(name, Value::text(value));
        }
        self.assignments.push(Assignment::ResultsCollation(collation.id));
        Ok(())
    }

    /// SET CHARACTER SET: the connection takes the schema's.
    pub(super) fn check_character_set(&mut self, charset: Option<&Ident>) -> Result<()> {
        let charset_name = match charset {
            Some(name) => name.text.to_string(),
            None => self.session.server.globals.text("character_set_client"),
        };
        let charset = definitions::find_charset(&charset_name)?;
        if charset.min_length() > 1 {
            bail!(WRONG_VALUE_FOR_VAR, "character_set_client", charset.name);
        }
        for (name, value) in [
            ("character_set_client", Value::text(charset.name)),
            ("character_set_results", Value::text(charset.name)),
            ("character_set_connection", self.session.value("character_set_database")),
            ("collation_connection", self.session.value("collation_database")),
        ] {
            self.push_session(name, value);
        }
        Ok(())
    }

    fn push_session(&mut self, name: &str, value: Value) {
        if let Some(id) = self.session.server.globals.definitions.find(name) {
            self.assignments.push(Assignment::Session { id, value });
        }
    }
}

/// Whether the variable may be set in the scope, and by this account.
fn check_scope(session: &Session, definition: &Definition, scope: Option<VarScope>) -> Result<()> {
    let name = definition.name;
    match scope {
        None | Some(VarScope::Session) => match definition.scope {
            Scope::Global if definition.dynamic => bail!(GLOBAL_VARIABLE, name),
            Scope::Global => bail!(INCORRECT_GLOBAL_LOCAL_VAR, name, "read only"),
            Scope::Session | Scope::Both => {
                if !definition.dynamic {
                    bail!(INCORRECT_GLOBAL_LOCAL_VAR, name, "read only");
                }
                if GLOBAL_TO_SET.contains(&name) {
                    bail!(VARIABLE_IS_READONLY, "SESSION", name, "GLOBAL");
                }
                if let Some(words) = variables::privileges_to_set(name) {
                    session.require_one_of(words)?;
                }
            }
        },
        Some(VarScope::Global | VarScope::Persist | VarScope::PersistOnly) => {
            if definition.scope == Scope::Session {
                bail!(LOCAL_VARIABLE, name);
            }
            if !definition.dynamic && scope != Some(VarScope::PersistOnly) {
                bail!(INCORRECT_GLOBAL_LOCAL_VAR, name, "read only");
            }
            if !definition.dynamic && !variables::is_persistable(definition) {
                bail!(INCORRECT_GLOBAL_LOCAL_VAR, name, "non persistent read only");
            }
            session.require_variable_admin()?;
            if name == "offline_mode" {
                session.require_offline_admin()?;
            }
        }
        Some(VarScope::System) => {
            session.require_variable_admin()?;
            session.require_dynamic("CONNECTION_ADMIN")?;
            if !definition.rebinds {
                return Err(Error::not_supported(format!("ALTER SYSTEM SET {name}")));
            }
        }
    }
    Ok(())
}

/// The conditions of `SET gtid_purged` besides its value.
fn check_gtid_purged(session: &Session, scope: Option<VarScope>, value: &Expr) -> Result<()> {
    if matches!(scope, Some(VarScope::Persist | VarScope::PersistOnly)) {
        bail!(INCORRECT_GLOBAL_LOCAL_VAR, "gtid_purged", "non persistent");
    }
    if matches!(value.kind, ExprKind::Default(None)) {
        bail!(NO_DEFAULT, "gtid_purged");
    }
    if session.transactions.explicit || session.transactions.is_started() {
        bail!(VARIABLE_NOT_SETTABLE_IN_TRANSACTION, "gtid_purged");
    }
    Ok(())
}

/// Who sets them chooses the encryption of tables for others, or of databases.
const ENCRYPTION_CHOICES: [&str; 2] =
    ["default_table_encryption", "table_encryption_privilege_check"];

/// A server in less memory than this could run nothing.
const MEMORY_LIMIT_MIN: u64 = 64 << 20;

/// Checks of a value that only this server can make.
fn check_value(server: &Server, definition: &Definition, value: &Value) -> Result<()> {
    let text = as_text(value);
    match definition.name {
        "time_zone" if server.zone(&text).is_none() => {
            bail!(UNKNOWN_TIME_ZONE, text)
        }
        "character_set_client" => {
            let wide =
                charset::charset_by_name(&text).is_some_and(|charset| charset.min_length() > 1);
            if wide {
                bail!(WRONG_VALUE_FOR_VAR, definition.name, text);
            }
        }
        "memory_limit" if (1..MEMORY_LIMIT_MIN).contains(&as_u64(value)) => {
            bail!(WRONG_VALUE_FOR_VAR, definition.name, text);
        }
        "innodb_buffer_pool_size" => {
            let engines = server.engines.engines().iter();
            let most = engines.filter_map(|engine| engine.option_max(definition.name)).max();
            match most {
                Some(most) if as_u64(value) > most => {
                    bail!(WRONG_VALUE_FOR_VAR, definition.name, text)
                }
                Some(_) => {}
                None => return Err(Error::not_supported("a buffer pool of the engine in memory")),
            }
        }
        "timestamp" if matches!(value, Value::Double(seconds) if *seconds > f64::from(i32::MAX)) => {
            bail!(WRONG_VALUE_FOR_VAR, definition.name, text);
        }
        // DISABLED can only be chosen at server start.
        "event_scheduler" if text == "DISABLED" => {
            bail!(WRONG_VALUE_FOR_VAR, definition.name, text);
        }
        "gtid_purged" if !variables::is_gtid_purged(&text) => {
            bail!(WRONG_VALUE_FOR_VAR, definition.name, text);
        }
        "gtid_purged" => {
            let registry = server.registry();
            let log = registry.binary_log().filter(|log| log.is_active());
            log.map_or(Ok(()), |log| log.check_purged(&text))?;
        }
        "system_versioning_asof" if !variables::is_as_of(&text) => {
            bail!(WRONG_VALUE_FOR_VAR, definition.name, text);
        }
        "lc_time_names" => variables::check_locale(&text)?,
        _ => {}
    }
    Ok(())
}

/// The value as it is shown: an engine has one of its names.
///
/// # Errors
/// 1286.
fn spelled(server: &Server, definition: &Definition, value: Value) -> Result<Value> {
    if !matches!(definition.name, "default_storage_engine" | "default_tmp_storage_engine") {
        return Ok(value);
    }
    let choice = definitions::engine_choice(&crate::ddl::engines(server), &shown(&value))?;
    Ok(Value::text(choice.shown()))
}

/// `= DEFAULT`: the compiled value for GLOBAL, the global one for sessions.
fn default_of(
    globals: &Globals,
    id: VariableId,
    definition: &Definition,
    scope: Option<VarScope>,
) -> Value {
    match (definition.scope, scope) {
        (Scope::Both, None | Some(VarScope::Session)) => globals.get(id),
        _ => variables::compiled_default(definition),
    }
}
