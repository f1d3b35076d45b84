//! EXECUTE of a text WITH NO RETURN and CONCURRENT.

use errors::{Error, Result};
use plugin_api::{StopsWith, TextPlace, TextRequest, TextResults, TextRunner, TextSession};

use crate::PRIVILEGE;
use crate::discard::run_in_transaction;

/// The savepoint around a text that runs in an open transaction.
const SAVEPOINT: &str = "`execute with no return`";

/// Runs texts.
pub(crate) struct Runner;

impl TextRunner for Runner {
    fn run(&self, request: &TextRequest<'_>, session: &mut dyn TextSession) -> Result<()> {
        session.require_privilege(PRIVILEGE)?;
        let result = match request.place {
            TextPlace::Here => run_here(session, request.text),
            TextPlace::BesideWaiting => {
                let mut beside = session.open_session(StopsWith::Caller)?;
                run_in_transaction(&mut *beside, request.text)
            }
            TextPlace::Beside => return start_beside(session, request.text),
        };
        // A statement that was stopped must not look as if it had been carried out.
        session.check_cancelled()?;
        match (result, request.results) {
            (Err(error), TextResults::Discarded) => {
                session.warn(&error);
                Ok(())
            }
            (result, _) => result,
        }
    }
}

/// Runs a text in the session: in a transaction of its own, or between savepoints of the one that is open.
fn run_here(session: &mut dyn TextSession, text: &str) -> Result<()> {
    if !session.in_transaction() {
        session.run_here("START TRANSACTION")?;
        let result = session.run_here(text);
        let end = if result.is_ok() { "COMMIT" } else { "ROLLBACK" };
        return result.and(session.run_here(end));
    }
    session.run_here(&format!("SAVEPOINT {SAVEPOINT}"))?;
    let result = session.run_here(text);
    if result.is_err() {
        // It is gone when the text ended the transaction.
        let _ = session.run_here(&format!("ROLLBACK TO SAVEPOINT {SAVEPOINT}"));
    }
    let _ = session.run_here(&format!("RELEASE SAVEPOINT {SAVEPOINT}"));
    result
}

/// Runs a text in another session on another thread.
fn start_beside(session: &mut dyn TextSession, text: &str) -> Result<()> {
    let mut beside = session.open_session(StopsWith::Nobody)?;
    let text = text.to_owned();
    let started = sys::threads::spawn("execute", move || {
        if let Err(error) = run_in_transaction(&mut *beside, &text) {
            tracing::warn!("EXECUTE CONCURRENT: {}", error.message());
        }
    });
    started.map(drop).map_err(|error| Error::internal(error.to_string()))
}
