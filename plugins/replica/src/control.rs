//! CHANGE REPLICATION SOURCE TO, START REPLICA, STOP REPLICA, RESET REPLICA.

use std::collections::BTreeMap;
use std::sync::Arc;

use binlog::GtidSet;
use engine_api::CancelToken;
use errors::{Error, ErrorCode, Result, err};
use plugin_api::{ReplicationControl, ReplicationSession, SessionFactory};
use syntax::ParseOptions;
use syntax::ast::{Ident, Replication, ReplicationValue, ResetItem, Statement};
use sys::sync::Mutex;
use types::SqlMode;

use crate::SKIP_COUNTER;
use crate::binlog_statement;
use crate::by_hash::HashedRows;
use crate::channel::{Channel, Login, Until};
use crate::clone::Clones;
use crate::filter::Filters;
use crate::local::Local;
use crate::settings::Settings;
use crate::store::{self, Position, Stored};
use crate::switch_over;

/// What the statements need.
const PRIVILEGE: &str = "REPLICATION_SLAVE_ADMIN";
/// Most channels.
const CHANNELS_MAX: usize = 256;

/// `START REPLICA USER = '..' PASSWORD = '..'`.
fn login_of(connection: &[(Ident, Box<str>)]) -> Result<Login> {
    let mut login = Login::default();
    for (option, value) in connection {
        if option.is("USER") {
            login.user = Some(value.clone());
        } else if option.is("PASSWORD") {
            login.password = Some(value.clone());
        } else if !value.is_empty() {
            return Err(Error::not_supported(format!("START REPLICA {}", option.text)));
        }
    }
    Ok(login)
}

/// All channels.
#[derive(Default)]
pub(crate) struct Channels {
    all: Mutex<BTreeMap<String, Arc<Channel>>>,
    sessions: Mutex<Option<Arc<dyn SessionFactory>>>,
    /// Held by the SWITCH OVER that runs.
    pub(crate) switching: Mutex<()>,
    /// Rows without a key that are changed.
    pub(crate) rows: Arc<HashedRows>,
    /// The filters of channels that come.
    pub(crate) filters: Mutex<Filters>,
}

impl Channels {
    /// The channels in order of name.
    pub(crate) fn list(&self) -> Vec<Arc<Channel>> {
        self.all.lock().values().cloned().collect()
    }

    /// The server's sessions, once the plugin runs; `None` takes them away.
    pub(crate) fn set_sessions(&self, sessions: Option<Arc<dyn SessionFactory>>) {
        *self.sessions.lock() = sessions;
    }

    pub(crate) fn sessions(&self) -> Result<Arc<dyn SessionFactory>> {
        self.sessions.lock().clone().ok_or_else(|| err!(REPLICA_NOT_RUNNING))
    }

    pub(crate) fn local(&self) -> Result<Local> {
        Local::open(&*self.sessions()?, CancelToken::new(), Arc::default())
    }

    /// Reads the channels of the table, and starts them.
    pub(crate) fn load(&self, starts: bool) -> Result<()> {
        for stored in store::load(&mut self.local()?)? {
            let Stored { channel: name, settings, position } = stored;
            let channel = Channel::new(name.clone(), settings, position, &self.rows);
            let channel = Arc::new(channel);
            self.all.lock().insert(name, channel.clone());
            if starts {
                channel.start(&self.sessions()?, Until::None, 0)?;
            }
        }
        Ok(())
    }

    /// Stops all channels.
    pub(crate) fn stop_all(&self) {
        self.list().iter().for_each(|channel| channel.stop());
    }

