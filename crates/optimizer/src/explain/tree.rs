//! FORMAT=TREE and FORMAT=JSON: one node for each operator.

use std::fmt::Write;

use plan::{Access, JoinKind, Physical, Plan, RangeSpec, SetOperation, TableAccess};

use super::{Actual, Context, ctes, root, subqueries};

/// The plan as an indented list.
pub(super) fn text(plan: &Plan, context: &Context<'_>) -> String {
    let mut out = String::new();
    let depth = match heading(plan) {
        Some(heading) => {
            _ = writeln!(out, "-> {heading}");
            1
        }
        None => 0,
    };
    match root(plan) {
        Some(root) => print(root, depth, context, &mut out),
        None if depth == 0 => out.push_str("-> Rows fetched before execution\n"),
        None => {}
    }
    for (index, subquery) in subqueries(plan).iter().enumerate() {
        if subquery.outputs.is_empty() {
            continue;
        }
        let kind = if subquery.outer.is_empty() { "run only once" } else { "dependent" };
        let number = context.subqueries.get(index).map_or(index as u32 + 2, |s| s.block);
        _ = writeln!(out, "-> Select #{number} (subquery #{index}; {kind})");
        print(&subquery.root, 1, context, &mut out);
    }
    for (id, root, _) in ctes(plan) {
        _ = writeln!(out, "-> Materialize CTE #{}", id.0);
        print(root, 1, context, &mut out);
    }
    out
}

fn heading(plan: &Plan) -> Option<String> {
    match plan {
        Plan::Insert(insert) => Some(format!("Insert into {}", insert.target.name)),
        Plan::Update(update) => {
            let names: Vec<&str> = update.targets.iter().map(|(table, ..)| &*table.name).collect();
            let how = if update.buffered { "buffered" } else { "immediate" };
            Some(format!("Update {} ({how})", names.join(", ")))
        }
        Plan::Delete(delete) => {
            let names: Vec<&str> = delete.targets.iter().map(|(table, _)| &*table.name).collect();
            let how = if delete.buffered { "buffered" } else { "immediate" };
            Some(format!("Delete from {} ({how})", names.join(", ")))
        }
        Plan::Query(_) | Plan::Do { .. } | Plan::Rows { .. } => None,
    }
}

fn print(node: &Physical, depth: usize, context: &Context<'_>, out: &mut String) {
    let mut depth = depth;
    let lines = describe(node, context);
    let actual = context.actual.map(|actual| actual(node));
    for (position, line) in lines.iter().enumerate() {
        _ = write!(out, "{:width$}-> {line}", "", width = depth * 4);
        if let Physical::Scan { table, .. } = node {
            _ = write!(out, "  (rows={})", table.estimated_rows.max(1));
        }
        // The scan below its filter gave what it looked at.
        let below_filter = position > 0;
        match actual {
            None => {}
            Some(None) => out.push_str(" (never executed)"),
            Some(Some(actual)) => out.push_str(&actual_text(&actual, below_filter)),
        }
        out.push('\n');
        depth += 1;
    }
    node.for_each_input(&mut |input| print(input, depth, context, out));
}

/// ` (actual time=first..last rows=n loops=n)`: means over the loops, milliseconds.
fn actual_text(actual: &Actual, below_filter: bool) -> String {
    let rows = if below_filter { actual.examined } else { actual.rows };
    format!(
        " (actual time={}..{} rows={} loops={})",
        three_digits(millis(actual.first, actual.loops)),
        three_digits(millis(actual.last, actual.loops)),
        three_digits(rows as f64 / actual.loops.max(1) as f64),
        actual.loops
    )
}

fn millis(time: std::time::Duration, loops: u64) -> f64 {
    time.as_secs_f64() * 1e3 / loops.max(1) as f64
}

