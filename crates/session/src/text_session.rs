//! The session in which EXECUTE runs a text with options, as the plugin that does so sees it.

use ::accounts::PrivilegeChecks;
use engine_api::CancelToken;
use errors::{Error, Level, Result, bail};
use plugin_api::{SessionHandle, StopsWith, TextRequest, TextSession};
use programs::{Origin, ProgramHost, Running, parse_error};
use syntax::ast::Statement;

use crate::program_host::ProgramSession;
use crate::session::Session;
use statements::placeholders::is_blank;
use statements::sink::DiscardSink;

/// Runs a text by the plugin that can.
///
/// # Errors
/// 1235 when there is none, 1336 in functions and triggers, errors of the text.
pub(crate) fn run_text(session: &mut Session, request: &TextRequest<'_>) -> Result<()> {
    if session.transactions.function_depth > 0 {
        bail!(STMT_NOT_ALLOWED_IN_SF_OR_TRG, "Dynamic SQL");
    }
    let Some(runner) = session.server.registry().text_runner().cloned() else {
        return Err(Error::not_supported("EXECUTE WITH NO RETURN and EXECUTE CONCURRENT"));
    };
    let result = runner.run(request, &mut RunningText { session });
    // Of the last statement of the text, which is not that of the client.
    session.services.row_count = 0;
    result
}

/// A session as `TextSession`.
struct RunningText<'s> {
    session: &'s mut Session,
}

impl TextSession for RunningText<'_> {
    fn run_here(&mut self, text: &str) -> Result<()> {
        let session = &mut *self.session;
        // Each statement sees the changes of those before it: nothing waits for the end of the text.
        let more_results = std::mem::replace(&mut session.statement.more_results, true);
        let result = run_all(session, text.as_bytes());
        session.statement.more_results = more_results;
        // The statement of the client has conditions of its own.
        ProgramSession::new(session).begin_part();
        result
    }

    fn in_transaction(&self) -> bool {
        self.session.transactions.is_open(&self.session.settings)
    }

    fn open_session(&mut self, stops: StopsWith) -> Result<Box<dyn SessionHandle>> {
        match stops {
            StopsWith::Caller => self.session.open_for_function(),
            StopsWith::Nobody => self.session.open_handle(CancelToken::new()),
        }
    }

    fn require_privilege(&self, name: &str) -> Result<()> {
        self.session.require_dynamic(name)
    }

    fn warn(&mut self, error: &Error) {
        self.session.working.push_error(Level::Warning, error);
    }

    fn check_cancelled(&self) -> Result<()> {
        self.session.shared.cancel.check()
    }
}

/// Runs the statements of a text one after another.
fn run_all(session: &mut Session, text: &[u8]) -> Result<()> {
    let mut rest = text;
    while !is_blank(rest) {
        let options = session.reading().text_options();
        let (statement, consumed) =
            syntax::parse_bytes(rest, &options).map_err(|error| parse_error(&error))?;
        if !matches!(statement, Statement::Empty) {
            let running =
                Running { source: rest, parameters: &[], origin: Origin::Text, kept: None };
            let mut host = ProgramSession::new(session);
            host.begin_part();
            host.begin_scope();
            if let Err(error) =
                session.run_statement(&statement, &running, &mut DiscardSink::default())
            {
                session.abort_transaction_scope(&error);
                return Err(error);
            }
            session.end_statement();
        }
        rest = &rest[consumed..];
        // Not before the first: a ROLLBACK runs also when the statement is stopped.
        session.shared.cancel.check()?;
    }
    Ok(())
}
