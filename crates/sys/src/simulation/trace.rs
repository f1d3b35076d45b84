//! The external effects of a simulated machine.

use std::hash::Hasher as _;
use std::time::Duration;

/// An event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A call that changes a file.
    Disk {
        /// Name of the call.
        call: &'static str,
        /// The file, with its directory.
        file: String,
        /// Where in the file.
        offset: u64,
        /// The number of bytes; 0 if they are hidden.
        length: u64,
        /// Hash of the bytes.
        hash: u64,
    },
    /// Bytes that went into a connection.
    Packet {
        /// Number of the direction of a connection, in the order in which they were made.
        pipe: u64,
        /// The number of bytes.
        length: u64,
        /// Hash of the bytes.
        hash: u64,
    },
    /// A line on standard error.
    Console(String),
    /// A line of the test's.
    Note(String),
}

/// An event and its time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// Since the machine was made.
    pub at: Duration,
    /// Name of the thread that did it.
    pub thread: String,
    /// The event.
    pub event: Event,
}

/// All that happened.
#[derive(Default)]
pub(crate) struct Trace {
    pub(crate) records: Vec<Record>,
    /// Suffixes of the names of files that are left out of the trace.
    pub(crate) hidden: Vec<String>,
}

impl Trace {
    /// The event of a call on a file.
    pub(crate) fn disk(
        &self,
        call: &'static str,
        file: String,
        offset: u64,
        bytes: &[u8],
    ) -> Event {
        let is_hidden = self.hidden.iter().any(|suffix| file.ends_with(suffix));
        let bytes = if is_hidden { &[] } else { bytes };
        Event::Disk { call, file, offset, length: bytes.len() as u64, hash: hash(bytes) }
    }
}

/// The same for the same bytes in every process.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}
