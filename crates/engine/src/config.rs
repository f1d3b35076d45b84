//! Settings of the engine.

use std::sync::Arc;
use std::time::Duration;

use sys::disk::Disk;
use sys::sync::atomic::{AtomicU64, Ordering};
use txn::RedoCrew;
use wal::LogConfig;

/// Settings fixed at open.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Size of a page; must be the size that the files were created with.
    pub page_bytes: usize,
    /// Memory for pages.
    pub pool_bytes: usize,
    /// Memory for pages that the pool may grow to; it costs address space only. Less than `pool_bytes` means as much as that.
    pub pool_bytes_max: usize,
    /// Largest number of pages of the space.
    pub pages_max: usize,
    /// Whether torn pages can be restored; without it the file system must write whole pages.
    pub doublewrite: bool,
    /// Bytes of pages that have blocks before anybody needs them, so that rollback and purge need no space.
    pub reserve_bytes: u64,
    /// Bytes of undo that one transaction keeps in memory; older undo moves to a file.
    pub undo_memory_bytes: usize,
    /// Changes of secondary entries that a statement makes one by one before it defers the rest.
    pub direct_changes: u64,
    /// The log.
    pub log: LogConfig,
    /// Whether threads purge, write pages and take checkpoints. Without them, tests call `tick` and `checkpoint`.
    pub background: bool,
    /// After this long without a change everything is written and a checkpoint taken.
    pub checkpoint_interval: Duration,
    /// The workers that replay the log after a crash.
    pub redo: RedoCrew,
    /// Where the log is archived.
    pub archive: Option<ArchiveDisk>,
    /// Whether the log is kept until a reader of attachments has followed it.
    pub keeps_attachments: bool,
    /// Opens files with a damaged log, using the part before the damage.
    pub open_up_to_log_damage: bool,
}

/// A disk that receives the durable part of the log.
#[derive(Clone)]
pub struct ArchiveDisk(pub Arc<dyn Disk>);

impl std::fmt::Debug for ArchiveDisk {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("ArchiveDisk")
    }
}

/// Bytes of a page, unless the configuration says otherwise.
pub const PAGE_BYTES: usize = 16 << 10;

impl Default for EngineConfig {
    fn default() -> Self {
        EngineConfig {
            page_bytes: PAGE_BYTES,
            pool_bytes: 128 << 20,
            pool_bytes_max: 0,
            // 4 TiB of 16 KiB pages.
            pages_max: 1 << 28,
            doublewrite: true,
            reserve_bytes: 4 << 20,
            undo_memory_bytes: 1 << 20,
            direct_changes: 1024,
            log: LogConfig::default(),
            background: true,
            checkpoint_interval: Duration::from_secs(5),
            redo: RedoCrew::default(),
            archive: None,
            keeps_attachments: false,
            open_up_to_log_damage: false,
        }
    }
}

/// Settings that may change while the engine runs.
#[derive(Debug)]
pub struct Settings {
    /// Target time of a restart after a crash, as far as pages and log determine it, in seconds.
    recovery_seconds: AtomicU64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { recovery_seconds: AtomicU64::new(5) }
    }
}

impl Settings {
    pub(crate) fn recovery_target(&self) -> Duration {
        Duration::from_secs(self.recovery_seconds.load(Ordering::Relaxed))
    }

    pub(crate) fn set_recovery_target(&self, seconds: u64) {
        self.recovery_seconds.store(seconds, Ordering::Relaxed);
    }
}
