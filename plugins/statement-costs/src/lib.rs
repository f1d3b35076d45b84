//! What statements cost: functions that measure an expression, totals by digest, user, application and schema, and the tables of
//! `performance_schema` about statements.
//!
//! The session measures; what is here only asks for it and adds up. Everything that is kept has a bound.

mod accounts;
mod actors;
mod consumers;
mod dictionary;
mod digests;
mod event_name;
mod functions;
mod instruments;
mod memory;
mod recorder;
mod row;
mod samples;
mod sockets;
mod stages;
mod statements;
mod sums;
mod switches;
mod table_io;
mod tables;
mod threads;
mod users;
mod waits;

use std::sync::Arc;

use plugin_api::variable::{Definition, uint};
use plugin_api::{Plugin, PluginInfo, Registrar};

use recorder::{Limits, Recorder};

static DIGESTS: Definition = Definition::fixed(
    "performance_schema_digests_size",
    uint(1, 200_000),
    "10000",
    "Digests that are kept; statements of further ones count together",
);
static HISTORY: Definition = Definition::fixed(
    "performance_schema_events_statements_history_size",
    uint(1, 1024),
    "10",
    "Last statements of each session that are kept",
);
static HISTORY_LONG: Definition = Definition::fixed(
    "performance_schema_events_statements_history_long_size",
    uint(1, 1_000_000),
    "10000",
    "Last statements of all sessions that are kept",
);

static SAMPLE_EVERY: Definition = Definition::global(
    "perf_sample_every",
    uint(0, u32::MAX as u64),
    "0",
    "One of so many statements is measured and kept in data_dictionary.PERF_SAMPLES; 0 for none",
);

/// The plugin.
#[derive(Debug)]
pub struct StatementCosts;

impl Plugin for StatementCosts {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("statement_costs", "What statements cost, by session, digest and user.")
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        let limits = Limits::default();
        registrar.variable(&DIGESTS, &limits.digests);
        registrar.variable(&HISTORY, &limits.history);
        registrar.variable(&HISTORY_LONG, &limits.history_long);
        registrar.variable(&SAMPLE_EVERY, &limits.sample_every);
        let recorder = Arc::new(Recorder::new(limits));
        tables::all(&recorder).into_iter().for_each(|table| registrar.information_table(table));
        registrar.observer(recorder);
        functions::all().into_iter().for_each(|function| registrar.function(function));
    }
}
