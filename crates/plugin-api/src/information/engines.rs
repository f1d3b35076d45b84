//! Engines, as information tables see them.

use engine_api::{DeadlockView, LockReport};

/// Facts about engines.
pub trait EngineInformation {
    /// Engines in name order.
    fn engines(&self) -> Vec<EngineView>;
    /// Counters of all engines.
    fn engine_stats(&self) -> Vec<EngineStatView>;
    /// Transactions and locks of each engine, of sessions that may be seen: the engine's name and its report.
    fn engine_locks(&self) -> Vec<(String, LockReport)> {
        Vec::new()
    }
    /// The deadlock that each engine found last, if any: the engine's name and the deadlock.
    fn latest_deadlocks(&self) -> Vec<(String, DeadlockView)> {
        Vec::new()
    }
}

/// An engine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EngineView {
    /// Name as shown.
    pub name: String,
    /// `YES` or `DEFAULT`.
    pub support: &'static str,
    /// One sentence.
    pub comment: String,
    /// It has transactions.
    pub transactions: bool,
    /// Its transactions can be prepared.
    pub xa: bool,
    /// They have savepoints.
    pub savepoints: bool,
}

/// A counter of an engine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EngineStatView {
    /// Name of the engine.
    pub engine: String,
    /// The subject of the counter.
    pub group: String,
    /// Name.
    pub name: String,
    /// Value.
    pub value: String,
}