    /// The channel of this name.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<Channel>> {
        self.all.lock().get(&name.to_ascii_lowercase()).cloned()
    }

    /// The channel named, or all.
    fn chosen(&self, name: Option<&str>) -> Result<Vec<Arc<Channel>>> {
        match name {
            None => Ok(self.list()),
            Some(name) => {
                let found = self.find(name);
                found
                    .map(|channel| vec![channel])
                    .ok_or_else(|| err!(REPLICA_CHANNEL_DOES_NOT_EXIST, name))
            }
        }
    }

    fn change(&self, options: &[(Ident, ReplicationValue)], name: &str) -> Result<()> {
        let known = self.find(name);
        if known.as_ref().is_some_and(|channel| channel.is_running()) {
            let text = format!(
                "This operation cannot be performed with a running replica io thread; run STOP REPLICA \
                 IO_THREAD FOR CHANNEL '{name}' first."
            );
            return Err(Error::new(ErrorCode(3021), text));
        }
        let (mut settings, mut position) = match &known {
            Some(channel) => (channel.settings.lock().clone(), channel.stored_position()),
            None => {
                let filters = self.filters.lock().clone();
                let settings = Settings { filters, ..Settings::default() };
                (settings, Position { offset: 4, ..Position::default() })
            }
        };
        settings.change(options, &mut position, name)?;
        let channel = name.to_ascii_lowercase();
        if known.is_none() && self.all.lock().len() >= CHANNELS_MAX {
            let text = "The maximum number of replication channels is reached";
            return Err(Error::new(ErrorCode(3075), text));
        }
        self.set(channel, settings, position).map(drop)
    }

    /// Stores a channel that does not run, and makes it if there is none of this name.
    pub(crate) fn set(
        &self,
        channel: String,
        settings: Settings,
        position: Position,
    ) -> Result<Arc<Channel>> {
        let stored = Stored { channel: channel.clone(), settings, position };
        store::put(&mut self.local()?, &stored)?;
        if let Some(known) = self.find(&channel) {
            *known.settings.lock() = stored.settings;
            known.place(stored.position);
            return Ok(known);
        }
        let made = Channel::new(channel.clone(), stored.settings, stored.position, &self.rows);
        let made = Arc::new(made);
        self.all.lock().insert(channel, made.clone());
        Ok(made)
    }

    /// CHANGE REPLICATION FILTER: of a channel, or of all that are and will be.
    fn change_filter(&self, rules: &[(Ident, Vec<Box<str>>)], name: Option<&str>) -> Result<()> {
        let channels = self.chosen(name)?;
        if let Some(running) = channels.iter().find(|channel| channel.is_running()) {
            return Err(runs(&running.name));
        }
        if name.is_none() {
            self.filters.lock().change(rules, false)?;
        }
        for channel in channels {
            let mut settings = channel.settings.lock().clone();
            settings.filters.change(rules, name.is_some())?;
            let position = channel.stored_position();
            let stored = Stored { channel: channel.name.clone(), settings, position };
            store::put(&mut self.local()?, &stored)?;
            *channel.settings.lock() = stored.settings;
        }
        Ok(())
    }

    /// `sql_replica_skip_counter` may be set while nothing is applied, and for one channel at a time.
    ///
    /// # Errors
    /// 3017 while a channel runs.
    pub(crate) fn check_skip(&self, value: u64) -> Result<()> {
        match self.list().iter().find(|channel| value > 0 && channel.is_running()) {
            Some(running) => Err(runs(&running.name)),
            None => Ok(()),
        }
    }

    fn start(&self, until: &Until, login: &Login, name: Option<&str>) -> Result<()> {
        let channels = self.chosen(name)?;
        if channels.is_empty() {
            return Err(err!(BAD_REPLICA));
        }
        let sessions = self.sessions()?;
        let skip = sessions.global_integer(SKIP_COUNTER.name);
        if skip > 0 {
            // It is the channel's from now on.
            let text = format!("SET GLOBAL {} = 0", SKIP_COUNTER.name);
            self.local()?.run(text.as_bytes())?;
        }
        channels.iter().try_for_each(|channel| {
            if !channel.is_running() {
                *channel.login.lock() = login.clone();
            }
            channel.start(&sessions, until.clone(), skip)
        })
    }

    fn reset(&self, all: bool, name: Option<&str>) -> Result<()> {
        let channels = self.chosen(name)?;
        if let Some(running) = channels.iter().find(|channel| channel.is_running()) {
            let text = format!(
                "This operation cannot be performed with a running replica; run STOP REPLICA FOR CHANNEL \
                 '{}' first",
                running.name
            );
            return Err(Error::new(ErrorCode(3081), text));
        }
        let mut local = self.local()?;
        for channel in channels {
            if all {
                store::remove(&mut local, &channel.name)?;
                self.all.lock().remove(&channel.name);
                continue;
            }
            let settings = channel.settings.lock().clone();
            // The transactions that are here stay here.
            let kept = channel.stored_position();
            let (gtids, gtid_slave_pos) = (kept.gtids, kept.gtid_slave_pos);
            let position = Position { offset: 4, gtids, gtid_slave_pos, ..Position::default() };
            let stored = Stored { channel: channel.name.clone(), settings, position };
            store::put(&mut local, &stored)?;
            channel.place(stored.position);
        }
        Ok(())
    }

    fn run_replication(
        &self,
        statement: &Replication,
        session: &mut dyn ReplicationSession,
    ) -> Result<()> {
        match statement {
            Replication::ChangeSource { options, channel } => {
                self.change(options, channel.as_deref().unwrap_or(""))
            }
            Replication::ChangeFilter { rules, channel } => {
                self.change_filter(rules, channel.as_deref())
            }
            Replication::Start { threads, until, connection, channel } => {
                check_threads(threads, "START REPLICA")?;
                let login = login_of(connection)?;
                self.start(&until_of(until)?, &login, channel.as_deref())
            }
            Replication::Stop { threads, channel } => {
                check_threads(threads, "STOP REPLICA")?;
                let channels = self.chosen(channel.as_deref())?;
                let (running, stopped): (Vec<_>, Vec<_>) =
                    channels.iter().partition(|channel| channel.is_running());
                running.iter().for_each(|channel| channel.stop());
                for channel in stopped {
                    let text = format!(
                        "Replication thread(s) for channel '{}' are already stopped.",
                        channel.name
                    );
                    session.warn(&Error::new(ErrorCode(3084), text));
                }
                Ok(())
            }
            // It has a privilege of its own.
            Replication::SwitchOver(_) => Err(Error::internal("SWITCH OVER is run before")),
            Replication::StartGroup { .. } | Replication::StopGroup => {
                Err(Error::not_supported("group replication"))
            }
        }
    }
}

