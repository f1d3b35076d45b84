//! What the binary log's threads share: where the log is, orders for the one thread that writes it, readers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use engine_api::{CancelToken, CommitHandle, Engine};
use errors::{Error, Result, bail, err};
use plugin_api::{
    BinaryLog, BinaryLogStatus, DumpRequest, DumpSink, PurgeLimit, Recorder, RegisteredReplica,
    ReplicationSession, SessionFactory,
};
use sys::disk::Disk;
use sys::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use sys::sync::{Condvar, Mutex, MutexGuard};
use types::{Gtid, GtidSet, Uuid};

use crate::dump;
use crate::recorder::SessionRecorder;
use crate::semi_sync::SemiSync;
use crate::sink_states::SinkStates;
use crate::streams::Streams;

/// Settings that recorders read for each statement.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    server_id: AtomicU32,
    last_number: AtomicU64,
}

impl Settings {
    pub fn server_id(&self) -> u32 {
        self.server_id.load(Ordering::Relaxed)
    }

    /// A number for a transaction that nothing else in this run or an earlier one has.
    pub fn next_number(&self) -> u64 {
        let now = sys::clock::wall().as_nanos() as u64;
        let last = self
            .last_number
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(now.max(last + 1)));
        last.map_or(now, |last| now.max(last + 1))
    }

    pub fn set_server_id(&self, id: u32) {
        self.server_id.store(id, Ordering::Relaxed);
    }
}

/// A file of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogFile {
    pub number: u64,
    /// Bytes that readers may see.
    pub size: u64,
    /// Microseconds since 1970 UTC of its last event.
    pub last_micros: i64,
    /// The transactions of all earlier files.
    pub before: Arc<GtidSet>,
}

/// Work for the thread that writes the log.
#[derive(Clone, Debug)]
pub(crate) enum Order {
    Rotate,
    Purge(PurgeLimit),
    Reset(u64),
    AddPurged(GtidSet),
}

/// Where the log is.
#[derive(Default)]
pub(crate) struct State {
    pub files: Vec<LogFile>,
    pub executed: GtidSet,
    pub purged: GtidSet,
    /// Every commit with a smaller position is in the log.
    pub passed: u64,
    pub orders: VecDeque<(u64, Order)>,
    pub orders_given: u64,
    pub answers: Vec<(u64, Result<()>)>,
    /// The thread runs.
    pub is_running: bool,
    /// Why the log is not written at present.
    pub failure: Option<String>,
    pub replicas: Vec<RegisteredReplica>,
    /// The identifiers of transactions that were given a number, the newest last.
    pub numbered: VecDeque<(u64, Gtid)>,
    /// While a backup is made: positions and identifiers of what has come to the log since it began.
    pub since_backup: Option<Vec<(u64, Gtid)>>,
    /// Connections that read the log, and the file that each is at.
    pub readers: Vec<(u64, u64)>,
}

impl State {
    pub fn last(&self) -> Option<&LogFile> {
        self.files.last()
    }

    /// Whether the connection has announced itself as a replica, and no other one as the same since.
    pub fn is_registered(&self, connection: u64) -> bool {
        self.replicas.iter().any(|known| known.connection_id == connection)
    }

    pub fn file(&self, number: u64) -> Option<&LogFile> {
        self.files.iter().find(|file| file.number == number)
    }
}

/// What is known when the log is opened.
pub(crate) struct Home {
    pub disk: Arc<dyn Disk>,
    pub uuid: Uuid,
    pub server_version: String,
    pub sessions: Arc<dyn SessionFactory>,
}

/// The binary log.
pub(crate) struct Core {
    pub engine: Arc<dyn Engine>,
    pub settings: Arc<Settings>,
    pub state: Mutex<State>,
    /// Something in `state` has changed.
    pub changed: Condvar,
    pub home: Mutex<Option<Arc<Home>>>,
    pub waker: Mutex<Option<Box<dyn Fn() + Send + Sync>>>,
    pub semi_sync: SemiSync,
    pub streams: Mutex<Streams>,
    /// A statement has changed `streams`.
    pub streams_changed: Condvar,
    pub sink_states: SinkStates,
    pub is_stopping: AtomicBool,
}

