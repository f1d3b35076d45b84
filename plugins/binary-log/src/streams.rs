//! Change streams: readers whose place the server keeps. The files that a stream still needs stay, within the stream's bounds.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Duration;

use errors::{Error, Result, bail, err};
use plugin_api::{ReplicationSession, SinkOptions};
use syntax::ParseOptions;
use syntax::ast::{
    ChangeStream, Ident, ObjectName, ReplicationValue, ShowKind, Statement, StreamAction,
    StreamScope, StreamStart,
};
use types::{GtidSet, SqlMode};

use crate::core::{Core, LogFile, State, io_error};
use crate::{sink_states, stream_file};

/// Makes, changes and drops streams.
pub(crate) const PRIVILEGE: &str = "CHANGE_STREAM_ADMIN";
/// Most streams: each takes a look at every purge.
const STREAMS_MAX: usize = 256;
/// Most tables that a stream names.
const TABLES_MAX: usize = 1000;
/// Longest name, in characters.
const NAME_MAX: usize = 64;
/// Bytes of files that a stream keeps when it does not say.
const RETENTION_BYTES: u64 = 10 << 30;
/// Seconds that it keeps them.
const RETENTION_SECONDS: u64 = 7 * 24 * 3600;

/// Most events and bytes that a sink's batch may be given.
const BATCH_EVENTS_MAX: usize = 100_000;
const BATCH_BYTES_MAX: usize = 64 << 20;

/// Whose changes a stream has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scope {
    #[default]
    All,
    Schema(String),
    Tables(Vec<(String, String)>),
}

/// Where the server brings a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SinkSpec {
    /// The sink, as its plugin calls it.
    pub name: String,
    /// Its options.
    pub options: SinkOptions,
    /// Most events of a batch.
    pub batch_events: usize,
    /// Bytes after which a batch is full.
    pub batch_bytes: usize,
}

impl SinkSpec {
    /// Without options.
    pub fn new(name: &str) -> SinkSpec {
        let options = SinkOptions::default();
        SinkSpec { name: name.to_owned(), options, batch_events: 1000, batch_bytes: 900_000 }
    }
}

/// A stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stream {
    pub name: String,
    pub scope: Scope,
    /// It begins with the rows that are there, and its reader has not confirmed that it has them.
    pub wants_snapshot: bool,
    /// Transactions that its reader has.
    pub confirmed: GtidSet,
    /// Microseconds since 1970 UTC when that was said.
    pub confirmed_micros: i64,
    /// Bytes of files that are kept for it; 0 for no bound.
    pub retention_bytes: u64,
    /// Seconds that a file is kept for it; 0 for no bound.
    pub retention_seconds: u64,
    /// Events have the row before an UPDATE.
    pub has_before: bool,
    /// Events describe tables.
    pub has_schema: bool,
    /// Why its place is lost.
    pub lost: Option<String>,
    /// The sink that the server brings it to.
    pub sink: Option<SinkSpec>,
    /// Its sink waits.
    pub is_paused: bool,
    /// The connection that reads it; not stored.
    pub reader: Option<u64>,
    /// Another number when it begins anew; not stored.
    pub generation: u64,
}

impl Stream {
    /// A stream that begins after these transactions.
    pub fn new(name: &str, confirmed: GtidSet) -> Stream {
        Stream {
            name: name.to_owned(),
            scope: Scope::All,
            wants_snapshot: false,
            confirmed,
            confirmed_micros: now(),
            retention_bytes: RETENTION_BYTES,
            retention_seconds: RETENTION_SECONDS,
            has_before: true,
            has_schema: true,
            lost: None,
            sink: None,
            is_paused: false,
            reader: None,
            generation: 0,
        }
    }

    /// Place among `files` of the first that it needs; `None` when what it needs is not there any more.
    pub fn needed(&self, files: &[LogFile]) -> Option<usize> {
        files.iter().rposition(|file| file.before.is_subset(&self.confirmed))
    }

