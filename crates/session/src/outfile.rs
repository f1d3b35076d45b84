//! SELECT ... INTO OUTFILE and INTO DUMPFILE.

use ::accounts::PrivilegeChecks;
use std::io::{BufWriter, Write};

use catalog::PrivilegeSet;
use errors::{Error, Result, err};
use plugin_api::{OkInfo, ResultSink};
use syntax::ast::{FileFormat, Statement};

use crate::load_data::Format;
use crate::session::Session;
use programs::Running;
use statements::outfile::{FileRows, create_file};

/// Runs a SELECT whose rows go to a file; without a format, one row unformatted.
pub(crate) fn select_into_file(
    session: &mut Session,
    statement: &Statement,
    file: &str,
    charset: Option<&str>,
    format: Option<&FileFormat>,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    session.require_global(PrivilegeSet::FILE)?;
    let charset = match charset {
        None => None,
        Some(name) => {
            Some(charset::charset_by_name(name).ok_or_else(|| err!(UNKNOWN_CHARACTER_SET, name))?)
        }
    };
    let planned = session.plan_and_lock(statement, running)?;
    let path = crate::load_data::data_path(session, file)?;
    let output = create_file(&path, file)?;
    let types = planned.program.columns().iter().map(|column| column.ty.clone()).collect();
    let mut rows = FileRows {
        output: BufWriter::new(output),
        format: format.map(Format::new),
        charset,
        types,
        count: 0,
    };
    let outcome = session.run_program(&planned, running.parameters, &mut rows)?;
    rows.output.flush().map_err(Error::internal)?;
    let affected_rows = rows.count;
    session.services.note_outcome(planned.kind, &outcome, session.client.found_rows);
    session.services.row_count = affected_rows as i64;
    let commit = session.finish_transaction_scope()?;
    session.send_ok(sink, OkInfo { affected_rows, commit, ..OkInfo::default() })
}
