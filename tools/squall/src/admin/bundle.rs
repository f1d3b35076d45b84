//! `squall admin bundle`: what somebody needs who is to say why a server behaves as it does, in one archive.
//!
//! Only what the statements below ask for goes in: they name their columns, and leave out those with data and literals.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use client::Connection;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::mask;
use super::table::Table;

/// Lines of the error log.
const LOG_LINES: u32 = 2000;
/// Tables whose figures are asked for.
const TABLES_MAX: u32 = 5000;
/// Reports of crashes that are taken along.
const REPORTS_MAX: usize = 5;

/// What the command line asked for.
pub(super) struct Wanted {
    pub(super) output: Option<PathBuf>,
    pub(super) with_ddl: bool,
    pub(super) statements: u32,
}

/// Files of the archive, and why others are missing.
#[derive(Default)]
struct Files {
    files: Vec<(String, String)>,
    missing: Vec<String>,
}

/// Sections that are one query each.
const SECTIONS: &[(&str, &str)] = &[
    (
        "versions",
        "SELECT VERSION() AS version, @@version_comment AS comment, @@version_compile_os AS os, @@version_compile_machine AS machine, @@hostname AS host, @@datadir AS datadir, @@server_id AS server_id, NOW() AS time, UTC_TIMESTAMP() AS utc",
    ),
    ("status", "SHOW GLOBAL STATUS"),
    ("plugins", "SELECT * FROM data_dictionary.MODULES"),
    ("engines", "SELECT * FROM information_schema.ENGINES"),
    ("memory", "SELECT * FROM data_dictionary.MEMORY_BY_OWNER"),
    ("engine-statistics", "SELECT * FROM data_dictionary.ENGINE_STATISTICS"),
    ("io", "SELECT * FROM data_dictionary.IO_HISTOGRAM"),
    ("io-by-class", "SELECT * FROM data_dictionary.IO_STATS"),
    ("locks-of-the-server", "SELECT * FROM data_dictionary.LOCK_STATS"),
    ("threads", "SELECT * FROM data_dictionary.THREAD_STATES"),
    ("stacks", "SELECT * FROM data_dictionary.THREAD_STACKS"),
    ("index-builds", "SELECT * FROM data_dictionary.INDEX_BUILDS"),
    ("recovery", "SELECT * FROM data_dictionary.RECOVERY_PROGRESS"),
    (
        "waits",
        "SELECT EVENT_NAME, COUNT_STAR, SUM_TIMER_WAIT, MAX_TIMER_WAIT FROM performance_schema.events_waits_summary_global_by_event_name WHERE COUNT_STAR > 0 ORDER BY SUM_TIMER_WAIT DESC",
    ),
    (
        "locks",
        "SELECT ENGINE_TRANSACTION_ID, THREAD_ID, OBJECT_SCHEMA, OBJECT_NAME, INDEX_NAME, LOCK_TYPE, LOCK_MODE, LOCK_STATUS FROM performance_schema.data_locks",
    ),
    (
        "lock-waits",
        "SELECT REQUESTING_ENGINE_TRANSACTION_ID, REQUESTING_THREAD_ID, BLOCKING_ENGINE_TRANSACTION_ID, BLOCKING_THREAD_ID FROM performance_schema.data_lock_waits",
    ),
    (
        "metadata-locks",
        "SELECT OBJECT_TYPE, OBJECT_SCHEMA, OBJECT_NAME, LOCK_TYPE, LOCK_DURATION, LOCK_STATUS, OWNER_THREAD_ID FROM performance_schema.metadata_locks",
    ),
    (
        "transactions",
        "SELECT trx_id, trx_state, trx_started, trx_wait_started, trx_mysql_thread_id, trx_tables_locked, trx_rows_locked, trx_rows_modified, trx_isolation_level FROM information_schema.INNODB_TRX",
    ),
];

impl Files {
    fn take(&mut self, name: &str, table: Result<Table, String>) {
        match table {
            Ok(table) => self.files.push((format!("{name}.tsv"), table.to_tsv())),
            Err(reason) => self.missing.push(format!("{name}: {}", mask::log_line(&reason))),
        }
    }

    fn settings(&mut self, connection: &mut Connection) {
        let sql = "SELECT * FROM data_dictionary.GLOBAL_VARIABLES ORDER BY VARIABLE_NAME";
        let table = Table::of(connection, sql).map(|mut table| {
            let (name, value) = (table.position("VARIABLE_NAME"), table.position("VARIABLE_VALUE"));
            if let (Some(name), Some(value)) = (name, value) {
                for row in &mut table.rows {
                    let shown = row[value].as_deref().map(|value| {
                        mask::setting(row[name].as_deref().unwrap_or_default(), value)
                    });
                    row[value] = shown;
                }
            }
            table
        });
        self.take("settings", table);
    }

