//! Operators without much state: one row, values, filter, project, distinct, limit.

use errors::Result;
use rows::convert;
use rows::key_set::{KEY_OVERHEAD, KeySet};
use rows::value_key::append_hash_key;
use types::{DataType, Value};

use super::partitions::{LEVELS_MAX, Partitions};
use crate::expr::{Code, Truth};
use crate::operator::Operator;
use crate::run::Run;
use crate::spill::RowReader;
use budget::Memory;

#[derive(Default)]
pub(crate) struct OneRow {
    done: bool,
}

impl<'r> Operator<'r> for OneRow {
    fn open(&mut self, _run: &mut Run<'r>) -> Result<()> {
        self.done = false;
        Ok(())
    }
    fn next(&mut self, _run: &mut Run<'r>) -> Result<bool> {
        Ok(!std::mem::replace(&mut self.done, true))
    }
    fn close(&mut self, _run: &mut Run<'r>) {}
}

pub(crate) struct Nothing;

impl<'r> Operator<'r> for Nothing {
    fn open(&mut self, _run: &mut Run<'r>) -> Result<()> {
        Ok(())
    }
    fn next(&mut self, _run: &mut Run<'r>) -> Result<bool> {
        Ok(false)
    }
    fn close(&mut self, _run: &mut Run<'r>) {}
}

pub(crate) struct Values<'r> {
    rows: &'r [Vec<Code>],
    columns: &'r [usize],
    at: usize,
}

impl<'r> Values<'r> {
    pub(crate) fn new(rows: &'r [Vec<Code>], columns: &'r [usize]) -> Values<'r> {
        Values { rows, columns, at: 0 }
    }
}

impl<'r> Operator<'r> for Values<'r> {
    fn open(&mut self, _run: &mut Run<'r>) -> Result<()> {
        self.at = 0;
        Ok(())
    }
    fn next(&mut self, run: &mut Run<'r>) -> Result<bool> {
        let Some(row) = self.rows.get(self.at) else { return Ok(false) };
        self.at += 1;
        for (register, code) in self.columns.iter().zip(row) {
            code.eval_into(run, *register)?;
        }
        Ok(true)
    }
    fn close(&mut self, _run: &mut Run<'r>) {}
}

pub(crate) struct Filter<'r> {
    pub(crate) input: Box<dyn Operator<'r> + 'r>,
    pub(crate) predicate: &'r Truth,
}

impl<'r> Operator<'r> for Filter<'r> {
    fn open(&mut self, run: &mut Run<'r>) -> Result<()> {
        self.input.open(run)
    }
    fn next(&mut self, run: &mut Run<'r>) -> Result<bool> {
        while self.input.next(run)? {
            run.tick()?;
            if self.predicate.holds(run)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
    fn close(&mut self, run: &mut Run<'r>) {
        self.input.close(run);
    }
}

pub(crate) struct Project<'r> {
    pub(crate) input: Box<dyn Operator<'r> + 'r>,
    pub(crate) columns: &'r [(usize, Code)],
}

impl<'r> Operator<'r> for Project<'r> {
    fn open(&mut self, run: &mut Run<'r>) -> Result<()> {
        self.input.open(run)
    }
    fn next(&mut self, run: &mut Run<'r>) -> Result<bool> {
        if !self.input.next(run)? {
            return Ok(false);
        }
        for (register, code) in self.columns {
            code.eval_into(run, *register)?;
        }
        Ok(true)
    }
    fn close(&mut self, run: &mut Run<'r>) {
        self.input.close(run);
    }
}

/// Rows seen so far, by key.
#[derive(Default)]
pub(crate) struct Seen {
    keys: KeySet,
    key: Vec<u8>,
    bytes: usize,
}

impl Seen {
    /// Whether the row is new.
    pub(crate) fn insert<'v>(
        &mut self,
        values: impl Iterator<Item = (&'v Value, &'v DataType)>,
        memory: &mut Memory<'_>,
    ) -> Result<bool> {
        self.key.clear();
        for (value, ty) in values {
            append_hash_key(value, ty.collation, &mut self.key);
        }
        let key = std::mem::take(&mut self.key);
        let added = self.insert_key(&key, memory);
        self.key = key;
        added
    }

    /// Whether the key is new.
    pub(crate) fn insert_key(&mut self, key: &[u8], memory: &mut Memory<'_>) -> Result<bool> {
        if !self.keys.insert(key).1 {
            return Ok(false);
        }
        let bytes = key.len() + KEY_OVERHEAD;
        self.bytes += bytes;
        memory.charge(bytes).map(|()| true)
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn clear(&mut self, run: &mut Run<'_>) {
        run.memory.release(self.bytes);
        self.bytes = 0;
        self.keys.clear();
    }
}

/// The first row of each combination. Rows whose keys do not fit memory move to files, divided by their keys, and come after
/// the others.
pub(crate) struct Distinct<'r> {
    input: Box<dyn Operator<'r> + 'r>,
    columns: &'r [(usize, DataType)],
    registers: Vec<usize>,
    /// The rows come in an order that must not change: all keys stay in memory.
    keeps_order: bool,
    seen: Seen,
    /// Where rows go that find no room now.
    files: Option<Partitions>,
    /// The part being read; the input when there are no parts.
    part: Option<RowReader>,
    level: u32,
    parts: Vec<(RowReader, u32)>,
}

