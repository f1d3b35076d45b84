//! Temporal functions: the clock, parts of dates and times, arithmetic, formats, time zones.
//!
//! Text and numbers are read here rather than by the caller's coercions, because functions differ in the dates that they accept.

mod add;
mod arithmetic;
mod clock;
mod difference;
mod format;
mod language;
mod make;
mod parse;
mod parts;
mod read;
mod units;
mod unix;
mod week;
mod zone;

use std::sync::Arc;

use plugin_api::{Plugin, PluginInfo, Registrar, ScalarFunction};

/// The family.
#[derive(Clone, Copy, Debug, Default)]
pub struct TemporalFunctions;

impl Plugin for TemporalFunctions {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("functions_temporal", "Date and time functions, named time zones.")
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        for function in functions() {
            registrar.function(function);
        }
        registrar.time_zones("tz database", Arc::new(zone::TzDatabase));
    }
}

/// All functions of the family.
fn functions() -> impl Iterator<Item = ScalarFunction> {
    let families: [&[ScalarFunction]; 9] = [
        clock::FUNCTIONS,
        parts::FUNCTIONS,
        make::FUNCTIONS,
        add::FUNCTIONS,
        arithmetic::FUNCTIONS,
        difference::FUNCTIONS,
        format::FUNCTIONS,
        parse::FUNCTIONS,
        unix::FUNCTIONS,
    ];
    families.into_iter().flat_map(|family| family.to_vec())
}
