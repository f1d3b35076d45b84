//! The counters of engines (buffer pool, log, locks, purge, memory), and the times of their system calls.

use std::collections::BTreeMap;

use errors::Result;
use plugin_api::SessionFactory;
use types::Value;

use crate::exposition::{Type, Writer, metric_name};

/// Groups whose names contain those of tables: no figures for each of ten thousand tables.
const LEFT_OUT: &[&str] = &["index_build"];
/// Counters whose names do not end with `_total`.
const COUNTERS: &[&str] = &["log_written_bytes", "log_brake_microseconds"];
/// Figures whose names end with `_total` and that are no counters: sizes of a whole, and the work of recovery.
const WHOLES: &[&str] = &["pool_pages_total"];

fn text(value: &Value) -> String {
    match value {
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::Null
        | Value::Double(_)
        | Value::Decimal(_)
        | Value::Date(_)
        | Value::Time(_)
        | Value::DateTime(_)
        | Value::Json(_) => String::new(),
    }
}

/// The rows of an information table as texts.
fn rows(server: &dyn SessionFactory, table: &str) -> Result<Vec<Vec<String>>> {
    let mut rows = Vec::new();
    server.read_information("data_dictionary", table, &mut |_, values| {
        rows.push(values.iter().map(text).collect());
        Ok(())
    })?;
    Ok(rows)
}

/// The name, without the ending of counters, and the type of a figure.
fn described(group: &str, name: &str) -> (String, Type) {
    let full = metric_name(&format!("{group}_{name}"));
    if let Some(name) = full.strip_suffix("_total") {
        return match group == "recovery" || WHOLES.contains(&full.as_str()) {
            true => (format!("{name}_all"), Type::Gauge),
            false => (name.to_owned(), Type::Counter),
        };
    }
    let is_counter = COUNTERS.contains(&full.as_str())
        || full.ends_with("_total_microseconds")
        || full.ends_with("_count");
    let ty = if is_counter { Type::Counter } else { Type::Gauge };
    (full, ty)
}

/// Writes the counters of all engines.
///
/// # Errors
/// They cannot be read.
pub fn write(writer: &mut Writer, server: &dyn SessionFactory) -> Result<()> {
    let mut families: BTreeMap<(String, String), Vec<(String, f64)>> = BTreeMap::new();
    for row in rows(server, "ENGINE_STATISTICS")? {
        let [engine, group, name, value] = &row[..] else { continue };
        let Ok(value) = value.parse::<f64>() else { continue };
        if !LEFT_OUT.contains(&group.as_str()) && !name.contains('/') {
            let key = (group.clone(), name.clone());
            families.entry(key).or_default().push((engine.clone(), value));
        }
    }
    for ((group, name), samples) in families {
        let (metric, ty) = described(&group, &name);
        let help = format!("Engines, {group}: {}.", name.replace('_', " "));
        writer.family(&format!("engine_{metric}"), ty, &help);
        for (engine, value) in samples {
            writer.sample(&[("engine", &engine)], value);
        }
    }
    write_calls(writer, server)
}

/// Counts of one kind of system call by duration: upper bounds in microseconds, and the sum.
#[derive(Default)]
struct Calls {
    counts: BTreeMap<u64, u64>,
    total_micros: u64,
}

/// The system calls on files by duration.
fn write_calls(writer: &mut Writer, server: &dyn SessionFactory) -> Result<()> {
    let mut calls: BTreeMap<String, Calls> = BTreeMap::new();
    for row in rows(server, "IO_HISTOGRAM")? {
        let [call, below, count, total] = &row[..] else { continue };
        let of = |text: &String| text.parse::<u64>().unwrap_or(0);
        let entry = calls.entry(call.clone()).or_default();
        *entry.counts.entry(of(below)).or_default() += of(count);
        entry.total_micros += of(total);
    }
    writer.family("io_call_seconds", crate::exposition::Type::Histogram, "System calls on files.");
    // A bound of 0, or one that no number reaches, stands for what is beyond the others.
    let is_bound = |bound: &u64| *bound > 0 && *bound < u64::MAX / 2;
    for (call, Calls { counts, total_micros }) in &calls {
        let bounds: Vec<u64> = counts.keys().copied().filter(is_bound).collect();
        let mut all: Vec<u64> = bounds.iter().map(|bound| counts[bound]).collect();
        all.push(counts.iter().filter(|(bound, _)| !is_bound(bound)).map(|(_, count)| count).sum());
        let bounds: Vec<f64> = bounds.iter().map(|bound| *bound as f64 / 1e6).collect();
        writer.histogram(&[("call", call)], &bounds, &all, *total_micros as f64 / 1e6);
    }
    Ok(())
}
