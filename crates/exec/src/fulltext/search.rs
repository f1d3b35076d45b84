//! MATCH: finds the rows that fit a query, and ranks them.
//!
//! A row's rank is the sum, over the words by which it fits, of how often it has the word times the square of the word's weight, which is
//! the logarithm of the number of all rows to that of those with the word. Numbers are of one precision, as in the reference's engine.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use engine_api::{
    Direction, EngineIndex, GetOutcome, IndexId, KeyRange, RowBatch, RowBuf, RowLock, ScanSpec,
    TableId, WaitPolicy,
};
use errors::Result;
use plan::{FulltextMode, FulltextSearch, KeyColumn};
use plugin_api::Coercion;
use rows::convert;
use rows::layout::Layout;
use types::fulltext::{Analyzer, entry_types, word_key};
use types::key::encode_part;
use types::{DataType, SqlBytes, Value};

use crate::expr::Code;
use crate::run::Run;
use rows::match_hits::{Hit, Hits, Keep};
use rows::match_query::{self, Part, Role};

/// Weight of a word that is in every row: all words have some weight.
const COMMON_WEIGHT_BASE: f64 = 1.0001;
/// Entries that are fetched at once.
const FETCH_ENTRIES: usize = 1024;

/// A compiled search. Its result is kept for the statement in a slot of the run.
pub(crate) struct SearchCode {
    plan: Arc<FulltextSearch>,
    engine: EngineIndex,
    against: Code,
    against_ty: DataType,
    slot: usize,
    analyzer: Analyzer,
    /// The table's records.
    layout: Layout,
    /// Entries.
    entries: Layout,
}

/// How well a row fits.
pub(crate) struct MatchCode {
    pub(crate) search: Arc<SearchCode>,
    /// Parts of the row's primary key.
    pub(crate) key: Vec<(Code, KeyColumn)>,
    /// Without a primary key: the row's locator.
    pub(crate) locator: Option<Code>,
}

/// The rows that fit.
#[derive(Default)]
pub(crate) struct Found {
    /// Locators in their order, and ranks.
    ranks: Vec<(SqlBytes, f32)>,
    /// Places in `ranks`, the best first.
    order: Vec<u32>,
}

impl Found {
    fn rank(&self, locator: &[u8]) -> f32 {
        let found = self.ranks.binary_search_by(|(known, _)| known[..].cmp(locator));
        found.map_or(0.0, |at| self.ranks[at].1)
    }

    /// The locator of a row, counted from the best.
    pub(crate) fn row(&self, at: usize) -> Option<&[u8]> {
        let place = *self.order.get(at)?;
        self.ranks.get(place as usize).map(|(locator, _)| &locator[..])
    }
}

impl MatchCode {
    /// The rank; 0 for a row that does not fit.
    pub(crate) fn eval(&self, run: &mut Run<'_>) -> Result<Value> {
        let lock = (run.match_lock, WaitPolicy::Wait);
        let found = self.search.found(lock, run)?;
        let mut locator = std::mem::take(&mut run.buffers.key);
        locator.clear();
        let mut is_row = true;
        for (code, part) in &self.key {
            let value = code.eval(run)?;
            // A row that an outer join made up.
            is_row &= !value.is_null();
            encode_part(&value, &part.ty, part.prefix_length, part.descending, &mut locator);
        }
        if let Some(code) = &self.locator {
            match code.eval(run)? {
                Value::Bytes(bytes) => locator.extend_from_slice(&bytes),
                _ => is_row = false,
            }
        }
        let rank = if is_row { found.rank(&locator) } else { 0.0 };
        run.buffers.key = locator;
        Ok(Value::Double(f64::from(rank)))
    }
}

