//! One run in an isolate: its limits, and what stops it.

use std::sync::Arc;
use std::time::Duration;

use errors::{Error, ErrorCode, Result, err};
use plugin_api::{FunctionContext, StatementResult, Statements};
use sys::clock::monotonic;
use sys::lend::{Lent, lend};
use sys::sync::Mutex;
use types::Value;

use crate::failure::LANGUAGE;
use crate::pool::{Afterwards, Isolate, Pool, ProgramId};
use crate::settings::Limits;

/// After a run this long its garbage is collected, so that the next one does not pay for it or fail by it.
const LONG_RUN: Duration = Duration::from_millis(1);

/// What a run asks its statement.
pub(crate) enum Question {
    /// Whether it was killed.
    IsCancelled,
    /// To run a statement.
    Run(String, Vec<Value>),
}

type Answer = Result<Option<StatementResult>>;

/// The watch over one run. The interrupt handler and `db.query` hold it.
pub(crate) struct Watch {
    /// `None` while a program is compiled: then there is no session.
    session: Option<Lent<Question, Answer>>,
    state: Mutex<State>,
    limits: Limits,
}

struct State {
    deadline: Duration,
    /// Why the run has to end.
    stopped: Option<Error>,
    /// The last error of a statement, which the script may throw on.
    statement_error: Option<Error>,
}

impl Watch {
    fn new(session: Option<Lent<Question, Answer>>, limits: &Limits) -> Arc<Watch> {
        let deadline = monotonic() + limits.time;
        let state = State { deadline, stopped: None, statement_error: None };
        Arc::new(Watch { session, state: Mutex::new(state), limits: *limits })
    }

    /// Whether the run has to end now; once it has to, it always has to.
    pub(crate) fn must_stop(&self) -> bool {
        if self.state.lock().stopped.is_some() {
            return true;
        }
        let cancelled = self.session.as_ref().and_then(|it| it.call(Question::IsCancelled));
        let mut state = self.state.lock();
        if let Some(Err(error)) = cancelled {
            state.stopped = Some(error);
        } else if monotonic() >= state.deadline {
            let limit = self.limits.time.as_millis();
            let text = format!("the script ran for longer than {limit} ms (js_timeout)");
            state.stopped = Some(err!(LANGUAGE_COMPONENT_ERROR, LANGUAGE, text));
        }
        state.stopped.is_some()
    }

    /// Why the run was stopped.
    pub(crate) fn stopped(&self) -> Option<Error> {
        self.state.lock().stopped.clone()
    }

    /// Stops the run: memory ran out.
    pub(crate) fn out_of_memory(&self) -> Error {
        let limit = self.limits.memory_bytes;
        let text = format!("the script needs more than {limit} bytes of memory (js_memory_limit)");
        let error = err!(LANGUAGE_COMPONENT_ERROR, LANGUAGE, text);
        self.state.lock().stopped.get_or_insert(error).clone()
    }

    /// Runs a statement for the script. Its time does not count.
    pub(crate) fn run(&self, sql: String, parameters: Vec<Value>) -> Result<StatementResult> {
        let begun = monotonic();
        let answer = self.session.as_ref().and_then(|it| it.call(Question::Run(sql, parameters)));
        let mut state = self.state.lock();
        state.deadline += monotonic().saturating_sub(begun);
        let result = match answer {
            Some(Ok(Some(result))) => Ok(result),
            Some(Err(error)) => Err(error),
            Some(Ok(None)) | None => {
                Err(err!(LANGUAGE_COMPONENT_ERROR, LANGUAGE, "there is no statement to run in"))
            }
        };
        if let Err(error) = &result {
            state.statement_error = Some(error.clone());
            let ends_all = [
                ErrorCode::QUERY_INTERRUPTED,
                ErrorCode::QUERY_TIMEOUT,
                ErrorCode::STATEMENT_TIMEOUT,
            ];
            if ends_all.contains(&error.code()) {
                state.stopped = Some(error.clone());
            }
        }
        result
    }

    /// The error of the last statement that failed.
    pub(crate) fn statement_error(&self) -> Option<Error> {
        self.state.lock().statement_error.clone()
    }
}

/// Runs `body` in an isolate, for a statement.
///
/// # Errors
/// The body's; no isolate.
pub(crate) fn run<T>(
    pool: &Pool,
    program: Option<ProgramId>,
    context: &FunctionContext<'_>,
    statements: &mut dyn Statements,
    body: impl FnOnce(&mut Isolate, &Arc<Watch>) -> Result<T>,
) -> Result<T> {
    let session = &*context.session;
    let mut answer = |question| match question {
        Question::IsCancelled => session.check_cancelled().map(|()| None),
        Question::Run(sql, parameters) => statements.run(&sql, &parameters).map(Some),
    };
    let limits = pool.settings.limits();
    lend(&mut answer, |lent| {
        let check = || lent.call(Question::IsCancelled).unwrap_or(Ok(None)).map(|_| ());
        guarded(pool, program, &limits, check, Some(lent.clone()), body)
    })
}

/// The same without a session.
///
/// # Errors
/// The body's; no isolate.
pub(crate) fn run_alone<T>(
    pool: &Pool,
    body: impl FnOnce(&mut Isolate, &Arc<Watch>) -> Result<T>,
) -> Result<T> {
    guarded(pool, None, &pool.settings.limits(), || Ok(()), None, body)
}

fn guarded<T>(
    pool: &Pool,
    program: Option<ProgramId>,
    limits: &Limits,
    check: impl Fn() -> Result<()>,
    session: Option<Lent<Question, Answer>>,
    body: impl FnOnce(&mut Isolate, &Arc<Watch>) -> Result<T>,
) -> Result<T> {
    let mut lease = pool.lease(program, limits, check)?;
    let Some(isolate) = lease.isolate() else {
        return Err(Error::internal("a lease without an isolate"));
    };
    let begun = monotonic();
    let watch = Watch::new(session, limits);
    isolate.runtime.set_memory_limit(limits.memory_bytes);
    isolate.runtime.set_max_stack_size(limits.stack_bytes);
    let interrupt = watch.clone();
    isolate.runtime.set_interrupt_handler(Some(Box::new(move || interrupt.must_stop())));
    let result = body(isolate, &watch);
    isolate.runtime.set_interrupt_handler(None);
    // What a job would do, it would do to the next run.
    let afterwards = match watch.stopped() {
        None if !isolate.runtime.is_job_pending() => Afterwards::Reuse,
        _ => Afterwards::Discard,
    };
    if afterwards == Afterwards::Reuse && monotonic().saturating_sub(begun) > LONG_RUN {
        isolate.runtime.run_gc();
    }
    lease.end(limits, afterwards);
    result
}