/// Base name of the files.
pub(crate) const BASE: &str = "binlog";

/// The name of a file.
pub(crate) fn file_name(number: u64) -> String {
    format!("{BASE}.{number:06}")
}

/// The number of the file of a name, which may have a directory before it.
pub(crate) fn file_number(name: &str) -> Option<u64> {
    let name = name.rsplit('/').next().unwrap_or(name);
    let digits = name.strip_prefix(BASE)?.strip_prefix('.')?;
    let is_number = digits.len() >= 6 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}

impl Core {
    pub fn new(engine: Arc<dyn Engine>) -> Core {
        Core {
            engine,
            settings: Arc::default(),
            state: Mutex::default(),
            changed: Condvar::new(),
            home: Mutex::new(None),
            waker: Mutex::new(None),
            semi_sync: SemiSync::default(),
            streams: Mutex::default(),
            streams_changed: Condvar::new(),
            sink_states: SinkStates::default(),
            is_stopping: AtomicBool::new(false),
        }
    }

    /// Whether the log is on.
    pub fn is_on(&self) -> bool {
        self.engine.keeps_attachments()
    }

    /// # Errors
    /// 1381 when the log is off, or not yet open.
    pub fn home(&self) -> Result<Arc<Home>> {
        self.home.lock().clone().ok_or_else(|| err!(NO_BINARY_LOGGING))
    }

    /// Wakes the thread that writes.
    fn wake(&self) {
        if let Some(wake) = &*self.waker.lock() {
            wake();
        }
    }

    /// Waits for a change of the state.
    pub fn wait<'s>(&self, state: MutexGuard<'s, State>, limit: Duration) -> MutexGuard<'s, State> {
        self.changed.wait_for(state, limit)
    }

    /// Waits until the log has everything that has committed.
    ///
    /// # Errors
    /// The log cannot be written; the server stops.
    pub fn catch_up(&self) -> Result<()> {
        let position =
            self.engine.durable_position().map_err(|e| e.into_error(&CancelToken::new()))?;
        self.wake();
        let mut state = self.state.lock();
        while state.passed < position {
            if let Some(failure) = &state.failure {
                bail!(BINLOG_LOGGING_IMPOSSIBLE, failure);
            }
            if !state.is_running {
                return Err(err!(NO_BINARY_LOGGING));
            }
            state = self.wait(state, Duration::from_millis(100));
        }
        Ok(())
    }

    /// Where the log ends: number of the file and offset.
    pub fn end(&self) -> (u64, u64) {
        let state = self.state.lock();
        state.last().map_or((0, 0), |last| (last.number, last.size))
    }

    /// Has the thread that writes do something.
    fn order(&self, order: Order) -> Result<()> {
        sys::blocking::blocking(|| {
            self.catch_up()?;
            let mut state = self.state.lock();
            state.orders_given += 1;
            let number = state.orders_given;
            state.orders.push_back((number, order));
            drop(state);
            self.wake();
            let mut state = self.state.lock();
            loop {
                if let Some(at) = state.answers.iter().position(|(answered, _)| *answered == number)
                {
                    return state.answers.swap_remove(at).1;
                }
                if !state.is_running {
                    return Err(err!(NO_BINARY_LOGGING));
                }
                state = self.wait(state, Duration::from_millis(100));
            }
        })
    }
}

impl BinaryLog for Core {
    fn is_active(&self) -> bool {
        self.is_on()
    }

    fn recorder(&self) -> Box<dyn Recorder> {
        Box::new(SessionRecorder::new(self.settings.clone()))
    }

    fn status(&self) -> Result<BinaryLogStatus> {
        // While the log cannot be written, it is where it was.
        if let Err(error) = sys::blocking::blocking(|| self.catch_up())
            && self.state.lock().failure.is_none()
        {
            return Err(error);
        }
        let state = self.state.lock();
        let last = state.last().cloned().unwrap_or_default();
        Ok(BinaryLogStatus {
            file: file_name(last.number),
            position: last.size,
            executed: state.executed.to_string(),
            purged: state.purged.to_string(),
        })
    }

