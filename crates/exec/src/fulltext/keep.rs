//! Writes of rows, and with them of the entries of FULLTEXT indexes. All writes of rows go through here.

use std::borrow::Cow;
use std::collections::BTreeMap;

use engine_api::{
    EngineError, EngineIndex, EngineResult, GetOutcome, IndexId, RowBuf, RowLock, TableId,
    Transaction, WaitPolicy,
};
use errors::{Error, Result};
use plan::FulltextWrite;
use rows::layout::Layout;
use types::Value;
use types::fulltext::{Analyzer, entry, entry_key, entry_types};
use types::key::encode_part;

use crate::run::Run;
use crate::write::{WriteTable, Written, written};

/// The words of a row by their keys, and how often it has each.
pub(super) type Words = BTreeMap<Vec<u8>, u32>;

/// A FULLTEXT index of a table that is written.
pub(crate) struct KeptFulltext {
    entries: TableId,
    columns: Vec<usize>,
    analyzer: Analyzer,
    /// How entries are written.
    layout: Layout,
}

impl KeptFulltext {
    pub(crate) fn new(index: &FulltextWrite) -> KeptFulltext {
        KeptFulltext {
            entries: TableId(index.entries),
            columns: index.columns.clone(),
            analyzer: Analyzer::of(index.collation, index.parser),
            layout: Layout::new(&entry_types(), Vec::new()),
        }
    }

    /// The words of a record of the table.
    pub(super) fn words(&self, record: &[u8], table: &Layout) -> Result<Words> {
        let mut words = Words::new();
        for column in &self.columns {
            if let Value::Bytes(text) = table.decode(record, *column)? {
                self.analyzer.count_words(&text, &mut words);
            }
        }
        Ok(words)
    }

    fn entry(&self, word: &[u8], locator: &[u8], count: u32) -> Result<Vec<u8>> {
        let mut record = Vec::new();
        self.layout.encode(&entry(word, locator, count), &mut record)?;
        Ok(record)
    }

    /// Replaces the words of `old` by those of `new`, each with the locator of its row.
    fn replace(
        &self,
        old: Option<(&[u8], &Words)>,
        new: Option<(&[u8], &Words)>,
        engine: EngineIndex,
        run: &mut Run<'_>,
    ) -> Result<()> {
        let same_row = matches!((old, new), (Some(old), Some(new)) if old.0 == new.0);
        if let Some((locator, words)) = old {
            for word in words.keys() {
                let stays = same_row && new.is_some_and(|new| new.1.contains_key(word));
                if !stays {
                    let txn = run.transaction(engine)?;
                    let deleted = txn.delete(self.entries, &entry_key(word, locator));
                    run.engine(deleted)?;
                }
            }
        }
        let Some((locator, words)) = new else { return Ok(()) };
        for (word, count) in words {
            let before = old.filter(|_| same_row).and_then(|old| old.1.get(word));
            if before == Some(count) {
                continue;
            }
            let record = self.entry(word, locator, *count)?;
            let txn = run.transaction(engine)?;
            let stored = match before {
                Some(_) => txn.update(self.entries, &entry_key(word, locator), &record),
                None => txn.insert(self.entries, &record),
            };
            match stored {
                Err(EngineError::DuplicateKey { .. }) => {
                    return Err(Error::internal("a FULLTEXT index has an entry of a row already"));
                }
                stored => run.engine(stored)?,
            }
        }
        Ok(())
    }
}

/// Stores a new row.
pub(crate) fn insert_row(
    table: &WriteTable,
    record: &[u8],
    insert: impl FnOnce(&mut dyn Transaction) -> EngineResult<()>,
    run: &mut Run<'_>,
) -> Result<Written> {
    let stored = insert(run.transaction(table.engine)?);
    let stored = written(stored, run)?;
    if table.fulltext.is_empty() || matches!(stored, Written::Duplicate { .. }) {
        return Ok(stored);
    }
    let locator = run.transaction(table.engine)?.inserted_locator().to_vec();
    for index in &table.fulltext {
        let words = index.words(record, &table.layout)?;
        index.replace(None, Some((&locator, &words)), table.engine, run)?;
    }
    Ok(stored)
}

/// Replaces the row at `locator` by a record.
pub(crate) fn update_row(
    table: &WriteTable,
    locator: &[u8],
    record: &[u8],
    run: &mut Run<'_>,
) -> Result<Written> {
    let old = old_words(table, locator, run)?;
    let stored = run.transaction(table.engine)?.update(table.id, locator, record);
    let stored = written(stored, run)?;
    if table.fulltext.is_empty() || matches!(stored, Written::Duplicate { .. }) {
        return Ok(stored);
    }
    let new_locator = locator_after(table, locator, record)?;
    for (index, old) in table.fulltext.iter().zip(&old) {
        let words = index.words(record, &table.layout)?;
        let (old, new) = (Some((locator, old)), Some((&*new_locator, &words)));
        index.replace(old, new, table.engine, run)?;
    }
    Ok(stored)
}

/// Deletes the row at `locator`; false when it does not exist.
pub(crate) fn delete_row(table: &WriteTable, locator: &[u8], run: &mut Run<'_>) -> Result<bool> {
    let old = old_words(table, locator, run)?;
    match run.transaction(table.engine)?.delete(table.id, locator) {
        Ok(()) => {}
        Err(EngineError::RowNotFound) => return Ok(false),
        Err(error) => return Err(run.engine_error(error)),
    }
    for (index, old) in table.fulltext.iter().zip(&old) {
        index.replace(Some((locator, old)), None, table.engine, run)?;
    }
    Ok(true)
}

/// The locator of a row after a record has replaced it: unchanged, unless it is built from the primary key.
fn locator_after<'l>(
    table: &WriteTable,
    locator: &'l [u8],
    record: &[u8],
) -> Result<Cow<'l, [u8]>> {
    if table.key.is_empty() {
        return Ok(Cow::Borrowed(locator));
    }
    let mut key = Vec::new();
    for part in &table.key {
        let value = table.layout.decode(record, part.column)?;
        encode_part(&value, &part.ty, part.prefix_length, part.descending, &mut key);
    }
    Ok(Cow::Owned(key))
}

/// The words of a row that will be changed, by index. The statement need not have read its texts.
fn old_words(table: &WriteTable, locator: &[u8], run: &mut Run<'_>) -> Result<Vec<Words>> {
    if table.fulltext.is_empty() {
        return Ok(Vec::new());
    }
    let mut row = RowBuf::default();
    let (index, lock, wait) = (IndexId::CLUSTERED, RowLock::Exclusive, WaitPolicy::Wait);
    let txn = run.transaction(table.engine)?;
    let found = txn.get(table.id, index, locator, lock, wait, &mut row);
    if run.engine(found)? != GetOutcome::Found {
        return Ok(Vec::new());
    }
    table.fulltext.iter().map(|index| index.words(&row.record, &table.layout)).collect()
}
