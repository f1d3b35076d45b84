//! Work on files: `data_dictionary.IO_STATS`.

use errors::Result;
use plugin_api::{FileOperations, InfoFilter, InformationContext};
use types::Value;

use crate::row::Emit;

/// `IO_STATS`: requests, bytes and times by class of file and operation. The amplification of a class is the bytes written to its files for each byte of the log, which holds every
/// change once.
pub fn io_stats(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    let all = ctx.file_operations();
    let is_log = |one: &&FileOperations| one.class == "redo log" && one.operation == "write";
    let logged = all.iter().find(is_log).map_or(0, |log| log.bytes);
    for one in &all {
        let is_write = one.operation == "write";
        let amplification = (is_write && logged > 0).then(|| one.bytes as f64 / logged as f64);
        let aligned = is_write.then_some(one.aligned);
        emit(&[
            Value::text(one.class),
            Value::text(one.operation),
            Value::UInt(one.requests),
            Value::UInt(one.bytes),
            Value::UInt(one.bytes.checked_div(one.requests).unwrap_or(0)),
            aligned.map_or(Value::Null, Value::UInt),
            Value::UInt(one.errors),
            Value::UInt(one.total_micros),
            Value::UInt(one.p50_micros),
            Value::UInt(one.p95_micros),
            Value::UInt(one.p99_micros),
            Value::UInt(one.extent.most()),
            amplification.map_or(Value::Null, Value::Double),
        ])?;
    }
    Ok(())
}
