//! SET in all its forms. All values are computed and checked first, then all are stored, so that a statement changes everything or
//! nothing.

use ::accounts::PrivilegeChecks;
use std::sync::Arc;

use catalog::Edit;
use errors::{ErrorCode, Result, bail, err};
use plugin_api::{OkInfo, ResultSink, SessionServices, StateChange};
use syntax::ast::{Expr, ExprKind, Ident, LocalVariable, SetItem, SystemVar, VarScope};
use types::{DataType, SqlMode, Value};

use crate::program_host::ProgramSession;
use crate::server::ENGINE_OPTIONS;
use crate::session::Session;
use crate::statement::Running;
use variables::{
    Definition, Origin, Scope, VariableId, as_text, as_u64, convert, display_text, shown,
};

/// One checked assignment.
enum Assignment {
    Local {
        variable: LocalVariable,
        value: Value,
        ty: DataType,
    },
    User {
        name: Ident,
        value: Value,
        ty: DataType,
    },
    Session {
        id: VariableId,
        value: Value,
    },
    /// Only the next transaction: `SET @@transaction_isolation = ...`.
    NextTransaction {
        id: VariableId,
        value: Value,
    },
    Global {
        id: VariableId,
        value: Value,
    },
    Persist {
        id: VariableId,
        value: Value,
        only: bool,
    },
    Unpersist {
        id: VariableId,
    },
    /// SET NAMES: the collation that results are described with.
    ResultsCollation(types::CollationId),
}

/// The variable that lets foreign keys refer to what is no whole unique key; it is to go either way.
const RESTRICT_KEYS: &str = "restrict_fk_on_non_standard_key";

/// Variables that sessions show but only SET GLOBAL changes.
const GLOBAL_TO_SET: &[&str] = &["max_allowed_packet", "net_buffer_length"];

impl Session {
    /// SET.
    pub(crate) fn run_set(
        &mut self,
        items: &[SetItem],
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let mut assignments = Vec::with_capacity(items.len());
        for item in items {
            match item {
                SetItem::UserVar { name, value } => {
                    let (value, ty) = self.evaluate(value, running)?;
                    assignments.push(Assignment::User { name: name.clone(), value, ty });
                }
                SetItem::Local { variable, value } => {
                    let (value, ty) = match &value.kind {
                        ExprKind::Default(None) => (Value::Null, DataType::null()),
                        _ => self.evaluate(value, running)?,
                    };
                    assignments.push(Assignment::Local { variable: variable.clone(), value, ty });
                }
                SetItem::Variable { scope, at_at, component, name, value } => {
                    if let Some(component) = component {
                        let full = format!("{}.{}", component.text, name.text);
                        bail!(UNKNOWN_SYSTEM_VARIABLE, full);
                    }
                    self.check_variable(*scope, *at_at, name, value, running, &mut assignments)?;
                }
                SetItem::Names { charset, collation } => {
                    self.check_names(charset.as_ref(), collation.as_ref(), &mut assignments)?;
                    let text = |name: &Option<Ident>| name.as_ref().map(|name| name.text.clone());
                    let (charset, collation) = (text(charset), text(collation));
                    let working = &mut self.working;
                    definitions::note_old_charset(
                        working,
                        charset.as_deref(),
                        collation.as_deref(),
                    );
                }
                SetItem::CharacterSet(charset) => {
                    self.check_character_set(charset.as_ref(), &mut assignments)?;
                }
            }
        }
        let autocommit = self.settings.autocommit;
        self.apply(assignments)?;
        let mut commit = self.autocommit_changed(autocommit)?;
        if commit.is_none() {
            commit = self.finish_transaction_scope()?;
        }
        self.services.row_count = 0;
        self.send_ok(sink, OkInfo { commit, ..OkInfo::default() })
    }

