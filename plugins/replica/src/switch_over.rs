//! SWITCH OVER TO: a replica becomes the primary, and this server its replica, without a lost transaction.
//!
//! Up to the promotion every failure leaves this server as it was. What happens on the replica is plain SQL of the account that the statement names.

use std::sync::Arc;
use std::time::Duration;

use client::Failure;
use engine_api::CancelToken;
use errors::{Error, ErrorCode, Result, bail, err};
use plugin_api::{ReplicationSession, SessionFactory};
use syntax::ast::SwitchOver;

use crate::channel::Until;
use crate::control::Channels;
use crate::local::{Local, quoted_text};
use crate::remote::{Address, Halt, Remote};
use crate::settings::Settings;
use crate::store::Position;

/// What the statement needs here.
pub(crate) const PRIVILEGE: &str = "SWITCH_OVER_ADMIN";
const DEFAULT_PORT: u64 = 3306;
/// How long each of the waits may take: for the replica, for statements that run.
const DEFAULT_TIMEOUT: u64 = 10;
const TIMEOUT_MAX: u64 = 3600;
/// How long a statement that was killed may take to end.
const KILLED_MAX: Duration = Duration::from_secs(5);
/// The replica may be so far behind when clients are refused.
const CLOSE: Duration = Duration::from_millis(300);
/// How often statements that run are looked at.
const STEP: Duration = Duration::from_millis(2);
/// What the replica must be: one channel, from this server, with identifiers.
const STATE: &str = "SELECT @@GLOBAL.server_uuid, @@GLOBAL.log_bin, COUNT(*), MAX(Channel_Name), \
     MAX(Source_UUID), MAX(Replica_IO_Running), MAX(Replica_SQL_Running), MAX(Auto_Position) \
     FROM data_dictionary.REPLICA_STATUS";
const READ_ONLY_ON: &str = "SET GLOBAL super_read_only = ON";
const READ_ONLY_OFF: &str = "SET GLOBAL super_read_only = OFF, GLOBAL read_only = OFF";

fn failed(why: impl std::fmt::Display) -> Error {
    err!(
        UNKNOWN_ERROR,
        format!("SWITCH OVER failed, and this server is the primary as before: {why}")
    )
}

fn of_failure(failure: Failure) -> Error {
    match failure {
        Failure::Server(error) => error,
        Failure::Lost(why) => Error::new(ErrorCode(2013), why),
    }
}

/// The statement on its way.
struct Switch<'s> {
    channels: &'s Channels,
    sessions: Arc<dyn SessionFactory>,
    local: Local,
    remote: Remote,
    address: Address,
    cancel: CancelToken,
    timeout: Duration,
}

/// SWITCH OVER TO.
///
/// # Errors
/// 1227; 1105 with the reason.
pub(crate) fn run(
    statement: &SwitchOver,
    session: &mut dyn ReplicationSession,
    channels: &Arc<Channels>,
) -> Result<()> {
    session.require_privilege(PRIVILEGE)?;
    let port = statement.port.unwrap_or(DEFAULT_PORT);
    let address = Address {
        host: statement.host.to_string(),
        port: u16::try_from(port).map_err(|_| err!(WRONG_VALUE, "port", port))?,
        user: statement.user.to_string(),
        password: statement.password.to_string(),
        require_ssl: statement.require_ssl,
    };
    let seconds = statement.timeout.unwrap_or(DEFAULT_TIMEOUT).min(TIMEOUT_MAX);
    let timeout = Duration::from_secs(seconds);
    let cancel = session.cancel();
    sys::blocking::blocking(|| {
        let _one = channels.switching.try_lock().ok_or_else(|| failed("another one runs"))?;
        let sessions = channels.sessions()?;
        let local = channels.local()?;
        check_primary(&*sessions, channels)?;
        let halt = Halt::new(cancel.clone());
        // Its longest statement is a wait.
        let limit = timeout + KILLED_MAX;
        let remote = Remote::open(&address, &halt, limit).map_err(failed)?;
        Switch { channels, sessions, local, remote, address, cancel, timeout }.run()
    })
}

