//! Aggregate functions: counting, sums, extremes, statistics, bits, concatenation, JSON.
//!
//! The caller removes NULLs and duplicates and puts rows in order; an accumulator sees one group.

mod bits;
mod concat;
mod count;
mod extreme;
mod json;
mod statistics;
mod sum;

use plugin_api::{AggregateFunction, Plugin, PluginInfo, Registrar};

/// The family.
#[derive(Clone, Copy, Debug, Default)]
pub struct Aggregates;

impl Plugin for Aggregates {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("aggregates", "Aggregate functions.")
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        for function in functions() {
            registrar.aggregate(function);
        }
    }
}

/// All functions of the family.
fn functions() -> impl Iterator<Item = AggregateFunction> {
    let families: [&[AggregateFunction]; 7] = [
        count::FUNCTIONS,
        sum::FUNCTIONS,
        extreme::FUNCTIONS,
        statistics::FUNCTIONS,
        bits::FUNCTIONS,
        concat::FUNCTIONS,
        json::FUNCTIONS,
    ];
    families.into_iter().flat_map(|family| family.to_vec())
}
