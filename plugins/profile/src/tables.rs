//! `data_dictionary.ACTIVE_SESSION_HISTORY` and `PROFILE_SAMPLES`. An account without the privilege PROCESS sees its own open sessions.

use std::collections::HashSet;
use std::sync::Arc;

use errors::{Error, ErrorCode, Result};
use plugin_api::{
    InfoColumn, InfoFilter, InformationContext, InformationTable, TableDefinition, TableEditor,
    table_definitions,
};
use sys::waits::Wait;
use types::{DateTime, Value};

use crate::sample::{Sample, class_of};
use crate::sampler::{Kept, Sampler};

const DEFINITIONS: &str = include_str!("definitions.txt");
const SAMPLES: &str = "PROFILE_SAMPLES";

/// Both tables.
pub(crate) fn all(sampler: &Arc<Sampler>) -> Vec<Arc<dyn InformationTable>> {
    let table = |definition| -> Arc<dyn InformationTable> {
        Arc::new(SampleTable { definition, sampler: sampler.clone() })
    };
    table_definitions(DEFINITIONS).into_iter().map(table).collect()
}

struct SampleTable {
    definition: TableDefinition,
    sampler: Arc<Sampler>,
}

impl SampleTable {
    fn has_stacks(&self) -> bool {
        self.definition.name == SAMPLES
    }

    fn kept(&self) -> &Kept {
        if self.has_stacks() { &self.sampler.samples } else { &self.sampler.history }
    }
}

impl InformationTable for SampleTable {
    fn schema(&self) -> &'static str {
        self.definition.schema
    }

    fn name(&self) -> &'static str {
        self.definition.name
    }

    fn columns(&self) -> &[InfoColumn] {
        &self.definition.columns
    }

    fn rows(
        &self,
        ctx: &dyn InformationContext,
        _: &InfoFilter,
        emit: &mut dyn FnMut(&[Value]) -> Result<()>,
    ) -> Result<()> {
        let all = ctx.sees_all_processes();
        let own: HashSet<u64> = match all {
            true => HashSet::new(),
            false => ctx.processes().iter().map(|process| process.id).collect(),
        };
        let mut samples = self.kept().all();
        samples.retain(|sample| all || own.contains(&sample.session));
        for sample in &samples {
            let mut row = row_of(sample);
            if self.has_stacks() {
                row.push(Value::text(&sample.stack));
            }
            emit(&row)?;
        }
        Ok(())
    }

    fn editor(&self) -> Option<&dyn TableEditor> {
        Some(self)
    }
}

/// The columns that both tables have.
fn row_of(sample: &Sample) -> Vec<Value> {
    let optional = |text: Option<&str>| text.map_or(Value::Null, Value::text);
    let time = DateTime::from_unix_micros(sample.at_micros).unwrap_or(DateTime::ZERO);
    let is_waiting = sample.wait != Wait::Running;
    vec![
        Value::DateTime(time),
        Value::UInt(sample.session),
        Value::text(&sample.user),
        optional(sample.schema.as_deref()),
        Value::text(sample.command),
        Value::text(sample.state),
        Value::text(class_of(sample.wait)),
        optional(is_waiting.then(|| sample.wait.name())),
        Value::text(&sample.digest.number),
        Value::text(&sample.digest.text),
        optional(sample.operator.as_deref()),
    ]
}

impl TableEditor for SampleTable {
    fn update(&self, _: &[Value], _: &[(usize, Value)], _: u64) -> Result<bool> {
        Err(Error::with(ErrorCode::WRONG_PERFSCHEMA_USAGE, &[]))
    }

    fn truncate(&self) -> Result<()> {
        self.kept().clear();
        Ok(())
    }
}
