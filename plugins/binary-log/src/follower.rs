//! The one thread that writes the log's files: it follows the attachments of commits and makes events of them.
//!
//! The files hold nothing that the engine's log does not have too, until the file `state` says that they are durable: so no commit waits
//! for them, and what a crash takes is written again, the same bytes at the same places.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use binlog::envelope;
use binlog::event::flags::IGNORABLE;
use binlog::event::{CHECKSUM_BYTES, Events, HEADER_BYTES, MAGIC};
use binlog::gtid::GtidEvent;
use binlog::{Event, EventKind, Header, decode, seal, write_event};
use engine_api::{AttachedCommit, AttachmentReader, CancelToken};
use errors::{Result, bail};
use plugin_api::{PurgeLimit, SessionFactory};
use sys::disk::{File, OpenMode};
use sys::sync::atomic::Ordering;
use tracing::{error, warn};
use types::{Gtid, GtidSet};

use crate::core::{Core, Home, LogFile, Order, file_name, file_number, io_error};
use crate::dependencies::{DEPENDENCIES, History};
use crate::recorder::{COMPRESSION, NUMBER};
use crate::semi_sync::Place;
use crate::state_file::Durable;
use crate::streams::Streams;

/// Events of one transaction in memory; those of a larger one go to the file as they come. From here on the length of a transaction
/// takes nine bytes of its first event.
const STREAMED_BYTES: usize = 1 << 24;
/// Bytes written at a time.
const WRITE_BYTES: usize = 1 << 20;
/// Bytes after which the file is made durable, and the engine may forget its log.
const DURABLE_EVERY_BYTES: u64 = 64 << 20;
/// The same in time.
const DURABLE_EVERY: Duration = Duration::from_secs(1);
/// How long commits gather before they are written together. Whoever waits for the log ends it.
const GATHER: Duration = Duration::from_millis(2);
/// Pause when there is nothing to do: whoever has something wakes the thread.
const ROUND: Duration = Duration::from_millis(100);
/// The same while commits are held back: those that have nothing for the log do not wake it.
const HOLDING_ROUND: Duration = Duration::from_millis(5);
/// Pause after a failure.
const RETRY: Duration = Duration::from_secs(1);
/// Version in transactions' first events.
const SERVER_VERSION: u32 = 90_700;
/// Transactions whose identifiers are kept for the sessions that ask for them.
const NUMBERED_MAX: usize = 10_000;

/// The transaction that is being read.
#[derive(Default)]
struct Group {
    /// Its events, not sealed.
    events: Vec<u8>,
    /// Bytes of them all when sealed.
    sealed_bytes: u64,
    /// It is the text of a change of definitions.
    is_definition: bool,
    has_begun: bool,
    seconds: u32,
    keys: Vec<u8>,
    /// All its events are there.
    is_complete: bool,
    /// It was given its identifier after them.
    is_named_late: bool,
    /// The identifier that it was given.
    gtid: Option<Gtid>,
    /// The server where it began, and its commit there in microseconds; 0 for this one.
    server_id: u32,
    commit_micros: u64,
    /// The level that it is to be compressed with, and whether that was done.
    compression: Option<i32>,
    is_compressed: bool,
    /// Its number, if its identifier is to be told.
    number: Option<u64>,
    /// Where its first event will be, when the others are in the file already.
    streamed_at: Option<u64>,
    /// Its identifier came after its events were in the file, and its first event has no room there.
    needs_room: bool,
}

