//! `audit_log`: who did what, as JSON lines in a file.
//!
//! Statements do not wait for the file unless `audit_log_strategy` is SYNCHRONOUS: a thread writes what they queue. An event that finds the queue
//! full is counted in `Audit_log_events_lost`, never lost without a trace.

mod filter;
mod log;
mod message;
mod page;

use std::sync::Arc;

use plugin_api::variable::as_text;
use plugin_api::{Plugin, PluginInfo, Registrar};
use sys::sync::Mutex;

use crate::filter::Filter;
use crate::log::{AuditJob, AuditLog};
use crate::page::{AuditRoutes, PAGE};

pub use crate::message::MessageEmit;

/// The audit log while its plugin is loaded.
#[derive(Clone, Default)]
pub(crate) struct Current(Arc<Mutex<Option<Arc<AuditLog>>>>);

impl Current {
    fn log(&self) -> Option<Arc<AuditLog>> {
        self.0.lock().clone()
    }

    fn set(&self, log: Option<Arc<AuditLog>>) {
        *self.0.lock() = log;
    }
}

/// The plugins of this crate: the log, and the component by which applications write to it.
pub fn plugins() -> [Box<dyn Plugin>; 2] {
    let current = Current::default();
    [Box::new(Audit(current.clone())), Box::new(MessageEmit(current))]
}

/// The plugin.
pub struct Audit(Current);

impl Plugin for Audit {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("audit_log", "Writes who did what to a file, with filters.").on_request()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        let log = Arc::new(AuditLog::default());
        registrar.variable(&log::FILE, &log.file_name);
        registrar.variable(&log::STRATEGY, &log.strategy);
        registrar.checked_variable(&log::FILTER, &log.filter_text, |value| {
            Filter::parse(&as_text(value)).map(drop)
        });
        let (events, lost, failed) = (log.clone(), log.clone(), log.clone());
        registrar.status("Audit_log_events", move || events.counts.written().to_string());
        registrar.status("Audit_log_events_lost", move || lost.counts.lost().to_string());
        registrar.status("Audit_log_write_errors", move || failed.counts.failed().to_string());
        registrar.observer(log.clone());
        registrar.log_sink(log.clone());
        registrar.http_routes(Arc::new(AuditRoutes(log.clone())));
        registrar.console_page(PAGE);
        registrar.job(Arc::new(AuditJob(log, self.0.clone())));
    }
}
