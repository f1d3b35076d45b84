//! The file of SELECT .. INTO OUTFILE and INTO DUMPFILE.

use std::io::{BufWriter, Write};
use std::path::Path;

use charset::Charset;
use errors::{Error, ErrorCode, Result, bail, err};
use exec::RowSink;
use plugin_api::RowSource;
use sys::files::{Existing, File};
use types::DataType;

use crate::file_records::Format;

/// Files are for the server's user and group.
const FILE_MODE: u32 = 0o640;

/// Makes the file.
///
/// # Errors
/// 1086, 1.
pub fn create_file(path: &Path, name: &str) -> Result<File> {
    File::create(path, FILE_MODE, Existing::Refuse).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => err!(FILE_EXISTS_ERROR, name),
        _ => file_error(1, "Can't create/write to file", path, &error),
    })
}

/// An error of the file system, as the reference words it.
pub fn file_error(code: u16, what: &str, path: &Path, error: &std::io::Error) -> Error {
    let number = error.raw_os_error().unwrap_or(0);
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let path = path.display();
    Error::new(ErrorCode(code), format!("{what} '{path}' (OS errno {number} - {text})"))
}

/// Writes rows to a file.
pub struct FileRows {
    /// The file.
    pub output: BufWriter<File>,
    /// `None`: INTO DUMPFILE.
    pub format: Option<Format>,
    /// That of texts; `None`: UTF-8.
    pub charset: Option<&'static Charset>,
    /// Types of the columns.
    pub types: Vec<DataType>,
    /// Rows so far.
    pub count: u64,
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