/// Writes the log's files.
pub(crate) struct Follower {
    core: Arc<Core>,
    home: Arc<Home>,
    sessions: Arc<dyn SessionFactory>,
    reader: Box<dyn AttachmentReader>,
    files: Vec<LogFile>,
    file: Arc<dyn File>,
    /// The end of the file, with `out`.
    end: u64,
    out: Vec<u8>,
    executed: GtidSet,
    purged: GtidSet,
    sequence: i64,
    /// Events of the present file have checksums.
    has_checksums: bool,
    history: History,
    /// Position of the last commit that was taken.
    position: u64,
    durable: Durable,
    durable_at: Duration,
    /// Where attachments are read; the room for a transaction's events.
    bytes: Vec<u8>,
    room: Vec<u8>,
    /// `max_binlog_size`, read for each round.
    size_max: u64,
    /// Whether commits are held back until replicas have them, asked for each round.
    is_holding: bool,
    /// Positions of commits that are held back and that readers have not been shown, and where they end in the files.
    unpublished: Vec<(u64, Place)>,
}

impl Follower {
    /// Opens the log's files and goes on where they are durable.
    ///
    /// # Errors
    /// I/O; damaged files.
    pub fn open(
        core: Arc<Core>,
        home: Arc<Home>,
        sessions: Arc<dyn SessionFactory>,
    ) -> Result<Follower> {
        let word = |error: io::Error| io_error(&error);
        let mut durable = Durable::read(&*home.disk).map_err(word)?;
        let is_new = durable.is_none();
        if is_new {
            durable = Durable::of_clone(&*home.disk).map_err(word)?;
        }
        let after = durable.as_ref().map(|durable| durable.position);
        let reader =
            core.engine.attachments(after).map_err(|e| e.into_error(&CancelToken::new()))?;
        let durable = durable.unwrap_or_default();
        let mut numbers: Vec<u64> =
            home.disk.list().map_err(word)?.iter().filter_map(|name| file_number(name)).collect();
        numbers.sort_unstable();
        // Files after the durable one will be written again.
        for number in numbers.iter().filter(|number| **number > durable.file) {
            home.disk.remove(&file_name(*number)).map_err(word)?;
        }
        numbers.retain(|number| *number <= durable.file);
        let mut files = Vec::new();
        for number in numbers {
            files.push(crate::files::describe(&*home.disk, number)?);
        }
        let number = durable.file.max(1);
        let file = home.disk.open(&file_name(number), OpenMode::OrCreate).map_err(word)?;
        file.set_size(durable.size).map_err(word)?;
        if let Some(last) = files.last_mut() {
            last.size = durable.size;
        }
        let has_checksums =
            !is_new && crate::files::FileEvents::open(&*home.disk, number, 0)?.has_checksums()?;
        let mut follower = Follower {
            core,
            home,
            sessions,
            reader,
            files,
            file,
            end: durable.size,
            out: Vec::new(),
            executed: durable.executed.clone(),
            purged: durable.purged.clone(),
            sequence: durable.sequence,
            has_checksums,
            history: History::default(),
            position: durable.position,
            durable,
            durable_at: sys::clock::monotonic(),
            bytes: Vec::new(),
            room: Vec::new(),
            size_max: 0,
            is_holding: false,
            unpublished: Vec::new(),
        };
        if is_new {
            follower.begin_file(1)?;
        }
        if follower.reader.has_gap() {
            warn!("the binary log has a gap: the server ran without it for a while");
            follower.put_incident("the server ran without a binary log");
        }
        follower.make_durable()?;
        if is_new {
            Durable::forget_clone(&*follower.home.disk).map_err(word)?;
        }
        Ok(follower)
    }

    /// Writes what a crash left, and begins a file for this run of the server.
    ///
    /// # Errors
    /// I/O.
    pub fn begin_run(&mut self) -> Result<()> {
        self.read_settings();
        while self.take_commit()? {}
        if self.end > self.first_bytes() {
            self.begin_next_file()?;
        }
        self.publish()
    }