    /// Whether a thread that delivers one can go on with the other.
    pub fn is_same_reader(&self, other: &Stream) -> bool {
        (self.generation, &self.sink, &self.scope) == (other.generation, &other.sink, &other.scope)
            && (self.has_before, self.has_schema) == (other.has_before, other.has_schema)
    }

    /// `active`, `idle` or `lost`.
    pub fn state(&self) -> &'static str {
        match (&self.lost, self.reader) {
            (Some(_), _) => "lost",
            (None, Some(_)) => "active",
            (None, None) => "idle",
        }
    }

    /// Its tables as CREATE CHANGE STREAM names them.
    pub fn shown_scope(&self) -> String {
        match &self.scope {
            Scope::All => "ALL TABLES".to_owned(),
            Scope::Schema(schema) => format!("SCHEMA {}", quoted(schema)),
            Scope::Tables(tables) => {
                let name = |(schema, table): &(String, String)| {
                    format!("{}.{}", quoted(schema), quoted(table))
                };
                let names: Vec<String> = tables.iter().map(name).collect();
                format!("TABLE {}", names.join(", "))
            }
        }
    }

    /// The options of its sink, each after a comma; `secrets` are not shown.
    fn shown_sink(&self, secrets: &[&str]) -> String {
        let Some(sink) = &self.sink else { return String::new() };
        let mut shown = format!(", sink = {}", literal(&sink.name));
        for (name, value) in sink.options.iter() {
            let value = if secrets.contains(&name) { "<secret>" } else { value };
            shown.push_str(&format!(", {name} = {}", literal(value)));
        }
        let (events, bytes) = (sink.batch_events, sink.batch_bytes);
        shown.push_str(&format!(", batch_events = {events}, batch_bytes = {bytes}"));
        if self.is_paused {
            shown.push_str(", paused = 1");
        }
        shown
    }

    /// The statement that makes it where it is now.
    pub fn create_statement(&self, secrets: &[&str]) -> String {
        let start = match self.wants_snapshot {
            true => "SNAPSHOT".to_owned(),
            false => format!("GTID '{}'", one_line(&self.confirmed)),
        };
        format!(
            "CREATE CHANGE STREAM {} FOR {} FROM {start} WITH (retention_bytes = {}, retention_seconds = {}, include_before = {}, schema = {}{})",
            quoted(&self.name),
            self.shown_scope(),
            self.retention_bytes,
            self.retention_seconds,
            u8::from(self.has_before),
            u8::from(self.has_schema),
            self.shown_sink(secrets),
        )
    }

    /// Bytes of the log from the first file that it needs on; 0 when its reader has everything.
    pub fn lag_bytes(&self, state: &State) -> u64 {
        if state.executed.is_subset(&self.confirmed) {
            return 0;
        }
        let first = self.needed(&state.files).unwrap_or(0);
        state.files[first.min(state.files.len())..].iter().map(|file| file.size).sum()
    }

    /// Seconds since its reader last said how far it is; 0 when it has everything.
    pub fn lag_seconds(&self, state: &State) -> u64 {
        if state.executed.is_subset(&self.confirmed) {
            return 0;
        }
        u64::try_from(now().saturating_sub(self.confirmed_micros)).unwrap_or(0) / 1_000_000
    }

    /// Takes options.
    ///
    /// # Errors
    /// 1210 naming the option.
    fn set_options(&mut self, options: &[(Ident, ReplicationValue)]) -> Result<()> {
        for (name, value) in options {
            let wrong = || err!(WRONG_ARGUMENTS, format!("CHANGE STREAM: {}", name.text));
            match name.text.to_ascii_lowercase().as_str() {
                "retention_bytes" => self.retention_bytes = number(value).ok_or_else(wrong)?,
                "retention_seconds" => self.retention_seconds = number(value).ok_or_else(wrong)?,
                "include_before" => self.has_before = truth(value).ok_or_else(wrong)?,
                "schema" => self.has_schema = truth(value).ok_or_else(wrong)?,
                "paused" => self.is_paused = truth(value).ok_or_else(wrong)?,
                "sink" => self.set_sink(&option_text(value).ok_or_else(wrong)?),
                name => self.set_sink_option(name, value).ok_or_else(wrong)?,
            }
        }
        Ok(())
    }

    /// Another sink has other options; an empty name takes it away.
    fn set_sink(&mut self, name: &str) {
        if self.sink.as_ref().is_none_or(|sink| sink.name != name) {
            self.sink = (!name.is_empty()).then(|| SinkSpec::new(name));
        }
    }

    /// `None` for a wrong value, and without a sink.
    fn set_sink_option(&mut self, name: &str, value: &ReplicationValue) -> Option<()> {
        let sink = self.sink.as_mut()?;
        let within = |most: usize| {
            let count = usize::try_from(number(value)?).ok()?;
            (1..=most).contains(&count).then_some(count)
        };
        match name {
            "batch_events" => sink.batch_events = within(BATCH_EVENTS_MAX)?,
            "batch_bytes" => sink.batch_bytes = within(BATCH_BYTES_MAX)?,
            name => sink.options.set(name, &option_text(value)?),
        }
        Some(())
    }

    /// Whether more is kept for it than it may have, if the first files stay.
    fn is_over(&self, kept: &[LogFile]) -> Option<String> {
        let bytes: u64 = kept.iter().map(|file| file.size).sum();
        if self.retention_bytes > 0 && bytes > self.retention_bytes {
            return Some(format!(
                "its reader was {bytes} bytes behind, and retention_bytes is {}",
                self.retention_bytes
            ));
        }
        let oldest = kept.first().map_or(i64::MAX, |file| file.last_micros);
        let age = u64::try_from(now().saturating_sub(oldest)).unwrap_or(0) / 1_000_000;
        let is_old = self.retention_seconds > 0 && !kept.is_empty() && age > self.retention_seconds;
        is_old.then(|| {
            format!(
                "its reader was {age} seconds behind, and retention_seconds is {}",
                self.retention_seconds
            )
        })
    }
}

