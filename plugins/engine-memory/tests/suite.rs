//! The shared engine suite on the memory engine.

use std::sync::Arc;

use engine_api::Engine;
use engine_memory::MemoryEngine;

#[test]
fn suite() {
    engine_suite::run(&|| Arc::new(MemoryEngine::new()) as Arc<dyn Engine>);
}
