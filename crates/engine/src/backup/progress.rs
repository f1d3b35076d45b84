//! The progress of a backup.

use engine_api::EngineStat;
use sys::sync::Mutex;
use sys::sync::atomic::AtomicBool;

/// The backup that is under way, or the last one.
#[derive(Default)]
pub(crate) struct Backups {
    pub(super) running: AtomicBool,
    pub(super) progress: Mutex<Progress>,
}

/// The progress.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    pub state: &'static str,
    pub pages_done: u64,
    pub pages_total: u64,
    pub bytes: u64,
    pub started_micros: u64,
    pub ended_micros: u64,
    pub end_position: u64,
    pub error: String,
}

impl Backups {
    pub(super) fn change(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut self.progress.lock());
    }

    /// Counters of the group `backup`; none before the first backup.
    pub fn stats(&self) -> Vec<EngineStat> {
        let now = self.progress.lock().clone();
        if now.state.is_empty() {
            return Vec::new();
        }
        let stat = |name: &str, value: String| EngineStat {
            group: "backup",
            name: name.to_owned(),
            value,
        };
        vec![
            stat("state", now.state.to_owned()),
            stat("pages_done", now.pages_done.to_string()),
            stat("pages_total", now.pages_total.to_string()),
            stat("bytes", now.bytes.to_string()),
            stat("started_micros", now.started_micros.to_string()),
            stat("ended_micros", now.ended_micros.to_string()),
            stat("end_position", now.end_position.to_string()),
            stat("error", now.error),
        ]
    }
}