/// A number with three significant digits, more only in front of the point.
fn three_digits(number: f64) -> String {
    if number >= 100.0 || number.fract() == 0.0 {
        return format!("{number:.0}");
    }
    let before = number.max(1e-9).log10().floor() as i32;
    let text = format!("{number:.*}", (2 - before).clamp(0, 9) as usize);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// What an operator does, outermost first: a scan with a filter is two.
fn describe(node: &Physical, context: &Context<'_>) -> Vec<String> {
    let list = |exprs: &mut dyn Iterator<Item = &plan::Expr>| -> String {
        exprs.map(|expr| context.expr(expr)).collect::<Vec<_>>().join(", ")
    };
    let sorted = |keys: &[plan::SortKey]| -> String {
        keys.iter()
            .map(|key| context.expr(&key.expr) + if key.descending { " DESC" } else { "" })
            .collect::<Vec<_>>()
            .join(", ")
    };
    match node {
        Physical::OneRow => vec!["Rows fetched before execution".into()],
        Physical::Nothing => vec!["Zero rows (Impossible WHERE)".into()],
        Physical::Scan { table, access, filter } => {
            let scan = describe_access(table, access, context);
            match filter {
                Some(filter) => vec![format!("Filter: {}", context.expr(filter)), scan],
                None => vec![scan],
            }
        }
        Physical::InformationScan { schema, name, filter, .. } => {
            let scan = format!("Table scan on {schema}.{name}");
            match filter {
                Some(filter) => vec![format!("Filter: {}", context.expr(filter)), scan],
                None => vec![scan],
            }
        }
        Physical::Values { rows, .. } => vec![format!("Values: {} row(s)", rows.len())],
        Physical::Filter { predicate, .. } => vec![format!("Filter: {}", context.expr(predicate))],
        Physical::Project { columns, .. } => {
            vec![format!("Compute: {}", list(&mut columns.iter().map(|(_, expr)| expr)))]
        }
        Physical::NestedLoop { kind, condition, .. } => {
            let condition = condition.as_ref().map(|c| format!(" on {}", context.expr(c)));
            vec![format!("Nested loop {}{}", join_word(*kind), condition.unwrap_or_default())]
        }
        Physical::HashJoin { kind, keys, condition, .. } => {
            let keys: Vec<String> = keys
                .iter()
                .map(|(a, b, _)| format!("({} = {})", context.expr(a), context.expr(b)))
                .collect();
            let extra = condition.as_ref().map(|c| format!(", extra: {}", context.expr(c)));
            let word = match kind {
                JoinKind::Inner => "Inner hash join",
                JoinKind::Left => "Left hash join",
                JoinKind::Semi => "Hash semijoin",
                JoinKind::Anti => "Hash antijoin",
            };
            vec![format!("{word} {}{}", keys.join(", "), extra.unwrap_or_default())]
        }
        Physical::Aggregate { mode, keys, aggregates, .. } => {
            let calls: Vec<String> = aggregates
                .iter()
                .map(|call| {
                    let distinct = if call.distinct { "distinct " } else { "" };
                    let args = list(&mut call.args.iter());
                    let args = if args.is_empty() { "*".to_owned() } else { args };
                    format!("{}({distinct}{args})", call.function.to_lowercase())
                })
                .collect();
            let word = match mode {
                plan::AggregateMode::Scalar => "Aggregate",
                plan::AggregateMode::Hash => "Aggregate using temporary table",
                plan::AggregateMode::Sorted => "Group aggregate",
            };
            let by = list(&mut keys.iter().map(|(_, key)| key));
            let by = if by.is_empty() { by } else { format!(" by {by}") };
            vec![format!("{word}{by}: {}", calls.join(", "))]
        }
        Physical::Window { partition_by, order_by, calls, .. } => {
            let names: Vec<&str> = calls.iter().map(|call| &*call.function).collect();
            vec![format!(
                "Window aggregate: {} over (partition by {} order by {})",
                names.join(", ").to_lowercase(),
                list(&mut partition_by.iter()),
                sorted(order_by)
            )]
        }
        Physical::Sort { keys, limit, .. } => {
            let top = limit
                .as_ref()
                .map(|limit| format!(", limit input to {} row(s) per chunk", context.expr(limit)));
            vec![format!("Sort: {}{}", sorted(keys), top.unwrap_or_default())]
        }
        Physical::Distinct { .. } => vec!["Remove duplicates".into()],
        Physical::Limit { limit, offset, .. } => {
            let count = limit.as_ref().map_or("all".to_owned(), |limit| context.expr(limit));
            vec![match offset {
                Some(offset) => format!("Limit/Offset: {count}/{} row(s)", context.expr(offset)),
                None => format!("Limit: {count} row(s)"),
            }]
        }
        Physical::SetOperation { operation, .. } => vec![set_word(*operation).into()],
        Physical::Materialize { correlated, .. } => {
            vec![if *correlated { "Materialize (dependent)".into() } else { "Materialize".into() }]
        }
        Physical::CteScan { id, .. } => vec![format!("Scan CTE #{}", id.0)],
        Physical::RecursiveCte { distinct, .. } => {
            vec![if *distinct {
                "Repeat until convergence (distinct)".into()
            } else {
                "Repeat until convergence".into()
            }]
        }
    }
}

fn join_word(kind: JoinKind) -> &'static str {
    match kind {
        JoinKind::Inner => "inner join",
        JoinKind::Left => "left join",
        JoinKind::Semi => "semijoin",
        JoinKind::Anti => "antijoin",
    }
}