fn runs(channel: &str) -> Error {
    let text = format!(
        "This operation cannot be performed with a running replica sql thread; run STOP REPLICA SQL_THREAD \
         FOR CHANNEL '{channel}' first."
    );
    Error::new(ErrorCode(3017), text)
}

/// There is no relay log: what is read is applied.
fn check_threads(threads: &[Ident], statement: &str) -> Result<()> {
    let is_given = |name: &str| threads.iter().any(|thread| thread.is(name));
    let is_both = (is_given("IO_THREAD") || is_given("RELAY_THREAD")) && is_given("SQL_THREAD");
    if threads.is_empty() || is_both {
        return Ok(());
    }
    Err(Error::not_supported(format!("{statement} of one thread, without a relay log")))
}

fn until_of(until: &[(Ident, ReplicationValue)]) -> Result<Until> {
    let (mut file, mut offset) = (None, None);
    for (option, value) in until {
        let wrong = || err!(WRONG_ARGUMENTS, option.text);
        let name = option.text.to_ascii_uppercase();
        let text = if let ReplicationValue::Text(text) = value { Some(text) } else { None };
        match name.as_str() {
            "SQL_AFTER_GTIDS" | "SQL_BEFORE_GTIDS" => {
                let text = text.ok_or_else(wrong)?;
                let set =
                    GtidSet::parse(text).ok_or_else(|| Error::with(ErrorCode(1772), &[&text]))?;
                let after = name == "SQL_AFTER_GTIDS";
                return Ok(if after { Until::AfterGtids(set) } else { Until::BeforeGtids(set) });
            }
            "SQL_AFTER_MTS_GAPS" => return Ok(Until::AfterGaps),
            "SOURCE_LOG_FILE" => file = Some(text.ok_or_else(wrong)?.to_string()),
            "SOURCE_LOG_POS" => {
                let ReplicationValue::Number(number) = value else { return Err(wrong()) };
                offset = Some(number.parse().map_err(|_| wrong())?);
            }
            _ => return Err(Error::not_supported(format!("START REPLICA UNTIL {name}"))),
        }
    }
    match (file, offset) {
        (None, None) => Ok(Until::None),
        (Some(file), Some(offset)) => Ok(Until::Source(file, offset)),
        _ => Err(Error::new(
            ErrorCode(1277),
            "Incorrect parameter or combination of parameters for START REPLICA UNTIL",
        )),
    }
}

/// The statements.
pub(crate) struct Control {
    pub(crate) channels: Arc<Channels>,
    pub(crate) clones: Arc<Clones>,
}

impl ReplicationControl for Control {
    fn run(&self, sql: &str, session: &mut dyn ReplicationSession) -> Result<()> {
        let mode = session.sql_mode();
        let options = ParseOptions {
            ansi_quotes: mode.contains(SqlMode::ANSI_QUOTES),
            no_backslash_escapes: mode.contains(SqlMode::NO_BACKSLASH_ESCAPES),
            ..ParseOptions::default()
        };
        let parsed = syntax::parse_one(sql, &options);
        let (statement, _) = parsed.map_err(|_| Error::internal("a statement that was parsed"))?;
        if let Statement::Binlog(text) = &statement {
            return binlog_statement::run(text, session);
        }
        if let Statement::Clone(clone) = &statement {
            return self.clones.run(clone, session, &self.channels.sessions()?);
        }
        if let Statement::Replication(replication) = &statement
            && let Replication::SwitchOver(switch) = &**replication
        {
            return switch_over::run(switch, session, &self.channels);
        }
        session.require_privilege(PRIVILEGE)?;
        if let Statement::Replication(replication) = &statement {
            return self.channels.run_replication(replication, session);
        }
        let Statement::Reset(items) = &statement else {
            return Err(Error::internal("a statement of another kind"));
        };
        items.iter().try_for_each(|item| match item {
            ResetItem::Replica { all, channel } => self.channels.reset(*all, channel.as_deref()),
            // The session has done it.
            ResetItem::BinaryLogsAndGtids { .. } => Ok(()),
        })
    }
}
