//! Brings change streams to their sinks: a thread for each, and one that starts and ends them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use changes::{Reader, Runner, Shape};
use engine_api::CancelToken;
use errors::Result;
use plugin_api::{DumpRequest, ResultSink, SessionFactory, SessionHandle};
use sys::sync::atomic::{AtomicBool, Ordering};
use sys::threads::{Thread, spawn};

use crate::core::Core;
use crate::dump;
use crate::sink_outlet::SinkOutlet;
use crate::sink_states::{find, wait_after};
use crate::streams::{Stream, scope_document};

/// How often is looked which streams have sinks.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Time between heartbeats of the log: so often a stream's place is stored when nothing comes.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// The thread of a stream.
struct Worker {
    stream: Stream,
    cancel: CancelToken,
    has_ended: Arc<AtomicBool>,
    thread: Thread,
    /// How often it has ended with an error, one time after the other.
    failures: u32,
}

impl Worker {
    fn start(
        core: &Arc<Core>,
        sessions: &Arc<dyn SessionFactory>,
        stream: Stream,
    ) -> Option<Worker> {
        let cancel = CancelToken::new();
        let has_ended = Arc::new(AtomicBool::new(false));
        let (core, sessions) = (core.clone(), sessions.clone());
        let (given, token, ended) = (stream.clone(), cancel.clone(), has_ended.clone());
        let thread = spawn("change-sink", move || {
            if let Err(error) = run(&core, &sessions, &given, &token)
                && !token.is_cancelled()
            {
                tracing::warn!(stream = given.name, "a change stream is not delivered: {error}");
                core.sink_states.update(&given.name, |status| {
                    status.failures += 1;
                    status.error = Some(error.to_string());
                });
            }
            // Pairs with the load in `has_ended`.
            ended.store(true, Ordering::Release);
        });
        match thread {
            Ok(thread) => Some(Worker { stream, cancel, has_ended, thread, failures: 0 }),
            Err(error) => {
                tracing::error!("no thread for a change stream: {error}");
                None
            }
        }
    }

    fn has_ended(&self) -> bool {
        // Pairs with the store in `start`.
        self.has_ended.load(Ordering::Acquire)
    }

    fn end(self) {
        self.cancel.kill_connection();
        self.thread.join();
    }
}

/// Starts and ends the threads of streams until the server stops.
pub(crate) fn serve(core: &Arc<Core>, sessions: &Arc<dyn SessionFactory>) {
    let mut workers: HashMap<String, Worker> = HashMap::new();
    let mut waiting: HashMap<String, (u32, Duration)> = HashMap::new();
    // Pairs with the store in `Running::stop`.
    while !core.is_stopping.load(Ordering::Acquire) {
        let wanted: HashMap<String, Stream> = core.streams.lock().of_sinks();
        let now = sys::clock::monotonic();
        let is_over = |worker: &Worker| {
            let same =
                wanted.get(&worker.stream.name).is_some_and(|s| s.is_same_reader(&worker.stream));
            !same || worker.has_ended()
        };
        let over: Vec<String> =
            workers.values().filter(|w| is_over(w)).map(|w| w.stream.name.clone()).collect();
        for name in over {
            let Some(worker) = workers.remove(&name) else { continue };
            let failures = worker.failures + 1;
            if worker.has_ended() {
                waiting.insert(name, (failures, now + wait_after(failures)));
            } else {
                core.sink_states.forget(&name);
                waiting.remove(&name);
            }
            worker.end();
        }
        for (name, stream) in wanted {
            let (failures, at) = waiting.get(&name).copied().unwrap_or_default();
            if workers.contains_key(&name) || now < at || stream.lost.is_some() {
                continue;
            }
            if let Some(mut worker) = Worker::start(core, sessions, stream) {
                worker.failures = failures;
                workers.insert(name, worker);
            }
        }
        core.wait_for_streams(LOOK_EVERY);
    }
    workers.into_values().for_each(Worker::end);
}

/// A session of the server itself, which may read all rows.
struct OwnSession {
    session: Box<dyn SessionHandle>,
    cancel: CancelToken,
}

impl Runner for OwnSession {
    fn run(&mut self, sql: &str, sink: &mut dyn ResultSink) -> Result<()> {
        self.session.query(sql.as_bytes(), &[], sink).map(drop)
    }

    fn cancel(&self) -> CancelToken {
        self.cancel.clone()
    }
}

/// Delivers a stream until it is stopped.
fn run(
    core: &Arc<Core>,
    sessions: &Arc<dyn SessionFactory>,
    stream: &Stream,
    cancel: &CancelToken,
) -> Result<()> {
    let Some(spec) = &stream.sink else { return Ok(()) };
    let sink = find(sessions, &spec.name)?;
    // It may have gone on since the thread was asked for.
    let stream = core.streams.lock().find(&stream.name).cloned().unwrap_or_else(|| stream.clone());
    let mut outlet = SinkOutlet::new(core, &stream, spec, sink, cancel);
    let scope = changes::Scope::of_document(&scope_document(&stream.scope));
    let shape = Shape { has_before: stream.has_before, has_schema: stream.has_schema };
    let mut position = stream.confirmed.clone();
    if stream.wants_snapshot {
        let session = sessions.open_applier(cancel.clone())?;
        let mut session = OwnSession { session, cancel: cancel.clone() };
        position = changes::write_snapshot(&**sessions, &mut session, &mut outlet, &scope, shape)?;
        outlet.confirm(&changes::one_line(&position))?;
    }
    let mut gtids = Vec::new();
    binlog::gtid::write_tagged_set(&position, &mut gtids);
    let request = DumpRequest {
        stream: Some(stream.name.clone()),
        gtids: Some(gtids),
        connection_id: stream.generation,
        heartbeat: HEARTBEAT,
        ..DumpRequest::default()
    };
    let outcome =
        dump::dump(core, &request, &mut Reader::new(&mut outlet, scope, shape, position), cancel);
    outlet.confirm_rest();
    outcome
}
