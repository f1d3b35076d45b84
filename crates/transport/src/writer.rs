//! Writes a file: blocks of at most [`BLOCK_BYTES_MAX`], so that a large value passes in pieces.

use std::io::{self, Write};

use crate::definition::Definition;
use crate::format::{BLOCK_BYTES_MAX, Kind, MAGIC, VERSION, checksum};

/// A file under construction.
pub(crate) struct Writer<W: Write> {
    output: W,
    /// Rows that are in no block yet.
    pending: Vec<u8>,
    rows: u64,
    bytes: u64,
}

impl<W: Write> Writer<W> {
    /// Writes the head and the definition.
    ///
    /// # Errors
    /// I/O.
    pub(crate) fn begin(mut output: W, definition: &Definition) -> io::Result<Writer<W>> {
        let version = VERSION.to_le_bytes();
        output.write_all(&MAGIC)?;
        output.write_all(&version)?;
        output.write_all(&checksum(&[&MAGIC, &version]).to_le_bytes())?;
        let mut writer = Writer { output, pending: Vec::new(), rows: 0, bytes: 0 };
        for piece in definition.to_bytes().chunks(BLOCK_BYTES_MAX) {
            writer.block(Kind::Definition, piece)?;
        }
        Ok(writer)
    }

    fn block(&mut self, kind: Kind, content: &[u8]) -> io::Result<()> {
        let kind = [kind.byte()];
        let length = u32::try_from(content.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let length = length.to_le_bytes();
        self.output.write_all(&kind)?;
        self.output.write_all(&length)?;
        self.output.write_all(&checksum(&[&kind, &length, content]).to_le_bytes())?;
        self.output.write_all(content)
    }

    /// Appends a row.
    ///
    /// # Errors
    /// I/O; `InvalidInput` for a row that no file can hold.
    pub(crate) fn row(&mut self, record: &[u8]) -> io::Result<()> {
        if record.len() > crate::format::ROW_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "a row is too long"));
        }
        self.append(&(record.len() as u32).to_le_bytes())?;
        self.append(record)?;
        self.rows += 1;
        self.bytes += 4 + record.len() as u64;
        Ok(())
    }

    fn append(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let room = BLOCK_BYTES_MAX - self.pending.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.pending.extend_from_slice(now);
            bytes = later;
            if self.pending.len() == BLOCK_BYTES_MAX {
                self.send()?;
            }
        }
        Ok(())
    }

    /// Writes the rows that wait.
    fn send(&mut self) -> io::Result<()> {
        let content = std::mem::take(&mut self.pending);
        let written = self.block(Kind::Rows, &content);
        self.pending = content;
        self.pending.clear();
        written
    }

    /// Writes what is left, and the end.
    ///
    /// # Errors
    /// I/O.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        if !self.pending.is_empty() {
            self.send()?;
        }
        let mut end = self.rows.to_le_bytes().to_vec();
        end.extend_from_slice(&self.bytes.to_le_bytes());
        self.block(Kind::End, &end)?;
        Ok(self.output)
    }
}