fn now() -> i64 {
    sys::clock::wall().as_micros() as i64
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A set without the line breaks that it is shown with.
pub(crate) fn one_line(set: &GtidSet) -> String {
    set.to_string().replace('\n', "")
}

fn number(value: &ReplicationValue) -> Option<u64> {
    match value {
        ReplicationValue::Number(text) => text.parse().ok(),
        ReplicationValue::Text(_)
        | ReplicationValue::Word(_)
        | ReplicationValue::List(_)
        | ReplicationValue::Account(_)
        | ReplicationValue::Null => None,
    }
}

/// The value of an option of a sink.
fn option_text(value: &ReplicationValue) -> Option<String> {
    match value {
        ReplicationValue::Text(text) | ReplicationValue::Number(text) => Some(text.to_string()),
        ReplicationValue::Word(word) => Some(word.text.to_ascii_uppercase()),
        ReplicationValue::Null => Some(String::new()),
        ReplicationValue::List(_) | ReplicationValue::Account(_) => None,
    }
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

fn truth(value: &ReplicationValue) -> Option<bool> {
    let word = match value {
        ReplicationValue::Number(text) => text.to_string(),
        ReplicationValue::Word(word) => word.text.to_ascii_uppercase(),
        ReplicationValue::Text(_)
        | ReplicationValue::List(_)
        | ReplicationValue::Account(_)
        | ReplicationValue::Null => return None,
    };
    match word.as_str() {
        "1" | "ON" | "TRUE" => Some(true),
        "0" | "OFF" | "FALSE" => Some(false),
        _ => None,
    }
}

fn unknown(name: &str) -> Error {
    failed(&format!("no stream is called {name:?}"))
}

fn failed(text: &str) -> Error {
    err!(ERROR_WHEN_EXECUTING_COMMAND, "CHANGE STREAM", text)
}

/// All streams, in order of name.
#[derive(Debug, Default)]
pub(crate) struct Streams(pub Vec<Stream>);

impl Streams {
    /// A stream by name.
    pub fn find(&self, name: &str) -> Option<&Stream> {
        self.0.iter().find(|stream| stream.name == name)
    }

    fn find_mut(&mut self, name: &str) -> Result<&mut Stream> {
        let found = self.0.iter_mut().find(|stream| stream.name == name);
        found.ok_or_else(|| unknown(name))
    }

    /// The streams that are to be brought to sinks, by name.
    pub fn of_sinks(&self) -> HashMap<String, Stream> {
        let wanted = self.0.iter().filter(|stream| stream.sink.is_some() && !stream.is_paused);
        wanted.map(|stream| (stream.name.clone(), stream.clone())).collect()
    }

    /// How many of the first `count` files may go. A stream whose bounds are passed is lost; the second value says whether one is.
    pub fn let_go(&mut self, files: &[LogFile], count: usize) -> (usize, bool) {
        let (mut free, mut has_lost) = (count, false);
        for stream in self.0.iter_mut().filter(|stream| stream.lost.is_none()) {
            let Some(needed) = stream.needed(files) else { continue };
            if needed >= count {
                continue;
            }
            match stream.is_over(&files[needed..count]) {
                Some(why) => {
                    tracing::error!(
                        stream = stream.name,
                        "the place of a change stream is lost: {why}"
                    );
                    stream.lost = Some(why);
                    has_lost = true;
                }
                None => free = free.min(needed),
            }
        }
        (free, has_lost)
    }

    /// No stream has a place any more. Whether there is one.
    pub fn lose_all(&mut self, why: &str) -> bool {
        self.0.iter_mut().for_each(|stream| stream.lost = Some(why.to_owned()));
        !self.0.is_empty()
    }

    /// Transactions that are in no file count as confirmed. Whether there is a stream.
    pub fn pass_over(&mut self, set: &GtidSet) -> bool {
        self.0.iter_mut().for_each(|stream| stream.confirmed.add_all(set));
        !self.0.is_empty()
    }
}

impl Core {
    /// Stores what `change` made of the streams, or leaves them as they were.
    fn change_streams(&self, change: impl FnOnce(&mut Streams) -> Result<()>) -> Result<()> {
        let home = self.home()?;
        sys::blocking::blocking(|| {
            let mut streams = self.streams.lock();
            let mut next = Streams(streams.0.clone());
            change(&mut next)?;
            stream_file::write(&*home.disk, &next.0).map_err(|error| io_error(&error))?;
            *streams = next;
            self.streams_changed.notify_all();
            Ok(())
        })
    }

    /// Checks the options of a stream's sink.
    fn check_sink(&self, stream: &Stream) -> Result<()> {
        match &stream.sink {
            Some(spec) => {
                let sink = sink_states::find(&self.home()?.sessions, &spec.name)?;
                sink.check(&spec.options)
            }
            None => Ok(()),
        }
    }

    /// Names of options of a stream's sink whose values are not shown; without its plugin all are secret.
    pub fn sink_secrets(&self, stream: &Stream) -> Vec<String> {
        let Some(spec) = &stream.sink else { return Vec::new() };
        let found = self.home().and_then(|home| sink_states::find(&home.sessions, &spec.name));
        match found {
            Ok(sink) => sink.secrets().iter().map(|name| (*name).to_owned()).collect(),
            Err(_) => spec.options.iter().map(|(name, _)| name.to_owned()).collect(),
        }
    }

    /// A sink has delivered these transactions.
    ///
    /// # Errors
    /// The stream is gone or has begun anew; I/O.
    pub fn confirm_delivered(&self, name: &str, generation: u64, set: &GtidSet) -> Result<()> {
        self.change_streams(|streams| {
            let stream = streams.find_mut(name)?;
            if stream.generation != generation {
                return Err(failed("the stream has begun anew"));
            }
            stream.confirmed.add_all(set);
            stream.confirmed_micros = now();
            stream.wants_snapshot = false;
            Ok(())
        })
    }

    /// Whether the place of a stream is lost, or the stream gone.
    pub fn is_lost(&self, name: &str) -> bool {
        self.streams.lock().find(name).is_none_or(|stream| stream.lost.is_some())
    }

    /// Waits until streams may have changed.
    pub fn wait_for_streams(&self, limit: Duration) {
        let streams = self.streams.lock();
        drop(self.streams_changed.wait_for(streams, limit));
    }

    /// Stores the streams after the thread that writes the log has changed them.
    ///
    /// # Errors
    /// I/O.
    pub fn store_streams(&self, streams: &Streams) -> Result<()> {
        let home = self.home()?;
        stream_file::write(&*home.disk, &streams.0).map_err(|error| io_error(&error))
    }

    /// Runs CREATE, ALTER or DROP CHANGE STREAM.
    ///
    /// # Errors
    /// 1064, 1210, 1220; the log cannot be written.
    pub fn run_stream_statement(
        &self,
        sql: &str,
        session: &mut dyn ReplicationSession,
    ) -> Result<()> {
        let mode = session.sql_mode();
        let options = ParseOptions {
            ansi_quotes: mode.contains(SqlMode::ANSI_QUOTES),
            no_backslash_escapes: mode.contains(SqlMode::NO_BACKSLASH_ESCAPES),
            ..ParseOptions::default()
        };
        let parsed = syntax::parse_one(sql, &options);
        let (statement, _) = parsed.map_err(|_| Error::internal("a statement that was parsed"))?;
        if let Statement::Show(show) = &statement
            && let ShowKind::CreateChangeStream(name) = &show.kind
        {
            let is_known = self.streams.lock().find(&name.text).is_some();
            return if is_known { Ok(()) } else { Err(unknown(&name.text)) };
        }
        let Statement::ChangeStream(statement) = statement else {
            return Err(Error::internal("a statement of another kind"));
        };
        sys::blocking::blocking(|| self.catch_up())?;
        match *statement {
            ChangeStream::Create { if_not_exists, name, scope, start, options } => {
                if self.streams.lock().find(&name.text).is_some() {
                    let error = failed(&format!("a stream is called {:?} already", name.text));
                    if !if_not_exists {
                        return Err(error);
                    }
                    session.warn(&error);
                    return Ok(());
                }
                self.create_stream(&name.text, &scope, &start, &options)
            }
            ChangeStream::Alter { name, action } => self.alter_stream(&name.text, &action),
            ChangeStream::Drop { if_exists, name } => {
                if if_exists && self.streams.lock().find(&name.text).is_none() {
                    session.warn(&unknown(&name.text));
                    return Ok(());
                }
                self.drop_stream(&name.text)
            }
        }
    }

    fn create_stream(
        &self,
        name: &str,
        scope: &StreamScope,
        start: &StreamStart,
        options: &[(Ident, ReplicationValue)],
    ) -> Result<()> {
        if name.is_empty() || name.chars().count() > NAME_MAX {
            bail!(TOO_LONG_IDENT, name);
        }
        let mut stream = Stream::new(name, self.begin_at(start)?);
        stream.scope = scope_of(scope)?;
        stream.wants_snapshot = *start == StreamStart::Snapshot;
        stream.set_options(options)?;
        stream.generation = self.settings.next_number();
        self.check_sink(&stream)?;
        self.change_streams(|streams| {
            if streams.0.len() >= STREAMS_MAX {
                return Err(failed("there are 256 streams already"));
            }
            let at = streams.0.partition_point(|known| known.name < stream.name);
            if streams.0.get(at).is_some_and(|known| known.name == stream.name) {
                return Err(failed(&format!("a stream is called {name:?} already")));
            }
            streams.0.insert(at, stream);
            Ok(())
        })
    }

    /// The transactions that a stream passes over.
    fn begin_at(&self, start: &StreamStart) -> Result<GtidSet> {
        let state = self.state.lock();
        match start {
            StreamStart::Unsaid | StreamStart::Snapshot => Ok(state.executed.clone()),
            StreamStart::Moment(word) if word.text.eq_ignore_ascii_case("now") => {
                Ok(state.executed.clone())
            }
            StreamStart::Moment(word) => {
                bail!(WRONG_ARGUMENTS, format!("CHANGE STREAM: FROM {}", word.text))
            }
            StreamStart::Gtid(text) => {
                let set = binlog::gtid::position(text, &state.purged)
                    .ok_or_else(|| err!(MALFORMED_GTID_SET_SPECIFICATION, text))?;
                if !state.purged.is_subset(&set) {
                    let missing = one_line(&state.purged.subtract(&set));
                    return Err(failed(&format!("the log lacks the transactions {missing}")));
                }
                check_executed(&set, &state)?;
                Ok(set)
            }
        }
    }

    fn alter_stream(&self, name: &str, action: &StreamAction) -> Result<()> {
        let place = match action {
            StreamAction::Start(start) => Some(self.begin_at(start)?),
            StreamAction::Confirm(text) => {
                let state = self.state.lock();
                let set = binlog::gtid::position(text, &state.purged)
                    .ok_or_else(|| err!(MALFORMED_GTID_SET_SPECIFICATION, text))?;
                check_executed(&set, &state)?;
                Some(set)
            }
            StreamAction::Options(_) => None,
        };
        self.change_streams(|streams| {
            let stream = streams.find_mut(name)?;
            match (action, place) {
                (StreamAction::Options(options), _) => {
                    stream.set_options(options)?;
                    self.check_sink(stream)?;
                }
                (StreamAction::Start(start), Some(place)) => {
                    if stream.reader.is_some() && stream.sink.is_none() {
                        return Err(failed("the stream is being read"));
                    }
                    stream.confirmed = place;
                    stream.confirmed_micros = now();
                    stream.wants_snapshot = *start == StreamStart::Snapshot;
                    stream.generation = self.settings.next_number();
                    stream.lost = None;
                }
                (StreamAction::Confirm(_), Some(place)) => {
                    if let Some(why) = &stream.lost {
                        return Err(failed(&format!("the place of the stream is lost: {why}")));
                    }
                    stream.confirmed.add_all(&place);
                    stream.confirmed_micros = now();
                    stream.wants_snapshot = false;
                }
                (StreamAction::Start(_) | StreamAction::Confirm(_), None) => {}
            }
            Ok(())
        })
    }

    fn drop_stream(&self, name: &str) -> Result<()> {
        self.change_streams(|streams| {
            let stream = streams.find_mut(name)?;
            if stream.reader.is_some() && stream.sink.is_none() {
                return Err(failed("the stream is being read"));
            }
            streams.0.retain(|stream| stream.name != name);
            Ok(())
        })
    }

    /// A connection begins to read a stream.
    ///
    /// # Errors
    /// 1220: it does not exist, is lost or is being read.
    pub fn occupy_stream(&self, name: &str, connection: u64) -> Result<Occupied<'_>> {
        let mut streams = self.streams.lock();
        let stream = streams.find_mut(name)?;
        if let Some(why) = &stream.lost {
            return Err(failed(&format!("the place of the stream is lost: {why}")));
        }
        if stream.reader.is_some() {
            return Err(failed("the stream is being read by another connection"));
        }
        stream.reader = Some(connection);
        Ok(Occupied { core: self, name: name.to_owned() })
    }
}

/// Frees the stream for its next reader.
pub(crate) struct Occupied<'a> {
    core: &'a Core,
    name: String,
}

