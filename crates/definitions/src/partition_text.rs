//! The text of a partitioning in SHOW CREATE TABLE and information_schema.PARTITIONS.

use std::sync::Arc;

use catalog::{Partition, PartitionKind, PartitionMethod, PartitionValue, Partitioning};

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
        None if method.columns.is_empty() => None,
        None => {
            let columns: Vec<String> = method.columns.iter().map(|name| quote(name)).collect();
            Some(columns.join(","))
        }
    }
}

/// The values of a partition as PARTITION_DESCRIPTION has them.
pub fn values_text(method: &PartitionMethod, partition: &Partition) -> String {
    let is_row = method.kind == PartitionKind::List && method.columns.len() > 1;
    let tuple = |tuple: &Vec<PartitionValue>| {
        let texts: Vec<&str> = tuple.iter().map(|bound| &*bound.text).collect();
        let text = texts.join(",");
        if is_row { format!("({text})") } else { text }
    };
    let tuples: Vec<String> = partition.values.iter().map(tuple).collect();
    tuples.join(",")
}

fn method_text(method: &PartitionMethod) -> String {
    let linear = if method.linear { "LINEAR " } else { "" };
    let algorithm = if method.algorithm_one { "/*!50611 ALGORITHM = 1 */ " } else { "" };
    let names: Vec<String> = method.columns.iter().map(|column| name(column)).collect();
    let kind = kind_word(method.kind);
    match &method.expression {
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
            text.push_str(&format!(" VALUES IN ({})", values_text(method, partition)))
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
pub fn partitioning_text(partitioning: &Partitioning) -> String {
    let method = &partitioning.method;
    let by_value = matches!(method.kind, PartitionKind::Range | PartitionKind::List);
    // Older servers that read the text as a comment do not support COLUMNS.
    let version = if by_value && method.expression.is_none() { "50500" } else { "50100" };
    let mut text = format!("\n/*!{version} PARTITION BY {}", method_text(method));
    if !partitioning.listed && partitioning.partitions.len() > 1 {
        text.push_str(&format!("\nPARTITIONS {}", partitioning.partitions.len()));
    }
    if let Some(sub) = &partitioning.sub {
        text.push_str(&format!("\nSUBPARTITION BY {}", method_text(sub)));
        if !partitioning.sub_listed && partitioning.subpartitions() > 1 {
            text.push_str(&format!("\nSUBPARTITIONS {}", partitioning.subpartitions()));
        }
    }
    if partitioning.listed {
        let partition = |own| partition_text(partitioning, own);
        let all: Vec<String> = partitioning.partitions.iter().map(partition).collect();
        text.push_str(&format!("\n({})", all.join(",\n ")));
    }
    text.push_str(" */");
    text
}
