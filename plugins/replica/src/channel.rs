//! A channel: its settings, its state, and the thread that reads the events of its source.
//!
//! There is no relay log: what was read waits in memory for the workers (`crew`), and what was not applied is read again.

use std::sync::Arc;
use std::time::Duration;

use binlog::{Event, EventKind, Gtid, GtidSet, Header, decode};
use engine_api::CancelToken;
use errors::{Error, ErrorCode, Result};
use plugin_api::SessionFactory;
use sys::sync::Mutex;
use sys::sync::atomic::{AtomicBool, Ordering};
use sys::threads::Thread;

use crate::apply::{Applier, Home};
use crate::by_hash::HashedRows;
use crate::coordinator::{Coordinator, Limits, Next};
use crate::crew::{Crew, Workers};
use crate::local::{Local, Pending};
use crate::settings::Settings;
use crate::source::{Itself, Loss, Received, Source};
use crate::status::{Connection, LastError, Status, now_micros};
use crate::store::{self, Position};

/// How often a wait looks whether the channel stops.
const STEP: Duration = Duration::from_millis(100);
/// How long other sessions do not see a transaction when the next ones come without a pause.
pub(crate) const PENDING_MAX: Duration = Duration::from_millis(20);
/// How often a transaction is tried again that lost against another.
pub(crate) const RETRIES_MAX: u64 = 10;

/// Asks a channel to stop.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    asked: AtomicBool,
    /// Of the sessions that apply.
    tokens: Mutex<Vec<CancelToken>>,
}

impl Stop {
    pub(crate) fn is_asked(&self) -> bool {
        // Pairs with the store in `ask`.
        self.asked.load(Ordering::Acquire)
    }

    fn ask(&self) {
        // Pairs with the load in `is_asked`.
        self.asked.store(true, Ordering::Release);
        self.interrupt();
    }

    /// Ends the statements that run.
    pub(crate) fn interrupt(&self) {
        self.tokens.lock().iter().for_each(CancelToken::kill_query);
    }

    /// For a session whose statements end when the channel stops.
    pub(crate) fn token(&self) -> CancelToken {
        let token = CancelToken::new();
        self.tokens.lock().push(token.clone());
        token
    }
}

/// Where START REPLICA .. UNTIL ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Until {
    /// Nowhere.
    #[default]
    None,
    /// Before the first of these transactions.
    BeforeGtids(GtidSet),
    /// When all of these are applied.
    AfterGtids(GtidSet),
    /// At or after a position of the source.
    Source(String, u64),
    /// When nothing is missing before what is applied: at once, as transactions commit in order.
    AfterGaps,
}

impl Until {
    /// As SHOW REPLICA STATUS names it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Until::None => "None",
            Until::BeforeGtids(_) => "SQL_BEFORE_GTIDS",
            Until::AfterGtids(_) => "SQL_AFTER_GTIDS",
            Until::Source(..) => "Source",
            Until::AfterGaps => "SQL_AFTER_MTS_GAPS",
        }
    }
}

/// A user and a password for one run of a channel.
#[derive(Clone, Default)]
pub(crate) struct Login {
    pub(crate) user: Option<Box<str>>,
    pub(crate) password: Option<Box<str>>,
}

impl Login {
    fn apply(&self, settings: &mut Settings) {
        if let Some(user) = &self.user {
            settings.user = user.to_string();
        }
        if let Some(password) = &self.password {
            settings.password = password.to_string();
        }
    }
}

/// The thread of a channel that runs.
struct Running {
    stop: Arc<Stop>,
    thread: Thread,
}

/// A channel.
pub(crate) struct Channel {
    pub(crate) name: String,
    pub(crate) settings: Mutex<Settings>,
    pub(crate) position: Mutex<Position>,
    pub(crate) until: Mutex<Until>,
    /// What its last START REPLICA said in place of the settings' user and password. It is not stored.
    pub(crate) login: Mutex<Login>,
    /// What it committed and others do not see yet.
    pub(crate) pending: Arc<Pending>,
    pub(crate) rows: Arc<HashedRows>,
    status: Mutex<Status>,
    running: Mutex<Option<Running>>,
    stop: Mutex<Arc<Stop>>,
}

impl Channel {
    pub(crate) fn new(
        name: String,
        settings: Settings,
        position: Position,
        rows: &Arc<HashedRows>,
    ) -> Channel {
        let channel = Channel {
            name,
            settings: Mutex::new(settings),
            position: Mutex::new(Position::default()),
            until: Mutex::default(),
            login: Mutex::default(),
            pending: Arc::default(),
            rows: rows.clone(),
            status: Mutex::default(),
            running: Mutex::default(),
            stop: Mutex::default(),
        };
        channel.place(position);
        channel
    }

