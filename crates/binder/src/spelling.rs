//! The resolved names of a query, as changes of its text: a view's query is stored so that it means the same in any
//! schema and when its tables get more columns.

/// A piece of the statement's text and its replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// First byte.
    pub start: u32,
    /// One past the last byte; an insertion where it is the first.
    pub end: u32,
    /// The new text.
    pub text: String,
}

/// The changes so far.
#[derive(Debug, Default)]
pub(crate) struct Spelling {
    changes: Vec<Change>,
    /// Inside a subquery of an expression, whose items need no names.
    pub(crate) in_expression: bool,
}

impl Spelling {
    pub(crate) fn push(&mut self, start: u32, end: u32, text: String) {
        self.changes.push(Change { start, end, text });
    }

    /// In the order of the text; a name that was bound twice counts once.
    pub(crate) fn finish(mut self) -> Vec<Change> {
        self.changes.sort_by_key(|change| (change.start, change.end));
        self.changes.dedup_by_key(|change| (change.start, change.end));
        self.changes
    }
}