fn set_word(operation: SetOperation) -> &'static str {
    match operation {
        SetOperation::UnionAll => "Append",
        SetOperation::UnionDistinct => "Union materialize with deduplication",
        SetOperation::IntersectAll => "Intersect all materialize",
        SetOperation::IntersectDistinct => "Intersect materialize with deduplication",
        SetOperation::ExceptAll => "Except all materialize",
        SetOperation::ExceptDistinct => "Except materialize with deduplication",
    }
}

fn describe_access(table: &TableAccess, access: &Access, context: &Context<'_>) -> String {
    let named = |index: u32| {
        context.index_name(table, index).map_or("PRIMARY".to_owned(), |name| name.to_string())
    };
    let alias = &table.alias;
    let reverse = |backward: bool| if backward { " (reverse)" } else { "" };
    match access {
        Access::Unique { index, key } => {
            let constant = key.iter().all(|part| part.value.is_constant());
            let word = if constant { "Constant row" } else { "Single-row index lookup" };
            let parts = key_text(table, *index, key, context);
            format!("{word} on {alias} using {} ({parts})", named(*index))
        }
        Access::Ranges { index, ranges, backward } => match ranges.as_slice() {
            [RangeSpec { equal, lower: None, upper: None }] => {
                let parts = key_text(table, *index, equal, context);
                format!(
                    "Index lookup on {alias} using {} ({parts}){}",
                    named(*index),
                    reverse(*backward)
                )
            }
            _ => format!(
                "Index range scan on {alias} using {} over {} range(s){}",
                named(*index),
                ranges.len(),
                reverse(*backward)
            ),
        },
        Access::Full { index: 0, backward: false } => format!("Table scan on {alias}"),
        Access::Full { index, backward } => {
            format!("Index scan on {alias} using {}{}", named(*index), reverse(*backward))
        }
    }
}

fn key_text(
    table: &TableAccess,
    index: u32,
    key: &[plan::IndexKeySource],
    context: &Context<'_>,
) -> String {
    let definition = context.table(table);
    let parts = definition.indexes.iter().find(|known| known.id.0 == index);
    key.iter()
        .enumerate()
        .map(|(position, part)| {
            let name = parts
                .and_then(|index| index.parts.get(position))
                .map_or("?", |part| &definition.columns[part.column].name);
            format!("{name}={}", context.expr(&part.value))
        })
        .collect::<Vec<_>>()
        .join(", ")
}

// --- JSON

