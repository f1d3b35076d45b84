//! SELECT ... INTO OUTFILE and DUMPFILE, and where the server may read and write files.

use std::io::Write;
use std::path::{Path, PathBuf};

use catalog::PrivilegeSet;
use errors::{Error, ErrorCode, Result, bail, err};
use exec::RowSink;
use plugin_api::{OkInfo, ResultSink, RowSource};
use syntax::Statement;
use syntax::ast::FileFormat;
use types::{DataType, Value};

use crate::session::Session;
use crate::statement::Running;

/// FIELDS and LINES with their defaults.
#[derive(Clone, Debug)]
pub(crate) struct Format {
    pub(crate) fields_terminated: Vec<u8>,
    pub(crate) enclosed: Option<u8>,
    pub(crate) optionally: bool,
    pub(crate) escaped: Option<u8>,
    pub(crate) lines_starting: Vec<u8>,
    pub(crate) lines_terminated: Vec<u8>,
}

impl Format {
    /// The format that a statement asks for.
    ///
    /// # Errors
    /// 1083.
    pub(crate) fn new(written: &FileFormat) -> Result<Format> {
        let bytes = |given: &Option<Box<[u8]>>, default: &[u8]| {
            given.as_ref().map_or_else(|| default.to_vec(), |bytes| bytes.to_vec())
        };
        let single = |given: &Option<Box<[u8]>>, default: Option<u8>| match given {
            None => Ok(default),
            Some(bytes) => match &**bytes {
                [] => Ok(None),
                [byte] => Ok(Some(*byte)),
                _ => Err(err!(WRONG_FIELD_TERMINATORS)),
            },
        };
        Ok(Format {
            fields_terminated: bytes(&written.fields_terminated_by, b"\t"),
            enclosed: single(&written.fields_enclosed_by, None)?,
            optionally: written.fields_optionally_enclosed,
            escaped: single(&written.fields_escaped_by, Some(b'\\'))?,
            lines_starting: bytes(&written.lines_starting_by, b""),
            lines_terminated: bytes(&written.lines_terminated_by, b"\n"),
        })
    }
}

impl Session {
    /// The path of a server-side file, when `secure_file_priv` allows it.
    ///
    /// # Errors
    /// 1290, 1227.
    pub(crate) fn server_file(&self, name: &str) -> Result<PathBuf> {
        self.require_global(PrivilegeSet::FILE)?;
        let refused = || err!(OPTION_PREVENTS_STATEMENT, "--secure-file-priv");
        let allowed = match self.services.variable("secure_file_priv", true) {
            Some(Value::Bytes(allowed)) => String::from_utf8_lossy(&allowed).into_owned(),
            _ => return Err(refused()),
        };
        let data = PathBuf::from(self.server.globals.text("datadir"));
        let path = match &self.services.database {
            Some(database) if Path::new(name).parent() == Some(Path::new("")) => {
                data.join(&**database).join(name)
            }
            _ => data.join(name),
        };
        if allowed.is_empty() {
            return Ok(path);
        }
        let parent = path.parent().map(Path::canonicalize).and_then(|parent| parent.ok());
        let allowed = Path::new(&allowed).canonicalize().map_err(|_| refused())?;
        if !parent.is_some_and(|parent| parent.starts_with(&allowed)) {
            return Err(refused());
        }
        Ok(path)
    }

    /// SELECT ... INTO OUTFILE or, without a format, DUMPFILE.
    pub(crate) fn select_into_file(
        &mut self,
        statement: &Statement,
        file: &str,
        charset: Option<&str>,
        format: Option<&FileFormat>,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let path = self.server_file(file)?;
        let charset = charset.map(crate::ddl::find_charset).transpose()?;
        let planned = self.plan_and_lock(statement, running)?;
        let created = std::fs::OpenOptions::new().write(true).create_new(true).open(&path);
        let created = created.map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => err!(FILE_EXISTS_ERROR, file),
            _ => file_error(ErrorCode::CANT_CREATE_FILE, file, &error),
        })?;
        let mut rows = FileRows {
            out: std::io::BufWriter::new(created),
            format: format.map(Format::new).transpose()?,
            types: planned.program.columns().iter().map(|column| column.ty.clone()).collect(),
            charset,
            name: file.to_owned(),
            count: 0,
            text: Vec::new(),
        };
        let ran = sys::blocking::blocking(|| {
            self.run_program(&planned, running.parameters, &mut rows)
        });
        let flushed = rows.out.flush();
        if let Err(error) = ran {
            // What was written so far is of no use.
            let _ = std::fs::remove_file(&path);
            return Err(error);
        }
        flushed.map_err(|error| file_error(ErrorCode::ERROR_ON_WRITE, file, &error))?;
        let affected_rows = rows.count;
        self.services.row_count = affected_rows as i64;
        let commit = self.finish_transaction_scope()?;
        self.send_ok(sink, OkInfo { affected_rows, commit, ..OkInfo::default() })
    }
}

