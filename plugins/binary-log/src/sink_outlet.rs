//! Collects the events of a stream, delivers them in batches, again and again until the receiver keeps them, and stores how far it is.

use std::sync::Arc;
use std::time::Duration;

use changes::{Event, Outlet};
use engine_api::CancelToken;
use errors::{Error, Result, err};
use plugin_api::{SinkBatch, SinkConnection, SinkEvent, SinkFailure, StreamSink};
use types::GtidSet;

use crate::core::Core;
use crate::sink_states::{WAIT_MAX, wait_after};
use crate::streams::{SinkSpec, Stream};

/// How often a place is stored while events come: each time is a write to disk.
const CONFIRM_EVERY: Duration = Duration::from_secs(1);
/// How often is looked whether the stream was stopped.
const STEP: Duration = Duration::from_millis(100);

/// What a stream's reader writes to.
pub(crate) struct SinkOutlet<'a> {
    core: &'a Core,
    stream: &'a Stream,
    spec: &'a SinkSpec,
    sink: Arc<dyn StreamSink>,
    cancel: &'a CancelToken,
    connection: Option<Box<dyn SinkConnection>>,
    events: Vec<SinkEvent>,
    bytes: usize,
    /// The place after the last event; none within a transaction.
    position: Option<String>,
    /// A place that the receiver has and that is not stored yet.
    reached: Option<String>,
    confirmed_at: Duration,
}

impl<'a> SinkOutlet<'a> {
    pub fn new(
        core: &'a Core,
        stream: &'a Stream,
        spec: &'a SinkSpec,
        sink: Arc<dyn StreamSink>,
        cancel: &'a CancelToken,
    ) -> SinkOutlet<'a> {
        SinkOutlet {
            core,
            stream,
            spec,
            sink,
            cancel,
            connection: None,
            events: Vec::new(),
            bytes: 0,
            position: None,
            reached: None,
            confirmed_at: Duration::ZERO,
        }
    }

    /// Stores that the receiver has these transactions.
    ///
    /// # Errors
    /// The stream is gone or begins elsewhere now; I/O.
    pub fn confirm(&mut self, position: &str) -> Result<()> {
        let set =
            GtidSet::parse(position).ok_or_else(|| Error::internal("a place that is none"))?;
        self.core.confirm_delivered(&self.stream.name, self.stream.generation, &set)?;
        self.reached = None;
        self.confirmed_at = sys::clock::monotonic();
        Ok(())
    }

    /// Stores what is not stored yet, when the stream ends.
    pub fn confirm_rest(&mut self) {
        if let Some(reached) = self.reached.take()
            && let Err(error) = self.confirm(&reached)
        {
            // It will be delivered again.
            tracing::info!(stream = self.stream.name, "the place of a stream: {error}");
        }
    }

    fn confirm_if_due(&mut self) -> Result<()> {
        let since = sys::clock::monotonic().saturating_sub(self.confirmed_at);
        match self.reached.clone() {
            Some(reached) if since >= CONFIRM_EVERY => self.confirm(&reached),
            Some(_) | None => Ok(()),
        }
    }

    /// Delivers what was collected; does not return before that but with an error that ends the stream.
    fn deliver(&mut self) -> Result<()> {
        if self.events.is_empty() {
            return Ok(());
        }
        let mut failures = 0;
        while let Err(failure) = self.attempt() {
            self.cancel.check()?;
            failures += 1;
            if failures == 1 {
                let (stream, message) = (&self.stream.name, &failure.message);
                tracing::warn!(stream, "a change stream is not delivered: {message}");
            }
            self.core.sink_states.update(&self.stream.name, |status| {
                status.failures += 1;
                status.error = Some(failure.message);
            });
            self.pause(failure.retry_after.unwrap_or_else(|| wait_after(failures)).min(WAIT_MAX))?;
        }
        let count = self.events.len() as u64;
        self.core.sink_states.update(&self.stream.name, |status| {
            status.events += count;
            status.error = None;
        });
        self.events.clear();
        self.bytes = 0;
        if let Some(position) = self.position.take() {
            self.reached = Some(position);
        }
        self.confirm_if_due()
    }

    fn attempt(&mut self) -> std::result::Result<(), SinkFailure> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.sink.open(&self.spec.options, self.cancel)?,
        };
        let batch = SinkBatch {
            stream: &self.stream.name,
            events: &self.events,
            position: self.position.as_deref(),
        };
        let outcome = sys::blocking::blocking(|| connection.deliver(&batch));
        // It knows what of the batch has arrived.
        self.connection = Some(connection);
        outcome
    }

    fn pause(&self, length: Duration) -> Result<()> {
        let until = sys::clock::monotonic() + length;
        while sys::clock::monotonic() < until {
            self.cancel.check()?;
            sys::threads::sleep(STEP);
        }
        match self.core.is_lost(&self.stream.name) {
            true => Err(err!(ERROR_WHEN_EXECUTING_COMMAND, "CHANGE STREAM", "the place is lost")),
            false => Ok(()),
        }
    }
}

impl Outlet for SinkOutlet<'_> {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        if event.op == "position" {
            // Nothing that the stream has: the receiver need not know.
            self.deliver()?;
            self.reached = event.position.map(str::to_owned);
            return Ok(());
        }
        let table = event.table.map(|(schema, table)| (schema.to_owned(), table.to_owned()));
        let key = event.key.map(<[u8]>::to_vec);
        let new_key = event.new_key.map(<[u8]>::to_vec);
        let of_keys = [&key, &new_key].into_iter().flatten().map(Vec::len).sum::<usize>();
        self.bytes += event.json.len() + of_keys;
        let json = event.json.to_vec();
        self.events.push(SinkEvent { op: event.op, table, key, new_key, json });
        self.position = event.position.map(str::to_owned);
        if self.events.len() >= self.spec.batch_events || self.bytes >= self.spec.batch_bytes {
            return self.deliver();
        }
        Ok(())
    }

    fn heartbeat(&mut self) -> Result<()> {
        self.deliver()?;
        self.confirm_if_due()
    }

    fn flush(&mut self) -> Result<()> {
        self.deliver()
    }
}
