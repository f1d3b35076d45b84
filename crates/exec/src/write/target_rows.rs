//! The rows that an UPDATE or a DELETE works on: found by a query, then passed on one by one, each with its values in the registers.

use errors::Result;
use plan::TableWrite;

use crate::expr::Code;
use crate::kept_rows::{KeptReader, KeptRows};
use crate::ops::{Node, Seen, row_count};
use crate::query::drive;
use crate::run::Run;

/// Whether writing a row changes no other one: neither triggers nor foreign keys do.
pub(crate) fn changes_alone(table: &TableWrite) -> bool {
    table.triggers.is_none() && table.children.is_empty()
}

/// A query for rows to write.
pub(crate) struct TargetRows {
    pub(crate) root: Node,
    pub(crate) limit: Option<Code>,
    /// All rows are found before the first is written, because the query would otherwise read the written rows.
    pub(crate) buffered: bool,
    /// Registers that writing a row needs.
    pub(crate) kept: Vec<usize>,
    /// A join may find a target's row more than once.
    pub(crate) may_repeat: bool,
}

impl TargetRows {
    /// Gives each row to `write`, up to the limit.
    pub(crate) fn each<'r>(
        &'r self,
        run: &mut Run<'r>,
        write: &mut dyn FnMut(&mut Run<'r>) -> Result<()>,
    ) -> Result<()> {
        let limit = row_count(self.limit.as_ref(), u64::MAX, run)?;
        if limit == 0 {
            return Ok(());
        }
        if !self.buffered {
            let mut rows = 0;
            return drive(&self.root, run, &mut |run| {
                write(run)?;
                rows += 1;
                Ok(rows < limit)
            });
        }
        let mut rows = KeptRows::new(self.kept.len());
        drive(&self.root, run, &mut |run| {
            rows.push_registers(&self.kept, run)?;
            Ok(rows.len() < limit)
        })?;
        rows.end(run)?;
        let mut reader = KeptReader::default();
        while reader.restore_next(&rows, &self.kept, run)? {
            run.tick()?;
            write(run)?;
        }
        rows.clear(run);
        Ok(())
    }
}

/// Which rows of each target were written already, where a join may find one again.
pub(crate) struct VisitedRows {
    targets: Option<Vec<Seen>>,
}

impl VisitedRows {
    pub(crate) fn new(target_rows: &TargetRows, targets: usize) -> VisitedRows {
        let seen = || (0..targets).map(|_| Seen::default()).collect();
        VisitedRows { targets: target_rows.may_repeat.then(seen) }
    }

    /// Whether the target's row is seen for the first time.
    pub(crate) fn is_first(
        &mut self,
        target: usize,
        locator: &[u8],
        run: &mut Run<'_>,
    ) -> Result<bool> {
        match &mut self.targets {
            Some(targets) => targets[target].insert_key(locator, &mut run.memory),
            None => Ok(true),
        }
    }
}