/// An operating-system error about a file in the reference's words.
pub(crate) fn file_error(code: ErrorCode, name: &str, error: &std::io::Error) -> Error {
    let number = error.raw_os_error().unwrap_or(0);
    Error::with(code, &[&name, &number, &error.kind()])
}

struct FileRows {
    out: std::io::BufWriter<std::fs::File>,
    /// `None` for DUMPFILE: bare bytes of one row.
    format: Option<Format>,
    types: Vec<DataType>,
    charset: Option<&'static charset::Charset>,
    name: String,
    count: u64,
    text: Vec<u8>,
}

impl FileRows {
    fn field(&mut self, value: &Value, ty: &DataType, format: &Format) {
        if value.is_null() {
            match format.escaped {
                Some(escape) => self.text.extend_from_slice(&[escape, b'N']),
                None => self.text.extend_from_slice(b"NULL"),
            }
            return;
        }
        let mut plain = Vec::new();
        types::text::to_text(value, ty, &mut plain);
        if let Some(charset) = self.charset {
            plain = charset.encode(&plain).bytes;
        }
        let enclose = format.enclosed.filter(|_| !format.optionally || is_text(ty));
        self.text.extend(enclose);
        for byte in plain {
            self.escape(byte, enclose, format);
        }
        self.text.extend(enclose);
    }

    fn escape(&mut self, byte: u8, enclose: Option<u8>, format: &Format) {
        let special = match enclose {
            Some(enclose) => byte == enclose,
            None => format.fields_terminated.first() == Some(&byte),
        };
        match format.escaped {
            Some(escape) if byte == 0 => self.text.extend_from_slice(&[escape, b'0']),
            Some(escape)
                if special
                    || byte == escape
                    || format.lines_terminated.first() == Some(&byte) =>
            {
                self.text.extend_from_slice(&[escape, byte]);
            }
            None if special && enclose.is_some() => self.text.extend_from_slice(&[byte, byte]),
            Some(_) | None => self.text.push(byte),
        }
    }
}

/// OPTIONALLY ENCLOSED BY encloses strings only.
fn is_text(ty: &DataType) -> bool {
    ty.is_string()
        || matches!(ty.kind, types::TypeKind::Enum | types::TypeKind::Set | types::TypeKind::Json)
        || ty.is_temporal()
}

impl RowSink for FileRows {
    fn row(&mut self, row: &dyn RowSource) -> Result<()> {
        self.count += 1;
        self.text.clear();
        let types = std::mem::take(&mut self.types);
        match self.format.clone() {
            None => {
                if self.count > 1 {
                    bail!(TOO_MANY_ROWS);
                }
                for (index, ty) in types.iter().enumerate() {
                    types::text::to_text(&row.value(index, ty)?, ty, &mut self.text);
                }
            }
            Some(format) => {
                self.text.extend_from_slice(&format.lines_starting);
                for (index, ty) in types.iter().enumerate() {
                    if index > 0 {
                        self.text.extend_from_slice(&format.fields_terminated);
                    }
                    let value = row.value(index, ty)?;
                    self.field(&value, ty, &format);
                }
                self.text.extend_from_slice(&format.lines_terminated);
            }
        }
        self.types = types;
        self.out
            .write_all(&self.text)
            .map_err(|error| file_error(ErrorCode::ERROR_ON_WRITE, &self.name, &error))
    }
}
