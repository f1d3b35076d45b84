//! CALL: arguments in, the program run as its definer or its caller, results out.

use ::accounts::PrivilegeChecks;
use std::sync::Arc;

use catalog::{AccountName, PrivilegeSet, Routine, RoutineKind, RoutineParameter};
use errors::{Result, bail};
use plugin_api::{ColumnMeta, OkInfo, ResultSink, SessionServices, ValueRow};
use syntax::ast::{Call, ExprKind};
use types::{SqlMode, Value};

use super::frame::{Frame, ProgramSink};
use super::load::Loaded;
use crate::session::Session;
use crate::statement::{Origin, Running};
use variables::as_u64;

/// Programs that may call each other.
const CALLS_MAX: usize = 24;

/// Whether `user@host` is the account.
fn is_account(text: &str, account: &AccountName) -> bool {
    text.rsplit_once('@')
        .is_some_and(|(user, host)| *user == *account.user && *host == *account.host)
}

/// What a call puts aside and gets back.
pub(super) struct Outside {
    sql_mode: SqlMode,
    database: Option<Arc<str>>,
    account: Option<(AccountName, Vec<AccountName>, String)>,
    more_results: bool,
    depth: u32,
    runs_prepared: bool,
}

impl Session {
    /// CALL.
    pub(crate) fn run_call(
        &mut self,
        call: &Call,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let (schema, name) = self.qualify(&call.name)?;
        self.require_on_routine(&schema, RoutineKind::Procedure, &name, PrivilegeSet::EXECUTE)?;
        let routine = self.find_routine(&schema, RoutineKind::Procedure, &name)?;
        let loaded = self.loaded_routine(&routine)?;
        let (wanted, given) = (routine.parameters.len(), call.args.len());
        if wanted != given {
            let shown = format!("{schema}.{}", routine.name);
            bail!(SP_WRONG_NO_OF_ARGS, "PROCEDURE", shown, wanted, given);
        }
        self.check_recursion(&routine)?;
        let frame = self.new_frame(&loaded, &routine, call, running)?;
        self.finish_transaction_scope()?;
        self.diagnostics = std::mem::take(&mut self.working);
        let outside = self.enter(&loaded)?;
        self.frames.push(frame);
        sink.followed_by(plugin_api::Next::Result);
        let mut inner = ProgramSink { inner: sink, affected_rows: 0 };
        let result = self.run_body(&loaded, &mut inner);
        let affected_rows = inner.affected_rows;
        let frame = self.frames.pop();
        self.leave(outside);
        result?;
        if let Some(frame) = frame {
            self.hand_out(&routine, &frame, call, running, sink)?;
        }
        self.working = std::mem::take(&mut self.diagnostics);
        self.send_ok(sink, OkInfo { affected_rows, ..OkInfo::default() })
    }

    /// A routine may call itself only as often as is allowed, and calls do not nest without end.
    fn check_recursion(&mut self, routine: &Routine) -> Result<()> {
        let own = self.frames.iter().filter(|frame| frame.loaded.is_routine(routine));
        let limit = as_u64(&self.value("max_sp_recursion_depth"));
        if own.count() as u64 > limit {
            bail!(SP_RECURSION_LIMIT, limit, routine.name);
        }
        self.check_depth()
    }

    /// Programs do not call each other without end.
    pub(super) fn check_depth(&self) -> Result<()> {
        if self.frames.len() >= CALLS_MAX {
            bail!(STACK_OVERRUN_NEED_MORE, 0, 0, 0);
        }
        Ok(())
    }

    /// The frame of a call, its parameters filled.
    fn new_frame(
        &mut self,
        loaded: &Arc<Loaded>,
        routine: &Routine,
        call: &Call,
        running: &Running<'_>,
    ) -> Result<Frame> {
        let mut frame = Frame::new(loaded.clone());
        for (slot, (parameter, arg)) in routine.parameters.iter().zip(&call.args).enumerate() {
            let is_variable = matches!(arg.kind, ExprKind::UserVar(_) | ExprKind::Param(_));
            if &*parameter.mode != "IN" && !is_variable {
                let shown = format!("{}.{}", routine.schema, routine.name);
                bail!(SP_NOT_VAR_ARG, slot + 1, shown);
            }
            if &*parameter.mode == "OUT" {
                continue;
            }
            let (value, ty) = self.evaluate(arg, running)?;
            let value = self.convert_variable(&parameter.name, &value, &ty, &parameter.ty)?;
            frame.set(slot, value);
        }
        Ok(frame)
    }

