//! Rows that do not fit memory, divided by their keys into files so that each part may fit.

use errors::Result;
use types::Value;

use crate::run::Run;
use crate::spill::{RowReader, RowWriter};

/// Parts into which rows are divided by their keys.
const PARTS: usize = 16;
/// Beyond this many divisions, rows with equal keys are kept in memory up to the statement's limit.
pub(crate) const LEVELS_MAX: u32 = 6;

/// Rows divided by their keys: equal keys are in one part.
pub(crate) struct Partitions {
    writers: Vec<Option<RowWriter>>,
    level: u32,
}

impl Partitions {
    /// `level`: how often these rows were divided before; counted as a temporary result on disk when it is the first time.
    pub(crate) fn new(level: u32, run: &mut Run<'_>) -> Partitions {
        if level == 0 {
            run.counts.disk_tables += 1;
        }
        Partitions { writers: (0..PARTS).map(|_| None).collect(), level }
    }

    /// Each level uses different bits.
    fn part(&self, key: &[u8]) -> usize {
        use std::hash::{BuildHasher, Hasher};
        let mut hasher =
            foldhash::fast::FixedState::with_seed(u64::from(self.level) + 1).build_hasher();
        hasher.write(key);
        (hasher.finish() >> 32) as usize % PARTS
    }

    /// Puts a row where its key belongs.
    pub(crate) fn push<'v>(
        &mut self,
        key: &[u8],
        values: impl Iterator<Item = &'v Value>,
        run: &Run<'_>,
    ) -> Result<()> {
        self.push_to(self.part(key), key, values, run)
    }

    fn push_to<'v>(
        &mut self,
        part: usize,
        key: &[u8],
        values: impl Iterator<Item = &'v Value>,
        run: &Run<'_>,
    ) -> Result<()> {
        let writer = match &mut self.writers[part] {
            Some(writer) => writer,
            None => self.writers[part].insert(RowWriter::create(run.env.settings)?),
        };
        writer.push(key, values)
    }

    /// Stores the values of some registers in the part of their key.
    pub(crate) fn push_registers(
        &mut self,
        key: &[u8],
        registers: &[usize],
        run: &Run<'_>,
    ) -> Result<()> {
        self.push(key, registers.iter().map(|register| &run.regs[*register]), run)
    }

    /// Stores the values of some registers next to the rows of `others` with the same key. `stored` is the key preceded by one byte.
    pub(crate) fn push_beside(
        &mut self,
        others: &Partitions,
        stored: &[u8],
        registers: &[usize],
        run: &Run<'_>,
    ) -> Result<()> {
        let part = others.part(stored.get(1..).unwrap_or(&[]));
        self.push_to(part, stored, registers.iter().map(|register| &run.regs[*register]), run)
    }

    /// The level of the parts that this part is divided into.
    pub(crate) fn next_level(&self) -> u32 {
        self.level + 1
    }

    /// Readers of all parts in order; `None` for one without rows.
    pub(crate) fn finish(self) -> Result<Vec<Option<RowReader>>> {
        let readers = self.writers.into_iter().map(|writer| match writer {
            Some(mut writer) => {
                let extent = writer.end_sequence()?;
                Ok(Some(writer.reader(extent)))
            }
            None => Ok(None),
        });
        readers.collect()
    }
}
