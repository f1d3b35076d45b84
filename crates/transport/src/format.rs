//! What writer and reader agree on: docs/format/transport.md.

/// The first bytes of a file.
pub(crate) const MAGIC: [u8; 8] = *b"SQUALLTB";
/// The version that is written, and the newest that is read.
pub const VERSION: u32 = 1;
/// Magic, version and their checksum.
pub(crate) const HEAD_BYTES: usize = 16;
/// Kind, length and checksum before the content of a block.
pub(crate) const BLOCK_HEAD_BYTES: usize = 9;
/// Content of a block: what a reader holds besides a row.
pub(crate) const BLOCK_BYTES_MAX: usize = 1 << 20;
/// A definition with the longest lists of ENUM members that a table may have is shorter.
pub(crate) const DEFINITION_BYTES_MAX: usize = 64 << 20;
/// The longest row: that of a table whose large values have together the size that a packet may have, and more.
pub(crate) const ROW_BYTES_MAX: usize = 2 << 30;
/// Number and bytes of the rows, in the last block.
pub(crate) const END_BYTES: usize = 16;

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A piece of the definition.
    Definition,
    /// A piece of the rows.
    Rows,
    /// How many rows there were: nothing follows.
    End,
}

impl Kind {
    pub(crate) fn byte(self) -> u8 {
        match self {
            Kind::Definition => 1,
            Kind::Rows => 2,
            Kind::End => 3,
        }
    }

    pub(crate) fn of(byte: u8) -> Option<Kind> {
        [Kind::Definition, Kind::Rows, Kind::End].into_iter().find(|kind| kind.byte() == byte)
    }
}

/// CRC-32C of `parts` one after the other.
pub(crate) fn checksum(parts: &[&[u8]]) -> u32 {
    let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi);
    for part in parts {
        digest.update(part);
    }
    digest.finalize() as u32
}
