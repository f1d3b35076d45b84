//! Sends the log to a reader: COM_BINLOG_DUMP and COM_BINLOG_DUMP_GTID.

use std::time::Duration;

use binlog::event::{CHECKSUM_BYTES, HEADER_BYTES, MAGIC, flags};
use binlog::gtid::GtidEvent;
use binlog::{Event, EventKind, Header, decode, envelope, seal, write_event};
use engine_api::CancelToken;
use errors::{Error, Result, err};
use plugin_api::{DumpRequest, DumpSink};
use types::GtidSet;

use crate::core::{Core, Home, State, file_name, file_number};
use crate::files::{FileEvents, plain};
use crate::semi_sync;

/// The longest wait before the connection is looked at again.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long an answer is waited for before more is sent, and how often the connection is looked at meanwhile.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
const ANSWER_STEP: Duration = Duration::from_millis(200);

fn fatal(text: &str) -> Error {
    err!(SOURCE_FATAL_ERROR_READING_BINLOG, 1236, text)
}

/// A connection that reads the log.
struct Reader<'a> {
    core: &'a Core,
    home: &'a Home,
    request: &'a DumpRequest,
    sink: &'a mut dyn DumpSink,
    cancel: &'a CancelToken,
    /// It announced itself as a replica.
    is_registered: bool,
    events: FileEvents,
    /// Transactions that it has.
    known: Option<GtidSet>,
    /// The present transaction is one of them.
    skips: bool,
    /// Events of the present file have checksums.
    has_checksums: bool,
    /// Those that are sent have them.
    sends_checksums: bool,
    /// The last event, for a reader that acknowledges: whether it asks for an answer is known when no other follows.
    kept: Vec<u8>,
    /// Until when an answer is waited for.
    answer_until: Option<Duration>,
}

/// Takes the reader off the list.
struct Listed<'a>(&'a Core, u64);

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.0.state.lock().readers.retain(|(connection, _)| *connection != self.1);
    }
}

/// Takes the reader off the list of those that acknowledge.
struct Acknowledging<'a>(&'a Core, u64);

impl Drop for Acknowledging<'_> {
    fn drop(&mut self) {
        self.0.semi_sync.remove(self.1);
    }
}

/// Sends events until the reader goes, or until the end of the log if it asked for that.
///
/// # Errors
/// 1236; the reader is gone.
pub(crate) fn dump(
    core: &Core,
    request: &DumpRequest,
    sink: &mut dyn DumpSink,
    cancel: &CancelToken,
) -> Result<()> {
    let home = core.home()?;
    sys::blocking::blocking(|| core.catch_up())?;
    let known = request.gtids.as_deref().map(binlog::gtid::read_set).transpose();
    let known = known.map_err(|_| err!(MALFORMED_GTID_SET_ENCODING))?;
    let stream = request.stream.as_ref();
    let occupied = stream.map(|name| core.occupy_stream(name, request.connection_id));
    let _occupied = occupied.transpose()?;
    let (number, position) = start(core, request, known.as_ref())?;
    let _listed = Listed(core, request.connection_id);
    let is_registered = {
        let mut state = core.state.lock();
        state.readers.push((request.connection_id, number));
        state.is_registered(request.connection_id)
    };
    let events = FileEvents::open(&*home.disk, number, position)?;
    let home = &*home;
    let mut reader = Reader {
        core,
        home,
        request,
        sink,
        cancel,
        is_registered,
        events,
        known,
        skips: false,
        has_checksums: true,
        sends_checksums: request.takes_checksums,
        kept: Vec::new(),
        answer_until: None,
    };
    let _acknowledging = request.acknowledges.then(|| {
        core.semi_sync.add(request.connection_id);
        Acknowledging(core, request.connection_id)
    });
    reader.run()
}

/// The file and place to begin at.
fn start(core: &Core, request: &DumpRequest, known: Option<&GtidSet>) -> Result<(u64, u64)> {
    let state = core.state.lock();
    let first = MAGIC.len() as u64;
    if let Some(known) = known {
        if !state.purged.is_subset(known) {
            let missing = state.purged.subtract(known);
            return Err(fatal(&format!(
                "Cannot replicate because the source purged required binary logs. The missing transactions are '{missing}'"
            )));
        }
        let found = state.files.iter().rev().find(|file| file.before.is_subset(known));
        return Ok((found.map_or(1, |file| file.number), first));
    }
    let found = match request.file.is_empty() {
        true => state.files.first(),
        false => file_number(&request.file).and_then(|number| state.file(number)),
    };
    let file = found
        .ok_or_else(|| fatal("Could not find first log file name in binary log index file"))?;
    if request.position < first {
        return Err(fatal("Client requested source to start replication from position < 4"));
    }
    if request.position > file.size {
        return Err(fatal(
            "Client requested source to start replication from position > file size",
        ));
    }
    Ok((file.number, request.position))
}

