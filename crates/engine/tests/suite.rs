//! The shared engine suite on the durable engine, on a simulated disk with small pages.

use std::sync::Arc;

use engine::{DurableEngine, EngineConfig};
use engine_api::Engine;
use sys::sim::SimDisk;
use wal::{Durability, FailurePolicy, LogConfig};

fn fresh(page_bytes: usize) -> Arc<dyn Engine> {
    let config = EngineConfig {
        page_bytes,
        pool_bytes: 4 << 20,
        pages_max: 1 << 20,
        log: LogConfig {
            segment_bytes: 1 << 20,
            block_bytes: 512,
            lanes: 2,
            flights: 2,
            durability: Durability::Synced,
            failure: FailurePolicy::Report,
            reserve_segments: 0,
        },
        ..EngineConfig::default()
    };
    Arc::new(DurableEngine::open(Arc::new(SimDisk::new()), config, |_| {}).expect("open"))
}

#[test]
fn suite_on_small_pages() {
    engine_suite::run(&|| fresh(1024));
}

#[test]
fn suite_on_usual_pages() {
    engine_suite::run(&|| fresh(16 << 10));
}