impl SearchCode {
    pub(crate) fn new(
        plan: &Arc<FulltextSearch>,
        engine: EngineIndex,
        against: Code,
        against_ty: DataType,
        slot: usize,
    ) -> SearchCode {
        SearchCode {
            analyzer: Analyzer::of(plan.collation, plan.parser),
            layout: Layout::new(&plan.layout, plan.missing.to_vec()),
            entries: Layout::new(&entry_types(), Vec::new()),
            plan: plan.clone(),
            engine,
            against,
            against_ty,
            slot,
        }
    }

    /// Searches, at the first call in a statement, and locks the entries that it reads.
    pub(crate) fn found(
        &self,
        lock: (RowLock, WaitPolicy),
        run: &mut Run<'_>,
    ) -> Result<Rc<Found>> {
        if let Some(found) = &run.memo.matches[self.slot] {
            return Ok(found.clone());
        }
        let value = self.against.eval(run)?;
        let value = convert::coerce(value, &self.against_ty, &Coercion::Text, &mut run.function)?;
        let found = match value {
            Value::Bytes(text) => self.search(&String::from_utf8_lossy(&text), lock, run)?,
            _ => Found::default(),
        };
        Ok(run.memo.matches[self.slot].insert(Rc::new(found)).clone())
    }

    fn search(&self, text: &str, lock: (RowLock, WaitPolicy), run: &mut Run<'_>) -> Result<Found> {
        let query = match self.plan.mode {
            FulltextMode::Boolean => match_query::boolean(text)?,
            FulltextMode::Natural | FulltextMode::Expanded => match_query::natural(text),
        };
        let is_boolean = self.plan.mode == FulltextMode::Boolean;
        let query = match_query::in_grams(query, self.plan.parser, is_boolean, &self.analyzer);
        let mut search = Search { code: self, lock, words: Vec::new(), batch: RowBatch::new() };
        let mut hits = search.part(&query, run)?;
        if self.plan.mode == FulltextMode::Expanded {
            search.expand(&mut hits, run)?;
        }
        let engine = run.host.engine_at(self.engine)?;
        let stats = engine.table_stats(TableId(self.plan.table));
        let total = run.engine(stats)?.rows.max(1);
        let weights: Vec<f64> = search.words.iter().map(|word| word.weight(total)).collect();
        let mut found = Found::default();
        let mut words = Vec::new();
        for hit in hits.iter() {
            words.clear();
            words.extend(hit.words());
            words.sort_unstable_by_key(|(word, _)| &search.words[*word as usize].key);
            let rank = words.iter().fold(hit.moved, |rank, (word, count)| {
                let weight = weights[*word as usize];
                rank + (f64::from(*count) * weight * weight) as f32
            });
            // 0 is the rank of all others.
            if rank != 0.0 {
                found.order.push(found.ranks.len() as u32);
                found.ranks.push((hit.locator.clone(), rank));
            }
        }
        let rank = |place: &u32| found.ranks[*place as usize].1;
        found.order.sort_by(|a, b| rank(b).total_cmp(&rank(a)));
        Ok(found)
    }
}

/// A word of the query.
struct Asked {
    key: Vec<u8>,
    /// Rows that have it, counted each time the query names it.
    rows: u64,
}

impl Asked {
    fn weight(&self, total: u64) -> f64 {
        if total == self.rows {
            return COMMON_WEIGHT_BASE.log10();
        }
        (total as f64 / self.rows as f64).log10()
    }
}

struct Search<'c> {
    code: &'c SearchCode,
    lock: (RowLock, WaitPolicy),
    words: Vec<Asked>,
    batch: RowBatch,
}