impl Reader<'_> {
    fn run(&mut self) -> Result<()> {
        self.begin_file()?;
        loop {
            let number = self.events.number();
            let (end, next) = {
                let state = self.core.state.lock();
                if self.is_replaced(&state) {
                    return Err(fatal(
                        "A replica with the same server_uuid as this replica has connected to the source",
                    ));
                }
                let file = state.file(number).ok_or_else(|| fatal("a file was removed"))?;
                let next = state.files.iter().map(|file| file.number).find(|at| *at > number);
                (file.size, next)
            };
            self.send_up_to(end)?;
            match next {
                Some(next) => self.go_to(next)?,
                None if self.request.is_short => {
                    self.send_kept(false)?;
                    return self.sink.flush();
                }
                None => self.wait_beyond(number, end)?,
            }
        }
    }

    /// Whether the same replica reads with another connection now.
    fn is_replaced(&self, state: &State) -> bool {
        self.is_registered && !state.is_registered(self.request.connection_id)
    }

    fn go_to(&mut self, next: u64) -> Result<()> {
        let connection = self.request.connection_id;
        {
            let mut state = self.core.state.lock();
            let own = state.readers.iter_mut().filter(|(reader, _)| *reader == connection);
            own.for_each(|(_, file)| *file = next);
        }
        self.events = FileEvents::open(&*self.home.disk, next, MAGIC.len() as u64)?;
        self.begin_file()
    }

    /// Tells of the file and its format.
    fn begin_file(&mut self) -> Result<()> {
        let position = self.events.position;
        let name = file_name(self.events.number());
        self.send_artificial(EventKind::ROTATE, 0, |out| {
            envelope::write_rotate(position, &name, out);
        })?;
        self.events.seek(MAGIC.len() as u64);
        let end = self.core.state.lock().file(self.events.number()).map_or(0, |file| file.size);
        let Some((header, event)) = self.events.next(end)? else {
            return Err(fatal("a file without events"));
        };
        if header.kind != EventKind::FORMAT_DESCRIPTION {
            return Err(fatal("a file without a format"));
        }
        let mut format = event.to_vec();
        self.has_checksums = self.events.has_checksums()?;
        self.sends_checksums = self.request.takes_checksums && self.has_checksums;
        let after = self.events.position;
        if position > after {
            // The reader has the file's beginning: it must not forget temporary tables.
            let plain = &mut format[..event_length(header)];
            plain[13..17].fill(0);
            let start = HEADER_BYTES + 2 + 50;
            plain[start..start + 4].fill(0);
            reseal(&mut format);
            self.events.seek(position);
        }
        if !self.request.takes_checksums {
            // The kind of checksums is the last byte before the event's own.
            let at = event_length(header) - 1;
            format[at] = 0;
            reseal(&mut format);
        }
        self.send_own(&format)
    }

    fn send_up_to(&mut self, end: u64) -> Result<()> {
        loop {
            let Some((header, event)) = self.events.next(end)? else { return Ok(()) };
            let starts = matches!(
                header.kind,
                EventKind::GTID | EventKind::GTID_TAGGED | EventKind::ANONYMOUS_GTID
            );
            if let (true, Some(known)) = (starts, &self.known) {
                let event = plain(header, event, self.has_checksums);
                let body = &event.ok_or_else(|| fatal("a damaged event"))?[HEADER_BYTES..];
                self.skips = false;
                if let Ok(Event::Gtid(GtidEvent { gtid: Some(gtid), .. })) =
                    decode(header.kind, body)
                {
                    self.skips = known.contains(gtid.uuid, &gtid.tag, gtid.number);
                }
            }
            let is_outside = matches!(
                header.kind,
                EventKind::ROTATE
                    | EventKind::STOP
                    | EventKind::PREVIOUS_GTIDS
                    | EventKind::INCIDENT
            );
            if self.skips && !is_outside {
                continue;
            }
            if header.kind == EventKind::STOP {
                // The next file announces itself.
                continue;
            }
            match self.sends_checksums || !self.has_checksums {
                true if self.request.acknowledges => {
                    let event = event.to_vec();
                    self.keep(&event)?;
                }
                true => self.sink.event(event)?,
                false => {
                    let mut plain = event[..event_length(header)].to_vec();
                    let size = plain.len() as u32;
                    plain[9..13].copy_from_slice(&size.to_le_bytes());
                    match self.request.acknowledges {
                        true => self.keep(&plain)?,
                        false => self.sink.event(&plain)?,
                    }
                }
            }
        }
    }

    /// Waits until there are events after `end`; tells the reader now and then that the connection lives.
    fn wait_beyond(&mut self, number: u64, end: u64) -> Result<()> {
        self.send_kept(self.core.semi_sync.is_enabled())?;
        self.sink.flush()?;
        self.take_answers()?;
        let heartbeat = Some(self.request.heartbeat).filter(|beat| !beat.is_zero());
        let mut quiet_since = sys::clock::monotonic();
        loop {
            self.take_answers()?;
            self.cancel.check()?;
            let is_changed = sys::blocking::blocking(|| {
                let state = self.core.state.lock();
                let moved = |state: &State| {
                    self.is_replaced(state)
                        || state.file(number).is_none_or(|file| file.size > end)
                        || state.last().is_some_and(|last| last.number > number)
                };
                if moved(&state) {
                    return true;
                }
                let limit = heartbeat.map_or(LOOK_EVERY, |beat| beat.min(LOOK_EVERY));
                moved(&self.core.wait(state, limit))
            });
            if is_changed {
                return Ok(());
            }
            let now = sys::clock::monotonic();
            if heartbeat.is_some_and(|beat| now.saturating_sub(quiet_since) >= beat) {
                quiet_since = now;
                let name = file_name(number);
                self.send_artificial(EventKind::HEARTBEAT, end as u32, |out| {
                    envelope::write_heartbeat(&name, out);
                })?;
                self.sink.flush()?;
            }
        }
    }

    /// Sends an event that is in no file.
    fn send_artificial(
        &mut self,
        kind: EventKind,
        position: u32,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> Result<()> {
        let mut event = Vec::new();
        let server_id = self.core.settings.server_id();
        let flags = if kind == EventKind::ROTATE { flags::ARTIFICIAL } else { 0 };
        write_event(&mut event, kind, 0, server_id, flags, body);
        if !self.sends_checksums {
            event[13..17].copy_from_slice(&position.to_le_bytes());
            return self.send_own(&event);
        }
        let mut sealed = Vec::new();
        seal(&event, position, &mut sealed);
        self.send_own(&sealed)
    }

    /// Sends an event of the log once it is known that another follows.
    fn keep(&mut self, event: &[u8]) -> Result<()> {
        self.send_kept(false)?;
        self.kept.extend_from_slice(&[semi_sync::MAGIC, 0]);
        self.kept.extend_from_slice(event);
        Ok(())
    }

    fn send_kept(&mut self, asks: bool) -> Result<()> {
        if self.kept.is_empty() {
            return Ok(());
        }
        if asks {
            self.kept[1] = 1;
            self.sink.asking_event(&self.kept)?;
            self.answer_until = Some(sys::clock::monotonic() + ANSWER_LIMIT);
        } else {
            self.sink.event(&self.kept)?;
        }
        self.kept.clear();
        Ok(())
    }

    /// Sends an event that is not as it is in the log.
    fn send_own(&mut self, event: &[u8]) -> Result<()> {
        if !self.request.acknowledges {
            return self.sink.event(event);
        }
        self.send_kept(false)?;
        let mut framed = vec![semi_sync::MAGIC, 0];
        framed.extend_from_slice(event);
        self.sink.event(&framed)
    }

    /// Takes the reader's answers; until the one comes that was asked for, no more is sent.
    fn take_answers(&mut self) -> Result<()> {
        if !self.request.acknowledges {
            return Ok(());
        }
        loop {
            self.cancel.check()?;
            let limit = if self.answer_until.is_some() { ANSWER_STEP } else { Duration::ZERO };
            match self.sink.answer(limit)? {
                Some(packet) => {
                    self.answer_until = None;
                    let (core, connection) = (self.core, self.request.connection_id);
                    core.semi_sync.acknowledge(core, connection, &packet)?;
                }
                None => match self.answer_until {
                    Some(until) if sys::clock::monotonic() < until => {}
                    Some(_) | None => {
                        self.answer_until = None;
                        return Ok(());
                    }
                },
            }
        }
    }
}

/// Bytes of a sealed event without its checksum.
fn event_length(header: Header) -> usize {
    (header.size as usize).saturating_sub(CHECKSUM_BYTES)
}

/// Computes the checksum of a sealed event that was changed.
fn reseal(event: &mut [u8]) {
    let end = event.len() - CHECKSUM_BYTES;
    let sum = binlog::event::checksum(&event[..end]);
    event[end..].copy_from_slice(&sum.to_le_bytes());
}
