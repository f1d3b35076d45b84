//! Reads the events of a channel and gives whole transactions to its workers. What no worker may have it applies itself, while they rest:
//! definitions, XA, and transactions that are too large to be kept in memory.

use std::sync::Arc;

use binlog::gtid::GtidEvent;
use binlog::mariadb::{MariadbGtid, MariadbStart};
use binlog::query::QueryEvent;
use binlog::{Event, EventKind, GtidSet, Header, decode};
use errors::Result;

use crate::apply::{Applier, broken, is_last};
use crate::channel::Channel;
use crate::crew::{Crew, Job, Start};
use crate::mariadb;
use crate::settings::Settings;
use crate::store::Position;

/// Bytes that an event takes in memory beside its own.
const EVENT_BYTES: u64 = 64;

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Event,
    /// What START REPLICA .. UNTIL asked for is reached.
    Stop,
}

/// What happens to the events of the present transaction.
enum Stage {
    /// There is none.
    Between,
    /// They are kept for a worker.
    Gathered(Job),
    /// They are applied at once.
    Alone,
    /// They are passed over.
    Skipped(Skipped),
}

/// A transaction that is passed over.
struct Skipped {
    start: Start,
    /// By `sql_replica_skip_counter`.
    is_counted: bool,
    /// It has begun with a statement that others follow.
    is_open: bool,
}

/// What a coordinator goes by.
pub(crate) struct Limits {
    /// 0: it applies everything itself.
    pub(crate) workers: usize,
    /// Bytes of all transactions that wait or are applied.
    pub(crate) bytes_max: u64,
    pub(crate) own_server_id: u32,
}

/// The reader of a channel's events.
pub(crate) struct Coordinator {
    crew: Arc<Crew>,
    channel: Arc<Channel>,
    alone: Applier,
    limits: Limits,
    ignored_servers: Vec<u64>,
    /// Positions are those of MariaDB's identifiers.
    by_gtid_slave_pos: bool,
    clock: mariadb::Clock,
    stage: Stage,
    /// Where the last transaction ends that was given out, and all that were or are here.
    position: Position,
    scheduled: GtidSet,
    file: Arc<str>,
    /// Of the last transaction in the source's logical clock.
    last_number: i64,
}

impl Coordinator {
    pub(crate) fn new(
        crew: &Arc<Crew>,
        alone: Applier,
        limits: Limits,
        settings: &Settings,
    ) -> Coordinator {
        let progress = crew.progress();
        Coordinator {
            crew: crew.clone(),
            channel: crew.channel.clone(),
            alone,
            limits,
            ignored_servers: settings.ignored_servers.clone(),
            by_gtid_slave_pos: settings.auto_position,
            clock: mariadb::Clock::default(),
            stage: Stage::Between,
            file: progress.position.file.as_str().into(),
            position: progress.position,
            scheduled: progress.executed,
            last_number: i64::MAX,
        }
    }

    /// Takes an event.
    ///
    /// # Errors
    /// Those of the statements, for what is applied here; a worker failed, the channel stops.
    pub(crate) fn take(&mut self, header: &Header, body: Vec<u8>) -> Result<Next> {
        match header.kind {
            EventKind::GTID | EventKind::GTID_TAGGED | EventKind::ANONYMOUS_GTID => {
                let Event::Gtid(event) = decode(header.kind, &body).map_err(broken)? else {
                    return Err(broken("the start of a transaction"));
                };
                return self.announce(header, event, None);
            }
            EventKind::MARIADB_GTID => return self.announce_mariadb(header, &body),
            kind if mariadb::is_aside(kind) => return Ok(self.after_event()),
            EventKind::ROTATE => {
                if let Event::Rotate(rotate) = decode(header.kind, &body).map_err(broken)? {
                    self.rotate(&String::from_utf8_lossy(rotate.name), rotate.position)?;
                }
                return Ok(self.after_event());
            }
            _ => {}
        }
        match std::mem::replace(&mut self.stage, Stage::Between) {
            Stage::Gathered(job) => self.gather(job, header, body)?,
            Stage::Alone => {
                self.stage = Stage::Alone;
                self.apply(header, &body)?;
            }
            Stage::Skipped(skipped) => self.skip(skipped, header, &body)?,
            Stage::Between => self.alone.apply(header, &body)?,
        }
        Ok(self.after_event())
    }

