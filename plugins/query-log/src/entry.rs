//! Entries of both logs: as text in the reference's formats, as JSON, and as rows of the tables.

use std::fmt::Write as _;

use plugin_api::{StatementEnd, StatementEvent};
use serde_json::json;
use types::{Time, Value};

use crate::format::{push_padded, push_timestamp, timestamp, utc};
use crate::verbosity::{Verbosity, cost_lines, cost_object, plan_lines, plan_object};

/// Longest `traceparent` that is written.
const TRACE_PARENT_BYTES_MAX: usize = 128;

/// An entry of the general log.
pub(crate) struct GeneralEntry<'a> {
    pub(crate) at_micros: i64,
    pub(crate) connection: u64,
    /// The user's name as the client gave it.
    pub(crate) user: &'a str,
    /// `user@host` of the account.
    pub(crate) account: &'a str,
    /// The client's host.
    pub(crate) host: &'a str,
    pub(crate) command: &'a str,
    pub(crate) argument: &'a [u8],
}

impl GeneralEntry<'_> {
    /// Appends the line of the log's file.
    pub(crate) fn push_line(&self, line: &mut Vec<u8>) {
        push_timestamp(line, self.at_micros);
        line.push(b'\t');
        push_padded(line, self.connection);
        line.push(b' ');
        line.extend_from_slice(self.command.as_bytes());
        line.push(b'\t');
        line.extend_from_slice(self.argument);
        line.push(b'\n');
    }

    pub(crate) fn json_line(&self) -> Vec<u8> {
        let object = json!({
            "time": timestamp(self.at_micros),
            "connection_id": self.connection,
            "user_host": user_host(self.user, self.account, self.host),
            "command": self.command,
            "argument": String::from_utf8_lossy(self.argument),
        });
        format!("{object}\n").into_bytes()
    }

    pub(crate) fn row(&self) -> Vec<Value> {
        vec![
            Value::DateTime(utc(self.at_micros)),
            Value::text(&user_host(self.user, self.account, self.host)),
            Value::UInt(self.connection),
            Value::UInt(0),
            Value::text(self.command),
            Value::Bytes(self.argument.into()),
        ]
    }
}

