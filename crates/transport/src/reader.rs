//! Reads a file: total on any bytes. Memory is a block and a row, and a row grows only by bytes that the file has.

use std::io::{self, Read};

use crate::definition::Definition;
use crate::format::{
    BLOCK_BYTES_MAX, BLOCK_HEAD_BYTES, DEFINITION_BYTES_MAX, END_BYTES, HEAD_BYTES, Kind, MAGIC,
    ROW_BYTES_MAX, VERSION, checksum,
};

/// Why a file cannot be read.
#[derive(Debug)]
pub enum FileError {
    /// The file system's.
    Io(io::Error),
    /// The bytes from this place on are not what they should be.
    Damaged(u64),
    /// It was written in a form that this version does not know.
    Version(u32),
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> FileError {
        FileError::Io(error)
    }
}

/// An open file.
pub struct Reader<R: Read> {
    input: R,
    definition: Definition,
    /// Where the block at hand begins, and where the next one does.
    block_start: u64,
    next_block: u64,
    /// The block at hand, and what of it was used.
    block: Vec<u8>,
    used: usize,
    /// What the end says; `None` before it.
    end: Option<(u64, u64)>,
    rows: u64,
    bytes: u64,
}

impl<R: Read> Reader<R> {
    /// Reads the head and the definition.
    ///
    /// # Errors
    /// See `FileError`.
    pub fn open(mut input: R) -> Result<Reader<R>, FileError> {
        let mut head = [0; HEAD_BYTES];
        fill(&mut input, &mut head, 0)?;
        let (magic, rest) = head.split_at(MAGIC.len());
        let (version, sum) = rest.split_at(4);
        if magic != MAGIC || checksum(&[magic, version]).to_le_bytes() != sum {
            return Err(FileError::Damaged(0));
        }
        let version = u32::from_le_bytes([version[0], version[1], version[2], version[3]]);
        if version == 0 || version > VERSION {
            return Err(FileError::Version(version));
        }
        let mut reader = Reader {
            input,
            definition: Definition::default(),
            block_start: HEAD_BYTES as u64,
            next_block: HEAD_BYTES as u64,
            block: Vec::new(),
            used: 0,
            end: None,
            rows: 0,
            bytes: 0,
        };
        reader.read_definition()?;
        Ok(reader)
    }

    /// What the file says of its table.
    pub fn definition(&self) -> &Definition {
        &self.definition
    }

    /// Bytes that were read so far.
    pub fn position(&self) -> u64 {
        self.next_block
    }

    fn read_definition(&mut self) -> Result<(), FileError> {
        let mut bytes = Vec::new();
        loop {
            let kind = self.next_block()?;
            if kind != Kind::Definition {
                self.definition = Definition::read(&bytes).ok_or_else(|| self.damaged())?;
                return self.begin_rows(kind);
            }
            if bytes.len() + self.block.len() > DEFINITION_BYTES_MAX {
                return Err(self.damaged());
            }
            bytes.extend_from_slice(&self.block);
        }
    }

    fn damaged(&self) -> FileError {
        FileError::Damaged(self.block_start)
    }

    /// Reads the next block.
    fn next_block(&mut self) -> Result<Kind, FileError> {
        self.block_start = self.next_block;
        let mut head = [0; BLOCK_HEAD_BYTES];
        fill(&mut self.input, &mut head, self.block_start)?;
        let [kind, l0, l1, l2, l3, sum @ ..] = head;
        let length = [l0, l1, l2, l3];
        let size = u32::from_le_bytes(length) as usize;
        let known = Kind::of(kind).filter(|_| (1..=BLOCK_BYTES_MAX).contains(&size));
        let known = known.ok_or_else(|| self.damaged())?;
        self.block.resize(size, 0);
        fill(&mut self.input, &mut self.block, self.block_start)?;
        if checksum(&[&[kind], &length, &self.block]).to_le_bytes() != sum {
            return Err(self.damaged());
        }
        self.used = 0;
        self.next_block += (BLOCK_HEAD_BYTES + size) as u64;
        Ok(known)
    }

    /// Takes a block that follows the definition or rows.
    fn begin_rows(&mut self, kind: Kind) -> Result<(), FileError> {
        match kind {
            Kind::Definition => Err(self.damaged()),
            Kind::Rows => Ok(()),
            Kind::End => self.take_end(),
        }
    }

    fn take_end(&mut self) -> Result<(), FileError> {
        let end: [u8; END_BYTES] = self.block[..].try_into().map_err(|_| self.damaged())?;
        let (rows, bytes) = end.split_at(8);
        let number =
            |bytes: &[u8]| bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
        let end = (number(rows), number(bytes));
        self.used = self.block.len();
        // Nothing follows.
        let mut more = [0];
        if end != (self.rows, self.bytes) || self.input.read(&mut more)? != 0 {
            return Err(self.damaged());
        }
        self.end = Some(end);
        Ok(())
    }

    /// Makes `row` the next row. False behind the last one, when all of the file is known to be sound.
    ///
    /// # Errors
    /// See `FileError`.
    pub fn next_row(&mut self, row: &mut Vec<u8>) -> Result<bool, FileError> {
        row.clear();
        if self.used == self.block.len() && self.end.is_none() {
            let kind = self.next_block()?;
            self.begin_rows(kind)?;
        }
        if self.end.is_some() {
            return Ok(false);
        }
        self.take(4, row)?;
        let length = row.iter().rev().fold(0, |all, byte| all << 8 | usize::from(*byte));
        row.clear();
        if length > ROW_BYTES_MAX {
            return Err(self.damaged());
        }
        self.take(length, row)?;
        self.rows += 1;
        self.bytes += 4 + length as u64;
        Ok(true)
    }

    /// Appends `count` bytes of the rows, which may go on in the next blocks.
    fn take(&mut self, mut count: usize, out: &mut Vec<u8>) -> Result<(), FileError> {
        loop {
            let left = &self.block[self.used..];
            let now = left.len().min(count);
            out.extend_from_slice(&left[..now]);
            self.used += now;
            count -= now;
            if count == 0 {
                return Ok(());
            }
            if self.next_block()? != Kind::Rows {
                return Err(self.damaged());
            }
        }
    }
}

/// Reads all of `bytes`; the file is damaged from `place` on when it ends before.
fn fill(input: &mut impl Read, bytes: &mut [u8], place: u64) -> Result<(), FileError> {
    input.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => FileError::Damaged(place),
        _ => FileError::Io(error),
    })
}
