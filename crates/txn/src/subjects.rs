//! The subjects of one transaction's undo entries, as numbers that the caller gives them: known without reading the entries again (X16).

use std::collections::BTreeSet;

/// A set of numbers. The first takes no separate memory: most transactions have no other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subjects {
    /// The first, and the last noted; 0 means none.
    first: u64,
    last: u64,
    /// All but the first.
    more: BTreeSet<u64>,
}

impl Subjects {
    /// Adds a number; 0 says nothing.
    #[inline]
    pub fn note(&mut self, subject: u64) {
        if subject == self.last || subject == 0 {
            return;
        }
        self.last = subject;
        match self.first {
            0 => self.first = subject,
            first if first == subject => {}
            _ => drop(self.more.insert(subject)),
        }
    }

    /// All numbers noted.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        let first = (self.first != 0).then_some(self.first);
        first.into_iter().chain(self.more.iter().copied())
    }
}

impl FromIterator<u64> for Subjects {
    fn from_iter<I: IntoIterator<Item = u64>>(numbers: I) -> Subjects {
        let mut subjects = Subjects::default();
        numbers.into_iter().for_each(|number| subjects.note(number));
        subjects
    }
}
