//! Programs that run while a statement runs: triggers and stored functions.
//!
//! A running statement borrows its transactions, the session's values and its diagnostics. A program needs the same, and the whole
//! session besides. So a statement that has programs works with the session's own parts taken out of it; when a program is to run
//! they are put back, and taken out again when it is done. Statements without programs know nothing of this.

use ::accounts::PrivilegeChecks;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use binder::StoredProgram;
use catalog::{PrivilegeSet, Table, Trigger};
use errors::{Diagnostics, Error, Result, bail};
use exec::{Around, ExecContext, ExecScratch, Outcome, Programs, RowSink, TriggerRows};
use plugin_api::FunctionContext;
use types::{TypeKind, Value};

use super::frame::Frame;
use super::function::FunctionSink;
use super::load::{Loaded, Made};
use crate::information::Information;
use crate::planned::Planned;
use crate::services::Services;
use crate::session::Session;
use crate::transaction::Transactions;

/// A place to come back to when the statement fails; no user can write its name.
const BEFORE: &str = "\0statement";

/// What a statement with programs works with, taken out of the session.
struct Lent {
    transactions: Transactions,
    services: Services,
    working: Diagnostics,
    scratch: ExecScratch,
}

/// Runs the programs of a statement.
struct Callee<'s> {
    session: &'s mut Session,
    planned: &'s Planned,
    /// By number, once they were needed.
    loaded: Vec<Option<Arc<Loaded>>>,
}

impl Session {
    /// Runs a locked plan that has programs.
    pub(crate) fn run_with_programs(
        &mut self,
        planned: &Planned,
        parameters: &[Value],
        rows: &mut dyn RowSink,
    ) -> Result<Outcome> {
        // Elsewhere the statement that fails is undone with its transaction, or by the program that it belongs to.
        let must_undo =
            self.transactions.function_depth == 0 && self.transactions.is_open(&self.settings);
        if must_undo {
            self.transactions.savepoint(BEFORE);
        }
        let result = self.run_lending(planned, parameters, rows);
        if must_undo {
            if result.is_err() {
                // The statement's own error is the one to report.
                let _ = self.transactions.rollback_to(BEFORE);
            }
            let _ = self.transactions.release(BEFORE);
        }
        result
    }

