//! Runs a text in a session that was opened for it, as one transaction, and keeps nothing of its results but the first error.

use errors::{Error, Result, bail};
use plugin_api::{
    ColumnMeta, CommandOutcome, LocalFile, OkInfo, ResultSink, RowSource, SessionHandle,
    SessionState,
};

/// Runs the statements of a text in one transaction; those among them that end it or begin another do so. Without an error the last
/// transaction is committed. After one it ends with the session.
///
/// # Errors
/// The first error of a statement.
pub(crate) fn run_in_transaction(session: &mut dyn SessionHandle, text: &str) -> Result<()> {
    for part in ["START TRANSACTION", text, "COMMIT"] {
        let mut results = Results::default();
        let outcome = session.query(part.as_bytes(), &[], &mut results)?;
        if let Some(error) = results.error {
            return Err(error);
        }
        if outcome == CommandOutcome::Close {
            // COMMIT RELEASE: there is nothing left to commit.
            break;
        }
    }
    Ok(())
}

/// Drops results.
#[derive(Default)]
struct Results {
    error: Option<Error>,
}

impl ResultSink for Results {
    fn columns(&mut self, _: &[ColumnMeta]) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, _: &dyn RowSource) -> Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &SessionState) -> Result<()> {
        Ok(())
    }

    fn ok(&mut self, _: &OkInfo) -> Result<()> {
        Ok(())
    }

    fn error(&mut self, error: &Error) -> Result<()> {
        self.error.get_or_insert_with(|| error.clone());
        Ok(())
    }

    fn local_file(&mut self, _: &str) -> Result<Box<dyn LocalFile + '_>> {
        bail!(CLIENT_LOCAL_FILES_DISABLED)
    }
}
