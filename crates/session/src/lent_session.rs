//! A session in the hands of a function or a program of another language: its values in a cell that both use, and the session itself
//! to run statements in.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use accounts::PrivilegeChecks;
use errors::{Error, Result};
use plugin_api::{
    CompiledProgram, FunctionContext, ProgramCall, ProgramOutcome, SessionHandle, StatementResult,
    Statements,
};
use types::Value;

use crate::lent_services::LentServices;
use crate::services::Services;
use crate::session::Session;

/// The savepoint to roll back to when a program fails; no statement can contain its name.
const BEFORE: &str = "\0program";

/// A session, and its values while it runs no statement itself.
pub(crate) struct Lent<'s> {
    pub(crate) session: &'s mut Session,
    services: &'s RefCell<Services>,
}

impl<'s> Lent<'s> {
    pub(crate) fn new(session: &'s mut Session, services: &'s RefCell<Services>) -> Lent<'s> {
        Lent { session, services }
    }

    /// Calls a function that may run statements. A deadlock, or what stopped the statement, is its error even if the function ignores it.
    pub(crate) fn run<T>(
        &mut self,
        call: impl FnOnce(&mut dyn Statements) -> Result<T>,
    ) -> Result<T> {
        let mut lent = LentSession { lent: self, deadlock: None };
        let value = call(&mut lent)?;
        let LentSession { lent, deadlock } = lent;
        match deadlock {
            Some(error) => Err(error),
            // The function may have ignored the error of a statement that was killed.
            None => lent.session.shared.cancel.check().map(|()| value),
        }
    }

    /// Runs `body` with the session's values in their place.
    pub(crate) fn with_session<T>(
        &mut self,
        body: impl FnOnce(&mut Session) -> Result<T>,
    ) -> Result<T> {
        let session = &mut *self.session;
        std::mem::swap(&mut session.services, &mut *self.services.borrow_mut());
        let own = &mut session.services;
        let (row_count, found_rows) = (own.row_count, own.found_rows);
        let (id, id_set) = (own.last_insert_id, own.last_insert_id_set);
        let insert_id = own.insert_id.take();
        let keeps = session.statement.keeps_diagnostics;
        session.transactions.function_depth += 1;
        let outcome = catch_unwind(AssertUnwindSafe(|| body(session)));
        session.transactions.function_depth -= 1;
        session.statement.keeps_diagnostics = keeps;
        let own = &mut session.services;
        (own.row_count, own.found_rows, own.insert_id) = (row_count, found_rows, insert_id);
        (own.last_insert_id, own.last_insert_id_set) = (id, id_set);
        std::mem::swap(&mut session.services, &mut *self.services.borrow_mut());
        match outcome {
            Ok(outcome) => outcome,
            Err(panic) => resume_unwind(panic),
        }
    }
}

impl Session {
    /// Calls a program in a language other than SQL: one that fails has changed nothing.
    ///
    /// # Errors
    /// As `call_program`.
    pub(crate) fn invoke_program(
        &mut self,
        program: &dyn CompiledProgram,
        arguments: &[Value],
    ) -> Result<ProgramOutcome> {
        // A function is part of a statement, which is rolled back as a whole.
        let must_undo =
            self.transactions.function_depth == 0 && self.transactions.is_open(&self.settings);
        if must_undo {
            self.transactions.savepoint(BEFORE);
        }
        let outcome = self.call_program(program, arguments);
        if must_undo {
            if outcome.is_err() {
                // The program's own error is the one to report.
                let _ = self.transactions.rollback_to(BEFORE);
            }
            let _ = self.transactions.release(BEFORE);
        }
        outcome
    }

    /// Calls a program in a language other than SQL. Its warnings are the running statement's; statements that it runs have their own.
    ///
    /// # Errors
    /// The program's, 1317, 1213.
    fn call_program(
        &mut self,
        program: &dyn CompiledProgram,
        arguments: &[Value],
    ) -> Result<ProgramOutcome> {
        let mut working = std::mem::take(&mut self.working);
        let diagnostics = self.diagnostics.clone();
        let stand_in = self.services.stand_in();
        let services = RefCell::new(std::mem::replace(&mut self.services, stand_in));
        let (server, time_zone) = (self.server.clone(), self.settings.time_zone.clone());
        let now_micros =
            services.borrow().fixed_now_micros.unwrap_or(self.statement.started_micros);
        let mut context = FunctionContext {
            sql_mode: self.settings.sql_mode,
            time_zone: &*time_zone,
            now_micros,
            now: self.statement.local_clock.read(now_micros, &*time_zone),
            div_precision_increment: self.settings.div_precision_increment,
            max_allowed_packet: self.settings.max_allowed_packet,
            diagnostics: &mut working,
            session: &mut LentServices::new(&services, &server.version),
        };
        let mut lent = Lent::new(self, &services);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            lent.run(|statements| {
                let context = context.reborrow();
                program.invoke(ProgramCall { arguments, context, statements })
            })
        }));
        self.services = services.into_inner();
        self.working = working;
        self.diagnostics = diagnostics;
        match outcome {
            Ok(outcome) => outcome,
            Err(panic) => resume_unwind(panic),
        }
    }
}

/// The session in the hands of a function.
struct LentSession<'l, 's> {
    lent: &'l mut Lent<'s>,
    /// It ended the transaction, and so the calling statement.
    deadlock: Option<Error>,
}

impl Statements for LentSession<'_, '_> {
    fn run(&mut self, sql: &str, parameters: &[Value]) -> Result<StatementResult> {
        if let Some(error) = &self.deadlock {
            return Err(error.clone());
        }
        let result = self.lent.with_session(|session| session.run_inside(sql, parameters));
        if let Err(error) = &result
            && error.ends_transaction()
        {
            self.deadlock = Some(error.clone());
        }
        result
    }

    fn open_session(&mut self) -> Result<Box<dyn SessionHandle>> {
        self.lent.with_session(|session| session.open_for_function())
    }

    fn require_privilege(&self, name: &str) -> Result<()> {
        self.lent.session.require_dynamic(name)
    }
}