    fn run_lending(
        &mut self,
        planned: &Planned,
        parameters: &[Value],
        rows: &mut dyn RowSink,
    ) -> Result<Outcome> {
        let transactions = self.transactions.stand_in();
        let services = self.services.stand_in();
        let mut lent = Lent {
            transactions: std::mem::replace(&mut self.transactions, transactions),
            services: std::mem::replace(&mut self.services, services),
            working: std::mem::take(&mut self.working),
            scratch: std::mem::take(&mut self.scratch),
        };
        let diagnostics = self.diagnostics.clone();
        self.tables_above.push(planned.uses.iter().map(|(table, _)| *table).collect());
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            self.run_lent(planned, parameters, &mut lent, &diagnostics, rows)
        }));
        self.tables_above.pop();
        (self.working, self.diagnostics) = (lent.working, diagnostics);
        (self.transactions, self.services) = (lent.transactions, lent.services);
        self.scratch = lent.scratch;
        match outcome {
            Ok(outcome) => outcome,
            Err(panic) => resume_unwind(panic),
        }
    }

    fn run_lent(
        &mut self,
        planned: &Planned,
        parameters: &[Value],
        lent: &mut Lent,
        diagnostics: &Diagnostics,
        rows: &mut dyn RowSink,
    ) -> Result<Outcome> {
        let (server, shared) = (self.server.clone(), self.shared.clone());
        let (privileges, account) = (self.privileges.clone(), self.account.clone());
        let (temporary, tls) = (self.temporary.clone(), self.client.tls.clone());
        let (active_roles, time_zone) =
            (self.active_roles.clone(), self.settings.time_zone.clone());
        let settings = exec::ExecSettings {
            insert_id: lent.services.insert_id,
            lock_reads: self.locks_reads_of(planned.kind, &lent.transactions),
            ..self.exec_settings(planned.kind)
        };
        let now_micros = lent.services.fixed_now_micros.unwrap_or(self.started_micros);
        let now = self.local_clock.read(now_micros, &*time_zone);
        let information = Information {
            server: &server,
            shared: &shared,
            values: lent.services.values.clone(),
            privileges: &privileges,
            diagnostics,
            database: lent.services.database.clone(),
            account: &account,
            temporary: &temporary,
            tls: tls.as_ref(),
            active_roles: &active_roles,
        };
        let function = FunctionContext {
            sql_mode: self.settings.sql_mode,
            time_zone: &*time_zone,
            now_micros,
            now,
            div_precision_increment: self.settings.div_precision_increment,
            max_allowed_packet: self.settings.max_allowed_packet,
            diagnostics: &mut lent.working,
            session: &mut lent.services,
        };
        let loaded = vec![None; planned.programs.len()];
        let mut callee = Callee { session: self, planned, loaded };
        let mut ctx = ExecContext {
            transactions: &mut lent.transactions,
            registry: &server.registry,
            information: &information,
            parameters,
            function,
            settings: &settings,
            cancel: &shared.cancel,
            helpers: &server.scan_helpers,
            scratch: &mut lent.scratch,
            programs: Some(&mut callee),
        };
        planned.program.run(&mut ctx, rows)
    }

    /// 1442: a program may not write a table of the statements that called it.
    pub(crate) fn check_tables_above(&self, planned: &Planned) -> Result<()> {
        for target in &planned.targets {
            if self.tables_above.iter().any(|above| above.contains(target)) {
                let table = planned.tables.iter().find(|table| table.id == *target);
                let name = table.map_or("", |table| &table.name);
                bail!(CANT_UPDATE_USED_TABLE_IN_SF_OR_TRG, name);
            }
        }
        Ok(())
    }

    /// Runs a trigger for a row.
    fn run_trigger(&mut self, loaded: &Arc<Loaded>, rows: TriggerRows<'_>) -> Result<()> {
        self.check_depth()?;
        let mut frame = Frame::new(loaded.clone());
        for named in &loaded.row {
            let row = if named.is_new { &*rows.new } else { rows.old };
            let value = row.get(named.position).cloned().unwrap_or(Value::Null);
            frame.set(named.slot, self.read_moment(value, named.ty.kind));
        }
        self.working = Diagnostics::new(self.settings.max_error_count);
        self.diagnostics = Diagnostics::default();
        let outside = self.enter(loaded)?;
        self.frames.push(frame);
        let allowed = match &loaded.made {
            Made::Trigger(trigger, _) => {
                self.require_on_table(&trigger.schema, &trigger.table, PrivilegeSet::TRIGGER)
            }
            Made::Routine(_) => Ok(()),
        };
        let result =
            allowed.and_then(|()| self.run_body(loaded, &mut FunctionSink { word: "trigger" }));
        let frame = self.frames.pop();
        self.leave(outside);
        result?;
        let values = frame.map(|frame| frame.values).unwrap_or_default();
        for named in loaded.row.iter().filter(|named| named.assigned) {
            if let (Some(value), Some(place)) =
                (values.get(named.slot), rows.new.get_mut(named.position))
            {
                *place = match named.ty.kind {
                    TypeKind::Timestamp => {
                        let name = &loaded.variables[named.slot].name;
                        let from = &loaded.variables[named.slot].ty;
                        self.convert_variable(name, value, from, &named.ty)?
                    }
                    _ => value.clone(),
                };
            }
        }
        Ok(())
    }

    /// A TIMESTAMP, which is stored as UTC, as programs read it.
    fn read_moment(&self, value: Value, kind: TypeKind) -> Value {
        match (kind, value) {
            (TypeKind::Timestamp, Value::DateTime(moment)) => {
                let zone = &*self.settings.time_zone;
                Value::DateTime(match moment.to_unix_micros().filter(|_| !moment.is_zero()) {
                    Some(micros) => zone.utc_to_local(micros),
                    None => moment,
                })
            }
            (_, value) => value,
        }
    }
}

