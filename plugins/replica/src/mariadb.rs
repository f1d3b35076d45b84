//! MariaDB as a source: what it is asked, and its events in the form of MySQL's.

use std::borrow::Cow;

use binlog::envelope::XaPrepare;
use binlog::gtid::GtidEvent;
use binlog::mariadb::{MariadbPosition, MariadbStart, uncompressed};
use binlog::query::QueryEvent;
use binlog::{EventKind, Header};
use errors::{Error, ErrorCode, Result};

use crate::source::{Loss, Received, STREAM_BROKEN};

/// The reader knows its identifiers of transactions (4).
const CAPABILITY: &str = "SET @mariadb_slave_capability = 4";
/// The parts of `sql_mode` that mean the same in both.
const SQL_MODES: u64 = 0xefff_ffff & !0x3_ff10;
/// A transaction that the channel has comes again.
const OUT_OF_ORDER: ErrorCode = ErrorCode(1950);

/// The statements before the log is asked for: from the transactions after `position` on, or by file.
pub(crate) fn introduction(position: Option<&MariadbPosition>) -> Vec<String> {
    let mut statements = vec![CAPABILITY.to_owned()];
    if let Some(position) = position {
        statements.push(format!(
            "SET @slave_connect_state = '{position}', @slave_gtid_strict_mode = 1, @slave_gtid_ignore_duplicates = 0"
        ));
    }
    statements
}

/// The event that a compressed one stands for.
///
/// # Errors
/// It is damaged, or encrypted.
pub(crate) fn plain(received: Received) -> std::result::Result<Received, Loss> {
    let Received { header, body, asks } = received;
    if header.kind == EventKind::START_ENCRYPTION {
        let what = "replication of an encrypted binary log of MariaDB (START_ENCRYPTION)";
        return Err(Loss::Fatal(Error::not_supported(what)));
    }
    match uncompressed(header.kind, &body) {
        Ok(None) => Ok(Received { header, body, asks }),
        Ok(Some((kind, body))) => Ok(Received { header: Header { kind, ..header }, body, asks }),
        Err(malformed) => Err(Loss::Fatal(Error::new(STREAM_BROKEN, malformed.to_string()))),
    }
}

/// Whether an event says nothing to a replica.
pub(crate) fn is_aside(kind: EventKind) -> bool {
    matches!(kind, EventKind::ANNOTATE_ROWS | EventKind::GTID_LIST | EventKind::BINLOG_CHECKPOINT)
}

/// The logical clock of a channel: MariaDB numbers groups of transactions that were committed together.
#[derive(Default)]
pub(crate) struct Clock {
    number: i64,
    last_committed: i64,
    group: Option<u64>,
}

impl Clock {
    /// How MySQL would begin the transaction: without an identifier.
    pub(crate) fn start(&mut self, start: &MariadbStart<'_>, header: &Header) -> GtidEvent {
        if start.group.is_none() || start.group != self.group {
            self.last_committed = self.number;
        }
        self.group = start.group;
        self.number += 1;
        debug_assert!(self.last_committed < self.number, "none waits for itself");
        let committed = u64::from(header.timestamp) * 1_000_000;
        GtidEvent {
            gtid: None,
            may_have_statements: true,
            last_committed: self.last_committed,
            sequence_number: self.number,
            immediate_commit_timestamp: committed,
            original_commit_timestamp: committed,
            transaction_length: 0,
            immediate_server_version: 0,
            original_server_version: 0,
        }
    }
}

/// Checks that a transaction is one after those that are here.
///
/// # Errors
/// It is one of them: the source's log was begun anew, or it repeats itself.
pub(crate) fn check_order(start: &MariadbStart<'_>, here: &MariadbPosition) -> Result<()> {
    let Some(last) = here.last(start.gtid.domain) else { return Ok(()) };
    if start.gtid.sequence > last.sequence {
        return Ok(());
    }
    let text = format!(
        "The source sends transaction {}, but the channel has {last} already: its log was begun anew, or is out of order",
        start.gtid
    );
    Err(Error::new(OUT_OF_ORDER, text))
}

/// The statement that begins the transaction; `None` for one without a beginning.
pub(crate) fn beginning(start: &MariadbStart<'_>) -> Option<Vec<u8>> {
    if start.is_standalone {
        return None;
    }
    let text = match start.prepares {
        Some(xid) => format!("XA START {}", xa_name(&xid)),
        None => "BEGIN".to_owned(),
    };
    let mut body = Vec::new();
    QueryEvent { text: text.as_bytes(), ..QueryEvent::default() }.write(&mut body);
    Some(body)
}

