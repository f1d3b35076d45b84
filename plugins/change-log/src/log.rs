//! The log: committed transactions become lines, which are appended to the file at once.

use std::path::PathBuf;
use std::sync::Arc;

use errors::Result;
use plugin_api::variable::{Definition, Kind, uint};
use plugin_api::{
    BackgroundJob, ChangeSink, CommittedTransaction, GlobalValue, LogSink, RowChange,
    RowChangeKind, RunningJob, SessionFactory,
};
use serde_json::json;
use sys::log_file::{RotatingFile, Rotation, Target};
use sys::sync::Mutex;
use sys::sync::atomic::{AtomicU64, Ordering};
use types::{FixedOffset, Value, ZoneRules as _};

use crate::table::{Logged, RecentChanges};
use crate::tables::Tables;

pub(crate) static TABLES: Definition = Definition::global(
    "change_log_tables",
    Kind::Text,
    "",
    "Tables whose changes are logged, with commas between them: schema.table; % may stand at the end of each",
);
pub(crate) static FILE: Definition = Definition::global(
    "change_log_file",
    Kind::Text,
    "squall-changes.ndjson",
    "File of the change log, relative to the data directory",
);
pub(crate) static SIZE: Definition = Definition::global(
    "change_log_size",
    uint(1 << 16, 1 << 40),
    "67108864",
    "Bytes after which the change log is renamed to NAME.1 and begins anew",
);
pub(crate) static KEEP: Definition = Definition::global(
    "change_log_keep",
    uint(0, 1000),
    "4",
    "Files of the change log that stay besides the one that is written",
);

/// Rows hold what tables hold: only the server's own account reads the file.
const FILE_MODE: u32 = 0o600;

/// Counts of changes.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    written: AtomicU64,
    lost: AtomicU64,
    failed: AtomicU64,
}

impl Counts {
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }
}

/// The change log.
#[derive(Default)]
pub(crate) struct ChangeLog {
    pub(crate) table_names: GlobalValue,
    pub(crate) file_name: GlobalValue,
    pub(crate) size_bytes: GlobalValue,
    pub(crate) keep: GlobalValue,
    pub(crate) counts: Counts,
    pub(crate) recent: Arc<RecentChanges>,
    /// The tables of the text that was read last.
    tables: Mutex<(String, Arc<Tables>)>,
    directory: Mutex<PathBuf>,
    file: Mutex<RotatingFile>,
}

impl ChangeLog {
    fn tables(&self) -> Arc<Tables> {
        let text = self.table_names.text();
        let mut known = self.tables.lock();
        if known.0 != text {
            // It was checked when it was set.
            *known = (text.clone(), Arc::new(Tables::parse(&text).unwrap_or_default()));
        }
        known.1.clone()
    }

    fn target(&self) -> Target {
        let keep = usize::try_from(self.keep.number()).unwrap_or(usize::MAX);
        let size_bytes = self.size_bytes.number();
        Target {
            path: self.directory.lock().join(self.file_name.text()),
            mode: FILE_MODE,
            header: String::new(),
            rotation: Rotation { size_bytes, keep, ..Rotation::default() },
        }
    }
}

fn timestamp(micros: i64) -> String {
    let mut text = Vec::new();
    FixedOffset::utc().utc_to_local(micros).write_text(6, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn kind_name(kind: RowChangeKind) -> &'static str {
    match kind {
        RowChangeKind::Insert => "insert",
        RowChangeKind::Update => "update",
        RowChangeKind::Delete => "delete",
    }
}

/// A row as JSON; `null` for none.
fn row(change: &RowChange<'_>, row: Option<&[Value]>) -> String {
    let text = row.and_then(|row| change.json(row).ok());
    text.unwrap_or_else(|| "null".to_owned())
}

/// The line of a change. The rows are JSON already, with every digit of their numbers.
fn line(transaction: &CommittedTransaction<'_>, logged: &Logged) -> String {
    let head = json!({
        "transaction": transaction.number,
        "committed": timestamp(transaction.at_micros),
        "connection_id": transaction.session.connection_id,
        "account": transaction.session.account,
        "schema": logged.schema,
        "table": logged.table,
        "kind": logged.kind,
    });
    let mut head = head.to_string();
    head.pop();
    format!("{head},\"old\":{},\"new\":{}}}\n", logged.old, logged.new)
}

impl ChangeSink for ChangeLog {
    fn name(&self) -> &'static str {
        "change_log"
    }

    fn is_active(&self) -> bool {
        !self.tables().is_empty()
    }

    fn wants_table(&self, schema: &str, table: &str) -> bool {
        self.tables().has(schema, table)
    }

    fn committed(&self, transaction: &CommittedTransaction<'_>) {
        let mut lines = String::new();
        let mut changes = Vec::with_capacity(transaction.changes.len());
        for change in transaction.changes {
            let logged = Logged {
                transaction: transaction.number,
                at_micros: transaction.at_micros,
                account: transaction.session.account.to_owned(),
                schema: change.schema.to_owned(),
                table: change.table.to_owned(),
                kind: kind_name(change.kind()),
                old: row(change, change.old),
                new: row(change, change.new),
            };
            lines.push_str(&line(transaction, &logged));
            changes.push(logged);
        }
        if transaction.lost > 0 {
            let gap = json!({ "transaction": transaction.number, "lost": transaction.lost });
            lines.push_str(&format!("{gap}\n"));
            self.counts.lost.fetch_add(transaction.lost, Ordering::Relaxed);
        }
        let written = self.file.lock().append(&self.target(), lines.as_bytes());
        let count = changes.len() as u64;
        match written {
            Ok(()) => self.counts.written.fetch_add(count, Ordering::Relaxed),
            Err(error) => {
                if self.counts.failed.fetch_add(1, Ordering::Relaxed) == 0 {
                    tracing::error!("the change log cannot be written: {error}");
                }
                self.counts.lost.fetch_add(count, Ordering::Relaxed)
            }
        };
        self.recent.push(changes);
    }
}