    /// Writes until the server stops.
    ///
    /// # Errors
    /// I/O: what was written since the last `make_durable` must be written again.
    pub fn run(&mut self) -> Result<()> {
        loop {
            self.read_settings();
            let (mut has_taken, mut is_drained) = (false, false);
            while self.out.len() < WRITE_BYTES && !is_drained {
                is_drained = !self.take_commit()?;
                has_taken |= !is_drained;
            }
            self.publish()?;
            self.follow_orders()?;
            if self.has_checksums != self.wants_checksums() {
                self.begin_next_file()?;
                self.publish()?;
            }
            if has_taken {
                self.make_durable_if_due()?;
                if is_drained && !self.core.semi_sync.is_enabled() {
                    self.reader.pause(GATHER);
                }
                continue;
            }
            // Pairs with the store in `Running::stop`.
            if self.core.is_stopping.load(Ordering::Acquire) {
                self.put(EventKind::STOP, 0, |_| {});
                return self.publish().and_then(|()| self.make_durable());
            }
            self.make_durable_if_due()?;
            self.reader.wait(if self.is_holding { HOLDING_ROUND } else { ROUND });
        }
    }

    fn read_settings(&mut self) {
        self.size_max = self.sessions.global_integer("max_binlog_size").max(4096);
        self.is_holding = self.core.semi_sync.is_holding();
    }

    fn wants_checksums(&self) -> bool {
        self.sessions.global_text("binlog_checksum") != "NONE"
    }

    fn number(&self) -> u64 {
        self.files.last().map_or(1, |file| file.number)
    }

    fn seconds() -> u32 {
        sys::clock::wall().as_secs() as u32
    }

    /// Appends an event of the log itself.
    fn put(&mut self, kind: EventKind, flags: u16, body: impl FnOnce(&mut Vec<u8>)) {
        let mut event = Vec::new();
        let server_id = self.core.settings.server_id();
        write_event(&mut event, kind, Follower::seconds(), server_id, flags, body);
        self.put_sealed(&event);
    }

    fn put_sealed(&mut self, event: &[u8]) {
        self.end += event.len() as u64 + self.checksum_bytes();
        finish_event(event, self.end as u32, self.has_checksums, &mut self.out);
    }

    /// Bytes of an event's checksum in the present file.
    fn checksum_bytes(&self) -> u64 {
        if self.has_checksums { CHECKSUM_BYTES as u64 } else { 0 }
    }

    /// Appends the first event of a file. It has a checksum whether the others have or not.
    fn put_format(&mut self) {
        let (version, has_checksums) = (self.home.server_version.clone(), self.has_checksums);
        let mut event = Vec::new();
        let server_id = self.core.settings.server_id();
        let kind = EventKind::FORMAT_DESCRIPTION;
        write_event(&mut event, kind, Follower::seconds(), server_id, 0, |out| {
            envelope::write_format_description(&version, 0, has_checksums, out);
        });
        self.end += (event.len() + CHECKSUM_BYTES) as u64;
        seal(&event, self.end as u32, &mut self.out);
    }

    fn put_incident(&mut self, message: &str) {
        self.put(EventKind::INCIDENT, 0, |out| envelope::write_incident(message, out));
    }

    /// Bytes of a file without transactions.
    fn first_bytes(&self) -> u64 {
        let mut event = Vec::new();
        write_event(&mut event, EventKind::PREVIOUS_GTIDS, 0, 0, 0, |out| {
            envelope::write_previous_gtids(
                &self.files.last().map(|file| (*file.before).clone()).unwrap_or_default(),
                out,
            );
        });
        let mut first = Vec::new();
        write_event(&mut first, EventKind::FORMAT_DESCRIPTION, 0, 0, 0, |out| {
            envelope::write_format_description(&self.home.server_version, 0, true, out);
        });
        (MAGIC.len() + event.len() + first.len() + CHECKSUM_BYTES) as u64 + self.checksum_bytes()
    }

