//! Page layouts: the places of records, fences and slots in a page, and the edit operations that change one and are replayed from the log.
//!
//! Pure: no I/O, no latches. Independent of transactions; a record is a key and an opaque value. `docs/format/page.md` describes
//! the bytes. Invariant: page memory is `[AtomicU64]` and every access is an aligned relaxed word access, so that readers may read
//! a page while it changes and discard the result. Functions marked *total* return some answer for any bytes.
//!
//! Invariant: a change goes through `PageMut`, which appends the same change to the redo operations.

#![allow(unsafe_code)]

mod crc;
mod edit;
#[cfg(any(target_arch = "powerpc64", target_arch = "s390x"))]
mod folding;
#[cfg(test)]
mod fuzz;
mod image;
mod layout;
mod node;
mod read;
#[cfg(target_arch = "s390x")]
mod vgfm;
#[cfg(target_arch = "powerpc64")]
mod vpmsum;

pub use crc::{CrcSum, crc};
pub use edit::{PageMut, Touched, apply_ops, touched};
pub use image::PageImage;
pub use layout::{
    CHECKSUM_BYTES, Fences, HEADER_BYTES, Kind, PageNo, SLOT_BYTES, checksum, record_bytes, seal,
    verify,
};
pub use node::{BuildError, NodeBuilder};
pub use read::{PageRef, key_head, private_page};

#[cfg(test)]
mod tests;