    /// Sets how far it is.
    pub(crate) fn place(&self, position: Position) {
        self.update(|status| {
            status.applied_file.clone_from(&position.file);
            status.applied_offset = position.offset;
            status.read_file.clone_from(&position.file);
            status.read_offset = position.offset;
            status.executed = GtidSet::parse(&position.gtids).unwrap_or_default();
            status.gtid_slave_pos.clone_from(&position.gtid_slave_pos);
        });
        *self.position.lock() = position;
    }

    /// How far it is, for the table of channels: where the thread that ended left it.
    pub(crate) fn stored_position(&self) -> Position {
        let (mut position, status) = (self.position.lock().clone(), self.status());
        (position.file, position.offset) = (status.applied_file, status.applied_offset);
        position.gtids = status.executed.to_string();
        position.gtid_slave_pos = status.gtid_slave_pos;
        position
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.status.lock());
    }

    pub(crate) fn status(&self) -> Status {
        self.status.lock().clone()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.status.lock().is_applying
    }

    /// Starts its thread, which passes over transactions of `skip` events first; nothing when it runs.
    ///
    /// # Errors
    /// 1202.
    pub(crate) fn start(
        self: &Arc<Channel>,
        sessions: &Arc<dyn SessionFactory>,
        until: Until,
        skip: u64,
    ) -> Result<()> {
        let mut running = self.running.lock();
        if self.is_running() {
            return Ok(());
        }
        if skip > 0 {
            self.update(|status| status.skip = skip);
        }
        // A thread that ended by itself.
        if let Some(ended) = running.take() {
            ended.thread.join();
        }
        *self.until.lock() = until;
        let stop = Arc::new(Stop::default());
        *self.stop.lock() = stop.clone();
        self.update(|status| {
            status.is_applying = true;
            status.connection = Connection::Connecting;
            (status.connection_error, status.apply_error) = Default::default();
        });
        let follower =
            Follower { channel: self.clone(), sessions: sessions.clone(), stop: stop.clone() };
        let spawned = sys::threads::spawn("replica", move || follower.run());
        let thread = spawned.map_err(|_| {
            self.update(|status| {
                status.is_applying = false;
                status.connection = Connection::No;
            });
            errors::err!(REPLICA_THREAD)
        })?;
        *running = Some(Running { stop, thread });
        Ok(())
    }

    /// Stops its thread and waits for its end. A transaction that is not complete is rolled back.
    pub(crate) fn stop(&self) {
        let Some(running) = self.running.lock().take() else { return };
        running.stop.ask();
        running.thread.join();
    }

    fn is_asked_to_stop(&self) -> bool {
        self.stop.lock().is_asked()
    }

    /// Error when the channel is asked to stop: the transaction is rolled back.
    pub(crate) fn check_stop_within_transaction(&self) -> Result<()> {
        if self.is_asked_to_stop() {
            Err(Error::new(ErrorCode::QUERY_INTERRUPTED, ""))
        } else {
            Ok(())
        }
    }

    /// Waits until a transaction is as old as the channel's delay says.
    pub(crate) fn delay(&self, committed_micros: i64) -> Result<()> {
        let delay = self.settings.lock().delay;
        if delay == 0 {
            return Ok(());
        }
        let ahead = self.status.lock().clock_ahead_micros;
        let until = committed_micros - ahead + delay as i64 * 1_000_000;
        self.update(|status| status.waits_until_micros = Some(until));
        let mut outcome = Ok(());
        while now_micros() < until && outcome.is_ok() {
            sys::threads::sleep(STEP);
            outcome = self.check_stop_within_transaction();
        }
        self.update(|status| status.waits_until_micros = None);
        outcome
    }

    /// Counts an event of a transaction that is to be passed over by `sql_replica_skip_counter`; false when none is. The last one of the
    /// count stands for the rest of its transaction.
    pub(crate) fn count_skipped(&self, is_end: bool) -> bool {
        let mut status = self.status.lock();
        let is_skipped = status.skip > 0;
        status.skip -= u64::from(status.skip > 1 || is_skipped && is_end);
        is_skipped
    }

    /// Whether UNTIL ends before this transaction.
    pub(crate) fn stops_before(&self, gtid: &Gtid) -> bool {
        match &*self.until.lock() {
            Until::BeforeGtids(set) => set.contains(gtid.uuid, &gtid.tag, gtid.number),
            Until::None | Until::AfterGtids(_) | Until::Source(..) | Until::AfterGaps => false,
        }
    }

    /// Whether UNTIL ends here.
    pub(crate) fn is_until_reached(&self, position: &Position, executed: &GtidSet) -> bool {
        match &*self.until.lock() {
            Until::None | Until::BeforeGtids(_) => false,
            Until::AfterGtids(set) => set.is_subset(executed),
            Until::AfterGaps => true,
            Until::Source(file, offset) => {
                (&position.file, position.offset) >= (file, *offset) && position.file == *file
                    || position.file > *file
            }
        }
    }
}

