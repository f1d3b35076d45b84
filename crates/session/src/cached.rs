//! A text's path through the plan cache: normalise, look up, bind the lifted literals. Also the statistics that planning needs.

use std::sync::Arc;

use errors::Result;
use observation::Phase;
use plugin_api::ResultSink;
use syntax::{ParseOptions, Statement};
use types::Value;

use crate::duality_changes::has_no_plan;
use crate::plan_cache::{LiftedText, PlanKey, PlanSettings};
use crate::planned::Planned;
use crate::session::Session;
use crate::status::Counter;
use programs::{Origin, Running};
use statements::placeholders::is_blank;

/// Longer texts are not looked up: they carry data.
const TEXT_BYTES_MAX: usize = 32 * 1024;
/// Texts with more literals likewise.
const LITERALS_MAX: usize = 512;

impl Session {
    /// Whether statements of this session may use shared plans now.
    pub(crate) fn may_share_plans(&self) -> bool {
        self.temporary.is_empty()
            && !self.settings.traces_optimizer
            && self.transactions.definitions.is_none()
            && !self.transactions.reads_lock(&self.settings)
    }

    /// Runs the first statement of `text` by the plan cache; `None` when it must be parsed unchanged.
    pub(crate) fn run_cached(
        &mut self,
        text: &[u8],
        sink: &mut dyn ResultSink,
    ) -> Result<Option<usize>> {
        if text.len() > TEXT_BYTES_MAX || !self.may_share_plans() {
            return Ok(None);
        }
        let options = self.reading().options();
        let digest = self.normalizer.normalize(text, &options);
        if !digest.cacheable || digest.literals.len() > LITERALS_MAX {
            return Ok(None);
        }
        let (hash, consumed) = (digest.hash, digest.consumed);
        let more = !is_blank(&text[consumed..]);
        if more && !self.client.multi_statements {
            return Ok(None);
        }
        self.lifted.take_over(digest.literals);
        let mut values = self.lifted.room();
        let ready = self.lifted.values(text, &options, &mut values);
        let result = match ready {
            Some(types) => {
                let key = PlanKey {
                    digest: hash,
                    types,
                    schema: self.services.database.clone(),
                    settings: PlanSettings::of(&self.settings),
                };
                self.run_shared(&text[..consumed], &options, key, &values, more, sink)
            }
            None => Ok(false),
        };
        self.lifted.give_back(values);
        result.map(|done| done.then_some(consumed))
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
        let lifted = LiftedText { text, literals: &self.lifted.spans };
        if let Some(planned) = self.front_cache.find(&self.server.plan_cache, &key, &lifted) {
            if self.server.catalog.has_definitions(planned.version) && self.lock_plan(&planned)? {
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
            let lifted = LiftedText { text, literals: &self.lifted.spans };
            self.server.plan_cache.insert(key, &lifted, planned.clone());
        }
        self.say_more_results(more, sink);
        self.run_to_client(&planned, values, sink)?;
        Ok(true)
    }

    /// Plans a text with its lifted literals as parameters; `None` when it needs the plain path.
    fn plan_lifted(
        &mut self,
        text: &[u8],
        options: &ParseOptions<'_>,
        values: &[Value],
    ) -> Result<Option<Arc<Planned>>> {
        let lifted = std::mem::take(&mut self.lifted.spans);
        let lifting = ParseOptions { lift: Some(&lifted), ..options.clone() };
        let parsed = {
            let _seen = sys::probes::parse(text);
            syntax::parse_bytes(text, &lifting)
        };
        self.lifted.spans = lifted;
        // Invalid texts, and literals where no parameter is allowed: the plain path reports the error.
        let Ok((statement, _)) = parsed else { return Ok(None) };
        let plannable = match &statement {
            Statement::Query(query) => crate::query::find_into(query).is_none(),
            Statement::Update(_) | Statement::Insert(_) | Statement::Delete(_) => {
                !has_no_plan(self, &statement)
            }
            _ => false,
        };
        if !plannable || statements::hints::changes_surroundings(&statement) {
            return Ok(None);
        }
        self.enter(Phase::Plan);
        let running =
            Running { source: text, parameters: values, origin: Origin::Prepared, kept: None };
        let types = self.parameter_types(&running);
        let planner = self.planner().knowing(values);
        let planned = planner.plan_statement(&statement, text, types.as_deref())?;
        if planned.wants_literals {
            return Ok(None);
        }
        if self.lock_plan(&planned)? {
            return Ok(Some(planned));
        }
        self.plan_and_lock(&statement, &running).map(Some)
    }
}
