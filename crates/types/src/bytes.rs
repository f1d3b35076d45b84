//! A byte string that is cheap to copy: short ones inline, long ones shared.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// Longest string kept inline: with the tag and the length it fills 24 bytes.
const INLINE_MAX: usize = 22;

#[derive(Clone)]
enum Repr {
    Inline(u8, [u8; INLINE_MAX]),
    Shared(Arc<[u8]>),
}

/// Bytes of a string or binary value. Cloning never copies more than 24 bytes.
#[derive(Clone)]
pub struct SqlBytes(Repr);

impl SqlBytes {
    /// The empty string.
    pub const EMPTY: SqlBytes = SqlBytes(Repr::Inline(0, [0; INLINE_MAX]));

    /// Copies `bytes`.
    pub fn new(bytes: &[u8]) -> SqlBytes {
        if bytes.len() <= INLINE_MAX {
            let mut inline = [0; INLINE_MAX];
            inline[..bytes.len()].copy_from_slice(bytes);
            SqlBytes(Repr::Inline(bytes.len() as u8, inline))
        } else {
            SqlBytes(Repr::Shared(bytes.into()))
        }
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline(len, bytes) => &bytes[..*len as usize],
            Repr::Shared(bytes) => bytes,
        }
    }

    /// Heap bytes that this value keeps alive.
    pub fn heap_bytes(&self) -> usize {
        match &self.0 {
            Repr::Inline(..) => 0,
            Repr::Shared(bytes) => bytes.len(),
        }
    }
}

impl Deref for SqlBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

impl From<&[u8]> for SqlBytes {
    fn from(bytes: &[u8]) -> Self {
        SqlBytes::new(bytes)
    }
}

impl From<&str> for SqlBytes {
    fn from(text: &str) -> Self {
        SqlBytes::new(text.as_bytes())
    }
}

impl From<String> for SqlBytes {
    fn from(text: String) -> Self {
        SqlBytes::new(text.as_bytes())
    }
}

impl From<Vec<u8>> for SqlBytes {
    fn from(bytes: Vec<u8>) -> Self {
        if bytes.len() <= INLINE_MAX {
            SqlBytes::new(&bytes)
        } else {
            SqlBytes(Repr::Shared(bytes.into()))
        }
    }
}

impl PartialEq for SqlBytes {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for SqlBytes {}

impl Hash for SqlBytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl fmt::Debug for SqlBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.as_slice().escape_ascii())
    }
}
