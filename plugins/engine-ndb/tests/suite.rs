//! The shared engine suite on a real cluster. Skipped, with a loud line, where none is given: SQUALL_NDB_CONNECTSTRING, SQUALL_NDB_SHIM.

#![allow(clippy::disallowed_methods, reason = "a test")]

use std::sync::Arc;

use engine_api::Engine;
use engine_ndb::NdbEngine;

#[test]
fn suite() {
    let given = |name| std::env::var(name).ok();
    let (Some(cluster), Some(shim)) = (given("SQUALL_NDB_CONNECTSTRING"), given("SQUALL_NDB_SHIM"))
    else {
        println!(
            "################ SKIPPED: no NDB cluster (SQUALL_NDB_CONNECTSTRING, SQUALL_NDB_SHIM)"
        );
        return;
    };
    // One engine for all checks, without tables at the start of each.
    let engine: Arc<dyn Engine> = Arc::new(NdbEngine::with(&cluster, &shim, "squall_suite"));
    engine_suite::run(&|| {
        engine_suite::clear(&*engine);
        engine.clone()
    });
    engine_suite::clear(&*engine);
    engine.shutdown().expect("shutdown");
}
