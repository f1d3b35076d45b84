//! `log_slow_verbosity`: how a statement was executed and what it cost. Lines and names are those that readers of slow logs know.

use plugin_api::{StatementCost, StatementCounts};
use serde_json::{Value, json};

/// What `log_slow_verbosity` adds to an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verbosity {
    /// How it was executed.
    pub(crate) plan: bool,
    /// What it cost in the engine and the processor.
    pub(crate) engine: bool,
}

impl Verbosity {
    pub(crate) fn of(text: &str) -> Verbosity {
        let has = |word: &str| text.split(',').any(|part| part.eq_ignore_ascii_case(word));
        let full = has("full");
        Verbosity { plan: full || has("query_plan"), engine: full || has("innodb") }
    }
}

fn yes_no(is: bool) -> &'static str {
    if is { "Yes" } else { "No" }
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// Lines about scans, joins, temporary tables and sorts.
pub(crate) fn plan_lines(counts: &StatementCounts) -> String {
    let is_sorted = counts.sort_rows + counts.sort_scans + counts.sort_ranges > 0;
    format!(
        "# Bytes_sent: {}  Tmp_tables: {}  Tmp_disk_tables: {}\n\
         # Full_scan: {}  Full_join: {}  Tmp_table: {}  Tmp_table_on_disk: {}\n\
         # Filesort: {}  Filesort_on_disk: {}  Merge_passes: {}\n",
        counts.bytes_sent,
        counts.temporary_tables,
        counts.temporary_disk_tables,
        yes_no(counts.scans > 0),
        yes_no(counts.full_joins > 0),
        yes_no(counts.temporary_tables > 0),
        yes_no(counts.temporary_disk_tables > 0),
        yes_no(is_sorted),
        yes_no(counts.sort_merge_passes > 0),
        counts.sort_merge_passes
    )
}

/// The same as an object.
pub(crate) fn plan_object(counts: &StatementCounts) -> Value {
    json!({
        "bytes_sent": counts.bytes_sent,
        "scans": counts.scans,
        "full_joins": counts.full_joins,
        "temporary_tables": counts.temporary_tables,
        "temporary_disk_tables": counts.temporary_disk_tables,
        "sort_rows": counts.sort_rows,
        "sort_merge_passes": counts.sort_merge_passes,
    })
}

/// Lines about pages, lock waits, the log and the processor.
pub(crate) fn cost_lines(cost: &StatementCost) -> String {
    format!(
        "#   InnoDB_pages: {}  InnoDB_IO_r_ops: {}  InnoDB_rec_lock_wait: {:.6}  Log_bytes: {}\n\
         # CPU_time: {:.6}  Parse_time: {:.6}  Plan_time: {:.6}  Execute_time: {:.6}  Commit_time: {:.6}\n",
        cost.pages,
        cost.pages_missed,
        seconds(cost.row_lock_nanos),
        cost.log_bytes,
        seconds(cost.cpu_nanos),
        seconds(cost.parse_nanos),
        seconds(cost.plan_nanos),
        seconds(cost.execute_nanos),
        seconds(cost.commit_nanos)
    )
}

/// All costs as an object.
pub(crate) fn cost_object(cost: &StatementCost) -> Value {
    let amounts = StatementCost::NAMES.iter().zip(cost.amounts());
    let members = amounts.map(|(name, amount)| (name.to_lowercase(), Value::from(amount)));
    Value::Object(members.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_is_all_of_it() {
        assert_eq!(Verbosity::of("query_plan"), Verbosity { plan: true, engine: false });
        assert_eq!(Verbosity::of("full"), Verbosity { plan: true, engine: true });
        assert_eq!(Verbosity::of(""), Verbosity::default());
    }

    #[test]
    fn a_sort_of_a_whole_table_shows() {
        let counts = StatementCounts { scans: 1, sort_rows: 3, ..StatementCounts::default() };
        let text = plan_lines(&counts);
        assert!(text.contains("# Full_scan: Yes  Full_join: No  Tmp_table: No"), "{text}");
        assert!(text.contains("# Filesort: Yes  Filesort_on_disk: No"), "{text}");
        assert_eq!(plan_object(&counts)["sort_rows"], 3);
    }

    #[test]
    fn costs_have_their_units() {
        let cost =
            StatementCost { pages: 7, row_lock_nanos: 1_500_000, ..StatementCost::default() };
        assert!(
            cost_lines(&cost)
                .contains("InnoDB_pages: 7  InnoDB_IO_r_ops: 0  InnoDB_rec_lock_wait: 0.001500")
        );
        assert_eq!(cost_object(&cost)["pages"], 7);
    }
}
