//! The way of a text through the plan cache: normalise, look up, bind the lifted literals.

use std::sync::Arc;

use errors::Result;
use optimizer::{OptimizeInput, StatisticsSource};
use plan::{LogicalPlan, Plan, PlanFlags};
use plugin_api::ResultSink;

use catalog::Table;

use crate::server::Server;
use crate::session::Session;

/// Table statistics from the engines.
struct EngineStatistics<'a> {
    server: &'a Server,
    tables: &'a [Arc<Table>],
}

impl EngineStatistics<'_> {
    fn stats(&self, table: u64) -> Option<(engine_api::TableStats, &Arc<Table>)> {
        let table = self.tables.iter().find(|known| known.id.0 == table)?;
        let engine = self.server.registry.engine(&table.engine)?;
        engine.table_stats(table.id).ok().map(|stats| (stats, table))
    }
}

impl StatisticsSource for EngineStatistics<'_> {
    fn rows(&self, table: u64) -> u64 {
        self.stats(table).map_or(0, |(stats, _)| stats.rows)
    }

    fn distinct(&self, table: u64, index: u32, parts: usize) -> Option<u64> {
        let (stats, table) = self.stats(table)?;
        let place =
            table.definition.indexes.iter().position(|known| known.id.0 == index)?;
        stats.distinct.get(place)?.get(parts.checked_sub(1)?).copied()
    }
}

impl Session {
    /// Chooses a plan.
    pub(crate) fn optimize(
        &self,
        plan: LogicalPlan,
        tables: &[Arc<Table>],
    ) -> Result<(Plan, PlanFlags)> {
        let statistics = EngineStatistics { server: &self.server, tables };
        let input = OptimizeInput {
            tables,
            statistics: &statistics,
            collation: self.settings.collation_connection.id,
        };
        optimizer::optimize(plan, &input)
    }

    /// Runs the first statement of `text` from the plan cache; `None` when it must be parsed.
    pub(crate) fn run_cached(
        &mut self,
        _text: &[u8],
        _sink: &mut dyn ResultSink,
    ) -> Result<Option<usize>> {
        Ok(None)
    }
}
