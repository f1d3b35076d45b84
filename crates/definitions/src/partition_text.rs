//! The text of a partitioning in SHOW CREATE TABLE and information_schema.PARTITIONS.

use std::sync::Arc;

use catalog::{Partition, PartitionKind, PartitionMethod, PartitionValue, Partitioning};
use types::{Utc, Value, ZoneRules};

use crate::engines::SHOWN_ENGINE;
use crate::quoting::{literal, needs_quotes, quote};

/// A name, quoted only if necessary.
fn name(name: &str) -> String {
    if needs_quotes(name) { quote(name) } else { name.to_owned() }
}

fn kind_word(kind: PartitionKind) -> &'static str {
    match kind {
        PartitionKind::Range => "RANGE",
        PartitionKind::List => "LIST",
        PartitionKind::Hash => "HASH",
        PartitionKind::Key => "KEY",
        PartitionKind::SystemTime => "SYSTEM_TIME",
    }
}

/// `LINEAR HASH`, `RANGE COLUMNS`.
pub fn method_name(method: &PartitionMethod) -> String {
    let linear = if method.linear { "LINEAR " } else { "" };
    let by_value = matches!(method.kind, PartitionKind::Range | PartitionKind::List);
    let columns = if by_value && method.expression.is_none() { " COLUMNS" } else { "" };
    format!("{linear}{}{columns}", kind_word(method.kind))
}

/// The expression, or the columns in backticks; nothing for KEY ().
pub fn method_expression(method: &PartitionMethod) -> Option<String> {
    match &method.expression {
        Some((text, _)) => Some(text.to_string()),
        None if method.kind == PartitionKind::SystemTime => {
            let end = method.columns.first().map_or("", |name| name);
            Some(format!("unix_timestamp({})", quote(end)))
        }
        None if method.columns.is_empty() => None,
        None => {
            let columns: Vec<String> = method.columns.iter().map(|name| quote(name)).collect();
            Some(columns.join(","))
        }
    }
}

/// The values of a partition as PARTITION_DESCRIPTION has them.
pub fn values_text(
    method: &PartitionMethod,
    partition: &Partition,
    zone: &dyn ZoneRules,
) -> String {
    let end = partition.values.first().and_then(|tuple| tuple.first()?.value.as_ref());
    if let (PartitionKind::SystemTime, Some(Value::DateTime(end))) = (method.kind, end) {
        return local_text(end.to_unix_micros().unwrap_or(0), zone);
    }
    let is_row = method.kind == PartitionKind::List && method.columns.len() > 1;
    let tuple = |tuple: &Vec<PartitionValue>| {
        let texts: Vec<&str> = tuple.iter().map(|bound| &*bound.text).collect();
        let text = texts.join(",");
        if is_row { format!("({text})") } else { text }
    };
    let tuples: Vec<String> = partition.values.iter().map(tuple).collect();
    tuples.join(",")
}

