//! Where the time of statements goes: PROFILE shows the measurements of one statement; samples of the running sessions show what all of them do.

mod connection;
mod folded;
mod functions;
mod sample;
mod sampler;
mod stack;
mod statement;
mod steps;
mod svg;
mod tables;

use std::sync::Arc;

use plugin_api::variable::{Definition, Kind, uint};
use plugin_api::{Plugin, PluginInfo, Registrar};

use sampler::{SampleJob, Sampler};

/// The name of the sampler among the states of plugins.
const STATE: &str = "profile";

static RATE: Definition = Definition::both(
    sampler::RATE,
    uint(0, 1000),
    "0",
    "How often in a second each session (globally) or this one is looked at for data_dictionary.PROFILE_SAMPLES; 0: never",
);
static HISTORY: Definition = Definition::global(
    "active_session_history",
    Kind::Bool,
    "ON",
    "Whether running sessions are looked at once a second for data_dictionary.ACTIVE_SESSION_HISTORY",
);

/// The plugin.
#[derive(Debug)]
pub struct Profile;

impl Plugin for Profile {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("profile", "Where the time of statements goes: PROFILE, flame graphs.")
            .by_default()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.profile_printer(Arc::new(statement::Printer));
        let sampler = Arc::new(Sampler::default());
        registrar.variable(&RATE, &sampler.rate);
        registrar.variable(&HISTORY, &sampler.keeps_history);
        tables::all(&sampler).into_iter().for_each(|table| registrar.information_table(table));
        let steps = Arc::new(steps::Steps::default());
        steps::tables(&steps).into_iter().for_each(|table| registrar.information_table(table));
        registrar.observer(steps);
        registrar.shared_state(STATE, sampler.clone());
        registrar.table_function(functions::FLAME_GRAPH);
        registrar.observer(sampler.clone());
        registrar.job(Arc::new(SampleJob(sampler)));
    }
}
