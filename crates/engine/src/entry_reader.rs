//! Consistent reads of a secondary index by any thread: from the entries alone where all of a leaf are settled (E15), otherwise by reading
//! each row.

use std::sync::Arc;

use engine_api::{EngineResult, KeyContent, KeyRange, RecordBlock, SnapshotReader};
use page::PageImage;
use types::key::key_record_header;

use crate::entry::read_entry;
use crate::error::io_error;
use crate::error::name_table;
use crate::keys::Span;
use crate::read::visible;
use crate::row::append_record;
use crate::snapshot_reader::Reader;
use crate::table::{Index, Table};

/// See `engine_api::Transaction::index_reader`.
pub(crate) struct EntryReader {
    rows: Reader,
    at: usize,
    content: KeyContent,
}

/// Reused memory for reading rows.
#[derive(Default)]
struct Scratch {
    key: Vec<u8>,
    value: Vec<u8>,
    record: Vec<u8>,
    sql: Vec<u8>,
}

impl EntryReader {
    pub fn new(rows: Reader, at: usize, content: KeyContent) -> EntryReader {
        EntryReader { rows, at, content }
    }

    fn table(&self) -> &Arc<Table> {
        &self.rows.table
    }

    fn index(&self) -> &Index {
        &self.table().indexes[self.at]
    }

    fn read_leaf(&self, range: &mut KeyRange, block: &mut RecordBlock) -> EngineResult<bool> {
        block.clear();
        let Some(left) = Span::of(range) else { return Ok(false) };
        let tree = self.index().tree;
        let leaf = self.rows.copy_leaf(tree, &left, block.buffer()).map_err(io_error)?;
        let page_end = block.bytes().len();
        let image = PageImage::new(block.bytes());
        let settled = self.rows.view.sees_entries(image.max_txn());
        let mut scratch = Scratch::default();
        for slot in leaf.slots.clone() {
            // The page's copy stays before the records.
            let image = PageImage::new(&block.bytes()[..page_end]);
            let (start, _) = image.value_place(slot);
            let (length, marked) = read_entry(image.word_at(start));
            let keys = image.key_places(slot);
            let is_seen = match settled {
                true => !marked,
                false => self.is_seen(block.bytes(), &keys, length, &mut scratch)?,
            };
            if !is_seen {
                continue;
            }
            match self.content {
                KeyContent::Count => block.push_place(0, 0),
                KeyContent::Keys => block.push_with(|out| {
                    out.extend_from_slice(&key_record_header(length));
                    keys.into_iter().for_each(|part| out.extend_from_within(part));
                }),
            }
        }
        Ok(leaf.pass(&left, range))
    }

    /// Whether the version of the row that the view sees has this entry (E3).
    fn is_seen(
        &self,
        page: &[u8],
        keys: &[std::ops::Range<usize>; 2],
        length: usize,
        scratch: &mut Scratch,
    ) -> EngineResult<bool> {
        let shared = &self.rows.shared;
        let pool = &shared.system.pool;
        scratch.key.clear();
        keys.iter().for_each(|part| scratch.key.extend_from_slice(&page[part.clone()]));
        let Some((sql, locator)) = scratch.key.split_at_checked(length) else { return Ok(false) };
        scratch.value.clear();
        let clustered = self.table().clustered;
        let found = clustered.get(pool, locator, &mut scratch.value).map_err(io_error)?;
        if !found || !visible(&shared.system, &self.rows.view, &mut scratch.value)? {
            return Ok(false);
        }
        scratch.record.clear();
        append_record(pool, &scratch.value, &mut scratch.record).map_err(io_error)?;
        self.index().keys.has(&scratch.record, sql, &mut scratch.sql)
    }
}

impl SnapshotReader for EntryReader {
    fn split(&self, range: &KeyRange, parts: usize) -> EngineResult<Vec<KeyRange>> {
        self.rows.split_tree(self.index().tree, range, parts)
    }

    fn read(&self, range: &mut KeyRange, block: &mut RecordBlock) -> EngineResult<bool> {
        self.rows.check_cancelled()?;
        self.read_leaf(range, block).map_err(|error| name_table(&self.table().def, error))
    }
}