    fn begin_file(&mut self, number: u64) -> Result<()> {
        let word = |error: io::Error| io_error(&error);
        let file = self.home.disk.open(&file_name(number), OpenMode::OrCreate).map_err(word)?;
        file.set_size(0).map_err(word)?;
        self.file = file;
        self.out.clear();
        self.out.extend_from_slice(&MAGIC);
        self.end = MAGIC.len() as u64;
        self.has_checksums = self.wants_checksums();
        self.put_format();
        let before = Arc::new(self.executed.clone());
        let all = before.clone();
        self.put(EventKind::PREVIOUS_GTIDS, IGNORABLE, |out| {
            envelope::write_previous_gtids(&all, out);
        });
        let last_micros = sys::clock::wall().as_micros() as i64;
        self.files.push(LogFile { number, size: self.end, last_micros, before });
        self.sequence = 0;
        self.history.reset();
        self.flush()?;
        crate::files::write_index(&*self.home.disk, &self.files)?;
        Ok(())
    }

    /// Ends the file and begins the next one.
    fn begin_next_file(&mut self) -> Result<()> {
        let next = self.number() + 1;
        self.put(EventKind::ROTATE, 0, |out| {
            envelope::write_rotate(MAGIC.len() as u64, &file_name(next), out);
        });
        self.flush()?;
        self.file.sync().map_err(|error| io_error(&error))?;
        self.begin_file(next)?;
        self.make_durable()
    }

    /// Writes what waits to the file.
    fn flush(&mut self) -> Result<()> {
        let at = self.end - self.out.len() as u64;
        self.file.write_at(&self.out, at).map_err(|error| io_error(&error))?;
        self.out.clear();
        if let Some(last) = self.files.last_mut() {
            last.size = self.end;
        }
        Ok(())
    }

    /// Shows readers what has been written.
    fn publish(&mut self) -> Result<()> {
        if !self.out.is_empty() {
            self.flush()?;
        }
        let passed = self.reader.passed();
        let written = self.unpublished.drain(..);
        self.core.semi_sync.written(&*self.core.engine, written, passed);
        let mut state = self.core.state.lock();
        state.is_running = true;
        if state.passed == passed && state.files == self.files {
            return Ok(());
        }
        state.files.clone_from(&self.files);
        state.executed.clone_from(&self.executed);
        state.purged.clone_from(&self.purged);
        state.passed = passed;
        drop(state);
        self.core.changed.notify_all();
        Ok(())
    }

    fn make_durable_if_due(&mut self) -> Result<()> {
        let bytes = self.end.saturating_sub(self.durable.size);
        let is_due = sys::clock::monotonic().saturating_sub(self.durable_at) >= DURABLE_EVERY;
        if is_due {
            // Also while commits never pause.
            self.core.settings.set_server_id(self.sessions.global_integer("server_id") as u32);
            self.expire()?;
        }
        if bytes >= DURABLE_EVERY_BYTES || is_due { self.make_durable() } else { Ok(()) }
    }

    /// Makes the file durable, and lets the engine forget its log up to here.
    fn make_durable(&mut self) -> Result<()> {
        let word = |error: io::Error| io_error(&error);
        self.durable_at = sys::clock::monotonic();
        let durable = Durable {
            file: self.number(),
            size: self.end,
            sequence: self.sequence,
            position: self.position,
            executed: self.executed.clone(),
            purged: self.purged.clone(),
        };
        if durable != self.durable {
            self.flush()?;
            self.file.sync().map_err(word)?;
            durable.write(&*self.home.disk).map_err(word)?;
            self.durable = durable;
            // Only now: a file that was opened again has not been written yet.
            self.core.state.lock().failure = None;
        }
        self.reader.confirm().map_err(|error| error.into_error(&CancelToken::new()))
    }

