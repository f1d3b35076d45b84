//! What a channel tells of itself.

use std::time::Duration;

use binlog::mariadb::MariadbPosition;
use errors::Error;
use types::GtidSet;

/// How the connection to the source is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Connection {
    /// The channel does not run.
    #[default]
    No,
    /// It tries to connect.
    Connecting,
    /// It is connected.
    Yes,
}

impl Connection {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Connection::No => "No",
            Connection::Connecting => "Connecting",
            Connection::Yes => "Yes",
        }
    }
}

/// An error and when it was.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastError {
    pub(crate) number: u16,
    pub(crate) message: String,
    /// Microseconds since 1970.
    pub(crate) at_micros: i64,
}

impl LastError {
    pub(crate) fn of(error: &Error) -> LastError {
        let (number, message) = (error.code().0, error.message().to_owned());
        LastError { number, message, at_micros: now_micros() }
    }
}

/// A transaction that is applied, or was.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Its identifier, or `ANONYMOUS`; empty for none.
    pub(crate) name: String,
    /// Microseconds since 1970 of its commit where it began, and on the source.
    pub(crate) original_micros: i64,
    pub(crate) immediate_micros: i64,
    /// When its apply started and ended here.
    pub(crate) started_micros: i64,
    pub(crate) ended_micros: i64,
    /// How often it was rolled back and applied again, and why the last time.
    pub(crate) retries: u64,
    pub(crate) transient: LastError,
}

/// What one of the threads that apply does.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkerStatus {
    pub(crate) is_running: bool,
    /// The number of its session; 0 for none.
    pub(crate) session: u64,
    pub(crate) current: Seen,
    pub(crate) last: Seen,
    pub(crate) error: LastError,
}

impl WorkerStatus {
    /// It begins a transaction, perhaps anew.
    pub(crate) fn begin(&mut self, seen: Seen) {
        let (retries, transient) =
            (self.current.retries, std::mem::take(&mut self.current.transient));
        self.current = Seen { retries, transient, ..seen };
    }

    /// Its transaction has ended.
    pub(crate) fn note_applied(&mut self) {
        self.last = std::mem::take(&mut self.current);
        self.last.ended_micros = now_micros();
    }
}

/// The state of a channel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Status {
    pub(crate) connection: Connection,
    pub(crate) is_applying: bool,
    /// It acknowledges what the source asks about.
    pub(crate) is_semi_sync: bool,
    pub(crate) source_uuid: String,
    pub(crate) source_server_id: u32,
    /// The source is a Squall.
    pub(crate) is_of_squall: bool,
    /// How far events were read.
    pub(crate) read_file: String,
    pub(crate) read_offset: u64,
    /// How far they were applied.
    pub(crate) applied_file: String,
    pub(crate) applied_offset: u64,
    pub(crate) retrieved: GtidSet,
    pub(crate) executed: GtidSet,
    /// The last transactions of MariaDB.
    pub(crate) gtid_slave_pos: MariadbPosition,
    pub(crate) connection_error: LastError,
    pub(crate) apply_error: LastError,
    pub(crate) heartbeats: u64,
    pub(crate) last_heartbeat_micros: i64,
    /// Seconds since 1970 by the source's clock of the event that is applied; `None` when all that came is applied.
    pub(crate) applying_since: Option<u32>,
    /// Microseconds that the source's clock is ahead.
    pub(crate) clock_ahead_micros: i64,
    /// Until when a transaction waits.
    pub(crate) waits_until_micros: Option<i64>,
    /// The transaction that is read, and the last that was.
    pub(crate) reading: Seen,
    pub(crate) read: Seen,
    /// The thread of the channel, then the workers.
    pub(crate) workers: Vec<WorkerStatus>,
    pub(crate) retries: u64,
    /// Events that `sql_replica_skip_counter` still passes over.
    pub(crate) skip: u64,
    /// Transactions that were applied or passed over since the server started.
    pub(crate) ended: u64,
    /// Events that filters left out.
    pub(crate) filtered: u64,
}

impl Status {
    /// Seconds that what is applied is behind the source; `None` when the channel does not run or does not know.
    pub(crate) fn seconds_behind(&self) -> Option<u64> {
        if !self.is_applying || self.connection != Connection::Yes {
            return None;
        }
        let Some(since) = self.applying_since else { return Some(0) };
        let now = now_micros() + self.clock_ahead_micros;
        Some(u64::try_from(now / 1_000_000 - i64::from(since)).unwrap_or(0))
    }
}

/// Microseconds since 1970.
pub(crate) fn now_micros() -> i64 {
    let now: Duration = sys::clock::wall();
    i64::try_from(now.as_micros()).unwrap_or(i64::MAX)
}
