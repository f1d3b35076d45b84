//! A request on a thread of its own, so that the session can stop waiting for it.

use std::sync::Arc;
use std::time::Duration;

use errors::{Error, Result};
use plugin_api::SessionServices;
use sys::sync::{Condvar, Mutex};
use ureq::Agent;

use crate::failure::Failure;
use crate::request::{Answer, Limits, Request, perform};

/// How often the session looks whether its statement was stopped.
const POLL: Duration = Duration::from_millis(20);

type Outcome = std::result::Result<Answer, Failure>;

#[derive(Default)]
struct Shared {
    outcome: Mutex<Option<Outcome>>,
    done: Condvar,
}

/// Makes a request and waits for it; a statement that is stopped closes the connection and waits no longer.
///
/// # Errors
/// 1317, 3024; 3200 with the reason of the failure; no thread.
pub(crate) fn perform_and_wait(
    agent: Agent,
    limits: Limits,
    request: Request,
    session: &dyn SessionServices,
    function: &str,
) -> Result<Answer> {
    let shared = Arc::new(Shared::default());
    let (there, worker) = (shared.clone(), agent.clone());
    let started = sys::threads::spawn("http", move || {
        let outcome = perform(&worker, &limits, request);
        *there.outcome.lock() = Some(outcome);
        there.done.notify_all();
    });
    started.map_err(|error| Error::internal(error.to_string()))?;
    let outcome = sys::blocking::blocking(|| {
        let _waiting = sys::waits::enter(sys::waits::Wait::Network);
        let mut outcome = shared.outcome.lock();
        loop {
            if let Some(outcome) = outcome.take() {
                return Ok(outcome);
            }
            session.check_cancelled()?;
            outcome = shared.done.wait_for(outcome, POLL);
        }
    });
    match outcome {
        Ok(outcome) => outcome.map_err(|failure| failure.into_error(function)),
        Err(stopped) => {
            agent.shutdown();
            Err(stopped)
        }
    }
}
