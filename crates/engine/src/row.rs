//! The bytes of a clustered row's value, and of undo entries.

use btree::{free_blob_page, read_blob};
use bufpool::Pool;
use page::PageNo;
use std::io;
use stdx::bytes::{Reader, put_blob, put_short_blob, put_u32, put_u64, put_varint};

use crate::difference::apply_difference;
use crate::entry::Entry;

/// Flag of a deleted row.
const DELETED: u64 = 1 << 56;
/// Flag of a record stored out of line: the body is its reference.
const OUT_OF_LINE: u64 = 1 << 57;
const ID: u64 = DELETED - 1;
/// Bytes before the body: id and flags, undo pointer.
pub(crate) const HEADER_BYTES: usize = 16;

/// The header before a row's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    word: u64,
    /// The place of the writer's undo entry for this version.
    pub undo: u64,
}

impl Header {
    pub fn new(id: u64, undo: u64, place: Place) -> Header {
        let flags = match place {
            Place::Inline => 0,
            Place::OutOfLine => OUT_OF_LINE,
            Place::Deleted => DELETED,
        };
        Header { word: id | flags, undo }
    }

    /// The header with the given first two words.
    pub fn from_words(word: u64, undo: u64) -> Header {
        Header { word, undo }
    }

    /// Reads the header of a value; zeros for garbage.
    pub fn of(value: &[u8]) -> Header {
        let mut reader = Reader::new(value);
        Header { word: reader.u64().unwrap_or(0), undo: reader.u64().unwrap_or(0) }
    }

    pub fn id(self) -> u64 {
        self.word & ID
    }

    pub fn is_deleted(self) -> bool {
        self.word & DELETED != 0
    }

    pub fn is_out_of_line(self) -> bool {
        self.word & OUT_OF_LINE != 0
    }

    /// Replaces `out` with a value.
    pub fn write(self, body: &[u8], out: &mut Vec<u8>) {
        out.clear();
        put_u64(out, self.word);
        put_u64(out, self.undo);
        out.extend_from_slice(body);
    }
}

/// The place of a version's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Inline,
    OutOfLine,
    Deleted,
}

/// The body of a value.
pub(crate) fn body(value: &[u8]) -> &[u8] {
    value.get(HEADER_BYTES..).unwrap_or(&[])
}

/// Reference to a value out of line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlobRef {
    pub first: PageNo,
    pub length: u32,
}

impl BlobRef {
    pub fn encode(self) -> [u8; 8] {
        let mut out = [0; 8];
        out[..4].copy_from_slice(&self.first.0.to_le_bytes());
        out[4..].copy_from_slice(&self.length.to_le_bytes());
        out
    }

    pub fn decode(bytes: &[u8]) -> io::Result<BlobRef> {
        let mut reader = Reader::new(bytes);
        match (reader.u32(), reader.u32()) {
            (Some(first), Some(length)) => Ok(BlobRef { first: PageNo(first), length }),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "damaged value reference")),
        }
    }

    pub fn read(self, pool: &Pool, out: &mut Vec<u8>) -> io::Result<()> {
        read_blob(pool, self.first, self.length as usize, out)
    }

    /// Frees the chain; `first` commits the mini-transaction of the first page, the others are plain.
    pub fn free(self, pool: &Pool, mut first: impl FnMut(btree::Mtr<'_>)) -> io::Result<()> {
        let mut next = self.first;
        let mut is_first = true;
        while next != PageNo::META {
            let Some((after, mtr)) = free_blob_page(pool, next)? else { break };
            if is_first {
                first(mtr);
            } else {
                mtr.commit(txn::KIND_PAGES, &[]);
            }
            is_first = false;
            next = after;
        }
        Ok(())
    }
}

/// Appends the record of a value, wherever it is.
pub(crate) fn append_record(pool: &Pool, value: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    match Header::of(value).is_out_of_line() {
        true => BlobRef::decode(body(value))?.read(pool, out),
        false => {
            out.extend_from_slice(body(value));
            Ok(())
        }
    }
}

/// The subject of changes of definitions. No table has this id.
pub(crate) const DEFINITIONS: u64 = u64::MAX;

/// Secondary entries of a version that the next one does not have (E22).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone<'a>(pub &'a [u8]);

impl<'a> Gone<'a> {
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Adds an entry of an index.
    pub fn put(index: u32, entry: &Entry, out: &mut Vec<u8>) {
        put_varint(out, u64::from(index));
        put_short_blob(out, entry.sql_key());
    }

    /// Ids of indexes, and the bytes of the entries' columns. Ends early when damaged.
    pub fn iter(self) -> impl Iterator<Item = (u64, &'a [u8])> {
        let mut reader = Reader::new(self.0);
        std::iter::from_fn(move || Some((reader.varint()?, reader.short_blob()?)))
    }
}

