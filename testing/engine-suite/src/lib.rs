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

/// Drops the tables that checks make, for engines whose tables outlive them.
///
/// # Panics
/// When a table cannot be dropped.
pub fn clear(engine: &dyn Engine) {
    for table in [harness::T1, ddl::T2] {
        if engine.has_table(table) {
            let mut txn = engine.new_transaction();
            txn.start(&harness::options(engine_api::IsolationLevel::RepeatableRead))
                .expect("start");
            txn.drop_table(table).expect("drop");
            harness::commit(txn);
        }
    }
}
