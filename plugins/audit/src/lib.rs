//! `audit_log`: who did what, as JSON lines in a file.
//!
//! Statements do not wait for the file unless `audit_log_strategy` is SYNCHRONOUS: a thread writes what they queue. An event that finds the queue
//! full is counted in `Audit_log_events_lost`, never lost without a trace.

mod filter;
mod log;
mod page;

use std::sync::Arc;

use plugin_api::variable::as_text;
use plugin_api::{Plugin, PluginInfo, Registrar};

use crate::filter::Filter;
use crate::log::{AuditJob, AuditLog};
use crate::page::{AuditRoutes, PAGE};

/// The plugin.
#[derive(Debug)]
pub struct Audit;

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
        registrar.job(Arc::new(AuditJob(log)));
    }
}