impl Drop for Occupied<'_> {
    fn drop(&mut self) {
        if let Ok(stream) = self.core.streams.lock().find_mut(&self.name) {
            stream.reader = None;
        }
    }
}

/// # Errors
/// 1220 for transactions that never were.
fn check_executed(set: &GtidSet, state: &State) -> Result<()> {
    let unknown = set.subtract(&state.executed);
    match unknown.is_empty() {
        true => Ok(()),
        false => {
            let text = format!("the server has no transactions {}", one_line(&unknown));
            Err(failed(&text))
        }
    }
}

fn scope_of(scope: &StreamScope) -> Result<Scope> {
    let pair = |name: &ObjectName| match &name.schema {
        Some(schema) => Ok((schema.text.to_string(), name.name.text.to_string())),
        None => Err(failed("tables are named with their schema")),
    };
    match scope {
        StreamScope::All => Ok(Scope::All),
        StreamScope::Schema(schema) => Ok(Scope::Schema(schema.text.to_string())),
        StreamScope::Tables(names) if names.len() > TABLES_MAX => {
            Err(failed("a stream names at most 1000 tables"))
        }
        StreamScope::Tables(names) => {
            Ok(Scope::Tables(names.iter().map(pair).collect::<Result<_>>()?))
        }
    }
}

