//! The requirements for every storage engine, as tests that any engine's crate can run on itself.
//!
//! Depends on `engine-api` and `types`, not on an engine. Each check takes a factory of fresh engines and panics with the reason when the
//! engine is wrong; `run` makes them all.

mod crud;
mod ddl;
mod harness;
mod isolation;
mod locking;
mod model;
mod phantoms;

use std::sync::Arc;

use engine_api::Engine;

pub use harness::{Bench, Row};

/// Makes fresh, empty engines.
pub type Factory<'a> = &'a dyn Fn() -> Arc<dyn Engine>;

/// A named check.
pub type Check = (&'static str, fn(Factory<'_>));

/// Every check by name.
pub fn checks() -> Vec<Check> {
    let groups = [
        crud::CHECKS,
        ddl::CHECKS,
        isolation::CHECKS,
        locking::CHECKS,
        model::CHECKS,
        phantoms::CHECKS,
    ];
    groups.concat()
}

/// Runs every check.
///
/// # Panics
/// When the engine breaks its contract; the name of the check is printed before it runs.
pub fn run(factory: Factory<'_>) {
    for (name, check) in checks() {
        println!("engine-suite: {name}");
        check(factory);
    }
}
