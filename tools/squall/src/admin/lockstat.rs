//! `squall admin lockstat`: `data_dictionary.LOCK_STATS` in the columns of Solaris's plockstat.

use client::Connection;

use super::table::Table;

/// One part of the output: its title, how often and how long.
struct Part {
    title: &'static str,
    count: &'static str,
    nanoseconds: &'static str,
}

const PARTS: [Part; 4] = [
    Part { title: "Lock spin", count: "SPIN_LOOPS_LOCK", nanoseconds: "SPIN_NS_LOCK" },
    Part { title: "Lock block", count: "WAITS", nanoseconds: "WAIT_NS" },
    Part { title: "Unlock spin", count: "SPIN_LOOPS_UNLOCK", nanoseconds: "SPIN_NS_UNLOCK" },
    Part { title: "Lock hold", count: "ACQUIRES", nanoseconds: "HOLD_NS" },
];

/// The `top` locks of each part by their time.
///
/// # Errors
/// The server has no such table, or the account may not read it.
pub(super) fn run(connection: &mut Connection, top: u32) -> Result<String, String> {
    let table = Table::of(connection, "SELECT * FROM data_dictionary.LOCK_STATS")?;
    Ok(shown(&table, top as usize))
}

fn shown(table: &Table, top: usize) -> String {
    let mut text = String::new();
    for part in &PARTS {
        if table.position(part.count).is_none() || table.position(part.nanoseconds).is_none() {
            continue;
        }
        let number = |row: &[Option<String>], name| table.text(row, name).parse().unwrap_or(0_u64);
        let mut rows: Vec<_> = table
            .rows
            .iter()
            .map(|row| (number(row, part.nanoseconds), number(row, part.count), row))
            .filter(|(nanoseconds, count, _)| *nanoseconds > 0 && *count > 0)
            .collect();
        rows.sort_by_key(|(nanoseconds, _, _)| std::cmp::Reverse(*nanoseconds));
        text.push_str(&format!(
            "{}\n\n{:>10} {:>12} {:<32} {:>6} {}\n{}\n",
            part.title,
            "Count",
            "nsec",
            "Lock",
            "%",
            "Stack",
            "-".repeat(79)
        ));
        let total: u64 = rows.iter().map(|(nanoseconds, _, _)| nanoseconds).sum();
        for (nanoseconds, count, row) in rows.into_iter().take(top) {
            let share = nanoseconds as f64 * 100.0 / total.max(1) as f64;
            // The lines of a stack from the inside to the outside, as one.
            let stack = table.text(row, "WAITER_STACK").replace('\n', " < ");
            let name = table.text(row, "NAME");
            let average = nanoseconds / count;
            text.push_str(&format!("{count:>10} {average:>12} {name:<32} {share:>6.1} {stack}\n"));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_come_first_with_their_average_and_share() {
        let names = ["NAME", "ACQUIRES", "HOLD_NS", "WAITS", "WAIT_NS", "WAITER_STACK"];
        let row = |cells: [&str; 6]| cells.iter().map(|cell| Some((*cell).to_owned())).collect();
        let table = Table {
            columns: names.iter().map(|name| (*name).to_owned()).collect(),
            rows: vec![
                row(["log.lane", "10", "50", "2", "1000", ""]),
                row(["catalog", "5", "10", "3", "3000", "a\nb"]),
                row(["idle", "0", "0", "0", "0", ""]),
            ],
        };
        let text = shown(&table, 10);
        assert!(text.contains("Lock block") && text.contains("Lock hold"), "{text}");
        assert!(!text.contains("idle") && !text.contains("spin"), "{text}");
        let block = text.split("Lock block").nth(1).expect("a part");
        let lines: Vec<_> = block.lines().filter(|line| line.contains("     ")).collect();
        let words: Vec<Vec<&str>> =
            lines.iter().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[0], ["Count", "nsec", "Lock", "%", "Stack"]);
        assert_eq!(words[1], ["3", "1000", "catalog", "75.0", "a", "<", "b"]);
        assert_eq!(words[2], ["2", "500", "log.lane", "25.0"]);
        assert_eq!(shown(&table, 1).matches("log.lane").count(), 1, "the hold's");
    }
}