impl Callee<'_> {
    /// Runs `body` with all parts of the session in their places.
    fn with_session<T>(
        &mut self,
        around: Around<'_>,
        body: impl FnOnce(&mut Session) -> Result<T>,
    ) -> Result<T> {
        let transactions = around.transactions.as_any().and_then(|any| any.downcast_mut());
        let services = around.session.as_any().and_then(|any| any.downcast_mut());
        let (Some(transactions), Some(services)) = (transactions, services) else {
            return Err(Error::internal("a program of another session"));
        };
        let session = &mut *self.session;
        std::mem::swap(&mut session.transactions, transactions);
        std::mem::swap(&mut session.services, services);
        let own = &mut session.services;
        let (row_count, found_rows) = (own.row_count, own.found_rows);
        let (id, id_set) = (own.last_insert_id, own.last_insert_id_set);
        let insert_id = own.insert_id.take();
        let keeps = session.keeps_diagnostics;
        session.transactions.function_depth += 1;
        let outcome = catch_unwind(AssertUnwindSafe(|| body(session)));
        session.transactions.function_depth -= 1;
        session.keeps_diagnostics = keeps;
        let own = &mut session.services;
        (own.row_count, own.found_rows, own.insert_id) = (row_count, found_rows, insert_id);
        (own.last_insert_id, own.last_insert_id_set) = (id, id_set);
        std::mem::swap(&mut session.transactions, transactions);
        std::mem::swap(&mut session.services, services);
        match outcome {
            Ok(outcome) => outcome,
            Err(panic) => resume_unwind(panic),
        }
    }

    fn trigger(&self, number: usize) -> Result<(Arc<Trigger>, Arc<Table>)> {
        match self.planned.programs.get(number) {
            Some(StoredProgram::Trigger(trigger, table)) => Ok((trigger.clone(), table.clone())),
            Some(StoredProgram::Function { .. }) | None => {
                Err(Error::internal("a program that the plan does not have"))
            }
        }
    }
}

impl Programs for Callee<'_> {
    fn fire(&mut self, trigger: u32, rows: TriggerRows<'_>, around: Around<'_>) -> Result<()> {
        let number = trigger as usize;
        let known = self.loaded.get(number).cloned().flatten();
        let named = match known {
            Some(_) => None,
            None => Some(self.trigger(number)?),
        };
        let mut known = known;
        let outcome = self.with_session(around, |session| {
            let loaded = match (&known, named) {
                (Some(loaded), _) => loaded.clone(),
                (None, Some((trigger, table))) => session.loaded(Made::Trigger(trigger, table))?,
                (None, None) => return Err(Error::internal("a trigger without a definition")),
            };
            known = Some(loaded.clone());
            session.run_trigger(&loaded, rows)
        });
        self.loaded[number] = known;
        outcome
    }

    fn call(&mut self, function: u32, args: Vec<Value>, around: Around<'_>) -> Result<Value> {
        let number = function as usize;
        let planned = self.planned;
        let Some(StoredProgram::Function { routine, arguments, caption }) =
            planned.programs.get(number)
        else {
            return Err(Error::internal("a function that the plan does not have"));
        };
        let mut known = self.loaded.get(number).cloned().flatten();
        let outcome = self.with_session(around, |session| {
            let loaded = match &known {
                Some(loaded) => loaded.clone(),
                None => session.callable(routine)?,
            };
            known = Some(loaded.clone());
            session.call_function(&loaded, routine, caption, args, arguments)
        });
        self.loaded[number] = known;
        outcome
    }
}