impl Search<'_> {
    fn part(&mut self, part: &Part, run: &mut Run<'_>) -> Result<Hits> {
        match part {
            Part::Word(word) => self.word(word, run),
            Part::Prefix(word) => self.prefix(word, run),
            Part::Phrase(text, distance) => self.phrase(text, *distance, run),
            Part::Group(parts) => self.group(parts, run),
        }
    }

    fn group(&mut self, parts: &[(Role, Part)], run: &mut Run<'_>) -> Result<Hits> {
        let mut required: Option<Hits> = None;
        let (mut optional, mut excluded) = (Vec::new(), Vec::new());
        for (role, part) in parts.iter().filter(|(role, _)| *role != Role::Ignored) {
            let mut hits = self.part(part, run)?;
            let moved = match role {
                Role::Raised => 1.0,
                Role::Lowered => -1.0,
                Role::Optional | Role::Required | Role::Excluded | Role::Ignored => 0.0,
            };
            hits.shift(moved);
            match role {
                Role::Required => {
                    required = Some(match required {
                        None => hits,
                        Some(before) => before.merge(hits, Keep::Both),
                    });
                }
                Role::Excluded => excluded.push(hits),
                Role::Optional | Role::Raised | Role::Lowered | Role::Ignored => {
                    optional.push(hits);
                }
            }
        }
        let keep = if required.is_some() { Keep::First } else { Keep::All };
        let found = required.unwrap_or_default();
        let found = optional.into_iter().fold(found, |found, hits| found.merge(hits, keep));
        Ok(excluded.iter().fold(found, Hits::without))
    }

    /// The number of a word of the query.
    fn asked(&mut self, key: &[u8]) -> u32 {
        let known = self.words.iter().position(|word| word.key == key);
        let at = known.unwrap_or_else(|| {
            self.words.push(Asked { key: key.to_vec(), rows: 0 });
            self.words.len() - 1
        });
        at as u32
    }

    fn word(&mut self, word: &str, run: &mut Run<'_>) -> Result<Hits> {
        let key = self.code.analyzer.key(word);
        if !self.code.analyzer.is_indexed(word, &key) {
            return Ok(Hits::default());
        }
        self.rows_with(&key, run)
    }

    fn rows_with(&mut self, key: &[u8], run: &mut Run<'_>) -> Result<Hits> {
        let range = KeyRange::prefix(word_key(key));
        self.entries(key, range, None, run)
    }

    /// Searches for all other words of the rows found as well.
    fn expand(&mut self, hits: &mut Hits, run: &mut Run<'_>) -> Result<()> {
        let mut words = BTreeMap::new();
        for hit in hits.iter() {
            for text in self.texts(&hit.locator, run)? {
                self.code.analyzer.count_words(&text, &mut words);
            }
        }
        for key in words.keys() {
            if self.words.iter().any(|known| known.key == *key) {
                continue;
            }
            *hits = std::mem::take(hits).merge(self.rows_with(key, run)?, Keep::All);
        }
        Ok(())
    }

    /// The texts of a row; empty when it does not exist.
    fn texts(&self, locator: &[u8], run: &mut Run<'_>) -> Result<Vec<SqlBytes>> {
        run.tick()?;
        let plan = &self.code.plan;
        let mut row = RowBuf::default();
        let (table, index) = (TableId(plan.table), IndexId::CLUSTERED);
        let txn = run.transaction(self.code.engine)?;
        let (lock, wait) = self.lock;
        let got = txn.get(table, index, locator, lock, wait, &mut row);
        if run.engine(got)? != GetOutcome::Found {
            return Ok(Vec::new());
        }
        let mut texts = Vec::with_capacity(plan.columns.len());
        for column in &plan.columns {
            if let Value::Bytes(text) = self.code.layout.decode(&row.record, *column)? {
                texts.push(text);
            }
        }
        Ok(texts)
    }

    fn prefix(&mut self, word: &str, run: &mut Run<'_>) -> Result<Hits> {
        let analyzer = &self.code.analyzer;
        let range = KeyRange::prefix(analyzer.prefix_key(word));
        let fits = |key: &[u8]| analyzer.begins_with(key, word);
        self.entries(&analyzer.key(word), range, Some(&fits), run)
    }

    /// The rows of the entries in a range, as rows that have the word `asked`. If a row has several, the last one counts.
    fn entries(
        &mut self,
        asked: &[u8],
        range: KeyRange,
        fits: Option<&dyn Fn(&[u8]) -> bool>,
        run: &mut Run<'_>,
    ) -> Result<Hits> {
        let word = self.asked(asked);
        let code = self.code;
        let mut hits = Vec::new();
        let (lock, wait) = self.lock;
        let (table, index) = (TableId(code.plan.entries), IndexId::CLUSTERED);
        let spec = ScanSpec { table, index, range, direction: Direction::Forward, lock, wait };
        let opened = run.transaction(code.engine)?.open_cursor(&spec);
        let cursor = run.engine(opened)?;
        loop {
            run.env.cancel.check()?;
            self.batch.clear();
            let txn = run.transaction(code.engine)?;
            let fetched = txn.fetch(cursor, FETCH_ENTRIES, &mut self.batch);
            if run.engine(fetched)? == 0 {
                break;
            }
            for row in self.batch.iter() {
                if let Some(fits) = fits
                    && let Value::Bytes(key) = code.entries.decode(row.record, 0)?
                    && !fits(&key)
                {
                    continue;
                }
                let locator = code.entries.decode(row.record, 1)?;
                let count = code.entries.decode(row.record, 2)?;
                let (Value::Bytes(locator), Value::UInt(count)) = (locator, count) else {
                    continue;
                };
                self.words[word as usize].rows += 1;
                run.memory.charge(locator.heap_bytes() + size_of::<Hit>())?;
                hits.push(Hit::new(locator, (word, count as u32)));
            }
        }
        run.transaction(code.engine)?.close_cursor(cursor);
        Ok(if fits.is_none() { Hits::sorted(hits) } else { Hits::unsorted(hits) })
    }

    /// Rows that have all words, in one column, in this order and adjacent or, with a distance, anywhere within `distance` words.
    fn phrase(&mut self, text: &str, distance: Option<usize>, run: &mut Run<'_>) -> Result<Hits> {
        let analyzer = &self.code.analyzer;
        let tokens = analyzer.tokens(text).into_iter();
        let mut sequence: Vec<_> = tokens.map(|token| (token, analyzer.key(token))).collect();
        let is_indexed = |(token, key): &(&str, Vec<u8>)| analyzer.is_indexed(token, key);
        // Words that are not indexed are searched for only after an indexed one.
        let first = sequence.iter().position(is_indexed).unwrap_or(sequence.len());
        sequence.drain(..first);
        let mut found: Option<Hits> = None;
        for (word, _) in sequence.iter().filter(|token| is_indexed(token)) {
            let hits = self.word(word, run)?;
            found = Some(match found {
                None => hits,
                Some(before) => before.merge(hits, Keep::Both),
            });
        }
        let mut found = found.unwrap_or_default();
        if sequence.len() > 1 {
            if distance.is_some() {
                sequence.retain(is_indexed);
            }
            let keys: Vec<Vec<u8>> = sequence.into_iter().map(|(_, key)| key).collect();
            found.try_retain(|hit| self.has_phrase(&hit.locator, &keys, distance, run))?;
        }
        Ok(found)
    }

    fn has_phrase(
        &self,
        locator: &[u8],
        keys: &[Vec<u8>],
        distance: Option<usize>,
        run: &mut Run<'_>,
    ) -> Result<bool> {
        for text in self.texts(locator, run)? {
            let text = String::from_utf8_lossy(&text);
            let tokens = self.code.analyzer.tokens(&text).into_iter();
            let text: Vec<_> = tokens.map(|token| self.code.analyzer.key(token)).collect();
            let has = match distance {
                None => text.windows(keys.len()).any(|window| window == keys),
                Some(distance) => (0..text.len()).any(|start| {
                    let window = &text[start..text.len().min(start.saturating_add(distance))];
                    keys.iter().all(|key| window.contains(key))
                }),
            };
            if has {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