    /// Takes the next commit. False when there is none.
    fn take_commit(&mut self) -> Result<bool> {
        let next = self.reader.next();
        let next = next.map_err(|error| error.into_error(&CancelToken::new()))?;
        let Some(commit) = next else { return Ok(false) };
        let mut group = Group { events: std::mem::take(&mut self.room), ..Group::default() };
        self.take_events(&mut group, &commit)?;
        if let (true, Some(at)) = (group.needs_room, group.streamed_at) {
            // It is written once more, with its identifier. Nobody has seen it.
            self.out.clear();
            self.end = at;
            self.reader.again();
            let Group { gtid, server_id, commit_micros, .. } = group;
            group = Group { gtid, server_id, commit_micros, ..Group::default() };
            self.take_events(&mut group, &commit)?;
        }
        self.end_group(&mut group, &commit)?;
        self.position = commit.position;
        if let Some(last) = self.files.last_mut() {
            last.last_micros = commit.micros as i64;
        }
        if self.is_holding {
            self.unpublished.push((commit.position, (self.number(), self.end)));
        }
        if self.end >= self.size_max {
            self.begin_next_file()?;
        }
        Ok(true)
    }

    /// Takes the events of a commit's attachment.
    fn take_events(&mut self, group: &mut Group, commit: &AttachedCommit) -> Result<()> {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        loop {
            let more = self.reader.read(&mut bytes);
            let more = more.map_err(|error| error.into_error(&CancelToken::new()))?;
            let mut events = Events::new(&bytes);
            for (header, event) in &mut events {
                self.take_event(group, header, event, commit)?;
            }
            let rest = events.rest().len();
            bytes.drain(..bytes.len() - rest);
            if !more {
                break;
            }
        }
        if !bytes.is_empty() {
            error!(position = commit.position, "an attachment ends within an event");
        }
        if bytes.capacity() <= WRITE_BYTES {
            self.bytes = bytes;
        }
        Ok(())
    }

    fn take_event(
        &mut self,
        group: &mut Group,
        header: Header,
        event: &[u8],
        commit: &AttachedCommit,
    ) -> Result<()> {
        if header.kind == DEPENDENCIES {
            group.keys.extend_from_slice(&event[HEADER_BYTES..]);
            group.is_complete = true;
            return Ok(());
        }
        if group.is_complete {
            // The end of an XA branch gives it its identifier, as a transaction without changes.
            group.is_named_late |= header.kind == EventKind::GTID_TAGGED;
            if !group.is_named_late {
                self.end_group(group, commit)?;
            } else if header.kind == EventKind::QUERY {
                return Ok(());
            }
        }
        if header.kind == EventKind::GTID_TAGGED {
            if let Ok(Event::Gtid(event)) = decode(header.kind, &event[HEADER_BYTES..]) {
                let is_tagged = event.gtid.as_ref().is_some_and(|gtid| !gtid.tag.is_empty());
                // The room that was left for it is that of one without a tag.
                group.needs_room |=
                    group.streamed_at.is_some() && is_tagged && group.gtid != event.gtid;
                group.gtid = event.gtid;
                group.server_id = header.server_id;
                group.commit_micros = event.original_commit_timestamp;
            }
            return Ok(());
        }
        if header.kind == COMPRESSION {
            group.compression = event.get(HEADER_BYTES).map(|level| i32::from(*level));
            return Ok(());
        }
        if header.kind == NUMBER {
            let number = event.get(HEADER_BYTES..).and_then(|bytes| bytes.first_chunk());
            group.number = number.map(|number| u64::from_le_bytes(*number));
            return Ok(());
        }
        if !group.has_begun {
            group.has_begun = true;
            group.seconds = header.timestamp;
            group.is_definition = header.kind == EventKind::QUERY && !is_begin(event);
        }
        let mut own;
        let mut event = event;
        if header.server_id == 0 {
            own = event.to_vec();
            own[5..9].copy_from_slice(&self.core.settings.server_id().to_le_bytes());
            event = &own;
        }
        group.sealed_bytes += event.len() as u64 + self.checksum_bytes();
        if group.streamed_at.is_some() {
            self.put_sealed(event);
            return if self.out.len() >= WRITE_BYTES { self.flush() } else { Ok(()) };
        }
        group.events.extend_from_slice(event);
        if group.is_definition {
            return self.end_group(group, commit);
        }
        if group.events.len() >= STREAMED_BYTES {
            self.begin_stream(group)?;
        }
        Ok(())
    }

