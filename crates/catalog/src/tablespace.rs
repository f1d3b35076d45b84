//! General tablespaces: names for groups of tables. The rows are in the engine's own files.

use std::sync::Arc;

use errors::Result;

use crate::fields::{FieldWriter, object_fields};

/// A general tablespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tablespace {
    /// Name; case counts.
    pub name: Arc<str>,
    /// The file that was declared; nothing is written to it.
    pub file: Arc<str>,
    /// COMMENT.
    pub comment: Arc<str>,
    /// AUTOEXTEND_SIZE, as declared.
    pub autoextend_bytes: u64,
    /// FILE_BLOCK_SIZE, as declared; 0 without one.
    pub block_bytes: u64,
    /// ENCRYPTION='Y'.
    pub is_encrypted: bool,
}

/// Name 1, file 2, comment 3, AUTOEXTEND_SIZE 4, FILE_BLOCK_SIZE 5, encrypted 6.
pub(crate) fn write_tablespace(tablespace: &Tablespace) -> Vec<u8> {
    let mut out = FieldWriter::object();
    out.text(1, &tablespace.name);
    out.text(2, &tablespace.file);
    out.text(3, &tablespace.comment);
    out.number(4, tablespace.autoextend_bytes);
    out.number(5, tablespace.block_bytes);
    out.flag(6, tablespace.is_encrypted);
    out.finish()
}

pub(crate) fn read_tablespace(bytes: &[u8]) -> Result<Tablespace> {
    let mut tablespace = Tablespace::default();
    for field in object_fields(bytes)? {
        match field.tag {
            1 => tablespace.name = field.text()?.into(),
            2 => tablespace.file = field.text()?.into(),
            3 => tablespace.comment = field.text()?.into(),
            4 => tablespace.autoextend_bytes = field.number()?,
            5 => tablespace.block_bytes = field.number()?,
            6 => tablespace.is_encrypted = field.flag()?,
            _ => {}
        }
    }
    Ok(tablespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tablespaces_are_read_as_they_were_written() {
        let full = Tablespace {
            name: "ts 1".into(),
            file: "a.ibd".into(),
            comment: "x".into(),
            autoextend_bytes: 4 << 20,
            block_bytes: 8192,
            is_encrypted: true,
        };
        for tablespace in [Tablespace { name: "t".into(), ..Tablespace::default() }, full] {
            assert_eq!(read_tablespace(&write_tablespace(&tablespace)).unwrap(), tablespace);
        }
    }
}