/// The name of a branch in a statement.
pub(crate) fn xa_name(xid: &XaPrepare<'_>) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("X'{}',X'{}',{}", hex(xid.global), hex(xid.branch), xid.format)
}

/// A table that is created within a transaction is one whose rows follow: MySQL says so at the end of the statement.
pub(crate) fn within_transaction<'a>(text: &'a [u8]) -> Cow<'a, [u8]> {
    const CREATE: &[u8] = b"CREATE TABLE";
    const CREATE_OR_REPLACE: &[u8] = b"CREATE OR REPLACE TABLE";
    let begins = |words: &[u8]| {
        text.get(..words.len()).is_some_and(|start| start.eq_ignore_ascii_case(words))
    };
    if begins(CREATE) || begins(CREATE_OR_REPLACE) {
        return Cow::Owned([text, b" START TRANSACTION"].concat());
    }
    Cow::Borrowed(text)
}

/// What both servers mean by an SQL mode.
pub(crate) fn sql_mode(mode: u64) -> u64 {
    mode & SQL_MODES
}

/// Whether a statement changes rows: triggers that fired there would not fire here.
pub(crate) fn is_change(text: &[u8]) -> bool {
    const WORDS: [&[u8]; 6] = [b"INSERT", b"UPDATE", b"DELETE", b"REPLACE", b"LOAD", b"WITH"];
    let text = text.trim_ascii_start();
    let end = text.iter().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(text.len());
    WORDS.iter().any(|word| text[..end].eq_ignore_ascii_case(word))
}

/// The error of a statement that changes rows and is logged as such.
pub(crate) fn not_rows(text: &[u8]) -> Error {
    let shown = shown(text);
    Error::not_supported(format!(
        "replication of rows by MariaDB's statement {shown}: binlog_format must be ROW"
    ))
}

/// The error of a statement that only MariaDB knows names it.
pub(crate) fn explained(error: Error, text: &[u8]) -> Error {
    if !matches!(error.code().0, 1064 | 1149 | 1235 | 1286 | 1273 | 1115 | 1193) {
        return error;
    }
    let (shown, why) = (shown(text), error.message());
    Error::not_supported(format!("replication of MariaDB's statement {shown} ({why})"))
}

/// The start of a statement.
fn shown(text: &[u8]) -> String {
    const CHARACTERS_MAX: usize = 120;
    let text = String::from_utf8_lossy(text);
    let shown: String = text.chars().take(CHARACTERS_MAX).collect();
    if shown.len() < text.len() { shown + ".." } else { shown }
}

#[cfg(test)]
mod tests {
    use binlog::mariadb::MariadbGtid;

    use super::*;

    fn start(sequence: u64, group: Option<u64>) -> MariadbStart<'static> {
        let gtid = MariadbGtid { domain: 0, server_id: 1, sequence };
        MariadbStart { gtid, is_standalone: false, group, prepares: None }
    }

    #[test]
    fn transactions_of_one_group_do_not_wait_for_each_other() {
        let header = Header {
            timestamp: 1,
            kind: EventKind::MARIADB_GTID,
            server_id: 1,
            size: 0,
            position: 0,
            flags: 0,
        };
        let mut clock = Clock::default();
        let groups = [None, Some(5), Some(5), None, Some(6)];
        let dependencies = groups.map(|group| {
            let event = clock.start(&start(1, group), &header);
            (event.last_committed, event.sequence_number)
        });
        assert_eq!(dependencies, [(0, 1), (1, 2), (1, 3), (3, 4), (4, 5)]);
    }

    #[test]
    fn what_is_here_does_not_come_again() {
        let here = MariadbPosition::parse("0-2-5").expect("a position");
        check_order(&start(6, None), &here).expect("the next");
        assert_eq!(check_order(&start(5, None), &here).expect_err("here").code(), OUT_OF_ORDER);
    }

    #[test]
    fn modes_of_mariadb_alone_are_left_out() {
        // NO_AUTO_CREATE_USER, ORACLE and EMPTY_STRING_IS_NULL; STRICT_TRANS_TABLES stays.
        assert_eq!(sql_mode(0x1_1020_0200 | 0x20_0000), 0x20_0000);
    }

    #[test]
    fn statements_that_change_rows() {
        assert!(is_change(b"insert into t values (1)") && is_change(b" DELETE FROM t"));
        assert!(!is_change(b"CREATE TABLE t (a INT)") && !is_change(b"SAVEPOINT s"));
    }

    #[test]
    fn created_tables_whose_rows_follow() {
        assert!(within_transaction(b"create table a (b int)").ends_with(b"START TRANSACTION"));
        assert_eq!(&*within_transaction(b"INSERT INTO a VALUES (1)"), b"INSERT INTO a VALUES (1)");
    }
}