    fn rotate(&self) -> Result<()> {
        self.order(Order::Rotate)
    }

    fn purge(&self, limit: &PurgeLimit) -> Result<()> {
        self.order(Order::Purge(limit.clone()))
    }

    fn reset(&self, first: u64) -> Result<()> {
        self.order(Order::Reset(first))
    }

    fn tracked(&self, numbers: &[u64]) -> Result<String> {
        sys::blocking::blocking(|| self.catch_up())?;
        let mut set = GtidSet::default();
        let mut state = self.state.lock();
        for (_, gtid) in state.numbered.iter().filter(|(number, _)| numbers.contains(number)) {
            set.add(gtid.uuid, &gtid.tag, gtid.number);
        }
        state.numbered.retain(|(number, _)| !numbers.contains(number));
        Ok(set.to_string())
    }

    fn wait_for_replicas(&self, commit: Option<&CommitHandle>) -> Result<()> {
        self.semi_sync.wait(self, commit)
    }

    fn begin_backup(&self) {
        if self.is_on() {
            self.state.lock().since_backup = Some(Vec::new());
        }
    }

    fn end_backup(&self, end_position: u64) -> Result<Option<String>> {
        if !self.is_on() {
            return Ok(None);
        }
        let caught_up = sys::blocking::blocking(|| self.catch_up());
        let mut state = self.state.lock();
        let Some(since) = state.since_backup.take() else { return Ok(None) };
        caught_up?;
        let mut later = GtidSet::default();
        for (_, gtid) in since.iter().filter(|(position, _)| *position >= end_position) {
            later.add(gtid.uuid, &gtid.tag, gtid.number);
        }
        Ok(Some(state.executed.subtract(&later).to_string().replace('\n', "")))
    }

    fn check_purged(&self, value: &str) -> Result<()> {
        sys::blocking::blocking(|| self.catch_up())?;
        let state = self.state.lock();
        let added = value.trim_start().strip_prefix('+');
        // What is no set is refused with another error.
        let Some(set) = GtidSet::parse(added.unwrap_or(value)) else { return Ok(()) };
        if added.is_none() && !state.purged.is_subset(&set) {
            bail!(CANT_SET_GTID_PURGED, "the new value must be a superset of the old value");
        }
        let new = if added.is_some() { set } else { set.subtract(&state.purged) };
        if new.subtract(&state.executed) != new {
            let why = "the added gtid set must not overlap with @@GLOBAL.GTID_EXECUTED";
            bail!(CANT_SET_GTID_PURGED, why);
        }
        Ok(())
    }

    fn add_purged(&self, gtids: &str) -> Result<()> {
        let added = gtids.trim_start().strip_prefix('+').unwrap_or(gtids);
        let set =
            GtidSet::parse(added).ok_or_else(|| err!(MALFORMED_GTID_SET_SPECIFICATION, gtids))?;
        self.order(Order::AddPurged(set))
    }

    fn change_stream(&self, sql: &str, session: &mut dyn ReplicationSession) -> Result<()> {
        self.run_stream_statement(sql, session)
    }

    fn register(&self, replica: RegisteredReplica) {
        let mut state = self.state.lock();
        // A replica that comes back ends the connection that it had before, which may not be known to be lost.
        let is_same = |known: &RegisteredReplica| {
            known.connection_id == replica.connection_id
                || (!replica.uuid.is_empty() && known.uuid == replica.uuid)
        };
        state.replicas.retain(|known| !is_same(known));
        state.replicas.push(replica);
        self.changed.notify_all();
    }

    fn unregister(&self, connection_id: u64) {
        let mut state = self.state.lock();
        state.replicas.retain(|known| known.connection_id != connection_id);
    }

    fn dump(
        &self,
        request: &DumpRequest,
        sink: &mut dyn DumpSink,
        cancel: &CancelToken,
    ) -> Result<()> {
        dump::dump(self, request, sink, cancel)
    }
}

/// An error of the log's files.
pub(crate) fn io_error(error: &std::io::Error) -> Error {
    Error::internal(format!("the binary log: {error}"))
}
