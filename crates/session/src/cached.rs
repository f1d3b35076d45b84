//! The way of a text through the plan cache: normalise, look up, bind the lifted literals. Also what planning asks of statistics.

use std::sync::Arc;

use catalog::Table;
use errors::Result;
use optimizer::{OptimizeInput, StatisticsSource};
use plan::{LogicalPlan, Plan, PlanFlags};
use plugin_api::ResultSink;
use syntax::{LiteralKind, ParseOptions, Statement};
use types::{SqlBytes, Value};

use crate::plan_cache::{LiftedText, PlanKey, PlanSettings};
use crate::planned::Planned;
use crate::server::Server;
use crate::session::Session;
use crate::statement::{Origin, Running, is_blank};
use crate::status::Counter;

/// Longer texts are not worth a look: they carry data.
const TEXT_BYTES_MAX: usize = 32 * 1024;
/// Texts with more literals likewise.
const LITERALS_MAX: usize = 512;

/// Table statistics from the engines.
pub(crate) struct EngineStatistics<'a> {
    pub(crate) server: &'a Server,
    pub(crate) tables: &'a [Arc<Table>],
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
        let place = table.definition.indexes.iter().position(|known| known.id.0 == index)?;
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

    /// Settings that plans depend on.
    pub(crate) fn plan_settings(&self) -> PlanSettings {
        PlanSettings {
            sql_mode: self.settings.sql_mode.0,
            collation: self.settings.collation_connection.id.0,
            div_precision_increment: self.settings.div_precision_increment,
            safe_updates: self.settings.sql_safe_updates,
            group_concat_max_len: self.settings.group_concat_max_len,
            max_allowed_packet: self.settings.max_allowed_packet,
            max_join_size: self.settings.max_join_size,
        }
    }

    /// Whether statements of this session may use shared plans now.
    pub(crate) fn may_share_plans(&self) -> bool {
        self.temporary.is_empty() && !self.transactions.reads_lock(&self.settings)
    }

    /// Runs the first statement of `text` by the plan cache; `None` when it must be parsed as it stands.
    pub(crate) fn run_cached(
        &mut self,
        text: &[u8],
        sink: &mut dyn ResultSink,
    ) -> Result<Option<usize>> {
        if text.len() > TEXT_BYTES_MAX || !self.may_share_plans() {
            return Ok(None);
        }
        let options = self.parse_options();
        let digest = self.normalizer.normalize(text, &options);
        if !digest.cacheable || digest.literals.len() > LITERALS_MAX {
            return Ok(None);
        }
        let (hash, consumed) = (digest.hash, digest.consumed);
        let more = !is_blank(&text[consumed..]);
        if more && !self.client.multi_statements {
            return Ok(None);
        }
        self.lifted.clear();
        self.lifted.extend_from_slice(digest.literals);
        let mut values = std::mem::take(&mut self.lifted_values);
        values.clear();
        let ready = self.lift_values(text, &options, &mut values);
        let result = match ready {
            Some(types) => {
                let key = PlanKey {
                    digest: hash,
                    types,
                    schema: self.services.database.clone(),
                    settings: self.plan_settings(),
                };
                self.run_shared(&text[..consumed], &options, key, &values, more, sink)
            }
            None => Ok(false),
        };
        values.clear();
        self.lifted_values = values;
        result.map(|done| done.then_some(consumed))
    }

    /// Values of the lifted literals, and a hash of their types; `None` when one has no value of its own.
    fn lift_values(
        &mut self,
        text: &[u8],
        options: &ParseOptions<'_>,
        values: &mut Vec<Value>,
    ) -> Option<u64> {
        let mut types = 0_u64;
        for literal in &self.lifted {
            let value = match literal.kind {
                LiteralKind::Integer => Value::Int(literal.integer(text)?),
                LiteralKind::String => {
                    self.text_buffer.clear();
                    let plain = options.no_backslash_escapes;
                    literal.string(text, plain, &mut self.text_buffer);
                    // Malformed text gets its error from the parser's way.
                    std::str::from_utf8(&self.text_buffer).ok()?;
                    Value::Bytes(SqlBytes::new(&self.text_buffer))
                }
            };
            types = types.rotate_left(7) ^ type_class(&value);
            values.push(value);
        }
        Some(types)
    }

    /// Runs a statement whose literals were lifted; false when it cannot be run that way.
    fn run_shared(
        &mut self,
        text: &[u8],
        options: &ParseOptions<'_>,
        key: PlanKey,
        values: &[Value],
        more: bool,
        sink: &mut dyn ResultSink,
    ) -> Result<bool> {
        let lifted = LiftedText { text, literals: &self.lifted };
        if let Some(planned) = self.front_cache.find(&self.server.plan_cache, &key, &lifted) {
            if self.server.catalog.is_current(planned.version) && self.lock_plan(&planned)? {
                self.shared.counters.add(Counter::PLAN_CACHE_HITS, 1);
                self.say_more_results(more, sink);
                self.run_to_client(&planned, values, sink)?;
                return Ok(true);
            }
            self.front_cache.forget(&key);
        }
        self.shared.counters.add(Counter::PLAN_CACHE_MISSES, 1);
        let Some(planned) = self.plan_lifted(text, options, values)? else { return Ok(false) };
        if planned.cacheable {
            let lifted = LiftedText { text, literals: &self.lifted };
            self.server.plan_cache.insert(key, &lifted, planned.clone());
        }
        self.say_more_results(more, sink);
        self.run_to_client(&planned, values, sink)?;
        Ok(true)
    }

    /// Plans a text with its lifted literals as parameters; `None` when only the plain way will do.
    fn plan_lifted(
        &mut self,
        text: &[u8],
        options: &ParseOptions<'_>,
        values: &[Value],
    ) -> Result<Option<Arc<Planned>>> {
        let lifted = std::mem::take(&mut self.lifted);
        let lifting = ParseOptions { lift: Some(&lifted), ..options.clone() };
        let parsed = syntax::parse_bytes(text, &lifting);
        self.lifted = lifted;
        // Texts that are wrong, and literals that stand where no parameter may: the plain way knows what to say.
        let Ok((statement, _)) = parsed else { return Ok(None) };
        let plannable = match &statement {
            Statement::Query(query) => crate::query::find_into(query).is_none(),
            Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) => true,
            _ => false,
        };
        if !plannable || crate::hinted::sets_variables(&statement) {
            return Ok(None);
        }
        let running =
            Running { source: text, parameters: values, origin: Origin::Prepared, kept: None };
        let types = self.parameter_types(&running);
        let planned = self.plan_statement(&statement, text, types.as_deref())?;
        if planned.wants_literals {
            return Ok(None);
        }
        if self.lock_plan(&planned)? {
            return Ok(Some(planned));
        }
        self.plan_and_lock(&statement, &running).map(Some)
    }
}

/// What of a value's type decides a plan, in a few bits: texts by the power of two that holds them.
fn type_class(value: &Value) -> u64 {
    match value {
        Value::Bytes(bytes) => 2 + u64::from((bytes.len().max(64) as u32).next_power_of_two()),
        _ => 1,
    }
}
