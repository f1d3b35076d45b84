//! Settings of the engine.

use std::time::Duration;

use wal::LogConfig;

/// Settings fixed at open.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Size of a page; must be what the files were made with.
    pub page_bytes: usize,
    /// Memory for pages.
    pub pool_bytes: usize,
    /// Largest number of pages of the space.
    pub pages_max: usize,
    /// Undo that one transaction keeps in memory; more goes to a file.
    pub undo_memory_bytes: usize,
    /// The log.
    pub log: LogConfig,
    /// Whether threads purge, write pages and take checkpoints. Without them, tests call `tick` and `checkpoint`.
    pub background: bool,
    /// Time between checkpoints.
    pub checkpoint_interval: Duration,
}

impl Default for EngineConfig {
    fn default() -> Self {
        EngineConfig {
            page_bytes: 16 << 10,
            pool_bytes: 128 << 20,
            // 4 TiB of 16 KiB pages.
            pages_max: 1 << 28,
            undo_memory_bytes: 1 << 20,
            log: LogConfig::default(),
            background: true,
            checkpoint_interval: Duration::from_secs(5),
        }
    }
}
