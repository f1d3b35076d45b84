//! SELECT ... INTO OUTFILE and INTO DUMPFILE.

use ::accounts::PrivilegeChecks;
use std::io::{BufWriter, Write};
use std::path::Path;

use catalog::PrivilegeSet;
use charset::Charset;
use errors::{Error, Result, bail, err};
use exec::RowSink;
use plugin_api::{OkInfo, ResultSink, RowSource};
use syntax::ast::{FileFormat, Statement};
use sys::files::{Existing, File};
use types::DataType;

use crate::load_data::{Format, file_error};
use crate::session::Session;
use programs::Running;

/// Files are for the server's user and group.
const FILE_MODE: u32 = 0o640;

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

fn create_file(path: &Path, name: &str) -> Result<File> {
    File::create(path, FILE_MODE, Existing::Refuse).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => err!(FILE_EXISTS_ERROR, name),
        _ => file_error(1, "Can't create/write to file", path, &error),
    })
}

/// Writes rows to a file.
struct FileRows {
    output: BufWriter<File>,
    /// `None`: INTO DUMPFILE.
    format: Option<Format>,
    charset: Option<&'static Charset>,
    types: Vec<DataType>,
    count: u64,
}

impl RowSink for FileRows {
    fn row(&mut self, row: &dyn RowSource) -> Result<()> {
        self.count += 1;
        let mut line = Vec::new();
        match &self.format {
            None => {
                if self.count > 1 {
                    bail!(TOO_MANY_ROWS);
                }
                for (index, ty) in self.types.iter().enumerate() {
                    row.cell(index)?.write_text(ty, &mut line)?;
                }
            }
            Some(format) => {
                line.extend_from_slice(&format.starting);
                for (index, ty) in self.types.iter().enumerate() {
                    if index > 0 {
                        line.extend_from_slice(&format.terminated);
                    }
                    self.put_field(format, row, index, ty, &mut line)?;
                }
                line.extend_from_slice(&format.line_end);
            }
        }
        self.output.write_all(&line).map_err(Error::internal)
    }
}

impl FileRows {
    fn put_field(
        &self,
        format: &Format,
        row: &dyn RowSource,
        index: usize,
        ty: &DataType,
        line: &mut Vec<u8>,
    ) -> Result<()> {
        let mut text = Vec::new();
        if !row.cell(index)?.write_text(ty, &mut text)? {
            match format.escaped {
                Some(escape) => line.extend_from_slice(&[escape, b'N']),
                None => line.extend_from_slice(b"NULL"),
            }
            return Ok(());
        }
        if let Some(charset) = self.charset.filter(|_| !ty.is_binary()) {
            text = charset.encode(&text).bytes;
        }
        let is_string = ty.is_string() || ty.as_fixed().is_some();
        let quote = format.enclosed.filter(|_| !format.optionally_enclosed || is_string);
        line.extend(quote);
        for byte in text {
            match format.escaped {
                Some(escape) if byte == 0 => line.extend_from_slice(&[escape, b'0']),
                Some(escape) if must_escape(format, quote, escape, byte) => {
                    line.extend_from_slice(&[escape, byte]);
                }
                _ => line.push(byte),
            }
        }
        line.extend(quote);
        Ok(())
    }
}

/// Whether a byte would be read as a mark when the file is loaded again.
fn must_escape(format: &Format, quote: Option<u8>, escape: u8, byte: u8) -> bool {
    let begins = |mark: &[u8]| mark.first() == Some(&byte);
    byte == escape
        || match quote {
            Some(quote) => byte == quote,
            None => begins(&format.terminated) || begins(&format.line_end),
        }
}