/// The tables of a stream as a JSON document: `{}`, `{"schema": ..}` or `{"tables": [[schema, table], ..]}`.
pub(crate) fn scope_document(scope: &Scope) -> String {
    let put = |text: &str, out: &mut String| {
        let mut bytes = Vec::new();
        types::json::quote(text.as_bytes(), &mut bytes);
        out.push_str(&String::from_utf8_lossy(&bytes));
    };
    let mut out = String::from("{");
    match scope {
        Scope::All => {}
        Scope::Schema(schema) => {
            out.push_str("\"schema\":");
            put(schema, &mut out);
        }
        Scope::Tables(tables) => {
            out.push_str("\"tables\":[");
            for (at, (schema, table)) in tables.iter().enumerate() {
                out.push_str(if at > 0 { ",[" } else { "[" });
                put(schema, &mut out);
                out.push(',');
                put(table, &mut out);
                out.push(']');
            }
            out.push(']');
        }
    }
    // Writing to a string does not fail.
    let _ = out.write_char('}');
    out
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const UUID: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

    fn set(last: i64) -> GtidSet {
        match last {
            0 => GtidSet::default(),
            last => GtidSet::parse(&format!("{UUID}:1-{last}")).expect("a set"),
        }
    }

    fn files(count: u64) -> Vec<LogFile> {
        let file = |number: u64| LogFile {
            number,
            size: 100,
            last_micros: now(),
            before: Arc::new(set((number as i64 - 1) * 10)),
        };
        (1..=count).map(file).collect()
    }

    #[test]
    fn a_stream_keeps_the_files_it_needs() {
        let mut streams = Streams(vec![Stream::new("s", set(25))]);
        assert_eq!(streams.0[0].needed(&files(5)), Some(2));
        assert_eq!(streams.let_go(&files(5), 4), (2, false));
        assert_eq!(streams.let_go(&files(5), 2), (2, false));
        assert_eq!(streams.0[0].state(), "idle");
    }

    #[test]
    fn a_stream_beyond_its_bounds_is_lost() {
        let mut streams = Streams(vec![Stream::new("s", set(5)), Stream::new("t", set(35))]);
        streams.0[0].retention_bytes = 250;
        assert_eq!(streams.let_go(&files(5), 2), (0, false), "two files are within the bound");
        assert_eq!(streams.let_go(&files(5), 4), (3, true), "the other stream keeps the fourth");
        assert_eq!(streams.0[0].state(), "lost");
        let mut streams = Streams(vec![Stream::new("s", set(5))]);
        let mut old = files(5);
        old[0].last_micros -= 10_000_000;
        streams.0[0].retention_seconds = 5;
        assert_eq!(streams.let_go(&old, 4), (4, true));
    }

    #[test]
    fn scopes_are_documents() {
        assert_eq!(scope_document(&Scope::All), "{}");
        let tables = vec![("a".to_owned(), "b\"c".to_owned())];
        assert_eq!(scope_document(&Scope::Tables(tables)), r#"{"tables":[["a","b\"c"]]}"#);
    }
}
