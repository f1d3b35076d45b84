//! Constants and field positions of a page, its checksum, and page numbers.

use crate::crc;

/// Number of a page within its space; also its place in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageNo(pub u32);

impl PageNo {
    /// The space's own page: free list and roots. Never a child or a link, so that 0 can mean none.
    pub const META: PageNo = PageNo(0);
}

/// The kind of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Never formatted.
    Blank = 0,
    /// Page 0 of the space.
    Meta = 1,
    /// Tree page; level 0 is a leaf.
    Node = 2,
    /// On the free list; word 5 links to the next.
    Free = 3,
    /// Part of a value stored out of line; word 5 links to the next.
    Blob = 4,
}

/// Bytes of the fixed header.
pub const HEADER_BYTES: usize = 64;
/// Bytes of one slot.
pub const SLOT_BYTES: usize = 8;
/// The checksum covers everything after its own bytes.
pub const CHECKSUM_BYTES: usize = 4;

pub(crate) const HEADER_WORDS: usize = HEADER_BYTES / 8;
// The format on disk. A change of any of these changes docs/format/page.md.
const _: () = assert!(HEADER_BYTES == 64 && SLOT_BYTES == 8 && CHECKSUM_BYTES == 4);
const _: () = assert!(W_TREE + 1 == HEADER_WORDS);
const _: () = assert!(size_of::<PageNo>() == 4 && size_of::<Kind>() == 1);
const _: () = assert!(Kind::Meta as u8 == 1 && Kind::Blob as u8 == 4);

/// Word 0: checksum:32 | kind:8 | level:8 | flags:16.
pub(crate) const W_KIND: usize = 0;
/// Word 1: page number:32 | space:32.
pub(crate) const W_PAGE: usize = 1;
/// Word 2: ticket of the last mini-transaction.
pub(crate) const W_LSN: usize = 2;
/// Word 3: slots:16 | heap start:16 | garbage bytes:16 | prefix length:16.
pub(crate) const W_SPACE: usize = 3;
/// Word 4: lower fence offset:16 | length:16 | upper fence offset:16 | length:16.
pub(crate) const W_FENCES: usize = 4;
/// Word 5: next page (free list, blob), or unused.
pub(crate) const W_LINK: usize = 5;
/// Word 6: largest transaction id that changed the page (secondary leaves), or bytes used (blob).
pub(crate) const W_TXN: usize = 6;
/// Word 7: tree id.
pub(crate) const W_TREE: usize = 7;

/// Flag: the node has a lower fence; without it the range starts below every key.
pub(crate) const FLAG_LOWER: u64 = 1;
/// Flag: the node has an upper fence; without it the range ends above every key.
pub(crate) const FLAG_UPPER: u64 = 2;

/// Rounds up to whole words.
pub(crate) const fn padded(bytes: usize) -> usize {
    (bytes + 7) & !7
}

/// Heap bytes of a record with a key suffix and a value of these lengths.
pub const fn record_bytes(suffix: usize, value: usize) -> usize {
    8 + padded(suffix) + padded(value)
}

/// Range of keys that a node covers: lower inclusive, upper exclusive, `None` unlimited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fences {
    /// Smallest key that belongs here.
    pub lower: Option<Vec<u8>>,
    /// Smallest key that belongs to the right neighbour.
    pub upper: Option<Vec<u8>>,
}

impl Fences {
    /// Length of the prefix that every key in the range shares.
    pub fn prefix_length(&self) -> usize {
        match (&self.lower, &self.upper) {
            (Some(lower), Some(upper)) => {
                lower.iter().zip(upper).take_while(|(left, right)| left == right).count()
            }
            _ => 0,
        }
    }
}

/// Checksum of a page image, over everything but the checksum itself.
pub fn checksum(image: &[u8]) -> u32 {
    crc(&image[CHECKSUM_BYTES..])
}

/// Writes the checksum into a page image that is about to be stored.
///
/// # Panics
/// When the image is not of a formatted page: `verify` would refuse it for ever.
pub fn seal(image: &mut [u8]) {
    assert!(image[4] != Kind::Blank as u8, "a page is formatted before it is stored");
    let sum = checksum(image);
    image[..CHECKSUM_BYTES].copy_from_slice(&sum.to_le_bytes());
}

/// Whether an image read from the place of page `no` is whole and is that page.
pub fn verify(image: &[u8], no: PageNo) -> bool {
    let stored = u32::from_le_bytes([image[0], image[1], image[2], image[3]]);
    let number = u32::from_le_bytes([image[8], image[9], image[10], image[11]]);
    stored == checksum(image) && number == no.0 && image[4] != Kind::Blank as u8
}