    /// One `[scope] name = value`.
    fn check_variable(
        &mut self,
        scope: Option<VarScope>,
        at_at: bool,
        name: &Ident,
        value: &Expr,
        running: &Running<'_>,
        assignments: &mut Vec<Assignment>,
    ) -> Result<()> {
        let globals_id = self.server.globals.definitions.find(&name.text);
        let id = globals_id.ok_or_else(|| err!(UNKNOWN_SYSTEM_VARIABLE, name.text))?;
        let id = self.canonical(id);
        let definition = self.server.globals.definitions.get(id);
        self.check_scope(definition, scope)?;
        let is_global = matches!(scope, Some(VarScope::Global | VarScope::Persist));
        let wanted = match &value.kind {
            ExprKind::Default(None) => None,
            // Bare words: ON, BINARY, utf8mb4.
            ExprKind::Column(column) if column.table.is_none() => {
                Some(Value::text(&column.name.text))
            }
            _ => Some(self.evaluate(value, running)?.0),
        };
        let value = match wanted {
            Some(wanted) => {
                let current = if is_global {
                    self.server.globals.get(id)
                } else {
                    self.services.values.get(id).clone()
                };
                let converted = convert(definition, &wanted, &current)?;
                if converted.truncated {
                    let name = definition.name;
                    self.working.warn(ErrorCode::TRUNCATED_WRONG_VALUE, &[&name, &shown(&wanted)]);
                }
                self.check_value(definition, &converted.value)?;
                self.note_value(definition, &converted.value);
                converted.value
            }
            None => self.default_of(id, definition, scope)?,
        };
        assignments.push(match scope {
            Some(VarScope::Global) => Assignment::Global { id, value },
            Some(VarScope::Persist) => Assignment::Persist { id, value, only: false },
            Some(VarScope::PersistOnly) => Assignment::Persist { id, value, only: true },
            None if at_at
                && definition.name.starts_with("transaction_")
                && matches!(definition.name, "transaction_isolation" | "transaction_read_only") =>
            {
                if self.transactions.explicit || self.transactions.is_started() {
                    bail!(CANT_CHANGE_TX_CHARACTERISTICS);
                }
                Assignment::NextTransaction { id, value }
            }
            Some(VarScope::Session) | None => Assignment::Session { id, value },
        });
        self.check_partner(assignments.len() - 1, assignments)
    }

    /// Old names of the same variable.
    fn canonical(&self, id: VariableId) -> VariableId {
        let definitions = &self.server.globals.definitions;
        let other = match definitions.get(id).name {
            "tx_isolation" => "transaction_isolation",
            "tx_read_only" => "transaction_read_only",
            "identity" => "last_insert_id",
            _ => return id,
        };
        definitions.find(other).unwrap_or(id)
    }