    /// Where the source's log was read up to, between transactions.
    pub(crate) fn place(&self) -> Option<(&str, u64)> {
        let is_between = matches!(self.stage, Stage::Between);
        is_between.then_some((&*self.position.file, self.position.offset))
    }

    /// What UNTIL says of the present position.
    fn after_event(&self) -> Next {
        let is_between = matches!(self.stage, Stage::Between);
        if is_between && self.channel.is_until_reached(&self.position, &self.scheduled) {
            return Next::Stop;
        }
        Next::Event
    }

    fn rotate(&mut self, file: &str, offset: u64) -> Result<()> {
        self.crew.drain()?;
        self.crew.set_file(file, offset);
        self.file = file.into();
        file.clone_into(&mut self.position.file);
        self.position.offset = offset;
        Ok(())
    }

    /// A transaction of MariaDB begins.
    fn announce_mariadb(&mut self, header: &Header, body: &[u8]) -> Result<Next> {
        let start = MariadbStart::read(body, header.server_id).map_err(broken)?;
        if self.by_gtid_slave_pos {
            mariadb::check_order(&start, &self.position.gtid_slave_pos)?;
        }
        let event = self.clock.start(&start, header);
        let next = self.announce(header, event, Some(start.gtid))?;
        match mariadb::beginning(&start) {
            Some(body) if next == Next::Event => {
                self.take(&Header { kind: EventKind::QUERY, ..*header }, body)
            }
            Some(_) | None => Ok(next),
        }
    }

    /// A transaction begins.
    fn announce(
        &mut self,
        header: &Header,
        event: GtidEvent,
        mariadb: Option<MariadbGtid>,
    ) -> Result<Next> {
        if !matches!(self.stage, Stage::Between) {
            return Err(broken("a transaction within another"));
        }
        if let Some(gtid) = &event.gtid
            && self.channel.stops_before(gtid)
        {
            return Ok(Next::Stop);
        }
        let (server_id, timestamp) = (header.server_id, header.timestamp);
        let start = Start { event, mariadb, server_id, timestamp, file: self.file.clone() };
        let gtid = start.event.gtid.as_ref();
        let is_done =
            gtid.is_some_and(|gtid| self.scheduled.contains(gtid.uuid, &gtid.tag, gtid.number));
        let is_foreign = server_id == self.limits.own_server_id
            || self.ignored_servers.contains(&u64::from(server_id));
        self.channel.update(|status| {
            if !is_done && status.applying_since.is_none() {
                status.applying_since = Some(timestamp);
            }
            status.reading = start.seen();
            if let Some(gtid) = gtid {
                status.retrieved.add(gtid.uuid, &gtid.tag, gtid.number);
            }
        });
        if start.event.sequence_number <= self.last_number {
            // The first of a file, or of this connection.
            self.crew.drain()?;
            self.crew.begin_clock(start.event.sequence_number);
        }
        self.last_number = start.event.sequence_number;
        let is_counted = !is_done && !is_foreign && self.channel.count_skipped(false);
        if is_done || is_foreign || is_counted {
            self.stage = Stage::Skipped(Skipped { start, is_counted, is_open: false });
            return Ok(Next::Event);
        }
        self.channel.delay(start.event.immediate_commit_timestamp as i64)?;
        match self.limits.workers {
            0 => {
                self.alone.begin_transaction(start);
                self.stage = Stage::Alone;
            }
            _ => self.stage = Stage::Gathered(Job::new(start)),
        }
        Ok(Next::Event)
    }

    /// The transaction was given out, applied or passed over up to this offset.
    fn note_scheduled(&mut self, start: &Start, offset: u32) {
        self.position.offset = u64::from(offset);
        if let Some(gtid) = &start.event.gtid {
            self.scheduled.add(gtid.uuid, &gtid.tag, gtid.number);
        }
        if let Some(gtid) = start.mariadb {
            self.position.gtid_slave_pos.advance(gtid);
        }
        self.channel.update(|status| {
            status.read = std::mem::take(&mut status.reading);
            status.read.ended_micros = crate::status::now_micros();
        });
    }