/// The plan as a JSON document.
pub(super) fn json(plan: &Plan, context: &Context<'_>) -> String {
    let mut out = String::from("{\n");
    if let Some(heading) = heading(plan) {
        _ = writeln!(out, "  \"operation\": {},", quoted(&heading));
    }
    _ = writeln!(out, "  \"json_schema_version\": \"2.0\",");
    _ = writeln!(out, "  \"query_type\": {},", quoted(query_type(plan)));
    out.push_str("  \"query_plan\": ");
    match root(plan) {
        Some(root) => json_node(root, 1, context, &mut out),
        None => out.push_str("{\"operation\": \"Rows fetched before execution\"}"),
    }
    let live: Vec<_> =
        subqueries(plan).iter().filter(|subquery| !subquery.outputs.is_empty()).collect();
    if !live.is_empty() {
        out.push_str(",\n  \"subqueries\": [");
        for (position, subquery) in live.iter().enumerate() {
            out.push_str(if position > 0 { ", " } else { "" });
            json_node(&subquery.root, 1, context, &mut out);
        }
        out.push(']');
    }
    out.push_str("\n}");
    out
}

fn query_type(plan: &Plan) -> &'static str {
    match plan {
        Plan::Query(_) | Plan::Do { .. } | Plan::Rows { .. } => "select",
        Plan::Insert(_) => "insert",
        Plan::Update(_) => "update",
        Plan::Delete(_) => "delete",
    }
}

fn json_node(node: &Physical, depth: usize, context: &Context<'_>, out: &mut String) {
    let lines = describe(node, context);
    json_lines(node, &lines, depth, context, out);
}

fn json_lines(
    node: &Physical,
    lines: &[String],
    depth: usize,
    context: &Context<'_>,
    out: &mut String,
) {
    let pad = "  ".repeat(depth + 1);
    let Some((line, rest)) = lines.split_first() else { return };
    out.push_str("{\n");
    _ = write!(out, "{pad}\"operation\": {}", quoted(line));
    if let Some(actual) = context.actual {
        json_actual(actual(node), rest.is_empty(), &pad, out);
    }
    let mut inputs = 0;
    node.for_each_input(&mut |_| inputs += 1);
    if rest.is_empty()
        && let Physical::Scan { table, .. } = node
    {
        let definition = context.table(table);
        _ = write!(out, ",\n{pad}\"alias\": {}", quoted(&table.alias));
        _ = write!(out, ",\n{pad}\"schema_name\": {}", quoted(&definition.schema));
        _ = write!(out, ",\n{pad}\"table_name\": {}", quoted(&definition.name));
        _ = write!(out, ",\n{pad}\"estimated_rows\": {}", table.estimated_rows.max(1));
    }
    if !rest.is_empty() || inputs > 0 {
        _ = write!(out, ",\n{pad}\"inputs\": [");
        if rest.is_empty() {
            let mut first = true;
            node.for_each_input(&mut |input| {
                out.push_str(if first { "" } else { ", " });
                first = false;
                json_node(input, depth + 1, context, out);
            });
        } else {
            json_lines(node, rest, depth + 1, context, out);
        }
        out.push(']');
    }
    _ = write!(out, "\n{}}}", "  ".repeat(depth));
}

fn json_actual(actual: Option<Actual>, innermost: bool, pad: &str, out: &mut String) {
    let Some(actual) = actual else {
        _ = write!(out, ",\n{pad}\"actual_rows\": null,\n{pad}\"actual_loops\": 0");
        return;
    };
    let is_scan = actual.examined > 0 && innermost;
    let rows = if is_scan { actual.examined } else { actual.rows };
    let rows = rows as f64 / actual.loops.max(1) as f64;
    _ = write!(out, ",\n{pad}\"actual_rows\": {rows:?},\n{pad}\"actual_loops\": {}", actual.loops);
    let (first, last) = (millis(actual.first, actual.loops), millis(actual.last, actual.loops));
    _ = write!(out, ",\n{pad}\"actual_first_row_ms\": {first:?}");
    _ = write!(out, ",\n{pad}\"actual_last_row_ms\": {last:?}");
}

fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            control if (control as u32) < 0x20 => _ = write!(out, "\\u{:04x}", control as u32),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