impl<'r> Distinct<'r> {
    pub(crate) fn new(
        input: Box<dyn Operator<'r> + 'r>,
        columns: &'r [(usize, DataType)],
        keeps_order: bool,
    ) -> Distinct<'r> {
        Distinct {
            input,
            columns,
            keeps_order,
            registers: columns.iter().map(|(register, _)| *register).collect(),
            seen: Seen::default(),
            files: None,
            part: None,
            level: 0,
            parts: Vec::new(),
        }
    }

    fn next_row(&mut self, key: &mut Vec<u8>, run: &mut Run<'r>) -> Result<bool> {
        if let Some(part) = &mut self.part {
            return part.next_into(key, &self.registers, run);
        }
        if !self.input.next(run)? {
            return Ok(false);
        }
        key.clear();
        for (register, ty) in self.columns {
            append_hash_key(&run.regs[*register], ty.collation, key);
        }
        Ok(true)
    }

    /// Starts the next part; false after the last one.
    fn next_part(&mut self, run: &mut Run<'r>) -> Result<bool> {
        if let Some(files) = self.files.take() {
            let level = files.next_level();
            self.parts.extend(files.finish()?.into_iter().flatten().map(|part| (part, level)));
        }
        let Some((part, level)) = self.parts.pop() else { return Ok(false) };
        self.seen.clear(run);
        (self.part, self.level) = (Some(part), level);
        Ok(true)
    }

    fn forget(&mut self, run: &mut Run<'r>) {
        self.seen.clear(run);
        (self.files, self.part, self.level) = (None, None, 0);
        self.parts.clear();
    }
}

impl<'r> Operator<'r> for Distinct<'r> {
    fn open(&mut self, run: &mut Run<'r>) -> Result<()> {
        self.forget(run);
        self.input.open(run)
    }

    fn next(&mut self, run: &mut Run<'r>) -> Result<bool> {
        let mut key = std::mem::take(&mut self.seen.key);
        loop {
            if !self.next_row(&mut key, run)? {
                if self.next_part(run)? {
                    continue;
                }
                return Ok(false);
            }
            run.tick()?;
            if self.seen.keys.get(&key).is_some() {
                continue;
            }
            let is_full = self.seen.bytes > run.operator_bytes();
            if is_full && !self.keeps_order && self.level < LEVELS_MAX {
                let level = self.level;
                let files = self.files.get_or_insert_with(|| Partitions::new(level, run));
                files.push_registers(&key, &self.registers, run)?;
                continue;
            }
            self.seen.insert_key(&key, &mut run.memory)?;
            self.seen.key = key;
            return Ok(true);
        }
    }

    fn close(&mut self, run: &mut Run<'r>) {
        self.forget(run);
        self.input.close(run);
    }
}

pub(crate) struct Limit<'r> {
    input: Box<dyn Operator<'r> + 'r>,
    limit: Option<&'r Code>,
    offset: Option<&'r Code>,
    count_all: bool,
    left: u64,
    skip: u64,
    seen: u64,
    done: bool,
}

/// The row count of LIMIT or OFFSET. A negative variable of a program is read as unsigned: all rows.
pub(crate) fn row_count(code: Option<&Code>, default: u64, run: &mut Run<'_>) -> Result<u64> {
    let Some(code) = code else { return Ok(default) };
    let value = code.eval(run)?;
    if value.is_null() {
        return Ok(0);
    }
    let number = convert::to_i128(&value, &DataType::bigint(), &mut run.function)?;
    Ok(u64::try_from(number).unwrap_or(u64::MAX))
}

impl<'r> Limit<'r> {
    pub(crate) fn new(
        input: Box<dyn Operator<'r> + 'r>,
        limit: Option<&'r Code>,
        offset: Option<&'r Code>,
        count_all: bool,
    ) -> Limit<'r> {
        Limit { input, limit, offset, count_all, left: 0, skip: 0, seen: 0, done: false }
    }

    fn finish(&mut self, run: &mut Run<'r>) -> Result<bool> {
        if self.count_all && !self.done {
            while self.input.next(run)? {
                run.tick()?;
                self.seen += 1;
            }
            run.found_rows = Some(self.seen);
        }
        self.done = true;
        Ok(false)
    }
}

impl<'r> Operator<'r> for Limit<'r> {
    fn open(&mut self, run: &mut Run<'r>) -> Result<()> {
        self.left = row_count(self.limit, u64::MAX, run)?;
        self.skip = row_count(self.offset, 0, run)?;
        self.seen = 0;
        self.done = self.left == 0 && !self.count_all;
        if self.done { Ok(()) } else { self.input.open(run) }
    }
    fn next(&mut self, run: &mut Run<'r>) -> Result<bool> {
        if self.done {
            return Ok(false);
        }
        if self.left == 0 {
            return self.finish(run);
        }
        while self.input.next(run)? {
            self.seen += 1;
            if self.skip > 0 {
                self.skip -= 1;
                run.tick()?;
                continue;
            }
            self.left -= 1;
            return Ok(true);
        }
        if self.count_all {
            run.found_rows = Some(self.seen);
        }
        self.done = true;
        Ok(false)
    }
    fn close(&mut self, run: &mut Run<'r>) {
        self.input.close(run);
    }
}
