//! Statements as spans of traces, sent to an OpenTelemetry collector: OTLP over HTTP as JSON. docs/traces.md tells how.
//!
//! A statement does not wait for the collector: its span goes into a queue of bounded size, and a thread sends what is there once a second. A span that
//! finds the queue full is counted in `Otlp_spans_dropped`.

mod exporter;
mod settings;
mod span;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use plugin_api::{Plugin, PluginInfo, Registrar};

use crate::exporter::{ExportJob, Exporter};
use crate::settings::{ENDPOINT, SERVICE, STATEMENTS, check_endpoint};

/// The plugin.
#[derive(Debug)]
pub struct Otlp;

impl Plugin for Otlp {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("otlp", "Sends statements as spans to an OpenTelemetry collector.")
            .on_request()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        let exporter = Arc::new(Exporter::default());
        let settings = &exporter.settings;
        registrar.checked_variable(&ENDPOINT, &settings.endpoint, check_endpoint);
        registrar.variable(&STATEMENTS, &settings.statements);
        registrar.variable(&SERVICE, &settings.service);
        let (exported, dropped, failed) = (exporter.clone(), exporter.clone(), exporter.clone());
        let read = |exporter: &Exporter, which: usize| {
            exporter.counts()[which].load(Ordering::Relaxed).to_string()
        };
        registrar.status("Otlp_spans_exported", move || read(&exported, 0));
        registrar.status("Otlp_spans_dropped", move || read(&dropped, 1));
        registrar.status("Otlp_export_errors", move || read(&failed, 2));
        registrar.observer(exporter.clone());
        registrar.job(Arc::new(ExportJob(exporter)));
    }
}
