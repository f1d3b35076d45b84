//! Tables without their rows: DISCARD TABLESPACE took them, of the whole table or of partitions, and IMPORT TABLESPACE brings others.
//!
//! Invariant: the option names only partitions that the table has, and these have no rows.

use engine_api::KeyRange;
use types::Value;

use crate::Table;

/// The option that keeps it: `all`, or the numbers of partitions with commas between them. No statement names or shows it.
pub const DISCARDED_OPTION: &str = "DISCARDED";
const ALL: &str = "all";

impl Table {
    fn discarded(&self) -> Option<&str> {
        let option = self.options.iter().find(|(name, _)| name == DISCARDED_OPTION);
        option.map(|(_, value)| &**value)
    }

    /// Whether rows are missing: of the table, or of a partition.
    pub fn is_discarded(&self) -> bool {
        self.discarded().is_some()
    }

    /// Numbers of the partitions whose rows are missing.
    pub fn discarded_partitions(&self) -> Vec<u16> {
        discarded_numbers(&self.options)
    }

    /// Where the rows of a partition are in the clustered index. `None`: they are not contiguous.
    pub fn partition_range(&self, number: u16) -> Option<KeyRange> {
        let column = &self.columns[self.partition_column()?];
        let first = self.definition.primary()?.parts.first()?;
        if column.stored != Some(first.column) {
            return None;
        }
        let mut key = Vec::new();
        let number = Value::UInt(u64::from(number));
        types::key::encode_part(&number, &column.ty, None, first.descending, &mut key);
        Some(KeyRange::prefix(key))
    }

    /// Whether a record belongs to a partition. Where the rows of a partition are contiguous its range says so, cheaper.
    pub fn in_partition(&self, record: &[u8], number: u16) -> bool {
        let stored = self.partition_column().and_then(|at| self.columns[at].stored);
        let value = stored.and_then(|stored| {
            let missing = self.definition.columns.get(stored)?.instant_default.as_ref();
            self.definition.layout().value(record, stored, missing)
        });
        value == Some(Value::UInt(u64::from(number)))
    }
}

/// Numbers of the partitions that options say are without rows.
pub fn discarded_numbers(options: &[(String, String)]) -> Vec<u16> {
    let option = options.iter().find(|(name, _)| name == DISCARDED_OPTION);
    let numbers = option.map_or("", |(_, value)| value).split(',');
    numbers.filter_map(|number| number.parse().ok()).collect()
}

/// Makes options say that a table is without its rows, or these partitions. Without partitions nothing is said of a partitioned table.
pub fn set_discarded(options: &mut Vec<(String, String)>, partitions: Option<&[u16]>) {
    options.retain(|(name, _)| name != DISCARDED_OPTION);
    let value = match partitions {
        None => ALL.to_owned(),
        Some(numbers) => {
            let numbers: Vec<String> = numbers.iter().map(u16::to_string).collect();
            numbers.join(",")
        }
    };
    if !value.is_empty() {
        options.push((DISCARDED_OPTION.to_owned(), value));
    }
}