    /// The events of a transaction that is too large to be kept go to the file before its first one, for which room is left.
    fn begin_stream(&mut self, group: &mut Group) -> Result<()> {
        self.flush()?;
        group.streamed_at = Some(self.end);
        let first = self.first_event(group, u64::MAX >> 8, 0, (0, 0));
        self.out.resize(first.len() + self.checksum_bytes() as usize, 0);
        self.end += self.out.len() as u64;
        let events = std::mem::take(&mut group.events);
        for (_, event) in Events::new(&events) {
            self.put_sealed(event);
        }
        self.flush()
    }

    /// The event that a transaction begins with, not sealed.
    fn first_event(&self, group: &Group, length: u64, micros: u64, clock: (i64, i64)) -> Vec<u8> {
        let gtid = self.gtid_of(group);
        let is_tagged = !gtid.tag.is_empty();
        let event = GtidEvent {
            gtid: Some(gtid),
            may_have_statements: group.is_definition,
            last_committed: clock.0,
            sequence_number: clock.1,
            immediate_commit_timestamp: micros,
            original_commit_timestamp: match group.commit_micros {
                0 => micros,
                known => known,
            },
            transaction_length: length,
            immediate_server_version: SERVER_VERSION,
            original_server_version: SERVER_VERSION,
        };
        let kind = if is_tagged { EventKind::GTID_TAGGED } else { EventKind::GTID };
        let server_id = self.server_of(group);
        let mut out = Vec::new();
        write_event(&mut out, kind, group.seconds, server_id, 0, |out| match is_tagged {
            true => event.write_tagged(out),
            false => event.write(out),
        });
        out
    }

    fn server_of(&self, group: &Group) -> u32 {
        if group.server_id > 0 { group.server_id } else { self.core.settings.server_id() }
    }

    /// The identifier of a transaction: the one that it was given, or this server's next.
    fn gtid_of(&self, group: &Group) -> Gtid {
        let uuid = self.home.uuid;
        let own = || Gtid { uuid, tag: "".into(), number: self.executed.next_free(uuid, "") };
        group.gtid.clone().unwrap_or_else(own)
    }

    /// Writes a transaction that is complete.
    fn end_group(&mut self, group: &mut Group, commit: &AttachedCommit) -> Result<()> {
        if !group.has_begun {
            return Ok(());
        }
        let mut group = std::mem::take(group);
        self.sequence += 1;
        let last = self.history.last_committed(self.sequence, &group.keys);
        let clock = (last, self.sequence);
        if !group.is_definition {
            group.sealed_bytes += (HEADER_BYTES + 8) as u64 + self.checksum_bytes();
        }
        self.compress(&mut group, commit)?;
        // The length of the first event depends on the length of all.
        let mut length = group.sealed_bytes;
        let mut first = Vec::new();
        for _ in 0..3 {
            first = self.first_event(&group, length, commit.micros, clock);
            let all = group.sealed_bytes + first.len() as u64 + self.checksum_bytes();
            if std::mem::replace(&mut length, all) == all {
                break;
            }
        }
        let first_at = group.streamed_at;
        if first_at.is_none() {
            self.put_sealed(&first);
            for (_, event) in Events::new(&group.events) {
                self.put_sealed(event);
            }
        }
        if !group.is_definition && !group.is_compressed {
            let mut event = Vec::new();
            self.put_xid(&group, commit, &mut event);
            self.put_sealed(&event);
        }
        if let Some(at) = first_at {
            self.flush()?;
            let mut sealed = Vec::new();
            let end = at + first.len() as u64 + self.checksum_bytes();
            finish_event(&first, end as u32, self.has_checksums, &mut sealed);
            self.file.write_at(&sealed, at).map_err(|error| io_error(&error))?;
        }
        let gtid = self.gtid_of(&group);
        self.executed.add(gtid.uuid, &gtid.tag, gtid.number);
        if let Some(since) = &mut self.core.state.lock().since_backup {
            since.push((commit.position, gtid.clone()));
        }
        if let Some(number) = group.number {
            let numbered = &mut self.core.state.lock().numbered;
            if numbered.len() >= NUMBERED_MAX {
                numbered.pop_front();
            }
            numbered.push_back((number, gtid));
        }
        if group.events.capacity() <= WRITE_BYTES {
            group.events.clear();
            self.room = group.events;
        }
        Ok(())
    }