    /// Statements by time, as digests, and the plans of those that can be explained.
    fn statements(&mut self, connection: &mut Connection, count: u32) {
        let sql = format!(
            "SELECT SCHEMA_NAME, DIGEST, DIGEST_TEXT, COUNT_STAR, SUM_TIMER_WAIT, AVG_TIMER_WAIT, MAX_TIMER_WAIT, QUANTILE_95, QUANTILE_99, SUM_LOCK_TIME, SUM_CPU_TIME, SUM_ERRORS, SUM_WARNINGS, SUM_ROWS_AFFECTED, SUM_ROWS_SENT, SUM_ROWS_EXAMINED, SUM_CREATED_TMP_DISK_TABLES, SUM_NO_INDEX_USED, FIRST_SEEN, LAST_SEEN FROM performance_schema.events_statements_summary_by_digest ORDER BY SUM_TIMER_WAIT DESC LIMIT {count}"
        );
        let table = Table::of(connection, &sql).map(|mut table| {
            table.change("DIGEST_TEXT", mask::statement);
            table
        });
        self.take("statements", table);
        let sql = format!(
            "SELECT SCHEMA_NAME, DIGEST, QUERY_SAMPLE_TEXT FROM performance_schema.events_statements_summary_by_digest WHERE QUERY_SAMPLE_TEXT IS NOT NULL ORDER BY SUM_TIMER_WAIT DESC LIMIT {count}"
        );
        let samples = match Table::of(connection, &sql) {
            Ok(samples) => samples,
            Err(reason) => return self.take("plans", Err(reason)),
        };
        let mut plans = String::new();
        for row in &samples.rows {
            let plan = plan(
                connection,
                samples.text(row, "SCHEMA_NAME"),
                samples.text(row, "QUERY_SAMPLE_TEXT"),
            );
            if let Some(plan) = plan {
                let digest = samples.text(row, "DIGEST");
                plans.push_str(&format!("{digest}\n{}\n", plan.to_tsv()));
            }
        }
        self.files.push(("plans.txt".into(), plans));
    }

    /// Who is connected and does what.
    fn processes(&mut self, connection: &mut Connection) {
        let sql = "SELECT ID, USER, HOST, DB, COMMAND, TIME, STATE, INFO FROM information_schema.PROCESSLIST";
        let table = Table::of(connection, sql).map(|mut table| {
            table.change("INFO", mask::statement);
            table
        });
        self.take("processes", table);
    }

    fn tables(&mut self, connection: &mut Connection, with_ddl: bool) {
        let sql = format!(
            "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE, TABLE_ROWS, AVG_ROW_LENGTH, DATA_LENGTH, INDEX_LENGTH, DATA_FREE, CREATE_TIME, UPDATE_TIME FROM information_schema.TABLES WHERE TABLE_SCHEMA NOT IN ('information_schema', 'performance_schema', 'data_dictionary', 'mysql', 'sys') ORDER BY DATA_LENGTH + INDEX_LENGTH DESC LIMIT {TABLES_MAX}"
        );
        let tables = Table::of(connection, &sql);
        if with_ddl && let Ok(tables) = &tables {
            let mut text = String::new();
            for row in &tables.rows {
                let quoted = |name| format!("`{}`", tables.text(row, name).replace('`', "``"));
                let name = format!("{}.{}", quoted("TABLE_SCHEMA"), quoted("TABLE_NAME"));
                match Table::of(connection, &format!("SHOW CREATE TABLE {name}")) {
                    Ok(shown) => {
                        let ddl = shown.rows.first().and_then(|row| row.get(1)?.clone());
                        text.push_str(&format!("{};\n\n", ddl.unwrap_or_default()));
                    }
                    Err(reason) => text.push_str(&format!("-- {name}: {reason}\n\n")),
                }
            }
            self.files.push(("definitions.sql".into(), text));
        }
        self.take("tables", tables);
    }

    /// The error log's end, from its table, else from its file if that is on this machine.
    fn log(&mut self, connection: &mut Connection) {
        let sql = format!(
            "SELECT * FROM (SELECT LOGGED, PRIO, SUBSYSTEM, DATA FROM performance_schema.error_log ORDER BY LOGGED DESC LIMIT {LOG_LINES}) AS latest ORDER BY LOGGED"
        );
        let found = Table::of(connection, &sql);
        let from_file = |connection: &mut Connection| {
            let path = Table::of(connection, "SELECT @@log_error")?;
            let path = path.rows.first().and_then(|row| row.first()?.clone()).unwrap_or_default();
            let text = std::fs::read(&path).map_err(|error| format!("'{path}': {error}"))?;
            let text = String::from_utf8_lossy(&text).into_owned();
            let lines: Vec<_> = text.lines().collect();
            let from = lines.len().saturating_sub(LOG_LINES as usize);
            Ok::<_, String>(lines[from..].iter().map(|line| mask::log_line(line) + "\n").collect())
        };
        match found {
            Ok(mut table) if !table.rows.is_empty() => {
                table.change("DATA", mask::log_line);
                self.take("error-log", Ok(table));
            }
            Ok(_) | Err(_) => match from_file(connection) {
                Ok(text) => self.files.push(("error-log.txt".into(), text)),
                Err(reason) => self.missing.push(format!("error-log: {reason}")),
            },
        }
    }