impl LogSink for ChangeLog {
    fn name(&self) -> &'static str {
        "change_log"
    }

    /// The next transaction opens the file again.
    fn reopen(&self) -> Result<()> {
        *self.file.lock() = RotatingFile::default();
        Ok(())
    }
}

/// Finds the data directory when the plugin is loaded.
pub(crate) struct ChangeLogJob(pub(crate) Arc<ChangeLog>);

impl BackgroundJob for ChangeLogJob {
    fn name(&self) -> &'static str {
        "change_log"
    }

    fn start(&self, sessions: Arc<dyn SessionFactory>) -> Result<Box<dyn RunningJob>> {
        *self.0.directory.lock() = PathBuf::from(sessions.global_text("datadir"));
        Ok(Box::new(Loaded(self.0.clone())))
    }
}

struct Loaded(Arc<ChangeLog>);

impl RunningJob for Loaded {
    fn stop(self: Box<Self>) {
        *self.0.file.lock() = RotatingFile::default();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

    use plugin_api::{RowColumn, SessionFacts};
    use types::{DataType, Decimal, TypeKind};

    use super::*;

    #[test]
    fn transactions_become_lines_and_files_are_rotated() {
        let folder = std::env::temp_dir().join(format!("squall-change-log-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let log = ChangeLog::default();
        log.directory.lock().clone_from(&folder);
        log.file_name.store(Value::text("c.ndjson"));
        log.keep.store(Value::UInt(1));
        log.size_bytes.store(Value::UInt(400));
        let columns = [RowColumn { name: "d".into(), ty: DataType::new(TypeKind::Decimal, 5, 2) }];
        let number =
            |text: &str| [Value::Decimal(Decimal::parse(text.as_bytes()).expect("a number"))];
        let (old, new) = (number("1.50"), number("2.00"));
        let change = RowChange {
            schema: "s",
            table: "t",
            columns: &columns,
            old: Some(&old),
            new: Some(&new),
        };
        let session =
            SessionFacts { connection_id: 7, user: "u", host: "h", account: "u@%", schema: None };
        for number in 1..=3 {
            let changes = [change];
            log.committed(&CommittedTransaction {
                number,
                session,
                at_micros: 0,
                changes: &changes,
                lost: number - 1,
            });
        }
        let read = |name: &str| std::fs::read_to_string(folder.join(name));
        let newest = read("c.ndjson").expect("the file");
        let first = concat!(
            r#"{"account":"u@%","committed":"1970-01-01 00:00:00.000000","connection_id":7,"kind":"update","#,
            r#""schema":"s","table":"t","transaction":3,"old":{"d":1.50},"new":{"d":2.00}}"#
        );
        assert_eq!(newest.lines().next(), Some(first));
        assert_eq!(newest.lines().nth(1), Some(r#"{"lost":2,"transaction":3}"#));
        assert!(read("c.ndjson.1").expect("the old file").contains("\"transaction\":2"));
        assert!(read("c.ndjson.2").is_err(), "only one old file stays");
        assert_eq!((log.counts.written(), log.counts.lost()), (3, 3));
        std::fs::remove_dir_all(&folder).expect("its own folder");
    }
}
