//! `GET /metrics`: the server's figures for Prometheus, in its text format or as OpenMetrics. docs/metrics.md lists them.
//!
//! A scrape reads counters that are there anyway, in time that does not grow with the number of tables. Latencies by kind of statement are the
//! exception: while `metrics_statements` is on, the plugin is told of each statement.

mod engines;
mod exposition;
mod routes;
mod statements;
mod status;
#[cfg(test)]
mod tests;
mod waits;

use std::sync::Arc;

use plugin_api::variable::{Definition, GlobalValue, Kind};
use plugin_api::{Plugin, PluginInfo, Registrar};

use crate::routes::Metrics;
use crate::statements::StatementTimes;
use crate::waits::Waits;

const PUBLIC: Definition = Definition::global(
    "metrics_public",
    Kind::Bool,
    "OFF",
    "Whether /metrics answers without a log-in; otherwise it needs the privilege PROCESS.",
);
const STATEMENTS: Definition = Definition::global(
    "metrics_statements",
    Kind::Bool,
    "ON",
    "Whether latencies of statements are counted by kind.",
);

/// The plugin.
#[derive(Debug, Default)]
pub struct MetricsPlugin {
    is_public: GlobalValue,
    counts_statements: GlobalValue,
}

impl Plugin for MetricsPlugin {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("metrics", "GET /metrics for Prometheus, through the JSON server.")
            .on_request()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.variable(&PUBLIC, &self.is_public);
        registrar.variable(&STATEMENTS, &self.counts_statements);
        let times = Arc::new(StatementTimes::new(self.counts_statements.clone()));
        registrar.observer(times.clone());
        let is_public = self.is_public.clone();
        registrar.http_routes(Arc::new(Metrics { is_public, times, waits: Waits::default() }));
    }
}