    /// What the server wrote when it ended by itself, if its data directory is on this machine.
    fn crash_reports(&mut self, connection: &mut Connection) {
        let Ok(found) = Table::of(connection, "SELECT @@datadir") else { return };
        let directory = found.rows.first().and_then(|row| row.first()?.clone()).unwrap_or_default();
        let Ok(entries) = std::fs::read_dir(&directory) else { return };
        let mut reports: Vec<PathBuf> = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.file_name().is_some_and(is_crash_report))
            .collect();
        reports.sort();
        for path in reports.iter().rev().take(REPORTS_MAX) {
            let (Some(name), Ok(text)) = (path.file_name(), std::fs::read_to_string(path)) else {
                continue;
            };
            self.files.push((name.to_string_lossy().into_owned(), text));
        }
    }

    /// Writes the archive.
    fn write(&self, path: &Path, folder: &str) -> std::io::Result<()> {
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create_new(true);
        // Names of tables and accounts are not for everyone.
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let encoder = GzEncoder::new(options.open(path)?, Compression::default());
        let mut archive = tar::Builder::new(encoder);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        for (name, text) in &self.files {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o600);
            header.set_mtime(now);
            archive.append_data(&mut header, format!("{folder}/{name}"), text.as_bytes())?;
        }
        archive.into_inner()?.finish()?.flush()
    }
}

fn is_crash_report(name: &std::ffi::OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("squall-crash-") && name.ends_with(".txt")
}

/// Statements that have plans, by their first word.
const EXPLAINED: [&str; 7] = ["SELECT", "WITH", "TABLE", "INSERT", "REPLACE", "UPDATE", "DELETE"];

/// The plan of a statement in the form that has no literals.
fn plan(connection: &mut Connection, schema: &str, statement: &str) -> Option<Table> {
    let word = statement.split_whitespace().next().unwrap_or_default();
    let has_plan = EXPLAINED.iter().any(|known| word.eq_ignore_ascii_case(known));
    // A second statement would be run.
    if !has_plan || statement.contains(';') {
        return None;
    }
    if !schema.is_empty() {
        Table::of(connection, &format!("USE `{}`", schema.replace('`', "``"))).ok()?;
    }
    let mut plan =
        Table::of(connection, &format!("EXPLAIN FORMAT=TRADITIONAL {statement}")).ok()?;
    plan.change("Extra", mask::log_line);
    (plan.position("select_type").is_some()).then_some(plan)
}

/// `20260131T120000Z`.
fn time_name(connection: &mut Connection) -> String {
    let sql = "SELECT DATE_FORMAT(UTC_TIMESTAMP(), '%Y%m%dT%H%i%sZ')";
    let found = Table::of(connection, sql).ok();
    found.and_then(|table| table.rows.first()?.first()?.clone()).unwrap_or_else(|| "now".into())
}

/// Collects everything and writes the archive.
///
/// # Errors
/// The archive cannot be written.
pub(super) fn run(connection: &mut Connection, wanted: &Wanted) -> Result<String, String> {
    let folder = format!("squall-bundle-{}", time_name(connection));
    let mut files = Files::default();
    for (name, sql) in SECTIONS {
        files.take(name, Table::of(connection, sql));
    }
    files.settings(connection);
    files.processes(connection);
    files.tables(connection, wanted.with_ddl);
    files.log(connection);
    files.crash_reports(connection);
    files.statements(connection, wanted.statements);
    let missing = files.missing.join("\n");
    let readme = format!(
        "A support bundle of a Squall server, made by `squall admin bundle`.\nIt holds names of schemas, tables, accounts and hosts, but no rows, no literals of statements and no passwords.\n\nNot available:\n{missing}\n"
    );
    files.files.insert(0, ("README.txt".into(), readme));
    let path = wanted.output.clone().unwrap_or_else(|| format!("{folder}.tar.gz").into());
    let failed = |error| format!("{}: {error}", path.display());
    files.write(&path, &folder).map_err(failed)?;
    Ok(format!("{} ({} files)\n", path.display(), files.files.len()))
}
