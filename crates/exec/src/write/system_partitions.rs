//! The partitions of a table by SYSTEM_TIME: old rows go to the one that takes them when the statement begins.

use std::sync::Arc;

use engine_api::{Engine, EngineIndex, IndexId, KeyRange, TableId};
use errors::{Diagnostics, Result};
use plan::SystemPartitions;
use rows::system_partitions::Filled;
use types::{DateTime, Value};

use crate::run::Run;

/// Warns where the last history partition of a table that the statement wrote has more than it should.
pub(super) fn warn(run: &mut Run<'_>) -> Result<()> {
    let now = DateTime::from_unix_micros(run.function.now_micros);
    let now = now.map_or(Value::Null, Value::DateTime);
    for (filled, engine) in std::mem::take(&mut run.filled) {
        let (mut warnings, engine) = (Diagnostics::new(1), run.host.engine_at(engine)?.clone());
        filled.warn(&now, &mut warnings, &mut |of, key| rows(of, key, &*engine, run))?;
        run.function.diagnostics.append(warnings);
    }
    Ok(())
}

/// About how many rows have keys that begin with some bytes.
fn rows(of: &SystemPartitions, key: Vec<u8>, engine: &dyn Engine, run: &Run<'_>) -> Result<u64> {
    let (table, index) = (TableId(of.id), IndexId(of.index));
    Ok(run.engine(engine.estimate_range(table, index, &KeyRange::prefix(key)))?.rows)
}

/// The number of the partition that takes a row, where the table's expression does not tell: of an old row. `before`: the number that it has.
pub(super) fn number(
    (of, engine): (&Arc<SystemPartitions>, EngineIndex),
    (end, before): (&Value, &Value),
    run: &mut Run<'_>,
) -> Result<Value> {
    if *end == of.never {
        return Ok(before.clone());
    }
    if !run.filled.iter().any(|(filled, _)| filled.is_of(of)) {
        let found = run.host.engine_at(engine)?.clone();
        let found = Filled::find(of, &mut |of, key| rows(of, key, &*found, run))?;
        run.filled.push((found, engine));
    }
    let known = run.filled.iter().find(|(filled, _)| filled.is_of(of));
    Ok(known.map_or_else(|| before.clone(), |(filled, _)| filled.number(end, before)))
}
