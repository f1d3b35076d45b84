//! Engines: names, counters, locks and deadlocks.

use std::sync::Arc;

use engine_api::{DeadlockView, Engine, LockReport};
use plugin_api::{EngineInformation, EngineStatView, EngineView};

use crate::information::Information;

/// Maximum number of reported locks of one engine.
const LOCKS_MAX: usize = 1 << 16;

impl EngineInformation for Information<'_> {
    fn engines(&self) -> Vec<EngineView> {
        let default = self.server.default_engine();
        let view = |engine: &Arc<dyn Engine>| EngineView {
            name: self.server.shown_name(&**engine).to_owned(),
            support: if engine.name() == default { "DEFAULT" } else { "YES" },
            comment: engine.comment().to_owned(),
            transactions: engine.capabilities().transactions,
            xa: engine.capabilities().prepare,
            savepoints: engine.capabilities().transactions,
        };
        let mut engines: Vec<EngineView> =
            self.server.registry().engines().iter().map(view).collect();
        engines.sort();
        engines
    }

    fn engine_stats(&self) -> Vec<EngineStatView> {
        let mut rows = Vec::new();
        for engine in self.server.registry().engines() {
            rows.extend(engine.stats().into_iter().map(|stat| EngineStatView {
                engine: engine.name().to_owned(),
                group: stat.group.to_owned(),
                name: stat.name,
                value: stat.value,
            }));
        }
        rows
    }

    fn engine_locks(&self) -> Vec<(String, LockReport)> {
        let (all, own) = (self.may_see_all(), self.account.to_string());
        let is_shown =
            |id: u64| all || self.server.account_of(id).is_some_and(|account| account == own);
        let report = |engine: &Arc<dyn Engine>| {
            let mut report = engine.locks(LOCKS_MAX);
            report.retain(is_shown);
            (self.server.shown_name(&**engine).to_uppercase(), report)
        };
        self.server.registry().engines().iter().map(report).collect()
    }

    fn latest_deadlocks(&self) -> Vec<(String, DeadlockView)> {
        let registry = self.server.registry();
        let latest = registry
            .engines()
            .iter()
            .filter_map(|engine| Some((engine.name().to_owned(), engine.latest_deadlock()?)));
        latest.collect()
    }
}