/// Whether this server can give its part away.
fn check_primary(sessions: &dyn SessionFactory, channels: &Channels) -> Result<()> {
    if sessions.global_integer("log_bin") == 0 {
        return Err(err!(NO_BINARY_LOGGING));
    }
    if let Some(channel) = channels.list().iter().find(|channel| channel.is_running()) {
        return Err(failed(format!("it is a replica itself, by channel '{}'", channel.name)));
    }
    if sessions.global_integer("read_only") != 0 {
        return Err(failed("it is read-only, so it is no primary"));
    }
    Ok(())
}

impl Switch<'_> {
    fn run(mut self) -> Result<()> {
        let settings = self.check_replica()?;
        if !self.local.run(b"XA RECOVER")?.rows.is_empty() {
            return Err(failed("there are prepared XA transactions: end them first"));
        }
        // While clients write: afterwards little is left to wait for.
        self.wait_until_close().map_err(failed)?;
        if let Err(why) = self.fence() {
            return Err(self.give_up(why, false));
        }
        if let Err(why) = self.wait_for_replica() {
            return Err(self.give_up(why, false));
        }
        // It has one channel.
        if let Err(failure) = self.remote.rows("STOP REPLICA") {
            return Err(self.give_up(of_failure(failure), true));
        }
        if self.cancel.is_cancelled() {
            return Err(self.give_up(err!(QUERY_INTERRUPTED), true));
        }
        match self.remote.rows(READ_ONLY_OFF) {
            Ok(_) => {}
            Err(Failure::Server(error)) => return Err(self.give_up(error, true)),
            // Two primaries are worse than none.
            Err(lost @ Failure::Lost(_)) => bail!(
                UNKNOWN_ERROR,
                format!(
                    "SWITCH OVER lost the replica while it was promoted, and this server stays read-only: {lost}. \
                     If @@read_only is 0 there, it is the primary; else SET GLOBAL read_only = OFF here"
                )
            ),
        }
        if let Err(failure) = self.remote.rows("RESET REPLICA ALL") {
            tracing::warn!("the new primary keeps its stopped channel: {failure}");
        }
        let (host, port) = (self.address.host.clone(), self.address.port);
        tracing::warn!("SWITCH OVER: {host}:{port} is the primary, and this server its replica");
        let settings = Settings { host, port, auto_position: true, ..settings };
        self.channels.follow(settings).map_err(|error| {
            let text = "the replica is the primary now, and this server is read-only, but does not follow it";
            err!(UNKNOWN_ERROR, format!("SWITCH OVER: {text}: {error}"))
        })
    }

    /// Whether the other server is a replica of this one that can take over, and how it connects.
    fn check_replica(&mut self) -> Result<Settings> {
        let rows = self.remote.rows(STATE).map_err(failed)?;
        let row = rows.first().map_or(&[][..], Vec::as_slice);
        let [uuid, log_bin, count, channel, source, io, sql, auto] = row else {
            return Err(failed("the replica says nothing about itself"));
        };
        let own = self.sessions.global_text("server_uuid");
        if *uuid == own {
            return Err(failed("that is this server"));
        }
        if log_bin != "1" {
            return Err(failed("the replica has no binary log"));
        }
        if count != "1" || *source != own {
            return Err(failed("that server is not a replica of this server alone"));
        }
        if io != "Yes" || sql != "Yes" {
            return Err(failed("its replica does not run"));
        }
        if auto != "1" {
            return Err(failed("its replica does not use SOURCE_AUTO_POSITION"));
        }
        // Also whether the account may make it writable: that would be late to find out.
        let check = "SET GLOBAL super_read_only = @@GLOBAL.super_read_only";
        self.remote.rows(check).map_err(failed)?;
        let text = quoted_text(channel);
        let sql =
            format!("SELECT settings FROM squall_replication.channels WHERE channel = {text}");
        let rows = self.remote.rows(&sql).map_err(failed)?;
        let settings = rows.first().and_then(|row| row.first());
        let settings = settings.ok_or_else(|| failed("its channel is not stored"))?;
        let known = Settings::read(settings)?;
        // What was left out there is no business of this server.
        let filters = self.channels.filters.lock().clone();
        Ok(Settings { filters, delay: 0, ignored_servers: Vec::new(), ..known })
    }

    /// Waits until the replica is so close behind that clients do not wait long for it.
    fn wait_until_close(&mut self) -> Result<()> {
        let began = sys::clock::monotonic();
        loop {
            let asked = sys::clock::monotonic();
            self.wait_for_replica()?;
            let now = sys::clock::monotonic();
            if now - asked <= CLOSE {
                return Ok(());
            }
            if now - began > self.timeout {
                let text = format!("the replica is more than {CLOSE:?} behind");
                return Err(err!(UNKNOWN_ERROR, text));
            }
        }
    }

    /// Waits until the replica has executed what is executed here now.
    fn wait_for_replica(&mut self) -> Result<()> {
        let executed = self.sessions.global_text("gtid_executed").replace('\n', "");
        let seconds = self.timeout.as_secs().max(1);
        let sql =
            format!("SELECT WAIT_FOR_EXECUTED_GTID_SET({}, {seconds})", quoted_text(&executed));
        let rows = self.remote.rows(&sql).map_err(of_failure)?;
        if self.cancel.is_cancelled() {
            bail!(QUERY_INTERRUPTED);
        }
        match rows.first().and_then(|row| row.first()).map(String::as_str) {
            Some("0") => Ok(()),
            _ => {
                let text = format!("the replica has not caught up within {seconds} seconds");
                Err(err!(UNKNOWN_ERROR, text))
            }
        }
    }

    /// From now on nobody writes here: statements that begin are refused, also COMMIT of a transaction that wrote; those that run may end,
    /// and are ended after a while.
    fn fence(&mut self) -> Result<()> {
        self.local.run(READ_ONLY_ON.as_bytes())?;
        let began = sys::clock::monotonic();
        // A session tells its statement before it asks whether it may write: what begins later is refused.
        let fenced_micros = crate::status::now_micros();
        let is_earlier = |since: i64| since <= fenced_micros;
        let mut is_killed = false;
        loop {
            let running: Vec<u64> = self
                .sessions
                .running_sessions()
                .iter()
                .filter(|view| view.command != "Binlog Dump" && view.command != "Binlog Dump GTID")
                .filter(|view| is_earlier(view.since_micros) && !self.is_own(view.info.as_deref()))
                .map(|view| view.id)
                .collect();
            let waited = sys::clock::monotonic() - began;
            if running.is_empty() {
                return Ok(());
            }
            if self.cancel.is_cancelled() {
                bail!(QUERY_INTERRUPTED);
            }
            if waited > self.timeout + KILLED_MAX {
                let text = format!("statements do not end, of connection {}", running[0]);
                bail!(UNKNOWN_ERROR, text);
            }
            if waited > self.timeout && !is_killed {
                is_killed = true;
                for id in &running {
                    tracing::warn!(connection = id, "SWITCH OVER ends a statement");
                    // It may have ended by itself.
                    let _ = self.local.run(format!("KILL QUERY {id}").as_bytes());
                }
            }
            sys::threads::sleep(STEP);
        }
    }

    /// Whether this is the statement itself: there is only one at a time.
    fn is_own(&self, text: Option<&str>) -> bool {
        let begin = text.unwrap_or("").trim_start().get(..6);
        begin.is_some_and(|word| word.eq_ignore_ascii_case("SWITCH"))
    }

    /// Makes this server the primary again, and says why.
    fn give_up(&mut self, why: Error, is_stopped: bool) -> Error {
        if let Err(error) = self.local.run(READ_ONLY_OFF.as_bytes()) {
            let text = format!("SWITCH OVER failed: {why}; this server stays read-only: {error}");
            return err!(UNKNOWN_ERROR, text);
        }
        if is_stopped && let Err(failure) = self.remote.rows("START REPLICA") {
            tracing::warn!("the replica was stopped, and could not be started again: {failure}");
        }
        failed(why)
    }
}

impl Channels {
    /// Becomes a replica of another server with this server's transactions.
    fn follow(&self, settings: Settings) -> Result<()> {
        let position = Position { offset: 4, ..Position::default() };
        let channel = self.set(String::new(), settings, position)?;
        channel.start(&self.sessions()?, Until::None, 0)
    }
}