/// Why reading and applying ended.
enum End {
    /// It was asked to, or UNTIL is reached.
    Stopped,
    /// The connection is lost.
    Lost(Error),
    /// The source cannot be followed.
    Refused(Error),
    /// A transaction lost against another: it may be tried again.
    Again(Error),
    /// A transaction failed.
    Failed(Error),
}

/// What runs in the thread.
struct Follower {
    channel: Arc<Channel>,
    sessions: Arc<dyn SessionFactory>,
    stop: Arc<Stop>,
}

impl Follower {
    fn run(&self) {
        let (mut attempts, mut retries) = (0, 0);
        loop {
            let before = self.channel.status().ended;
            let end = self.follow();
            let has_moved = self.channel.status().ended != before;
            if has_moved {
                (attempts, retries) = (0, 0);
            }
            match end {
                End::Stopped => break,
                End::Lost(error) => {
                    self.note_connection_error(&error);
                    attempts += 1;
                    let (wait, most) = {
                        let settings = self.channel.settings.lock();
                        (settings.connect_retry, settings.retry_count)
                    };
                    if most > 0 && attempts > most || !self.wait(Duration::from_secs(wait)) {
                        break;
                    }
                }
                End::Refused(error) => {
                    self.note_connection_error(&error);
                    break;
                }
                End::Again(error) if retries < RETRIES_MAX => {
                    retries += 1;
                    self.channel.update(|status| status.retries += 1);
                    tracing::warn!(channel = self.channel.name, %error, "a transaction is tried again");
                    if !self.wait(Duration::from_millis(100 * retries)) {
                        break;
                    }
                }
                End::Again(error) | End::Failed(error) => {
                    tracing::error!(channel = self.channel.name, %error, "the replica stops");
                    self.channel.update(|status| status.apply_error = LastError::of(&error));
                    break;
                }
            }
        }
        self.channel.update(|status| {
            status.is_applying = false;
            status.connection = Connection::No;
            status.applying_since = None;
        });
    }

    fn note_connection_error(&self, error: &Error) {
        tracing::warn!(channel = self.channel.name, %error, "no connection to the source");
        self.channel.update(|status| {
            status.connection = Connection::Connecting;
            status.connection_error = LastError::of(error);
        });
    }

    /// Waits; false when the channel stops.
    fn wait(&self, time: Duration) -> bool {
        let until = sys::clock::monotonic() + time;
        while sys::clock::monotonic() < until && !self.stop.is_asked() {
            sys::threads::sleep(STEP);
        }
        !self.stop.is_asked()
    }

    /// Connects and applies what comes, from where the table of channels says that this server is.
    fn follow(&self) -> End {
        self.stop.tokens.lock().clear();
        let mut settings = self.channel.settings.lock().clone();
        self.channel.login.lock().apply(&mut settings);
        let limits = Limits {
            workers: self.sessions.global_integer("replica_parallel_workers") as usize,
            bytes_max: self.sessions.global_integer("replica_pending_jobs_size_max"),
            own_server_id: self.sessions.global_integer("server_id") as u32,
        };
        self.channel.update(|status| {
            status.applying_since = None;
            status.workers.resize_with(limits.workers + 1, Default::default);
            status.workers.iter_mut().for_each(|worker| worker.error = LastError::default());
        });
        let (crew, alone) = match self.open(&settings) {
            Ok(opened) => opened,
            Err(error) => return self.failed(error),
        };
        let workers = match Workers::start(&crew, &self.sessions, &settings, limits.workers) {
            Ok(workers) => workers,
            Err(error) => return self.failed(error),
        };
        let end = self.read(&crew, alone, limits, &settings);
        self.channel.update(|status| status.is_semi_sync = false);
        // What came whole is applied, unless the channel is asked to stop.
        drop(workers);
        match crew.failure() {
            Some(error) if !self.stop.is_asked() => match self.failed(error) {
                End::Again(error) => End::Failed(error),
                end => end,
            },
            _ => end,
        }
    }

