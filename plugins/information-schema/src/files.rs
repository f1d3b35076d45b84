//! Work on files: `data_dictionary.IO_STATS`; tablespaces.

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

/// The engine under which tablespaces are shown.
const ENGINE: &str = "InnoDB";
/// Columns of `FILES`.
const FILES_COLUMNS: usize = 38;
/// A page of the engine that they are shown under.
const PAGE_BYTES: u64 = 16 << 10;

/// `information_schema.FILES`: the files that tablespaces declare.
pub fn files(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    for (at, tablespace) in ctx.tablespaces().iter().enumerate() {
        let mut row = vec![Value::Null; FILES_COLUMNS];
        row[0] = Value::UInt(at as u64 + 1);
        row[1] = Value::text(&format!("./{}", tablespace.file));
        row[2] = Value::text("TABLESPACE");
        row[3] = Value::text(&tablespace.name);
        row[4] = Value::text("");
        row[9] = Value::text(ENGINE);
        row[18] = Value::UInt(tablespace.autoextend_bytes);
        row[FILES_COLUMNS - 2] = Value::text("NORMAL");
        emit(&row)?;
    }
    Ok(())
}

/// `information_schema.INNODB_TABLESPACES`.
pub fn tablespaces(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for (at, tablespace) in ctx.tablespaces().iter().enumerate() {
        emit(&[
            Value::UInt(at as u64 + 1),
            Value::text(&tablespace.name),
            Value::UInt(0),
            Value::text("Any"),
            Value::UInt(PAGE_BYTES),
            Value::UInt(0),
            Value::text("General"),
            Value::UInt(0),
            Value::UInt(0),
            Value::UInt(0),
            Value::UInt(tablespace.autoextend_bytes),
            Value::Null,
            Value::UInt(1),
            Value::text(if tablespace.is_encrypted { "Y" } else { "N" }),
            Value::text("normal"),
        ])?;
    }
    Ok(())
}