/// The first lines of a log file in the reference's format.
pub(crate) fn header() -> String {
    format!(
        "squalld, Version: {}. started with:\nTime                 Id Command    Argument\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// `user[user] @ host []`.
pub(crate) fn user_host(user: &str, account: &str, host: &str) -> String {
    let account_user = account.rsplit_once('@').map_or(account, |(user, _)| user);
    format!("{account_user}[{user}] @ {host} []")
}

/// An entry of the slow log.
pub(crate) struct SlowEntry<'a> {
    pub(crate) event: &'a StatementEvent<'a>,
    pub(crate) end: &'a StatementEnd<'a>,
    /// The text has the fields of `log_slow_extra`.
    pub(crate) has_extra: bool,
    /// Further lines of the text.
    pub(crate) verbosity: Verbosity,
}

impl SlowEntry<'_> {
    /// When the statement ended, microseconds since 1970 UTC.
    pub(crate) fn ended_micros(&self) -> i64 {
        let elapsed = i64::try_from(self.end.elapsed_micros).unwrap_or(i64::MAX);
        self.event.started_micros.saturating_add(elapsed)
    }

    /// The entry of the log's file.
    pub(crate) fn text(&self) -> Vec<u8> {
        let SlowEntry { event, end, .. } = *self;
        let session = &event.session;
        let mut text = format!("# Time: {}\n# User@Host: ", timestamp(self.ended_micros()));
        text.push_str(&user_host(session.user, session.account, session.host));
        let _ = write!(
            text,
            "  Id: {:5}\n# Query_time: {:.6}  Lock_time: {:.6} Rows_sent: {}  Rows_examined: {}",
            session.connection_id,
            end.elapsed_micros as f64 / 1e6,
            end.lock_micros as f64 / 1e6,
            end.rows_sent,
            end.counts.rows_examined
        );
        if self.has_extra {
            self.write_extra(&mut text);
        }
        if let Some(parent) = self.trace_parent() {
            let _ = write!(text, " Traceparent: {parent}");
        }
        text.push('\n');
        if self.verbosity.plan {
            let _ = writeln!(
                text,
                "# Schema: {}  Last_errno: {}\n# Rows_affected: {}",
                session.schema.unwrap_or_default(),
                self.error_code(),
                end.rows_affected
            );
            text.push_str(&plan_lines(&end.counts));
        }
        if let (true, Some(cost)) = (self.verbosity.engine, end.cost) {
            text.push_str(&cost_lines(cost));
        }
        if let Some(schema) = session.schema {
            let _ = writeln!(text, "use {schema};");
        }
        let _ = writeln!(text, "SET timestamp={};", event.started_micros.div_euclid(1_000_000));
        let mut entry = text.into_bytes();
        match event.command {
            "Query" | "Execute" => entry.extend_from_slice(event.text),
            other => {
                entry.extend_from_slice(format!("# administrator command: {other}").as_bytes());
            }
        }
        entry.extend_from_slice(b";\n");
        entry
    }

    /// The client's place in a trace, when it is one word: a client cannot write lines of its own.
    fn trace_parent(&self) -> Option<String> {
        let is_word = |text: &String| {
            (1..=TRACE_PARENT_BYTES_MAX).contains(&text.len())
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        self.event.trace_parent().filter(is_word)
    }

    fn error_code(&self) -> u16 {
        self.end.error.map_or(0, |error| error.code().0)
    }

    fn write_extra(&self, text: &mut String) {
        let _ = write!(
            text,
            " Thread_id: {} Errno: {} Rows_affected: {} Start: {} End: {}",
            self.event.session.connection_id,
            self.error_code(),
            self.end.rows_affected,
            timestamp(self.event.started_micros),
            timestamp(self.ended_micros())
        );
    }

    /// The same as an object.
    pub(crate) fn json_line(&self) -> Vec<u8> {
        let SlowEntry { event, end, .. } = *self;
        let session = &event.session;
        let mut object = json!({
            "time": timestamp(self.ended_micros()),
            "started": timestamp(event.started_micros),
            "connection_id": session.connection_id,
            "user": session.user,
            "account": session.account,
            "host": session.host,
            "schema": session.schema,
            "command": event.command,
            "query": String::from_utf8_lossy(event.text),
            "query_time_us": end.elapsed_micros,
            "lock_time_us": end.lock_micros,
            "rows_sent": end.rows_sent,
            "rows_examined": end.counts.rows_examined,
            "rows_affected": end.rows_affected,
            "error_code": self.error_code(),
            "warnings": end.warnings,
            "traceparent": self.trace_parent(),
        });
        if self.verbosity.plan {
            object["plan"] = plan_object(&end.counts);
        }
        if let (true, Some(cost)) = (self.verbosity.engine, end.cost) {
            object["cost"] = cost_object(cost);
        }
        format!("{object}\n").into_bytes()
    }

    /// A row of `mysql.slow_log`.
    pub(crate) fn row(&self) -> Vec<Value> {
        let SlowEntry { event, end, .. } = *self;
        let session = &event.session;
        let int = |number: u64| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
        let elapsed = i64::try_from(end.elapsed_micros).unwrap_or(i64::MAX);
        vec![
            Value::DateTime(utc(event.started_micros)),
            Value::text(&user_host(session.user, session.account, session.host)),
            Value::Time(Time::from_micros_clamped(elapsed)),
            Value::Time(Time::from_micros_clamped(
                i64::try_from(end.lock_micros).unwrap_or(i64::MAX),
            )),
            int(end.rows_sent),
            int(end.counts.rows_examined),
            Value::text(session.schema.unwrap_or_default()),
            int(end.last_insert_id),
            Value::Int(0),
            Value::UInt(0),
            Value::Bytes(event.text.into()),
            Value::UInt(session.connection_id),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_general_entry_is_a_line_as_in_the_reference() {
        let entry = GeneralEntry {
            at_micros: 1_000_000,
            connection: 8,
            user: "u",
            account: "u@%",
            host: "localhost",
            command: "Query",
            argument: b"SELECT 1",
        };
        let expected = b"1970-01-01T00:00:01.000000Z\t    8 Query\tSELECT 1\n";
        let mut line = Vec::new();
        entry.push_line(&mut line);
        assert_eq!(line, expected);
    }
}