    /// Whether the variable may be set in the scope, and by this account.
    fn check_scope(&self, definition: &Definition, scope: Option<VarScope>) -> Result<()> {
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
                }
            },
            Some(VarScope::Global | VarScope::Persist | VarScope::PersistOnly) => {
                if definition.scope == Scope::Session {
                    bail!(LOCAL_VARIABLE, name);
                }
                if !definition.dynamic && scope != Some(VarScope::PersistOnly) {
                    bail!(INCORRECT_GLOBAL_LOCAL_VAR, name, "read only");
                }
                self.require_variable_admin()?;
            }
        }
        Ok(())
    }

    /// Warnings about a value that is accepted.
    fn note_value(&mut self, definition: &Definition, value: &Value) {
        if definition.name == RESTRICT_KEYS {
            let code = match as_u64(value) {
                0 => ErrorCode::WARN_DEPRECATED_NON_STANDARD_KEYS_VARIABLE,
                _ => ErrorCode::WARN_DEPRECATED_SYNTAX_NO_REPLACEMENT,
            };
            self.working.warn(code, &[&RESTRICT_KEYS]);
        }
        if definition.name != "sql_mode" {
            return;
        }
        let Ok(mode) = SqlMode::parse(&as_text(value)) else { return };
        let padded = SqlMode::PAD_CHAR_TO_FULL_LENGTH;
        if mode.contains(padded) != self.settings.sql_mode.contains(padded) {
            let name = "PAD_CHAR_TO_FULL_LENGTH";
            self.working.warn(ErrorCode::WARN_DEPRECATED_SQLMODE, &[&name]);
        }
        let zero_modes =
            [SqlMode::NO_ZERO_DATE, SqlMode::NO_ZERO_IN_DATE, SqlMode::ERROR_FOR_DIVISION_BY_ZERO];
        let held = zero_modes.iter().filter(|one| mode.contains(**one)).count();
        let complete = mode.is_strict() && held == zero_modes.len();
        if !complete && (mode.is_strict() || held > 0) {
            self.working.warn(ErrorCode::SQL_MODE_MERGED, &[]);
        }
    }

    /// What only this server can tell of a value.
    fn check_value(&self, definition: &Definition, value: &Value) -> Result<()> {
        let text = as_text(value);
        match definition.name {
            "time_zone" if self.server.zone(&text).is_none() => {
                bail!(UNKNOWN_TIME_ZONE, text)
            }
            "character_set_client" => {
                let wide =
                    charset::charset_by_name(&text).is_some_and(|charset| charset.min_length() > 1);
                if wide {
                    bail!(WRONG_VALUE_FOR_VAR, definition.name, text);
                }
            }
            // That is a choice of who starts the server.
            "event_scheduler" if text == "DISABLED" => {
                bail!(WRONG_VALUE_FOR_VAR, definition.name, text);
            }
            "lc_time_names" => crate::locales::check_locale(&text)?,
            "default_storage_engine" | "default_tmp_storage_engine" => {
                definitions::engine_choice(&crate::ddl::engines(&self.server), &text)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// `= DEFAULT`: the compiled value for GLOBAL, the global one for sessions.
    fn default_of(
        &self,
        id: VariableId,
        definition: &Definition,
        scope: Option<VarScope>,
    ) -> Result<Value> {
        match (definition.scope, scope) {
            (Scope::Both, None | Some(VarScope::Session)) => Ok(self.server.globals.get(id)),
            _ => Ok(variables::compiled_default(definition)),
        }
    }

    /// Character set and collation of a pair move together.
    fn check_partner(&self, at: usize, assignments: &mut Vec<Assignment>) -> Result<()> {
        let definitions = &self.server.globals.definitions;
        let (id, value) = match &assignments[at] {
            Assignment::Session { id, value }
            | Assignment::Global { id, value }
            | Assignment::Persist { id, value, .. } => (*id, as_text(value)),
            Assignment::Local { .. }
            | Assignment::User { .. }
            | Assignment::NextTransaction { .. }
            | Assignment::Unpersist { .. }
            | Assignment::ResultsCollation(_) => return Ok(()),
        };
        let name = definitions.get(id).name;
        let (partner, partner_value) = match name {
            "character_set_connection" | "character_set_server" | "character_set_database" => {
                let charset = charset::charset_by_name(&value)
                    .ok_or_else(|| err!(UNKNOWN_CHARACTER_SET, value))?;
                let collation = charset::collation_or_binary(charset.default_collation);
                (name.replace("character_set", "collation"), collation.name)
            }
            "collation_connection" | "collation_server" | "collation_database" => {
                let collation = charset::collation_by_name(&value)
                    .ok_or_else(|| err!(UNKNOWN_COLLATION, value))?;
                (name.replace("collation", "character_set"), collation.charset.name)
            }
            _ => return Ok(()),
        };
        let id = definitions.find(&partner).unwrap_or(id);
        let value = Value::text(partner_value);
        let partner = match &assignments[at] {
            Assignment::Global { .. } => Assignment::Global { id, value },
            Assignment::Persist { only, .. } => Assignment::Persist { id, value, only: *only },
            _ => Assignment::Session { id, value },
        };
        assignments.push(partner);
        Ok(())
    }

    /// SET NAMES.
    fn check_names(
        &self,
        charset: Option<&Ident>,
        collation: Option<&Ident>,
        assignments: &mut Vec<Assignment>,
    ) -> Result<()> {
        let charset_name = match charset {
            Some(name) => name.text.to_string(),
            None => self.server.globals.text("character_set_client"),
        };
        let charset = definitions::find_charset(&charset_name)?;
        if charset.min_length() > 1 {
            bail!(WRONG_VALUE_FOR_VAR, "character_set_client", charset.name);
        }
        let collation = match collation {
            Some(name) => definitions::find_collation(&name.text)?,
            None if charset.name == "utf8mb4" => {
                let name = as_text(&self.value("default_collation_for_utf8mb4"));
                definitions::find_collation(&name)?
            }
            None => charset::collation_or_binary(charset.default_collation),
        };
        if collation.charset.name != charset.name {
            bail!(COLLATION_CHARSET_MISMATCH, collation.name, charset.name);
        }
        for (name, value) in [
            ("character_set_client", charset.name),
            ("character_set_results", charset.name),
            ("character_set_connection", charset.name),
            ("collation_connection", collation.name),
        ] {
            self.push_session(name, Value::text(value), assignments);
        }
        assignments.push(Assignment::ResultsCollation(collation.id));
        Ok(())
    }

    /// SET CHARACTER SET: the connection takes the schema's.
    fn check_character_set(
        &self,
        charset: Option<&Ident>,
        assignments: &mut Vec<Assignment>,
    ) -> Result<()> {
        let charset_name = match charset {
            Some(name) => name.text.to_string(),
            None => self.server.globals.text("character_set_client"),
        };
        let charset = definitions::find_charset(&charset_name)?;
        if charset.min_length() > 1 {
            bail!(WRONG_VALUE_FOR_VAR, "character_set_client", charset.name);
        }
        for (name, value) in [
            ("character_set_client", Value::text(charset.name)),
            ("character_set_results", Value::text(charset.name)),
            ("character_set_connection", self.value("character_set_database")),
            ("collation_connection", self.value("collation_database")),
        ] {
            self.push_session(name, value, assignments);
        }
        Ok(())
    }

    fn push_session(&self, name: &str, value: Value, assignments: &mut Vec<Assignment>) {
        if let Some(id) = self.server.globals.definitions.find(name) {
            assignments.push(Assignment::Session { id, value });
        }
    }

    /// Stores everything.
    fn apply(&mut self, assignments: Vec<Assignment>) -> Result<()> {
        let mut edits = Vec::new();
        let changes_settings = assignments.iter().any(|assignment| {
            !matches!(assignment, Assignment::Local { .. } | Assignment::User { .. })
        });
        for assignment in assignments {
            match assignment {
                Assignment::Local { variable, value, ty } => {
                    programs::assign_local(&mut ProgramSession::new(self), &variable, &value, &ty)?;
                }
                Assignment::User { name, value, ty } => {
                    self.services.set_user_variable(&name.text, value, ty);
                }
                Assignment::Session { id, value } => self.apply_session(id, value),
                Assignment::NextTransaction { id, value } => self.apply_next(id, &value),
                Assignment::Global { id, value } => self.apply_global(id, &value),
                Assignment::Persist { id, value, only } => {
                    if !only {
                        self.apply_global(id, &value);
                    }
                    let name = self.server.globals.definitions.get(id).name;
                    let text = if value.is_null() { "NULL".into() } else { as_text(&value) };
                    edits.push(Edit::PutVariable { name: name.into(), value: text.into() });
                }
                Assignment::ResultsCollation(id) => self.client.results_collation = Some(id.0),
                Assignment::Unpersist { id } => {
                    let name = self.server.globals.definitions.get(id).name;
                    edits.push(Edit::DropVariable(name.into()));
                }
            }
        }
        if changes_settings {
            self.refresh_settings();
        }
        if !edits.is_empty() {
            self.server.catalog.commit_alone(&edits, &self.shared.cancel)?;
        }
        Ok(())
    }

    fn apply_session(&mut self, id: VariableId, value: Value) {
        let definition = self.server.globals.definitions.get(id);
        match definition.name {
            "timestamp" => {
                let seconds = match &value {
                    Value::Double(seconds) => *seconds,
                    _ => 0.0,
                };
                self.services.fixed_now_micros =
                    (seconds > 0.0).then(|| (seconds * 1e6).round() as i64);
            }
            "insert_id" => self.services.insert_id = Some(as_u64(&value)).filter(|id| *id > 0),
            "last_insert_id" => self.services.last_insert_id = as_u64(&value),
            "rand_seed1" => self.services.seeds.0 = (as_u64(&value) % 0x3FFF_FFFF) as u32,
            "rand_seed2" => self.services.seeds.1 = (as_u64(&value) % 0x3FFF_FFFF) as u32,
            // The connection's number does not change.
            "pseudo_thread_id" => {}
            name => {
                if matches!(name, "transaction_isolation" | "transaction_read_only") {
                    self.transactions.next = None;
                }
                if name == "character_set_results" {
                    self.client.results_collation = None;
                }
                if self.settings.tracks(name) {
                    let shown = display_text(definition, &value);
                    self.changes.push(StateChange::SystemVariable(name.to_owned(), shown));
                }
                Arc::make_mut(&mut self.services.values).set(id, value);
            }
        }
        if self.settings.track_state {
            self.changes.push(StateChange::State);
        }
    }

    fn apply_next(&mut self, id: VariableId, value: &Value) {
        let mut next = self.transactions.next_characteristics(&self.settings);
        match self.server.globals.definitions.get(id).name {
            "transaction_isolation" => {
                next.isolation = variables::isolation(&as_text(value));
            }
            _ => next.read_only = as_u64(value) == 1,
        }
        self.transactions.next = Some(next);
    }

    fn apply_global(&mut self, id: VariableId, value: &Value) {
        let globals = &self.server.globals;
        let mut changes = vec![(id, value.clone())];
        match globals.definitions.get(id).name {
            "super_read_only" if as_u64(value) == 1 => {
                changes.extend(globals.definitions.find("read_only").map(|id| (id, Value::Int(1))));
            }
            "read_only" if as_u64(value) == 0 => {
                let other = globals.definitions.find("super_read_only");
                changes.extend(other.map(|id| (id, Value::Int(0))));
            }
            "prepared_stmt_memory_limit" => {
                self.server.prepared_plans.set_limit(as_u64(value) as usize / 2);
            }
            "table_definition_cache" => {
                let tables = as_u64(value) as usize;
                self.server.catalog.with(|snapshot| snapshot.set_read_limit(tables));
            }
            "plan_cache_size" => self.server.plan_cache.set_limit(as_u64(value) as usize),
            name if ENGINE_OPTIONS.contains(&name) => {
                self.server.set_engine_option(name, as_u64(value));
            }
            _ => {}
        }
        globals.set(&changes, Origin::Dynamic);
        self.server.events.wake();
    }

    /// RESET PERSIST.
    pub(crate) fn reset_persist(
        &mut self,
        if_exists: bool,
        name: Option<&SystemVar>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        self.require_variable_admin()?;
        let snapshot = self.server.catalog.snapshot();
        let mut assignments = Vec::new();
        match name {
            None => {
                for name in snapshot.persisted().keys() {
                    let id = self.server.globals.definitions.find(name);
                    assignments.extend(id.map(|id| Assignment::Unpersist { id }));
                }
            }
            Some(variable) => {
                let name = variable.name.text.to_ascii_lowercase();
                if snapshot.persisted().contains_key(name.as_str()) {
                    let id = self.server.globals.definitions.find(&name);
                    assignments.extend(id.map(|id| Assignment::Unpersist { id }));
                } else if if_exists {
                    self.working.warn(ErrorCode::VARIABLE_NOT_PERSISTED, &[&name]);
                } else {
                    bail!(VARIABLE_NOT_PERSISTED, name);
                }
            }
        }
        self.apply(assignments)?;
        self.send_ok(sink, OkInfo::default())
    }
}
