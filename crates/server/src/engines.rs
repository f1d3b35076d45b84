//! The storage engines: which there are, and which one keeps the dictionary and tables that name none.

use std::path::Path;
use std::sync::Arc;

use engine::{DurableEngine, EngineConfig};
use engine_api::{CancelToken, Engine};
use engine_memory::MemoryEngine;
use errors::{Error, Result};
use plugin_api::{Plugin, PluginInfo, Registrar};
use sys::disk::RealDisk;
use tracing::info;

/// Least memory for pages, bytes.
const POOL_BYTES_MIN: usize = 5 << 20;
/// Without an option, one part in so many of the memory that the process may use is for pages.
const POOL_SHARE: u64 = 4;

/// Memory for pages when no option says how much.
pub(crate) fn default_pool_bytes() -> u64 {
    const STEP: u64 = 1 << 20;
    let limit = sys::process::memory_limit_bytes();
    let share = limit.map_or(128 * STEP, |limit| limit / POOL_SHARE);
    (share / STEP).max(POOL_BYTES_MIN as u64 / STEP) * STEP
}

/// Engines of a running server.
#[derive(Clone)]
pub(crate) struct Engines {
    /// Keeps the dictionary and tables that name no engine.
    pub(crate) default: Arc<dyn Engine>,
    /// Keeps temporary tables.
    pub(crate) temporary: Arc<dyn Engine>,
}

impl Engines {
    /// Opens all engines; the durable one has its files in `directory` and recovers what a crash left.
    ///
    /// # Errors
    /// I/O, damaged files.
    pub(crate) fn open(directory: &Path, pool_bytes: u64) -> Result<Engines> {
        let temporary: Arc<dyn Engine> = Arc::new(MemoryEngine::new());
        let pool_bytes = usize::try_from(pool_bytes).unwrap_or(usize::MAX).max(POOL_BYTES_MIN);
        let config = EngineConfig { pool_bytes, ..EngineConfig::default() };
        let disk = Arc::new(RealDisk::open(directory).map_err(Error::internal)?);
        let durable = DurableEngine::open(disk, config, &|now| {
            info!(
                phase = now.phase.as_str(),
                percent = now.percent,
                eta_seconds = now.eta_seconds(),
                "recovering"
            );
        })
        .map_err(|error| error.into_error(&CancelToken::new()))?;
        info!(recovery = ?durable.recovery(), "storage is open");
        Ok(Engines { default: Arc::new(durable), temporary })
    }

    /// Engines without a file: everything is lost when the server stops.
    pub(crate) fn in_memory() -> Engines {
        let memory: Arc<dyn Engine> = Arc::new(MemoryEngine::new());
        Engines { default: memory.clone(), temporary: memory }
    }

    /// All of them, each once, the default one first.
    pub(crate) fn all(&self) -> Vec<Arc<dyn Engine>> {
        let mut all = vec![self.default.clone()];
        if !Arc::ptr_eq(&self.default, &self.temporary) {
            all.push(self.temporary.clone());
        }
        all
    }

    /// What brings them into the registry.
    pub(crate) fn plugin(&self) -> Box<dyn Plugin> {
        Box::new(EnginePlugin(self.clone()))
    }
}

struct EnginePlugin(Engines);

impl Plugin for EnginePlugin {
    fn info(&self) -> PluginInfo {
        PluginInfo { name: "engines", description: "Storage engines." }
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        for engine in self.0.all() {
            registrar.engine(engine);
        }
    }
}
