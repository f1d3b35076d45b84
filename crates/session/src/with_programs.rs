//! Statements with programs: triggers and stored functions that run while the statement does.
//!
//! A running statement uses its transactions, the session's values and its conditions. A program needs the same, and the whole
//! session besides. So a statement that has programs is run by a `Lender`, which owns the session while it runs: the executor reaches the
//! transactions through it. The session's values that functions of the statement use are in a cell that the statement and the lender
//! share; the conditions and the executor's memory are the statement's own until it ends. Before a program runs, the values are moved
//! back into the session, and taken out again when it is done. Statements without programs do none of this.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use binder::StoredProgram;
use catalog::{Table, Trigger};
use describe::Information;
use engine_api::{Engine, EngineIndex, Transaction};
use errors::{Diagnostics, Error, Result, bail};
use exec::{
    Environment, ExecContext, ExecScratch, Host, Outcome, RowSink, RowWatch, StatementCall,
    TransactionSource, TriggerRows,
};
use plugin_api::FunctionContext;
use programs::{Loaded, Made, ProgramState};
use types::Value;

use crate::lent_services::LentServices;
use crate::lent_session::Lent;
use crate::planned::Planned;
use crate::program_host::ProgramSession;
use crate::services::Services;
use crate::session::Session;

/// The savepoint to roll back to when the statement fails; no statement can contain its name.
const BEFORE: &str = "\0statement";

/// State that a statement with programs keeps for itself while it runs.
struct Kept {
    working: Diagnostics,
    scratch: ExecScratch,
    /// Conditions of the previous statement.
    diagnostics: Diagnostics,
}

/// Runs the programs of a statement in the session that runs the statement.
struct Lender<'s> {
    lent: Lent<'s>,
    planned: &'s Planned,
    /// By number, once they have been needed.
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
        // Elsewhere a failed statement is rolled back with its transaction, or by the program that it belongs to.
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
        let mut kept = Kept {
            working: std::mem::take(&mut self.working),
            scratch: std::mem::take(&mut self.scratch),
            diagnostics: self.diagnostics.clone(),
        };
        // What the programs do to tables belongs to the statement too.
        self.scratch.tables.clone_from(&kept.scratch.tables);
        let stand_in = self.services.stand_in();
        let services = RefCell::new(std::mem::replace(&mut self.services, stand_in));
        self.programs.push_tables(planned.uses.iter().map(|(table, _)| *table).collect());
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            self.run_lent(planned, parameters, &services, &mut kept, rows)
        }));
        self.programs.pop_tables();
        self.services = services.into_inner();
        Kept { working: self.working, diagnostics: self.diagnostics, scratch: self.scratch } = kept;
        match outcome {
            Ok(outcome) => outcome,
            Err(panic) => resume_unwind(panic),
        }
    }

    fn run_lent(
        &mut self,
        planned: &Planned,
        parameters: &[Value],
        services: &RefCell<Services>,
        kept: &mut Kept,
        rows: &mut dyn RowSink,
    ) -> Result<Outcome> {
        let (server, shared) = (self.server.clone(), self.shared.clone());
        let (privileges, account) = (self.privileges.clone(), self.account.clone());
        let (temporary, tls) = (self.temporary.clone(), self.client.tls.clone());
        let (active_roles, time_zone) =
            (self.active_roles.clone(), self.settings.time_zone.clone());
        // The substitute has copies of all values that these need, except for the current schema.
        let settings = self.exec_settings(planned.kind);
        let now_micros = self.services.fixed_now_micros.unwrap_or(self.statement.started_micros);
        let now = self.statement.local_clock.read(now_micros, &*time_zone);
        let information = Information {
            server: &*server,
            definitions: self.transactions.definitions.clone(),
            connection: &*shared,
            values: self.services.values.clone(),
            privileges: &privileges,
            diagnostics: &kept.diagnostics,
            database: services.borrow().database.clone(),
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
            diagnostics: &mut kept.working,
            session: &mut LentServices::new(services, &server.version),
        };
        let loaded = vec![None; planned.programs.len()];
        let mut ctx = ExecContext {
            host: &mut Lender { lent: Lent::new(self, services), planned, loaded },
            env: Environment {
                registry: &planned.registry,
                information: &information,
                parameters,
                settings: &settings,
                cancel: &shared.cancel,
                helpers: &server.scan_helpers,
                memory: &server.memory,
                connection: &shared.memory,
            },
            function,
            scratch: &mut kept.scratch,
        };
        planned.program.run(&mut ctx, rows)
    }
}

