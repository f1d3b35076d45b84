//! An UPDATE of a table under several names: each writes on top of what the others wrote.

use engine_api::TableId;
use errors::Result;
use hashbrown::HashMap;

use super::row::{Strictness, default_value, evaluate};
use super::update::{AssignmentCode, NewValue, UpdateTarget};
use crate::run::Run;

type Records = HashMap<(TableId, Box<[u8]>), Box<[u8]>, foldhash::fast::FixedState>;

/// The records of rows as written so far, by table and locator; `None` if no table has two names.
pub(crate) struct WrittenRows {
    records: Option<Records>,
    bytes: usize,
}

impl WrittenRows {
    pub(crate) fn of(tables: impl ExactSizeIterator<Item = TableId> + Clone) -> WrittenRows {
        let is_twin = |(at, id)| tables.clone().skip(at + 1).any(|other| other == id);
        let has_twins = tables.len() > 1 && tables.clone().enumerate().any(is_twin);
        WrittenRows { records: has_twins.then(Records::default), bytes: 0 }
    }

    /// If the statement wrote the row before: computes the new values from the row as the join read it, then brings the registers
    /// up to date.
    pub(crate) fn catch_up(
        &self,
        target: &UpdateTarget,
        locator: &[u8],
        row: u64,
        strictness: Strictness,
        run: &mut Run<'_>,
    ) -> Result<Option<Vec<AssignmentCode>>> {
        let Some(records) = &self.records else { return Ok(None) };
        let table = &target.table;
        let Some(record) = records.get(&(table.id, locator.into())) else { return Ok(None) };
        let mut known = Vec::with_capacity(target.assignments.len());
        for AssignmentCode { column, value } in &target.assignments {
            let to = &table.columns[*column];
            let value = match value {
                NewValue::Computed(code) => evaluate(code, to, row, strictness.mode, run)?,
                NewValue::Default => default_value(to, row, strictness, run)?,
                // Ends of a portion: such an UPDATE names one table.
                NewValue::Known(_) | NewValue::NotBefore(_) | NewValue::NotAfter(_) => continue,
            };
            run.regs[to.register] = value.clone();
            known.push(AssignmentCode { column: *column, value: NewValue::Known(value) });
        }
        table.load(record, run)?;
        Ok(Some(known))
    }

    pub(crate) fn keep(
        &mut self,
        table: TableId,
        locator: &[u8],
        record: &[u8],
        run: &mut Run<'_>,
    ) -> Result<()> {
        let Some(records) = &mut self.records else { return Ok(()) };
        let bytes = locator.len() + record.len() + size_of::<(TableId, [Box<[u8]>; 2])>();
        self.bytes += bytes;
        records.insert((table, locator.into()), record.into());
        run.memory.charge(bytes)
    }

    pub(crate) fn release(self, run: &mut Run<'_>) {
        run.memory.release(self.bytes);
    }
}