    /// Appends the event that a transaction with rows ends with.
    fn put_xid(&self, group: &Group, commit: &AttachedCommit, out: &mut Vec<u8>) {
        write_event(out, EventKind::XID, group.seconds, self.server_of(group), 0, |out| {
            envelope::write_xid(commit.position, out);
        });
    }

    /// Makes one event of those of a transaction, if it wants that. One that is too large to be kept is written as it is.
    fn compress(&self, group: &mut Group, commit: &AttachedCommit) -> Result<()> {
        let Some(level) = group.compression else { return Ok(()) };
        if group.is_definition || group.streamed_at.is_some() {
            return Ok(());
        }
        let mut events = std::mem::take(&mut group.events);
        self.put_xid(group, commit, &mut events);
        let (kind, mut written) = (EventKind::TRANSACTION_PAYLOAD, Ok(()));
        let server_id = self.server_of(group);
        write_event(&mut group.events, kind, group.seconds, server_id, 0, |out| {
            written = envelope::TransactionPayload::write(&events, level, out);
        });
        written.map_err(|error| io_error(&error))?;
        group.is_compressed = true;
        group.sealed_bytes = group.events.len() as u64 + self.checksum_bytes();
        Ok(())
    }

    fn follow_orders(&mut self) -> Result<()> {
        loop {
            let next = self.core.state.lock().orders.pop_front();
            let Some((number, order)) = next else { return Ok(()) };
            let answer = self.follow(&order);
            self.publish()?;
            self.core.state.lock().answers.push((number, answer));
            self.core.changed.notify_all();
        }
    }

    fn follow(&mut self, order: &Order) -> Result<()> {
        match order {
            Order::Rotate => self.begin_next_file(),
            Order::Purge(PurgeLimit::To(name)) => {
                let known = file_number(name)
                    .filter(|number| self.files.iter().any(|file| file.number == *number));
                let Some(first) = known else { bail!(UNKNOWN_TARGET_BINLOG) };
                self.purge(|file| file.number < first)
            }
            Order::Purge(PurgeLimit::Before(micros)) => {
                let micros = *micros;
                self.purge(|file| file.last_micros < micros)
            }
            Order::Reset(first) => {
                let old: Vec<u64> = self.files.drain(..).map(|file| file.number).collect();
                self.executed = GtidSet::default();
                self.purged = GtidSet::default();
                self.change_streams(|streams| streams.lose_all("the log began anew"))?;
                for number in old {
                    self.home.disk.remove(&file_name(number)).map_err(|error| io_error(&error))?;
                }
                self.begin_file(*first)?;
                self.make_durable()
            }
            Order::AddPurged(set) => {
                self.purged.add_all(set);
                self.executed.add_all(set);
                self.change_streams(|streams| streams.pass_over(set))?;
                self.begin_next_file()
            }
        }
    }