    /// Puts the session into the routine's schema and SQL mode, and into the hands of its definer.
    pub(super) fn enter(&mut self, loaded: &Loaded) -> Result<Outside> {
        let mut outside = Outside {
            sql_mode: self.settings.sql_mode,
            database: self.services.database.clone(),
            account: None,
            more_results: self.more_results,
            depth: self.depth,
            runs_prepared: self.runs_prepared,
        };
        if !loaded.invoker && !is_account(&loaded.definer, &self.account) {
            let definer = ::accounts::parse_account(&loaded.definer);
            let snapshot = self.server.catalog.snapshot();
            if snapshot.accounts().get(&definer).is_none() && &*definer.user != "root" {
                bail!(NO_SUCH_USER, definer.user, definer.host);
            }
            let roles =
                snapshot.accounts().get(&definer).map(|account| account.default_roles.clone());
            outside.account = Some((
                std::mem::replace(&mut self.account, definer),
                std::mem::replace(&mut self.active_roles, roles.unwrap_or_default()),
                std::mem::replace(&mut self.services.current_user, loaded.definer.to_string()),
            ));
            self.refresh_privileges();
        }
        self.set_sql_mode(SqlMode(loaded.sql_mode));
        if self.services.database.as_deref() != Some(&*loaded.schema) {
            self.move_to_schema(Some(loaded.schema.clone()));
        }
        self.more_results = true;
        self.depth = 0;
        self.runs_prepared = false;
        Ok(outside)
    }

    pub(super) fn leave(&mut self, outside: Outside) {
        self.more_results = outside.more_results;
        self.depth = outside.depth;
        self.runs_prepared = outside.runs_prepared;
        if let Some((account, roles, shown)) = outside.account {
            self.account = account;
            self.active_roles = roles;
            self.services.current_user = shown;
            self.refresh_privileges();
        }
        self.set_sql_mode(outside.sql_mode);
        if self.services.database != outside.database {
            self.move_to_schema(outside.database);
        }
    }

    fn set_sql_mode(&mut self, mode: SqlMode) {
        if self.settings.sql_mode != mode {
            self.store_session("sql_mode", Value::text(&mode.to_text()));
            self.refresh_settings();
        }
    }

    /// The current schema, which may be gone meanwhile.
    fn move_to_schema(&mut self, schema: Option<Arc<str>>) {
        let snapshot = self.server.catalog.snapshot();
        let known = schema.as_deref().and_then(|name| snapshot.schema(name));
        let collation = match known {
            Some(schema) => charset::collation_or_binary(schema.default_collation),
            None => self.settings.collation_server,
        };
        self.set_database(schema, collation);
    }

    /// OUT and INOUT parameters to the caller: to its variables, or to whoever sent the parameters of a prepared statement.
    fn hand_out(
        &mut self,
        routine: &Routine,
        frame: &Frame,
        call: &Call,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let (mut places, mut columns, mut row) = (Vec::new(), Vec::new(), Vec::new());
        let parameters = routine.parameters.iter().zip(&call.args).zip(frame.values.iter());
        for ((parameter, arg), value) in parameters {
            if &*parameter.mode == "IN" {
                continue;
            }
            match &arg.kind {
                ExprKind::UserVar(name) => {
                    let ty = parameter.ty.clone();
                    self.services.set_user_variable(&name.text, value.clone(), ty);
                }
                ExprKind::Param(slot) if running.origin == Origin::Program => {
                    self.store_local(*slot as usize, value, &parameter.ty)?;
                }
                ExprKind::Param(slot) => {
                    places.push(*slot as usize);
                    columns.push(out_column(routine, parameter));
                    row.push(value.clone());
                }
                // `new_frame` let nothing else pass.
                _ => {}
            }
        }
        if places.is_empty() {
            return Ok(());
        }
        let state = self.state_info();
        sink.out_parameters(&places, &columns, &ValueRow(&row), &state)
    }
}

/// How the value of an OUT parameter is described: as a column of its procedure.
fn out_column(routine: &Routine, parameter: &RoutineParameter) -> ColumnMeta {
    ColumnMeta {
        schema: routine.schema.clone(),
        table: routine.name.clone(),
        org_table: routine.name.clone(),
        org_name: parameter.name.clone(),
        ..ColumnMeta::computed(&parameter.name, parameter.ty.clone())
    }
}
