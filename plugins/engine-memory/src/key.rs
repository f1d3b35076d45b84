//! Key bytes as ordered map keys.

use std::borrow::Borrow;
use std::cmp::Ordering;

use types::SqlBytes;

/// Key bytes, short ones inline, ordered bytewise.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key(SqlBytes);

impl Key {
    pub(crate) fn new(bytes: &[u8]) -> Key {
        Key(SqlBytes::new(bytes))
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        self.0.as_slice()
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_slice().cmp(other.as_slice())
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        self.as_slice()
    }
}
