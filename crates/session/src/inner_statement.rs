//! Statements that a function runs inside the statement that calls it: in its session and its transaction, by the rules of stored functions.

use errors::{Error, Result, bail, err};
use plugin_api::{
    ColumnMeta, LocalFile, OkInfo, ResultSink, RowSource, SessionState, StatementResult,
};
use programs::ProgramHost;
use types::Value;

use crate::program_host::ProgramSession;
use crate::session::Session;

/// How deep functions and the statements that they run may call each other.
const DEPTH_MAX: u32 = 8;
/// Bytes of rows that a function may get from one statement.
const ROWS_BYTES_MAX: usize = 256 << 20;
/// Bytes of a row and of a value in memory, roughly.
const VALUE_BYTES: usize = 24;

impl Session {
    /// Runs a statement for a function that a statement of this session calls.
    ///
    /// # Errors
    /// As `plugin_api::Statements::run`.
    pub(crate) fn run_inside(
        &mut self,
        sql: &str,
        parameters: &[Value],
    ) -> Result<StatementResult> {
        if self.transactions.function_depth > DEPTH_MAX {
            bail!(STACK_OVERRUN_NEED_MORE, 0, 0, 0);
        }
        self.shared.cancel.check()?;
        let sql = sql.trim_end_matches(|end: char| end.is_ascii_whitespace() || end == ';');
        let (text, statement) = self.reading().prepare_decoded(sql.as_bytes().into())?;
        programs::check_in_function(&ProgramSession::new(self), &statement)?;
        if parameters.len() != text.parameters as usize {
            bail!(WRONG_ARGUMENTS, "EXECUTE");
        }
        let savepoint = format!("\0function {}", self.transactions.function_depth);
        self.transactions.savepoint(&savepoint);
        ProgramSession::new(self).begin_part();
        let outside = (self.statement.depth, self.statement.runs_prepared);
        self.statement.depth = 0;
        let mut sink = InnerSink::default();
        let result = self.run_prepared_text(&text, None, parameters, &mut sink);
        (self.statement.depth, self.statement.runs_prepared) = outside;
        match &result {
            Ok(()) => self.end_statement(),
            Err(error) => {
                self.abort_transaction_scope(error);
                // After a deadlock the savepoint is gone with the transaction.
                let _ = self.transactions.rollback_to(&savepoint);
            }
        }
        let _ = self.transactions.release(&savepoint);
        result.map(|()| sink.result)
    }
}

/// Keeps the one result of a statement.
#[derive(Default)]
struct InnerSink {
    result: StatementResult,
    bytes: usize,
}

impl InnerSink {
    fn note_end(&mut self, end: &OkInfo) {
        self.result.affected_rows = end.affected_rows;
        self.result.last_insert_id = end.last_insert_id;
        self.result.warnings = end.warnings;
        self.result.info.clone_from(&end.info);
    }
}

impl ResultSink for InnerSink {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<()> {
        if !self.result.columns.is_empty() {
            // A procedure with several results.
            return Err(err!(SP_NO_RETSET, "function"));
        }
        self.result.columns = columns.to_vec();
        Ok(())
    }

    fn row(&mut self, row: &dyn RowSource) -> Result<()> {
        let values = (0..row.len()).map(|index| row.value(index)).collect::<Result<Vec<_>>>()?;
        let bytes = |value: &Value| VALUE_BYTES + value.heap_bytes();
        self.bytes += VALUE_BYTES + values.iter().map(bytes).sum::<usize>();
        if self.bytes > ROWS_BYTES_MAX {
            bail!(OUT_OF_RESOURCES);
        }
        self.result.rows.push(values);
        Ok(())
    }

    fn end(&mut self, state: &SessionState) -> Result<()> {
        self.note_end(state);
        Ok(())
    }

    fn ok(&mut self, ok: &OkInfo) -> Result<()> {
        self.note_end(ok);
        Ok(())
    }

    fn error(&mut self, error: &Error) -> Result<()> {
        Err(error.clone())
    }

    fn local_file(&mut self, _: &str) -> Result<Box<dyn LocalFile + '_>> {
        bail!(NOT_ALLOWED_COMMAND);
    }
}
