//! The storage engines, and the choice of the one for the dictionary and for tables without an ENGINE clause.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine::{ArchiveDisk, DurableEngine, EngineConfig};
use engine_api::{CancelToken, Engine};
use engine_memory::MemoryEngine;
use errors::{Error, Result};
use plugin_api::{Plugin, PluginInfo, Registrar};
use sys::disk::{self, Disk, DiskOptions, SyncPolicy};
use sys::files;
use sys::io_times::IoTimes;
use tracing::{error, info, warn};

use crate::encryption::{Keys, through};
use crate::recovery::{RecoveryState, RecoveryView};

/// Minimum memory for pages in bytes.
const POOL_BYTES_MIN: usize = 5 << 20;
/// Without an option, the buffer pool gets the memory that the process may use divided by this.
const POOL_SHARE: u64 = 4;

/// Memory for pages without an option.
pub(crate) fn default_pool_bytes() -> u64 {
    const STEP: u64 = 1 << 20;
    let limit = sys::process::memory_limit_bytes();
    let share = limit.map_or(128 * STEP, |limit| limit / POOL_SHARE);
    (share / STEP).max(POOL_BYTES_MIN as u64 / STEP) * STEP
}

/// Memory for pages that the pool may grow to while the server runs.
fn pool_bytes_max() -> usize {
    sys::process::memory_limit_bytes()
        .map_or(0, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

/// Microseconds: no block device makes anything durable faster.
const SYNC_MICROS_MIN: u64 = 20;

/// How the durable engine is opened.
pub(crate) struct StorageOptions {
    pub(crate) directory: PathBuf,
    /// Memory for pages.
    pub(crate) pool_bytes: u64,
    pub(crate) sync: SyncPolicy,
    pub(crate) open_up_to_log_damage: bool,
    /// Pages are written twice, so that torn ones can be restored.
    pub(crate) doublewrite: bool,
    /// The engine's log is kept for the binary log.
    pub(crate) log_bin: bool,
    /// Writes many pages in one call.
    pub(crate) io_uring: bool,
    /// What opens an encrypted directory.
    pub(crate) keys: Keys,
    pub(crate) io_times: Arc<IoTimes>,
}

/// Engines of a running server.
#[derive(Clone)]
pub(crate) struct Engines {
    /// How long a sync took at start, microseconds.
    pub(crate) sync_micros: u64,
    /// Keeps the dictionary and tables without an ENGINE clause.
    pub(crate) default: Arc<dyn Engine>,
    /// Keeps temporary tables.
    pub(crate) temporary: Arc<dyn Engine>,
}

impl Engines {
    /// Opens all engines; the durable one recovers from a crash.
    ///
    /// # Errors
    /// I/O, damaged files.
    pub(crate) fn open(
        options: &StorageOptions,
        archive: Option<&Path>,
        state: &Arc<RecoveryState>,
    ) -> Result<Engines> {
        let StorageOptions { directory, pool_bytes, sync: policy, .. } = options;
        let (policy, open_up_to_log_damage) = (*policy, options.open_up_to_log_damage);
        let temporary: Arc<dyn Engine> = Arc::new(MemoryEngine::new());
        let pool_bytes = usize::try_from(*pool_bytes).unwrap_or(usize::MAX).max(POOL_BYTES_MIN);
        let way = DiskOptions { sync: policy, uses_io_uring: options.io_uring };
        let disk = disk::open(directory, way, options.io_times.clone()).map_err(Error::internal)?;
        let key = options.keys.open_or_make(&disk)?;
        if key.is_some() {
            sys::temporary::encrypt_all();
        }
        let archive =
            archive.map(|path| open_archive(path, policy, &options.io_times)).transpose()?;
        let archive = archive.map(|ArchiveDisk(disk)| ArchiveDisk(through(disk, key.as_ref())));
        let config = EngineConfig {
            pool_bytes,
            pool_bytes_max: pool_bytes_max(),
            archive,
            open_up_to_log_damage,
            doublewrite: options.doublewrite,
            keeps_attachments: options.log_bin,
            ..EngineConfig::default()
        };
        let sync_micros = probe(disk.as_ref(), directory, policy);
        let disk = through(disk, key.as_ref());
        let state = state.clone();
        let durable = DurableEngine::open(disk, config, move |now| {
            let stats = engine::recovery_stats(now);
            state.report(now.phase.as_str(), now.percent, now.eta_seconds(), stats);
        })
        .map_err(|error| error.into_error(&CancelToken::new()))?;
        info!(recovery = ?durable.recovery(), "storage is open");
        if let Some(damage) = durable.log_damage() {
            error!(
                "{damage}; commits after it were discarded. Tables may hold parts of them: CHECK TABLE, dump, restore"
            );
        }
        Ok(Engines { sync_micros, default: Arc::new(durable), temporary })
    }

    /// Engines of the server that serves connections until storage is open.
    pub(crate) fn recovering(state: &Arc<RecoveryState>) -> Engines {
        let view = RecoveryView { state: state.clone(), memory: MemoryEngine::new() };
        let temporary = Arc::new(MemoryEngine::new());
        Engines { sync_micros: 0, default: Arc::new(view), temporary }
    }

    /// Engines without files: everything is lost when the server stops.
    pub(crate) fn in_memory() -> Engines {
        let memory: Arc<dyn Engine> = Arc::new(MemoryEngine::new());
        Engines { sync_micros: 0, default: memory.clone(), temporary: memory }
    }

    /// All of them, each once, the default one first.
    pub(crate) fn all(&self) -> Vec<Arc<dyn Engine>> {
        let mut all = vec![self.default.clone()];
        if !Arc::ptr_eq(&self.default, &self.temporary) {
            all.push(self.temporary.clone());
        }
        all
    }

    /// The plugin that registers them.
    pub(crate) fn plugin(&self) -> Box<dyn Plugin> {
        Box::new(EnginePlugin(self.clone()))
    }
}

fn open_archive(path: &Path, policy: SyncPolicy, times: &Arc<IoTimes>) -> Result<ArchiveDisk> {
    let way = DiskOptions { sync: policy, uses_io_uring: true };
    let disk = disk::open(path, way, times.clone()).map_err(|error| {
        Error::internal(format!("log_archive_directory {}: {error}", path.display()))
    })?;
    Ok(ArchiveDisk(disk))
}

/// Times a sync, and warns when it cannot have reached a device.
fn probe(disk: &dyn Disk, directory: &Path, policy: SyncPolicy) -> u64 {
    let Ok(time) = disk::probe_sync(disk) else { return 0 };
    let micros = time.as_micros() as u64;
    let is_suspicious = policy == SyncPolicy::Device
        && micros < SYNC_MICROS_MIN
        && files::is_on_block_device(directory).unwrap_or(false);
    if is_suspicious {
        warn!(
            storage_sync_us = micros,
            "a sync of the data directory is too fast to reach its device: a power failure may lose commits"
        );
    }
    micros
}

struct EnginePlugin(Engines);

impl Plugin for EnginePlugin {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("engines", "Storage engines.")
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        for engine in self.0.all() {
            registrar.engine(engine);
        }
    }
}