    fn open(&self, settings: &Settings) -> Result<(Arc<Crew>, Applier)> {
        let pending = self.channel.pending.clone();
        let mut local = Local::open(&*self.sessions, self.stop.token(), pending)?;
        let stored = store::load(&mut local)?;
        let known = stored.into_iter().find(|known| known.channel == self.channel.name);
        let position = known.map(|known| known.position).unwrap_or_default();
        // What the server has from elsewhere, a copy of the source or another channel, does not come again.
        let mut executed = GtidSet::parse(&position.gtids).unwrap_or_default();
        let own = self.sessions.global_text("gtid_executed");
        executed.add_all(&GtidSet::parse(&own).unwrap_or_default());
        let (channel, stop) = (self.channel.clone(), self.stop.clone());
        let crew = Arc::new(Crew::new(channel, stop, position, executed));
        let home = Home { sessions: self.sessions.clone(), cancel: self.stop.token() };
        let alone = Applier::open(&crew, home, settings, 0)?;
        Ok((crew, alone))
    }

    /// Reads what comes, until there is no more.
    fn read(&self, crew: &Arc<Crew>, alone: Applier, limits: Limits, settings: &Settings) -> End {
        let itself = Itself {
            server_id: limits.own_server_id,
            uuid: self.sessions.global_text("server_uuid"),
            host: self.sessions.global_text("report_host"),
            user: self.sessions.global_text("report_user"),
            port: reported_port(&*self.sessions),
            is_semi_sync: self.sessions.global_integer("rpl_semi_sync_replica_enabled") != 0,
        };
        let mut source = match Source::open(settings, &itself, crew) {
            Ok(source) => source,
            Err(loss) => return ended(loss),
        };
        self.channel.update(|status| {
            status.connection = Connection::Yes;
            status.connection_error = LastError::default();
            status.source_uuid.clone_from(&source.about.uuid);
            status.source_server_id = source.about.server_id;
            status.is_of_squall = source.about.is_squall;
            status.clock_ahead_micros = source.about.clock_ahead_micros;
            status.is_semi_sync = source.is_semi_sync();
        });
        tracing::info!(channel = self.channel.name, source = ?settings, "connected to the source");
        let mut coordinator = Coordinator::new(crew, alone, limits, settings);
        let mut asks = false;
        loop {
            let received = match source.next() {
                Ok(event) => event,
                Err(loss) => return ended(loss),
            };
            let Received { header, body, asks: asks_now } = received;
            asks |= asks_now;
            if let EventKind::HEARTBEAT | EventKind::HEARTBEAT_V2 = header.kind {
                self.channel.update(|status| {
                    status.heartbeats += 1;
                    status.last_heartbeat_micros = now_micros();
                });
                continue;
            }
            self.note_read(&header, &body);
            match coordinator.take(&header, body) {
                Ok(Next::Event) => {}
                // What was given out goes on to its end.
                Ok(Next::Stop) => return End::Stopped,
                Err(error) => return self.failed(error),
            }
            if asks && let Some((file, offset)) = coordinator.place() {
                asks = false;
                if let Err(loss) = self.acknowledge(crew, &mut source, file, offset) {
                    return ended(loss);
                }
            }
            self.channel.pending.settle_after(PENDING_MAX);
            if self.stop.is_asked() {
                return End::Stopped;
            }
        }
    }

    /// Acknowledges what came up to a position: there is no relay log that keeps it, so it is applied, durably, first.
    fn acknowledge(
        &self,
        crew: &Crew,
        source: &mut Source,
        file: &str,
        offset: u64,
    ) -> Result<(), Loss> {
        // A worker that failed says why itself.
        crew.drain().map_err(|_| Loss::Stopped)?;
        if !self.channel.pending.settle() {
            return Err(Loss::Fatal(Error::internal("the log cannot be written")));
        }
        source.acknowledge(file, offset)
    }

    fn note_read(&self, header: &Header, body: &[u8]) {
        self.channel.update(|status| {
            if header.kind == EventKind::ROTATE
                && let Ok(Event::Rotate(rotate)) = decode(header.kind, body)
            {
                status.read_file = String::from_utf8_lossy(rotate.name).into_owned();
                status.read_offset = rotate.position;
            } else if header.position > 0 {
                status.read_offset = u64::from(header.position);
            }
        });
    }

    fn failed(&self, error: Error) -> End {
        if self.stop.is_asked() {
            return End::Stopped;
        }
        match error.code() {
            // The server starts.
            ErrorCode::SERVER_ISNT_AVAILABLE => End::Lost(error),
            ErrorCode::LOCK_DEADLOCK | ErrorCode::LOCK_WAIT_TIMEOUT => End::Again(error),
            _ => End::Failed(error),
        }
    }
}

/// The port that sources show of this server.
fn reported_port(sessions: &dyn SessionFactory) -> u16 {
    match sessions.global_integer("report_port") {
        0 => sessions.global_integer("port") as u16,
        port => port as u16,
    }
}

fn ended(loss: Loss) -> End {
    match loss {
        Loss::Stopped => End::Stopped,
        Loss::Connection(error) => End::Lost(error),
        Loss::Fatal(error) => End::Refused(error),
    }
}
