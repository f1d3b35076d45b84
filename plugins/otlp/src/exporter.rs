//! The queue of spans, and the thread that sends them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use errors::{Error, Result};
use plugin_api::{
    BackgroundJob, EventSet, Observer, RunningJob, SessionFactory, StatementEnd, StatementEvent,
};
use serde_json::Value as Json;
use sys::sync::{Condvar, Mutex};
use sys::threads::Thread;
use ureq::Agent;
use ureq::tls::{RootCerts, TlsConfig, TlsProvider};

use crate::settings::Settings;
use crate::span::{Parent, request, span};

/// Spans that may wait, and how many one request sends.
const WAITING_MAX: usize = 8192;
const SENT_MAX: usize = 512;
/// How long spans wait for others.
const PAUSE: Duration = Duration::from_secs(1);
/// How long the collector may take for a request.
const SEND_WITHIN: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
struct Queue {
    spans: VecDeque<Json>,
    stops: bool,
}

/// Takes statements and sends their spans.
#[derive(Debug, Default)]
pub(crate) struct Exporter {
    pub(crate) settings: Settings,
    queue: Mutex<Queue>,
    wake: Condvar,
    exported: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
}

impl Exporter {
    /// Spans exported, spans dropped, requests that failed.
    pub(crate) fn counts(&self) -> [&AtomicU64; 3] {
        [&self.exported, &self.dropped, &self.failed]
    }

    /// Puts a span into the queue, or counts it as lost.
    pub(crate) fn push(&self, span: Json) {
        let mut queue = self.queue.lock();
        if queue.spans.len() >= WAITING_MAX {
            drop(queue);
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        queue.spans.push_back(span);
        let is_full = queue.spans.len() >= SENT_MAX;
        drop(queue);
        if is_full {
            self.wake.notify_one();
        }
    }

    /// Sends spans until it is stopped.
    fn run(&self) {
        let agent = agent();
        loop {
            let mut queue = self.queue.lock();
            if queue.spans.len() < SENT_MAX && !queue.stops {
                queue = self.wake.wait_for(queue, PAUSE);
            }
            let count = queue.spans.len().min(SENT_MAX);
            let spans: Vec<Json> = queue.spans.drain(..count).collect();
            let stops = queue.stops;
            drop(queue);
            let is_sent = spans.is_empty() || self.send(&agent, spans);
            // A stop waits for a collector that answers, not for one that does not.
            if stops && (count == 0 || !is_sent) {
                return;
            }
        }
    }

    /// Sends spans; they are lost when the collector does not take them.
    fn send(&self, agent: &Agent, spans: Vec<Json>) -> bool {
        let count = spans.len() as u64;
        let endpoint = self.settings.endpoint.text();
        let body = request(&self.settings.service.text(), spans).to_string();
        let sent = agent.post(&endpoint).header("content-type", "application/json").send(body);
        let error = match sent {
            Ok(answer) if answer.status().is_success() => {
                self.exported.fetch_add(count, Ordering::Relaxed);
                return true;
            }
            Ok(answer) => format!("status {}", answer.status()),
            Err(error) => error.to_string(),
        };
        self.dropped.fetch_add(count, Ordering::Relaxed);
        if self.failed.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!("the collector at {endpoint} does not take spans: {error}");
        }
        false
    }

    /// Ends the thread when it has sent what waits.
    fn stop(&self) {
        self.queue.lock().stops = true;
        self.wake.notify_all();
    }
}

fn agent() -> Agent {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .root_certs(RootCerts::WebPki)
        .unversioned_rustls_crypto_provider(provider)
        .build();
    let config = Agent::config_builder()
        .tls_config(tls)
        .proxy(None)
        .max_redirects(0)
        .http_status_as_error(false)
        .user_agent("Squall")
        .timeout_global(Some(SEND_WITHIN));
    config.build().new_agent()
}

impl Observer for Exporter {
    fn name(&self) -> &'static str {
        "otlp"
    }

    fn events(&self) -> EventSet {
        match self.settings.endpoint.text().is_empty() {
            true => EventSet::NONE,
            false => EventSet::AFTER_STATEMENT,
        }
    }

    fn after_statement(&self, event: &StatementEvent<'_>, end: &StatementEnd<'_>) {
        let parent = event.trace_parent().and_then(|text| Parent::parse(&text));
        let is_traced = parent.as_ref().is_some_and(|parent| parent.is_sampled);
        if is_traced || self.settings.takes_all() {
            self.push(span(event, end, parent.as_ref()));
        }
    }
}

/// The thread as a job of the plugin.
#[derive(Debug)]
pub(crate) struct ExportJob(pub(crate) Arc<Exporter>);

struct RunningExport {
    exporter: Arc<Exporter>,
    thread: Thread,
}

impl BackgroundJob for ExportJob {
    fn name(&self) -> &'static str {
        "otlp"
    }

    fn start(&self, _: Arc<dyn SessionFactory>) -> Result<Box<dyn RunningJob>> {
        let exporter = self.0.clone();
        exporter.queue.lock().stops = false;
        let runs = exporter.clone();
        let thread = sys::threads::spawn("otlp", move || runs.run()).map_err(Error::internal)?;
        Ok(Box::new(RunningExport { exporter, thread }))
    }
}

impl RunningJob for RunningExport {
    fn stop(self: Box<Self>) {
        self.exporter.stop();
        self.thread.join();
    }
}
