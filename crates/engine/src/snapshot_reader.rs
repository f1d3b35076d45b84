//! Consistent reads of a clustered index by any thread: whole leaves are copied, and records used in place in the copy.

use std::sync::Arc;

use btree::{Seek, Tree, split_keys};
use engine_api::{
    CancelToken, EngineError, EngineResult, KeyBound, KeyRange, RecordBlock, SnapshotReader,
};
use page::{PageImage, PageRef};

use crate::error::io_error;
use crate::error::name_table;
use crate::keys::Span;
use crate::read::{View, sees_inline, visible};
use crate::row::{HEADER_BYTES, Header, append_record};
use crate::shared::Shared;
use crate::table::Table;

/// See `engine_api::SnapshotReader`. The transaction that made it keeps the snapshot.
pub(crate) struct Reader {
    pub(crate) shared: Arc<Shared>,
    pub(crate) table: Arc<Table>,
    pub(crate) view: View,
    cancel: CancelToken,
}

/// Facts read from a leaf besides its bytes.
pub(crate) struct Leaf {
    pub slots: std::ops::Range<usize>,
    /// Where the next leaf begins.
    pub next: Option<Vec<u8>>,
}

/// Records out of line fill a block up to here and one more.
const BLOCK_BYTES_MAX: usize = 1 << 20;

/// Optimistic reads of a leaf that keeps changing, before it is latched.
const LOOKS_MAX: usize = 4;

impl Reader {
    pub fn new(shared: Arc<Shared>, table: Arc<Table>, view: View, cancel: CancelToken) -> Reader {
        Reader { shared, table, view, cancel }
    }

    /// Copies the leaf of a tree at the start of `left`.
    pub fn copy_leaf(&self, tree: Tree, left: &Span, out: &mut Vec<u8>) -> std::io::Result<Leaf> {
        let pool = &self.shared.system.pool;
        let seek = Seek::At(&left.start);
        for _ in 0..LOOKS_MAX {
            let look = tree.look_at_leaf(pool, seek)?;
            let leaf = copy_page(look.page(), left, out);
            if look.validate() {
                return Ok(leaf);
            }
        }
        let latched = tree.shared_leaf(pool, seek)?;
        Ok(copy_page(latched.page(), left, out))
    }

    fn read_leaf(&self, range: &mut KeyRange, block: &mut RecordBlock) -> EngineResult<bool> {
        block.clear();
        let Some(left) = Span::of(range) else { return Ok(false) };
        let leaf = self.copy_leaf(self.table.clustered, &left, block.buffer()).map_err(io_error)?;
        let mut older = Vec::new();
        for slot in leaf.slots.clone() {
            if block.bytes().len() > BLOCK_BYTES_MAX {
                range.lower = KeyBound::Included(PageImage::new(block.bytes()).key(slot));
                return Ok(true);
            }
            let image = PageImage::new(block.bytes());
            let (start, end) = image.value_place(slot);
            let header = Header::from_words(image.word_at(start), image.word_at(start + 8));
            if sees_inline(&self.shared.system, &self.view, header) {
                block.push_place((start + HEADER_BYTES).min(end), end);
                continue;
            }
            older.clear();
            older.extend_from_slice(&block.bytes()[start..end]);
            if visible(&self.shared.system, &self.view, &mut older)? {
                let mut outcome = Ok(());
                let pool = &self.shared.system.pool;
                block.push_with(|out| outcome = append_record(pool, &older, out));
                outcome.map_err(io_error)?;
            }
        }
        Ok(leaf.pass(&left, range))
    }

    /// See `SnapshotReader::split`, for any tree of the table.
    pub fn split_tree(
        &self,
        tree: Tree,
        range: &KeyRange,
        parts: usize,
    ) -> EngineResult<Vec<KeyRange>> {
        let Some(span) = Span::of(range) else { return Ok(Vec::new()) };
        let pool = &self.shared.system.pool;
        let keys = split_keys(pool, tree, &span.start, span.end.as_deref(), parts);
        let keys = keys.map_err(io_error)?;
        let step = (keys.len() + 1).div_ceil(parts.max(1));
        let mut bounds: Vec<Vec<u8>> = keys.into_iter().skip(step - 1).step_by(step).collect();
        bounds.dedup();
        let mut lower = range.lower.clone();
        let mut ranges = Vec::with_capacity(bounds.len() + 1);
        for key in bounds {
            let upper = KeyBound::Excluded(key.clone());
            ranges.push(KeyRange { lower, upper });
            lower = KeyBound::Included(key);
        }
        ranges.push(KeyRange { lower, upper: range.upper.clone() });
        Ok(ranges)
    }

    pub fn check_cancelled(&self) -> EngineResult<()> {
        if self.cancel.is_cancelled() { Err(EngineError::Cancelled) } else { Ok(()) }
    }
}

impl Leaf {
    /// Moves the start of `range` to after the leaf; false when nothing is left.
    pub fn pass(self, left: &Span, range: &mut KeyRange) -> bool {
        let ended = self.next.as_ref().is_none_or(|next| left.ends_before(next));
        if let Some(next) = self.next {
            range.lower = KeyBound::Included(next);
        }
        !ended
    }
}

fn copy_page(page: PageRef<'_>, left: &Span, out: &mut Vec<u8>) -> Leaf {
    out.clear();
    page.copy_page(out);
    let first = if page.covers(&left.start) { page.search(&left.start).0 } else { 0 };
    let last = match &left.end {
        Some(end) if page.covers(end) => page.search(end).0,
        Some(_) | None => page.count(),
    };
    let mut next = Vec::new();
    let has_next = page.upper_fence(&mut next);
    Leaf { slots: first..last.max(first), next: has_next.then_some(next) }
}

impl SnapshotReader for Reader {
    fn split(&self, range: &KeyRange, parts: usize) -> EngineResult<Vec<KeyRange>> {
        self.split_tree(self.table.clustered, range, parts)
    }

    fn read(&self, range: &mut KeyRange, block: &mut RecordBlock) -> EngineResult<bool> {
        self.check_cancelled()?;
        self.read_leaf(range, block).map_err(|error| name_table(&self.table.def, error))
    }
}
