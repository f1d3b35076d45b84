//! Statements of `performance_schema`: those that run, and sums by text from the plan cache.

use errors::Result;
use plugin_api::{InfoFilter, InformationContext, PlanCacheView};
use types::Value;

use crate::row::{Emit, optional, time};

/// Picoseconds of a second and of a nanosecond: the unit of all times here.
const SECOND: u64 = 1_000_000_000_000;
const NANOSECOND: u64 = 1_000;
/// Counters of a text that are not kept: from locks to executions by another engine.
const COUNTERS: usize = 23;

/// `events_statements_current`: the statement of each connection that has one.
pub fn current(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    for process in ctx.processes() {
        let Some(text) = process.info.as_deref() else { continue };
        let waited = process.seconds.saturating_mul(SECOND);
        let mut row = vec![
            Value::UInt(process.id),
            Value::UInt(1),
            Value::Null,
            Value::text("statement/sql"),
            Value::Null,
            Value::UInt(0),
            Value::UInt(waited),
            Value::UInt(waited),
            Value::UInt(0),
            Value::text(text),
            Value::Null,
            Value::Null,
            optional(process.database.as_deref()),
        ];
        // The object, its address, and how the statement ended: it has not.
        row.extend(std::iter::repeat_n(Value::Null, 4));
        row.extend([Value::Int(0), Value::Null, Value::Null]);
        // Errors, warnings and the counters of rows, temporary tables, scans and sorts.
        row.extend(std::iter::repeat_n(Value::UInt(0), 18));
        // Nesting.
        row.extend([Value::Null, Value::Null, Value::Int(0)]);
        row.extend([Value::UInt(process.id), Value::UInt(0), Value::UInt(0), Value::UInt(0)]);
        row.push(Value::text("PRIMARY"));
        emit(&row)?;
    }
    Ok(())
}

/// `events_statements_summary_by_digest`: texts with their literals taken out, as the plan cache has them. The digest is a hash of
/// the schema and the text; errors, rows and quantiles are not counted by text.
pub fn by_digest(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    for PlanCacheView { schema, text, hits: count, nanoseconds, .. } in ctx.plan_cache() {
        let total = nanoseconds.saturating_mul(NANOSECOND);
        let mut row = vec![
            optional(Some(schema.as_str()).filter(|schema| !schema.is_empty())),
            Value::text(&digest(&schema, &text)),
            Value::text(&text),
            Value::UInt(count),
            Value::UInt(total),
            Value::UInt(0),
            Value::UInt(total.checked_div(count).unwrap_or(0)),
            Value::UInt(0),
        ];
        row.extend(std::iter::repeat_n(Value::UInt(0), COUNTERS));
        // First and last seen: since the start; then quantiles and a sample.
        row.extend([time(ctx.started_micros()), time(ctx.started_micros())]);
        row.extend(std::iter::repeat_n(Value::UInt(0), 3));
        row.extend([Value::Null, time(ctx.started_micros()), Value::UInt(0)]);
        emit(&row)?;
    }
    Ok(())
}

/// 64 hexadecimal digits that differ for different schemas and texts: four FNV-1a hashes.
fn digest(schema: &str, text: &str) -> String {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let hash = |seed: u64| {
        let bytes = schema.bytes().chain([0]).chain(text.bytes());
        bytes.fold(BASIS ^ seed, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
    };
    (0..4).map(|seed| format!("{:016x}", hash(seed))).collect()
}

#[cfg(test)]
mod tests {
    use super::digest;

    #[test]
    fn digests_tell_texts_apart() {
        assert_eq!(digest("a", "SELECT ?").len(), 64);
        assert_eq!(digest("a", "SELECT ?"), digest("a", "SELECT ?"));
        assert_ne!(digest("a", "SELECT ?"), digest("b", "SELECT ?"));
        assert_ne!(digest("a", "SELECT ?"), digest("a", "SELECT ??"));
    }
}