/// A time as the session sees it, without a fraction.
fn local_text(micros: i64, zone: &dyn ZoneRules) -> String {
    let mut text = Vec::new();
    zone.utc_to_local(micros).write_text(0, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// SYSTEM_TIME with its INTERVAL or LIMIT.
fn system_time_text(method: &PartitionMethod, zone: &dyn ZoneRules) -> String {
    let rotation = &method.rotation;
    let mut text = "SYSTEM_TIME ".to_owned();
    if let Some(interval) = &rotation.interval {
        let micros = i64::try_from(interval.starts).unwrap_or(0).saturating_mul(1_000_000);
        let starts = local_text(micros, zone);
        text.push_str(&format!("INTERVAL {} STARTS TIMESTAMP'{starts}'", interval.text));
    }
    if let Some(limit) = rotation.limit {
        text.push_str(&format!("LIMIT {limit}"));
    }
    text
}

fn method_text(method: &PartitionMethod, zone: &dyn ZoneRules) -> String {
    let linear = if method.linear { "LINEAR " } else { "" };
    let algorithm = if method.algorithm_one { "/*!50611 ALGORITHM = 1 */ " } else { "" };
    let names: Vec<String> = method.columns.iter().map(|column| name(column)).collect();
    let kind = kind_word(method.kind);
    match &method.expression {
        None if method.kind == PartitionKind::SystemTime => system_time_text(method, zone),
        Some((text, _)) => format!("{linear}{kind} ({text})"),
        None if method.kind == PartitionKind::Key => {
            format!("{linear}KEY {algorithm}({})", names.join(","))
        }
        None => format!("{kind}  COLUMNS({})", names.join(",")),
    }
}

fn engine_text(comment: &str, options: &[(String, String)]) -> String {
    let mut text = String::new();
    for (name, value) in options {
        text.push_str(&format!(" {name} = {value}"));
    }
    if !comment.is_empty() {
        text.push_str(&format!(" COMMENT = {}", literal(comment)));
    }
    text.push_str(&format!(" ENGINE = {SHOWN_ENGINE}"));
    text
}

fn partition_text(partitioning: &Partitioning, partition: &Partition) -> String {
    let mut text = format!("PARTITION {}", name(&partition.name));
    let method = &partitioning.method;
    let is_maximum = |bound: &PartitionValue| bound.value.is_none();
    match method.kind {
        PartitionKind::Range => {
            let tuple = partition.values.first().map_or(&[][..], |tuple| tuple);
            let texts: Vec<&str> = tuple.iter().map(|bound| &*bound.text).collect();
            if method.expression.is_some() && tuple.iter().any(is_maximum) {
                text.push_str(" VALUES LESS THAN MAXVALUE");
            } else {
                text.push_str(&format!(" VALUES LESS THAN ({})", texts.join(",")));
            }
        }
        PartitionKind::List => {
            text.push_str(&format!(" VALUES IN ({})", values_text(method, partition, &Utc)))
        }
        PartitionKind::SystemTime => {
            let is_current = partition.values.iter().flatten().any(is_maximum);
            text.push_str(if is_current { " CURRENT" } else { " HISTORY" });
        }
        PartitionKind::Hash | PartitionKind::Key => {}
    }
    if !partitioning.sub_listed {
        text.push_str(&engine_text(&partition.comment, &partition.options));
        return text;
    }
    let sub = |(sub, comment): &(Arc<str>, String)| {
        let comment = if comment.is_empty() { &partition.comment } else { comment };
        format!("SUBPARTITION {}{}", name(sub), engine_text(comment, &partition.options))
    };
    let subs: Vec<String> = partition.subpartitions.iter().map(sub).collect();
    text.push_str(&format!("\n ({})", subs.join(",\n  ")));
    text
}

/// The text after the options of CREATE TABLE.
pub fn partitioning_text(partitioning: &Partitioning, zone: &dyn ZoneRules) -> String {
    let method = &partitioning.method;
    let by_value = matches!(method.kind, PartitionKind::Range | PartitionKind::List);
    // Older servers that read the text as a comment do not support COLUMNS.
    let version = if by_value && method.expression.is_none() { "50500" } else { "50100" };
    // No other server than MariaDB, which has no comment there, knows SYSTEM_TIME.
    let by_time = partitioning.by_system_time();
    let comment = if by_time { " ".to_owned() } else { format!("/*!{version} ") };
    let mut text = format!("\n{comment}PARTITION BY {}", method_text(method, zone));
    if !partitioning.listed && partitioning.partitions.len() > 1 {
        text.push_str(&format!("\nPARTITIONS {}", partitioning.partitions.len()));
    }
    if let Some(sub) = &partitioning.sub {
        text.push_str(&format!("\nSUBPARTITION BY {}", method_text(sub, zone)));
        if !partitioning.sub_listed && partitioning.subpartitions() > 1 {
            text.push_str(&format!("\nSUBPARTITIONS {}", partitioning.subpartitions()));
        }
    }
    if partitioning.listed {
        let partition = |own| partition_text(partitioning, own);
        let all: Vec<String> = partitioning.partitions.iter().map(partition).collect();
        text.push_str(&format!("\n({})", all.join(",\n ")));
    }
    if !by_time {
        text.push_str(" */");
    }
    text
}
