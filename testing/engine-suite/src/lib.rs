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

use engine_api::{Capabilities, Engine};

pub use harness::{Bench, Row};

/// Makes fresh, empty engines.
pub type Factory<'a> = &'a dyn Fn() -> Arc<dyn Engine>;

/// A named check.
pub type Check = (&'static str, fn(Factory<'_>));

/// A named check of something that only engines with an ability promise.
type Asked = (&'static str, fn(Factory<'_>), fn(Capabilities) -> bool);

/// Checks of what every engine promises.
fn always(checks: &[Check]) -> Vec<Asked> {
    checks
        .iter()
        .map(|(name, check)| (*name, *check, (|_| true) as fn(Capabilities) -> bool))
        .collect()
}

fn all() -> Vec<Asked> {
    let mut all = always(crud::CHECKS);
    all.extend(always(ddl::CHECKS));
    all.extend(always(model::CHECKS));
    all.extend(always(locking::CHECKS));
    all.extend_from_slice(locking::BY_ABILITY);
    all.extend_from_slice(isolation::CHECKS);
    let phantoms = phantoms::CHECKS.iter();
    all.extend(
        phantoms.map(|(name, check)| {
            (*name, *check, (|can| can.gap_locks) as fn(Capabilities) -> bool)
        }),
    );
    all
}

/// Every check by name that an engine with these abilities must pass.
pub fn checks(can: Capabilities) -> Vec<Check> {
    let asked = all().into_iter().filter(|(_, _, is_promised)| is_promised(can));
    asked.map(|(name, check, _)| (name, check)).collect()
}

/// Runs every check.
///
/// # Panics
/// When the engine breaks its contract; the name of the check is printed before it runs.
pub fn run(factory: Factory<'_>) {
    let can = factory().capabilities();
    for (name, check) in checks(can) {
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