    /// An event of a transaction that a worker may have.
    fn gather(&mut self, mut job: Job, header: &Header, body: Vec<u8>) -> Result<()> {
        let is_first = job.events.is_empty();
        let (is_allowed, is_end, bytes) = match header.kind {
            EventKind::QUERY | EventKind::XID | EventKind::TRANSACTION_PAYLOAD => {
                let event = decode(header.kind, &body).map_err(broken)?;
                if let Event::Query(query) = event {
                    (is_of_rows(&query, is_first), query.text == b"COMMIT", 0)
                } else if let Event::TransactionPayload(payload) = event {
                    // What is in it is changes of rows.
                    (is_first, true, payload.uncompressed_size)
                } else {
                    (!is_first, true, 0)
                }
            }
            // Their place is looked at by who applies them.
            EventKind::TABLE_MAP
            | EventKind::ROWS_QUERY
            | EventKind::WRITE_ROWS
            | EventKind::UPDATE_ROWS
            | EventKind::DELETE_ROWS
            | EventKind::PARTIAL_UPDATE_ROWS
            | EventKind::WRITE_ROWS_V1
            | EventKind::UPDATE_ROWS_V1
            | EventKind::DELETE_ROWS_V1 => (!is_first, false, 0),
            _ => (false, false, 0),
        };
        job.bytes = job.bytes.saturating_add(bytes.max(body.len() as u64) + EVENT_BYTES);
        job.events.push((*header, body));
        if !is_allowed || job.bytes > self.limits.bytes_max {
            return self.go_alone(job);
        }
        if !is_end {
            self.stage = Stage::Gathered(job);
            return Ok(());
        }
        self.note_scheduled(&job.start, header.position);
        self.crew.give(job, self.limits.bytes_max)
    }

    /// Applies a transaction here, what has come of it and what will.
    fn go_alone(&mut self, job: Job) -> Result<()> {
        self.crew.drain()?;
        self.alone.begin_transaction(job.start);
        self.stage = Stage::Alone;
        job.events.iter().try_for_each(|(header, body)| self.apply(header, body))
    }

    fn apply(&mut self, header: &Header, body: &[u8]) -> Result<()> {
        self.alone.apply(header, body)?;
        if let Some(start) = self.alone.take_ended() {
            self.stage = Stage::Between;
            self.note_scheduled(&start, header.position);
        }
        Ok(())
    }

    /// An event of a transaction that is passed over.
    fn skip(&mut self, skipped: Skipped, header: &Header, body: &[u8]) -> Result<()> {
        let Skipped { start, is_counted, mut is_open } = skipped;
        let event = decode(header.kind, body).map_err(broken)?;
        let is_end = match event {
            // MariaDB logs changes of rows as statements between BEGIN and the end.
            Event::Query(query) if is_open => matches!(query.text, b"COMMIT" | b"ROLLBACK"),
            Event::Query(query) => {
                is_open = !is_last(query.text);
                !is_open
            }
            event => {
                matches!(event, Event::Xid(_) | Event::XaPrepare(_) | Event::TransactionPayload(_))
            }
        };
        if is_counted {
            self.channel.count_skipped(is_end);
        }
        if !is_end {
            self.stage = Stage::Skipped(Skipped { start, is_counted, is_open });
            return Ok(());
        }
        if is_counted {
            // Its identifier and the position after it are stored: it does not come again.
            self.crew.drain()?;
            self.note_scheduled(&start, header.position);
            return self.alone.leave_out(start, header);
        }
        self.note_scheduled(&start, header.position);
        let offset = u64::from(header.position);
        if self.limits.workers == 0 {
            self.alone.pass_over(&start, offset);
            return Ok(());
        }
        let mut job = Job::new(start);
        (job.passes_to, job.bytes) = (Some(offset), EVENT_BYTES);
        self.crew.give(job, self.limits.bytes_max)
    }
}

/// Whether a statement occurs in a transaction that changes nothing but rows.
fn is_of_rows(query: &QueryEvent<'_>, is_first: bool) -> bool {
    if is_first {
        return query.text == b"BEGIN";
    }
    const PARTS: [&[u8]; 3] = [b"COMMIT", b"SAVEPOINT ", b"ROLLBACK TO "];
    PARTS.iter().any(|part| query.text.starts_with(part))
}