    /// Removes the oldest files while `is_old` says so, but not one that a reader is at or a change stream needs, nor the last one.
    fn purge(&mut self, is_old: impl Fn(&LogFile) -> bool) -> Result<()> {
        let read = self.core.state.lock().readers.iter().map(|(_, file)| *file).min();
        let is_read = |file: &LogFile| read.is_some_and(|read| file.number >= read);
        let count = self.files.iter().take_while(|file| is_old(file) && !is_read(file)).count();
        let mut count = count.min(self.files.len().saturating_sub(1));
        if count > 0 {
            let files = std::mem::take(&mut self.files);
            let stored = self.change_streams(|streams| {
                let (free, has_lost) = streams.let_go(&files, count);
                count = free;
                has_lost
            });
            self.files = files;
            stored?;
        }
        if count == 0 {
            return Ok(());
        }
        let old: Vec<LogFile> = self.files.drain(..count).collect();
        if let Some(first) = self.files.first() {
            self.purged = first.before.union(&self.purged);
        }
        crate::files::write_index(&*self.home.disk, &self.files)?;
        for file in old {
            self.home.disk.remove(&file_name(file.number)).map_err(|error| io_error(&error))?;
        }
        self.make_durable()
    }

    /// Changes the streams, and stores them when `change` says so.
    fn change_streams(&self, change: impl FnOnce(&mut Streams) -> bool) -> Result<()> {
        let mut streams = self.core.streams.lock();
        if change(&mut streams) { self.core.store_streams(&streams) } else { Ok(()) }
    }

    /// `binlog_expire_logs_seconds`.
    fn expire(&mut self) -> Result<()> {
        let seconds = self.sessions.global_integer("binlog_expire_logs_seconds");
        let is_on = self.sessions.global_integer("binlog_expire_logs_auto_purge") != 0;
        if seconds == 0 || !is_on || self.files.len() < 2 {
            return Ok(());
        }
        let now = sys::clock::wall().as_micros() as i64;
        let before = now.saturating_sub((seconds as i64).saturating_mul(1_000_000));
        self.purge(|file| file.last_micros < before)?;
        self.publish()
    }
}

/// Appends a copy of an event with its position, and a checksum if its file has them.
fn finish_event(event: &[u8], end: u32, has_checksums: bool, out: &mut Vec<u8>) {
    if has_checksums {
        return seal(event, end, out);
    }
    let start = out.len();
    out.extend_from_slice(event);
    out[start + 13..start + 17].copy_from_slice(&end.to_le_bytes());
}

/// Whether a statement is BEGIN.
fn is_begin(event: &[u8]) -> bool {
    let body = event.get(HEADER_BYTES..).unwrap_or_default();
    let Ok(Event::Query(query)) = decode(EventKind::QUERY, body) else { return false };
    query.text == b"BEGIN"
}

/// Runs a follower, and another one after a failure, until the server stops.
pub(crate) fn serve(core: &Arc<Core>, home: &Arc<Home>, sessions: &Arc<dyn SessionFactory>) {
    let mut is_first = true;
    // Pairs with the store in `Running::stop`.
    while !core.is_stopping.load(Ordering::Acquire) {
        let outcome = follow(core, home, sessions, &mut is_first);
        let Err(failure) = outcome else { break };
        let text = failure.to_string();
        let mut state = core.state.lock();
        if state.failure.as_ref() != Some(&text) {
            error!("the binary log cannot be written: {text}; trying again");
        }
        state.failure = Some(text);
        drop(state);
        core.semi_sync.stop_holding(&*core.engine);
        core.changed.notify_all();
        // Pairs with the store in `Running::stop`.
        if !core.is_stopping.load(Ordering::Acquire) {
            sys::threads::sleep(RETRY);
        }
    }
    core.semi_sync.stop_holding(&*core.engine);
    core.state.lock().is_running = false;
    core.changed.notify_all();
}

fn follow(
    core: &Arc<Core>,
    home: &Arc<Home>,
    sessions: &Arc<dyn SessionFactory>,
    is_first: &mut bool,
) -> Result<()> {
    core.settings.set_server_id(sessions.global_integer("server_id") as u32);
    let mut follower = Follower::open(core.clone(), home.clone(), sessions.clone())?;
    *core.waker.lock() = Some(follower.reader.waker());
    if std::mem::take(is_first) {
        follower.begin_run()?;
    }
    follower.run()
}
