//! Control flow, session facts, user-level locks, network addresses, GTID sets, sequences.
//!
//! Session data comes from `SessionServices`; this crate keeps no state.

mod address;
mod control;
mod gtid;
mod locks;
mod partition;
mod query_attributes;
mod role_graph;
mod sequence;
mod session;
mod vector;

pub use query_attributes::QueryAttributes;

use plugin_api::{Plugin, PluginInfo, Registrar, ScalarFunction};

/// The family.
#[derive(Clone, Copy, Debug, Default)]
pub struct MiscFunctions;

impl Plugin for MiscFunctions {
    fn info(&self) -> PluginInfo {
        PluginInfo::new(
            "functions_misc",
            "Control flow, session information, locks, network addresses.",
        )
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        for function in functions() {
            registrar.function(function);
        }
    }
}

/// All functions of the family.
fn functions() -> impl Iterator<Item = ScalarFunction> {
    let families: [&[ScalarFunction]; 9] = [
        control::FUNCTIONS,
        session::FUNCTIONS,
        locks::FUNCTIONS,
        address::FUNCTIONS,
        gtid::FUNCTIONS,
        vector::FUNCTIONS,
        partition::FUNCTIONS,
        role_graph::FUNCTIONS,
        sequence::FUNCTIONS,
    ];
    families.into_iter().flat_map(|family| family.to_vec())
}
