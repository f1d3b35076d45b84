//! Which partition takes an old row of a table partitioned by SYSTEM_TIME, and whether the last one is full. Those who run a statement count the rows.

use std::sync::Arc;

use errors::{Diagnostics, ErrorCode, Result};
use plan::SystemPartitions;
use types::{DataType, TypeKind, Value};

use crate::times::is_before;

/// The partitions of a table in a statement that writes old rows.
pub struct Filled {
    partitions: Arc<SystemPartitions>,
    /// By LIMIT: which of the history partitions takes all old rows of the statement.
    place: usize,
}

/// Counts the rows whose keys begin with some bytes.
pub type Count<'c> = &'c mut dyn FnMut(&SystemPartitions, Vec<u8>) -> Result<u64>;

/// Rows of the history partition at a place.
fn rows(partitions: &SystemPartitions, place: usize, count: Count<'_>) -> Result<u64> {
    let number = partitions.history[place] * partitions.subpartitions;
    let mut ty = DataType::new(TypeKind::SmallInt, 5, 0).with_nullable(false);
    ty.unsigned = true;
    let mut rows = 0;
    for leaf in number..number + partitions.subpartitions {
        let mut key = Vec::new();
        types::key::encode_part(&Value::UInt(leaf.into()), &ty, None, false, &mut key);
        rows += count(partitions, key)?;
    }
    Ok(rows)
}

impl Filled {
    /// As a statement finds the partitions. By LIMIT the last one with rows takes more, or the next if it has enough.
    ///
    /// # Errors
    /// Those of counting.
    pub fn find(partitions: &Arc<SystemPartitions>, count: Count<'_>) -> Result<Filled> {
        let mut filled = Filled { partitions: partitions.clone(), place: 0 };
        let Some(limit) = filled.partitions.limit else { return Ok(filled) };
        let count_of = filled.partitions.history.len();
        for place in 0..count_of {
            let rows = rows(&filled.partitions, place, count)?;
            if rows == 0 {
                break;
            }
            let is_last = place + 1 == count_of;
            filled.place = if rows >= limit && !is_last { place + 1 } else { place };
        }
        Ok(filled)
    }

    /// Whether these are the partitions of a table.
    pub fn is_of(&self, partitions: &SystemPartitions) -> bool {
        self.partitions.id == partitions.id
    }

    /// The number for a row that ended at `end`; `before` is the one that it had, which says the subpartition.
    pub fn number(&self, end: &Value, before: &Value) -> Value {
        let place = match self.partitions.limit {
            Some(_) => self.place,
            None => self.partitions.ends.partition_point(|bound| !is_before(end, bound)),
        };
        let history = &self.partitions.history;
        let number = history.get(place).or(history.last()).copied().unwrap_or(0);
        let count = self.partitions.subpartitions;
        let sub =
            if let Value::UInt(before) = before { *before } else { 0 } % u64::from(count.max(1));
        Value::UInt(u64::from(number) * u64::from(count) + sub)
    }

    /// After the statement: a warning where the last history partition has more than it should.
    ///
    /// # Errors
    /// Those of counting.
    pub fn warn(&self, now: &Value, diagnostics: &mut Diagnostics, count: Count<'_>) -> Result<()> {
        let partitions = &self.partitions;
        if !partitions.warns {
            return Ok(());
        }
        let last = partitions.history.len().saturating_sub(1);
        let what = match (partitions.limit, partitions.ends.last()) {
            (Some(limit), _) if self.place == last => {
                (rows(partitions, last, count)? >= limit).then_some("LIMIT")
            }
            (None, Some(end)) => (!is_before(now, end)).then_some(stringify!(INTERVAL)),
            _ => None,
        };
        if let Some(what) = what {
            let (schema, table) = &partitions.table;
            let args: [&dyn std::fmt::Display; 4] = [schema, table, &partitions.last, &what];
            diagnostics.warn(ErrorCode::VERS_PARTITION_FULL, &args);
        }
        Ok(())
    }
}