/// 1442: a program may not write a table of the statements that called it.
pub(crate) fn check_tables_above<P, C>(
    state: &ProgramState<P, C>,
    planned: &Planned,
) -> Result<()> {
    for target in &planned.targets {
        if state.is_used_above(*target) {
            let table = planned.tables.iter().find(|table| table.id == *target);
            let name = table.map_or("", |table| &table.name);
            bail!(CANT_UPDATE_USED_TABLE_IN_SF_OR_TRG, name);
        }
    }
    Ok(())
}

impl Lender<'_> {
    fn trigger(&self, number: usize) -> Result<(Arc<Trigger>, Arc<Table>)> {
        match self.planned.programs.get(number) {
            Some(StoredProgram::Trigger(trigger, table)) => Ok((trigger.clone(), table.clone())),
            Some(StoredProgram::Function { .. } | StoredProgram::Statements) | None => {
                Err(Error::internal("a program that the plan does not have"))
            }
        }
    }
}

impl TransactionSource for Lender<'_> {
    fn transaction_at(&mut self, engine: EngineIndex) -> Result<&mut dyn Transaction> {
        self.lent.session.transactions.transaction_at(engine)
    }

    fn transaction(&mut self, engine: &str) -> Result<&mut dyn Transaction> {
        self.lent.session.transactions.transaction(engine)
    }

    fn engine_at(&self, engine: EngineIndex) -> Result<&Arc<dyn Engine>> {
        self.lent.session.transactions.engine_at(engine)
    }

    fn engine(&self, engine: &str) -> Result<Arc<dyn Engine>> {
        self.lent.session.transactions.engine(engine)
    }
}

impl Host for Lender<'_> {
    fn has_programs(&self) -> bool {
        true
    }

    fn fire(&mut self, trigger: u32, rows: TriggerRows<'_>) -> Result<()> {
        if self.lent.session.is_applier {
            return Ok(());
        }
        let number = trigger as usize;
        let mut known = self.loaded.get(number).cloned().flatten();
        let named = match known {
            Some(_) => None,
            None => Some(self.trigger(number)?),
        };
        let outcome = self.lent.with_session(|session| {
            let loaded = match (&known, named) {
                (Some(loaded), _) => loaded.clone(),
                (None, Some((trigger, table))) => programs::loaded(
                    &mut ProgramSession::new(session),
                    Made::Trigger(trigger, table),
                )?,
                (None, None) => return Err(Error::internal("a trigger without a definition")),
            };
            known = Some(loaded.clone());
            with_own_savepoints(session, |session| {
                let mut host = ProgramSession::new(session);
                programs::fire_trigger(&mut host, &loaded, rows.old, rows.new)
            })
        });
        self.loaded[number] = known;
        outcome
    }

    fn row_watch(&mut self) -> Option<&mut dyn RowWatch> {
        self.lent.session.transactions.row_watch()
    }

    fn relieve_row_watch(&mut self) -> Result<()> {
        self.lent.session.transactions.attach_recorded(false)
    }

    fn call(&mut self, function: u32, args: Vec<Value>) -> Result<Value> {
        let number = function as usize;
        let planned = self.planned;
        let Some(StoredProgram::Function { routine, arguments, caption }) =
            planned.programs.get(number)
        else {
            return Err(Error::internal("a function that the plan does not have"));
        };
        let mut known = self.loaded.get(number).cloned().flatten();
        let outcome = self.lent.with_session(|session| {
            let loaded = match &known {
                Some(loaded) => loaded.clone(),
                None => programs::callable(&mut ProgramSession::new(session), routine)?,
            };
            known = Some(loaded.clone());
            with_own_savepoints(session, |session| {
                let mut host = ProgramSession::new(session);
                programs::call_function(&mut host, &loaded, caption, args, arguments)
            })
        });
        self.loaded[number] = known;
        outcome
    }

    fn lend(&mut self, call: StatementCall<'_>) -> Result<Value> {
        self.lent.run(call)
    }
}

/// Runs a function or a trigger: it sees none of its caller's savepoints, and its own end with it.
fn with_own_savepoints<T>(
    session: &mut Session,
    body: impl FnOnce(&mut Session) -> Result<T>,
) -> Result<T> {
    let outside = session.transactions.enter_savepoints();
    let outcome = body(session);
    session.transactions.leave_savepoints(outside);
    outcome
}