/// An undo entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UndoEntry<'a> {
    /// A row that did not exist before.
    Insert { table: u64, key: &'a [u8] },
    /// A row with the previous version `before`, deleted or not.
    Change { table: u64, key: &'a [u8], before: &'a [u8] },
    /// A row stored inline before and after the change: the difference that turns the new version into the previous one.
    Update { table: u64, key: &'a [u8], before: Header, difference: &'a [u8], gone: Gone<'a> },
    /// Pages of a value out of line, the first in the chain last.
    Blob { pages: &'a [u8] },
    /// A tree.
    CreateTree { root: u32, tree: u64 },
    /// A tree that is dropped when the transaction is settled.
    DropTree { root: u32, tree: u64, has_blobs: bool },
    /// Pages of a tree that is being built, not linked to it yet.
    TreePages { tree: u64, pages: &'a [u8] },
    /// A tree that was empty before.
    TreeFilled { root: u32, tree: u64 },
    /// The stored definition of a table; empty if none existed.
    Define { table: u64, before: &'a [u8] },
}

impl<'a> UndoEntry<'a> {
    pub fn encode(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        self.write(&mut out);
        out
    }

    /// Replaces `out` with the entry's bytes.
    pub fn write(self, out: &mut Vec<u8>) {
        out.clear();
        match self {
            UndoEntry::Insert { table, key } => {
                out.push(1);
                put_u64(out, table);
                put_blob(out, key);
            }
            UndoEntry::Change { table, key, before } => {
                out.push(2);
                put_u64(out, table);
                put_blob(out, key);
                put_blob(out, before);
            }
            UndoEntry::Update { table, key, before, difference, gone } => {
                out.push(9);
                put_varint(out, table);
                put_short_blob(out, key);
                put_varint(out, before.word);
                put_varint(out, before.undo);
                put_short_blob(out, difference);
                out.extend_from_slice(gone.0);
            }
            UndoEntry::Blob { pages } => {
                out.push(3);
                put_blob(out, pages);
            }
            UndoEntry::CreateTree { root, tree } => {
                out.push(4);
                put_u32(out, root);
                put_u64(out, tree);
            }
            UndoEntry::DropTree { root, tree, has_blobs } => {
                out.push(5);
                put_u32(out, root);
                put_u64(out, tree);
                out.push(u8::from(has_blobs));
            }
            UndoEntry::Define { table, before } => {
                out.push(6);
                put_u64(out, table);
                put_blob(out, before);
            }
            UndoEntry::TreePages { tree, pages } => {
                out.push(7);
                put_u64(out, tree);
                put_blob(out, pages);
            }
            UndoEntry::TreeFilled { root, tree } => {
                out.push(8);
                put_u32(out, root);
                put_u64(out, tree);
            }
        }
    }

    /// The row that it changed: table and key.
    pub fn row(self) -> Option<(u64, &'a [u8])> {
        match self {
            UndoEntry::Insert { table, key }
            | UndoEntry::Change { table, key, .. }
            | UndoEntry::Update { table, key, .. } => Some((table, key)),
            UndoEntry::Blob { .. }
            | UndoEntry::TreePages { .. }
            | UndoEntry::TreeFilled { .. }
            | UndoEntry::CreateTree { .. }
            | UndoEntry::DropTree { .. }
            | UndoEntry::Define { .. } => None,
        }
    }

    /// Replaces `out` with the version before `version`, which the change made. False if none existed; `None` if the entry is damaged.
    pub fn before(self, version: &[u8], out: &mut Vec<u8>) -> Option<bool> {
        match self {
            UndoEntry::Change { before, .. } => {
                out.clear();
                out.extend_from_slice(before);
            }
            UndoEntry::Update { before, difference, .. } => {
                before.write(&[], out);
                apply_difference(difference, body(version), out)?;
            }
            UndoEntry::Insert { .. }
            | UndoEntry::Blob { .. }
            | UndoEntry::TreePages { .. }
            | UndoEntry::TreeFilled { .. }
            | UndoEntry::CreateTree { .. }
            | UndoEntry::DropTree { .. }
            | UndoEntry::Define { .. } => return Some(false),
        }
        Some(true)
    }

    /// The subject of an entry with these bytes: a table, `DEFINITIONS`, or 0 if it need not be known (E10).
    pub fn subject(bytes: &[u8]) -> u64 {
        match UndoEntry::decode(bytes) {
            Some(
                UndoEntry::Insert { table, .. }
                | UndoEntry::Change { table, .. }
                | UndoEntry::Update { table, .. },
            ) => table,
            Some(UndoEntry::Blob { .. }) => 0,
            // Entries that cannot be read cause an error before the engine opens.
            None => DEFINITIONS,
            Some(
                UndoEntry::CreateTree { .. }
                | UndoEntry::TreePages { .. }
                | UndoEntry::TreeFilled { .. }
                | UndoEntry::DropTree { .. }
                | UndoEntry::Define { .. },
            ) => DEFINITIONS,
        }
    }

    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Option<UndoEntry<'a>> {
        let mut reader = Reader::new(bytes);
        Some(match reader.u8()? {
            1 => UndoEntry::Insert { table: reader.u64()?, key: reader.blob()? },
            2 => UndoEntry::Change {
                table: reader.u64()?,
                key: reader.blob()?,
                before: reader.blob()?,
            },
            3 => UndoEntry::Blob { pages: reader.blob()? },
            4 => UndoEntry::CreateTree { root: reader.u32()?, tree: reader.u64()? },
            5 => UndoEntry::DropTree {
                root: reader.u32()?,
                tree: reader.u64()?,
                has_blobs: reader.u8()? != 0,
            },
            6 => UndoEntry::Define { table: reader.u64()?, before: reader.blob()? },
            7 => UndoEntry::TreePages { tree: reader.u64()?, pages: reader.blob()? },
            8 => UndoEntry::TreeFilled { root: reader.u32()?, tree: reader.u64()? },
            9 => UndoEntry::Update {
                table: reader.varint()?,
                key: reader.short_blob()?,
                before: Header::from_words(reader.varint()?, reader.varint()?),
                difference: reader.short_blob()?,
                gone: Gone(reader.rest()),
            },
            _ => return None,
        })
    }
}
