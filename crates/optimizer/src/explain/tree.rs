//! FORMAT=TREE and the second version of FORMAT=JSON: one node for each operator.

use std::fmt::Write;

use plan::{Access, GroupSets, JoinKind, Physical, Plan, RangeSpec, SetOperation, TableAccess};

use super::cost::Estimate;
use super::table::is_spatial;
use super::{Actual, Context, Operator, ctes, root, subqueries};
use crate::json::Json;

/// An operator as both formats show it.
struct Node {
    operation: String,
    access_type: &'static str,
    /// Members shown only in JSON.
    members: Vec<(&'static str, Json)>,
    estimate: Option<Estimate>,
    /// The operator's measurements, and whether the rows counted are those before the filter above.
    actual: Option<(Option<Actual>, bool)>,
    inputs: Vec<Node>,
}

impl Node {
    fn new(operation: impl Into<String>, access_type: &'static str) -> Node {
        Node {
            operation: operation.into(),
            access_type,
            members: Vec::new(),
            estimate: None,
            actual: None,
            inputs: Vec::new(),
        }
    }

    fn over(mut self, inputs: Vec<Node>) -> Node {
        self.inputs = inputs;
        self
    }

    fn with(mut self, name: &'static str, value: Json) -> Node {
        self.members.push((name, value));
        self
    }
}

/// The plan as an indented list.
pub(super) fn text(plan: &Plan, context: &Context<'_>) -> String {
    let mut out = String::new();
    for node in nodes(plan, context) {
        print(&node, 0, &mut out);
    }
    out
}

/// The statement's own tree with its measurements, then those of its subqueries and common table expressions.
pub(super) fn operators(plan: &Plan, context: &Context<'_>) -> Vec<Operator> {
    nodes(plan, context).into_iter().map(Node::into_operator).collect()
}

/// The plan as a JSON document.
pub(super) fn json(plan: &Plan, context: &Context<'_>) -> String {
    let mut members = vec![
        ("json_schema_version", Json::text("2.0")),
        ("query_type", Json::text(super::query_type(plan))),
    ];
    if let Some(query) = context.query {
        members.push(("query", Json::text(query)));
    }
    let mut nodes = nodes(plan, context).into_iter().map(Node::into_json);
    if let Some(first) = nodes.next() {
        members.push(("query_plan", first));
    }
    let others: Vec<Json> = nodes.collect();
    if !others.is_empty() {
        members.push(("subqueries", Json::List(others)));
    }
    Json::sorted(members).print()
}

/// The statement's own tree, then those of its subqueries and common table expressions.
fn nodes(plan: &Plan, context: &Context<'_>) -> Vec<Node> {
    let inputs: Vec<Node> = root(plan).map(|root| node(root, context)).into_iter().collect();
    let mut nodes = match heading(plan, context) {
        Some(heading) => vec![heading.over(inputs)],
        None if inputs.is_empty() => vec![node(&Physical::OneRow, context)],
        None => inputs,
    };
    for (index, subquery) in subqueries(plan).iter().enumerate() {
        if subquery.outputs.is_empty() {
            continue;
        }
        let kind = if subquery.outer.is_empty() { "run only once" } else { "dependent" };
        let number = context.subqueries.get(index).map_or(index as u32 + 2, |s| s.block);
        let heading = format!("Select #{number} (subquery #{index}; {kind})");
        let heading = Node::new(heading, "subquery")
            .with("dependent", Json::Bool(!subquery.outer.is_empty()))
            .with("select_id", Json::Count(number.into()));
        nodes.push(heading.over(vec![node(&subquery.root, context)]));
    }
    for (id, root, _) in ctes(plan) {
        let heading = Node::new(format!("Materialize CTE #{}", id.0), "materialize");
        nodes.push(heading.over(vec![node(root, context)]));
    }
    nodes
}

fn heading(plan: &Plan, context: &Context<'_>) -> Option<Node> {
    let written = |node: Node, names: &[&str]| match names {
        [name] => node
            .with("table_name", Json::text(name))
            .with("schema_name", Json::text(context.schema_of(name))),
        _ => node,
    };
    let how = |buffered: bool| if buffered { "buffered" } else { "immediate" };
    match plan {
        Plan::Insert(insert) => {
            let replace = matches!(insert.mode, plan::InsertMode::Replace);
            let word = if replace { "Replace" } else { "Insert" };
            let name = &*insert.target.name;
            let node = Node::new(format!("{word} into {name}"), "insert");
            Some(written(node, &[name]))
        }
        Plan::Update(update) => {
            let names: Vec<&str> = update.targets.iter().map(|(table, ..)| &*table.name).collect();
            let text = format!("Update {} ({})", names.join(", "), how(update.buffered));
            Some(written(Node::new(text, "update"), &names))
        }
        Plan::Delete(delete) => {
            let names: Vec<&str> = delete.targets.iter().map(|(table, _)| &*table.name).collect();
            let text = format!("Delete from {} ({})", names.join(", "), how(delete.buffered));
            Some(written(Node::new(text, "delete"), &names))
        }
        Plan::Query(_) | Plan::Do { .. } | Plan::Rows { .. } => None,
    }
}

/// The nodes of one operator: a scan with a filter has two, and an operator that only computes columns has none.
fn node(operator: &Physical, context: &Context<'_>) -> Node {
    if let Physical::Project { input, .. } = operator {
        return node(input, context);
    }
    let mut inputs = Vec::new();
    operator.for_each_input(&mut |input| inputs.push(node(input, context)));
    let mut shown = describe(operator, context);
    shown.inputs.append(&mut inputs);
    let estimate = context.estimate(operator);
    shown.estimate = Some(estimate);
    let actual = context.actual.map(|actual| actual(operator));
    let filter = match operator {
        Physical::Scan { filter, .. } | Physical::InformationScan { filter, .. } => filter.as_ref(),
        _ => None,
    };
    let Some(filter) = filter else {
        shown.actual = actual.map(|actual| (actual, false));
        return shown;
    };
    if let Physical::Scan { table, access, .. } = operator {
        shown.estimate = Some(context.fetch_estimate(table, access));
    }
    shown.actual = actual.map(|actual| (actual, true));
    let mut above = filter_node(filter, context).over(vec![shown]);
    above.estimate = Some(estimate);
    above.actual = actual.map(|actual| (actual, false));
    above
}

fn filter_node(predicate: &plan::Expr, context: &Context<'_>) -> Node {
    let condition = context.expr(predicate);
    let mut columns: Vec<String> = Vec::new();
    predicate.visit(&mut |part| {
        if let Some(name) = part.as_column().and_then(|register| context.full_name(register))
            && !columns.contains(&name)
        {
            columns.push(name);
        }
    });
    columns.sort();
    Node::new(format!("Filter: {condition}"), "filter")
        .with("condition", Json::Text(condition))
        .with("filter_columns", Json::texts(columns))
}

fn print(node: &Node, depth: usize, out: &mut String) {
    _ = write!(out, "{:width$}-> {}", "", node.operation, width = depth * 4);
    if let Some(Estimate { rows, cost, first }) = node.estimate {
        let (cost, rows) = (three_digits(cost), three_digits(rows));
        if first > 0.0 || cost == "0" {
            _ = write!(out, "  (cost={}..{cost} rows={rows})", three_digits(first));
        } else {
            _ = write!(out, "  (cost={cost} rows={rows})");
        }
    }
    match node.actual {
        None => {}
        Some((None, _)) => out.push_str(" (never executed)"),
        Some((Some(actual), examined)) => out.push_str(&actual_text(&actual, examined)),
    }
    out.push('\n');
    for input in &node.inputs {
        print(input, depth + 1, out);
    }
}

/// ` (actual time=first..last rows=n loops=n)`: means over the loops, milliseconds.
fn actual_text(actual: &Actual, examined: bool) -> String {
    let rows = if examined { actual.examined } else { actual.rows };
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
    if number >= 1e6 {
        let exponent = number.log10().floor();
        let text = format!("{:.2}", number / 10f64.powf(exponent));
        return format!("{}e+{exponent}", text.trim_end_matches('0').trim_end_matches('.'));
    }
    if number >= 100.0 || number.fract() == 0.0 {
        return format!("{number:.0}");
    }
    let before = number.max(1e-9).log10().floor() as i32;
    let text = format!("{number:.*}", (2 - before).clamp(0, 9) as usize);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn exprs<'e>(exprs: impl Iterator<Item = &'e plan::Expr>, context: &Context<'_>) -> Vec<String> {
    exprs.map(|expr| context.expr(expr)).collect()
}

fn sort_fields(keys: &[plan::SortKey], context: &Context<'_>) -> Vec<String> {
    keys.iter()
        .map(|key| context.expr(&key.expr) + if key.descending { " DESC" } else { "" })
        .collect()
}

/// The description of an operator, without the filter of a scan.
fn describe(node: &Physical, context: &Context<'_>) -> Node {
    match node {
        Physical::OneRow => {
            Node::new("Rows fetched before execution", "rows_fetched_before_execution")
        }
        Physical::Nothing => Node::new("Zero rows (Impossible WHERE)", "zero_rows")
            .with("zero_rows_cause", Json::text("Impossible WHERE")),
        Physical::Scan { table, access, .. } => describe_scan(table, access, context),
        Physical::InformationScan { schema, name, .. } => {
            let text = format!("Fill information schema table {schema}.{name}");
            Node::new(text, "materialize_information_schema_table")
                .with("schema_name", Json::text(schema))
                .with("table_name", Json::text(name))
        }
        Physical::Values { rows, .. } => {
            Node::new(format!("Values: {} row(s)", rows.len()), "rows_fetched_before_execution")
        }
        Physical::JsonRows(rows) => {
            Node::new("Materialize table function", "materialized_table_function")
                .with("table_name", Json::text(&rows.alias))
        }
        Physical::Filter { predicate, .. } => filter_node(predicate, context),
        // Shown with its input.
        Physical::Project { columns, .. } => {
            let list = exprs(columns.iter().map(|(_, expr)| expr), context);
            Node::new(format!("Compute: {}", list.join(", ")), "compute")
        }
        Physical::NestedLoop { kind, condition, .. } => {
            describe_nested_loop(*kind, condition.as_ref(), context)
        }
        Physical::HashJoin { kind, keys, condition, .. } => {
            describe_hash_join(*kind, keys, condition.as_ref(), context)
        }
        Physical::Aggregate { mode, keys, aggregates, sets, .. } => {
            describe_aggregate((*mode, sets), keys, aggregates, context)
        }
        Physical::Window { partition_by, order_by, calls, .. } => {
            let names: Vec<String> =
                calls.iter().map(|call| call.function.name().to_lowercase()).collect();
            let text = format!(
                "Window aggregate: {} over (partition by {} order by {})",
                names.join(", "),
                exprs(partition_by.iter(), context).join(", "),
                sort_fields(order_by, context).join(", ")
            );
            Node::new(text, "window").with("functions", Json::texts(names))
        }
        Physical::Sort { keys, limit, .. } => describe_sort(keys, limit.as_ref(), context),
        Physical::Distinct { .. } => Node::new("Remove duplicates", "remove_duplicates"),
        Physical::Limit { limit, offset, .. } => {
            describe_limit(limit.as_ref(), offset.as_ref(), context)
        }
        Physical::SetOperation { operation: SetOperation::UnionAll, .. } => {
            Node::new("Append", "append")
        }
        Physical::SetOperation { operation, .. } => {
            Node::new(set_word(*operation), "materialize").with("deduplication", Json::Bool(true))
        }
        Physical::Materialize { correlated, .. } => {
            let text = if *correlated { "Materialize (dependent)" } else { "Materialize" };
            Node::new(text, "materialize").with("dependent", Json::Bool(*correlated))
        }
        Physical::CteScan { id, .. } => Node::new(format!("Scan CTE #{}", id.0), "table")
            .with("table_name", Json::Text(format!("<derived{}>", id.0 + 2))),
        Physical::RecursiveCte { distinct, .. } => {
            let text = if *distinct { " (distinct)" } else { "" };
            Node::new(format!("Repeat until convergence{text}"), "materialize")
                .with("recursive", Json::Bool(true))
        }
    }
}

fn describe_nested_loop(
    kind: JoinKind,
    condition: Option<&plan::Expr>,
    context: &Context<'_>,
) -> Node {
    let shown = condition.map(|condition| context.expr(condition));
    let on = shown.as_ref().map(|shown| format!(" on {shown}")).unwrap_or_default();
    let node = Node::new(format!("Nested loop {}{on}", join_word(kind)), "join")
        .with("join_type", Json::text(join_word(kind)))
        .with("join_algorithm", Json::text("nested_loop"));
    match shown {
        Some(shown) => node.with("extra_condition", Json::texts([shown])),
        None => node,
    }
}

fn describe_sort(
    keys: &[plan::SortKey],
    limit: Option<&plan::Expr>,
    context: &Context<'_>,
) -> Node {
    let fields = sort_fields(keys, context);
    let limit = limit.map(|limit| context.expr(limit));
    let top = limit.as_ref().map(|n| format!(", limit input to {n} row(s) per chunk"));
    let text = format!("Sort: {}{}", fields.join(", "), top.unwrap_or_default());
    let node = Node::new(text, "sort").with("sort_fields", Json::texts(fields));
    match limit.and_then(|limit| limit.parse().ok()) {
        Some(limit) => node.with("per_chunk_limit", Json::Count(limit)),
        None => node,
    }
}

fn describe_limit(
    limit: Option<&plan::Expr>,
    offset: Option<&plan::Expr>,
    context: &Context<'_>,
) -> Node {
    let count = limit.map(|limit| context.expr(limit));
    let shown = count.clone().unwrap_or_else(|| "all".into());
    let skip = offset.map(|offset| context.expr(offset));
    let text = match &skip {
        Some(skip) => format!("Limit/Offset: {shown}/{skip} row(s)"),
        None => format!("Limit: {shown} row(s)"),
    };
    let skip = skip.and_then(|skip| skip.parse().ok()).unwrap_or(0);
    let node = Node::new(text, "limit").with("limit_offset", Json::Count(skip));
    match count.and_then(|count| count.parse().ok()) {
        Some(count) => node.with("limit", Json::Count(count)),
        None => node,
    }
}

fn describe_hash_join(
    kind: JoinKind,
    keys: &[(plan::Expr, plan::Expr, types::CollationId)],
    condition: Option<&plan::Expr>,
    context: &Context<'_>,
) -> Node {
    let keys: Vec<String> = keys
        .iter()
        .map(|(a, b, _)| format!("({} = {})", context.expr(a), context.expr(b)))
        .collect();
    let extra = condition.map(|condition| context.expr(condition));
    let word = match kind {
        JoinKind::Inner => "Inner hash join",
        JoinKind::Left => "Left hash join",
        JoinKind::Full => "Full hash join",
        JoinKind::Semi => "Hash semijoin",
        JoinKind::Anti => "Hash antijoin",
    };
    let shown = if keys.is_empty() { "(no condition)".to_owned() } else { keys.join(", ") };
    let with = extra.as_ref().map(|extra| format!(", extra conditions: {extra}"));
    let node = Node::new(format!("{word} {shown}{}", with.unwrap_or_default()), "join")
        .with("join_type", Json::text(join_word(kind)))
        .with("join_algorithm", Json::text("hash"))
        .with("hash_condition", Json::texts(keys));
    match extra {
        Some(extra) => node.with("extra_condition", Json::texts([extra])),
        None => node,
    }
}

fn describe_aggregate(
    (mode, sets): (plan::AggregateMode, &GroupSets),
    keys: &[(plan::Register, plan::Expr)],
    aggregates: &[plan::AggregateCall],
    context: &Context<'_>,
) -> Node {
    let calls: Vec<String> = aggregates
        .iter()
        .map(|call| {
            let distinct = if call.distinct { "distinct " } else { "" };
            let args = exprs(call.args.iter(), context).join(", ");
            let args = if args.is_empty() { "0" } else { &args };
            format!("{}({distinct}{args})", call.function.name.to_lowercase())
        })
        .collect();
    let (word, access_type) = match mode {
        plan::AggregateMode::Scalar => ("Aggregate", "aggregate"),
        plan::AggregateMode::Hash => ("Aggregate using temporary table", "temp_table_aggregate"),
        plan::AggregateMode::Sorted if calls.is_empty() => ("Group (no aggregates)", "aggregate"),
        plan::AggregateMode::Sorted => ("Group aggregate", "aggregate"),
    };
    let fields = exprs(keys.iter().map(|(_, key)| key), context);
    let by = if fields.is_empty() { String::new() } else { format!(" by {}", fields.join(", ")) };
    let shown = if calls.is_empty() { String::new() } else { format!(": {}", calls.join(", ")) };
    let sets = match sets {
        GroupSets::One => "",
        GroupSets::Rollup if calls.is_empty() => "",
        GroupSets::Rollup => " with rollup",
        GroupSets::Listed(_) => " in grouping sets",
    };
    Node::new(format!("{word}{sets}{by}{shown}"), access_type)
        .with("functions", Json::texts(calls))
        .with("group_items", Json::texts(fields))
}

fn join_word(kind: JoinKind) -> &'static str {
    match kind {
        JoinKind::Inner => "inner join",
        JoinKind::Left => "left join",
        JoinKind::Full => "full join",
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

/// A scan: where it reads, through which index, and which columns.
fn describe_scan(table: &TableAccess, access: &Access, context: &Context<'_>) -> Node {
    let definition = context.table(table);
    let access = &*super::partitions::without_numbers(definition, access);
    let alias = &table.alias;
    let reverse = |backward: bool| if backward { " (reverse)" } else { "" };
    let covers = |index: u32| context.covers(table, index);
    let covering = |index: u32, text: &str| {
        if covers(index) { format!("Covering {}", text.to_lowercase()) } else { text.to_owned() }
    };
    let named = |index: u32| {
        context.index_name(table, index).map_or("PRIMARY".to_owned(), |name| name.to_string())
    };
    let used = context.used_columns(table);
    let skips = table.firsts.as_ref().map(skip_text);
    let mut node = match access {
        Access::Unique { index, key } => {
            let parts = key_text(table, *index, key, context);
            let word = covering(*index, "Single-row index lookup");
            let text = format!("{word} on {alias} using {} ({parts})", named(*index));
            lookup(Node::new(text, "index"), key, parts, context)
        }
        Access::Ranges { index, ranges, backward, .. } => match ranges.as_slice() {
            [RangeSpec { equal, lower: None, upper: None }]
                if !is_spatial(definition, *index) && skips.is_none() =>
            {
                let parts = key_text(table, *index, equal, context);
                let word = covering(*index, "Index lookup");
                let text = format!(
                    "{word} on {alias} using {} ({parts}){}",
                    named(*index),
                    reverse(*backward)
                );
                lookup(Node::new(text, "index"), equal, parts, context)
            }
            _ => {
                let shown: Vec<String> =
                    ranges.iter().map(|range| range_text(table, *index, range, context)).collect();
                let text = format!(
                    "{} on {alias} using {} over {}{}",
                    covering(*index, skips.unwrap_or("Index range scan")),
                    named(*index),
                    range_list(&shown),
                    reverse(*backward)
                );
                Node::new(text, "index")
                    .with("index_access_type", Json::text("index_range_scan"))
                    .with("ranges", Json::texts(shown))
            }
        },
        Access::Merge { arms, .. } => match super::table::array_index(definition, arms) {
            None => return merge_node(table, arms, context),
            Some(index) => {
                let ranges = arms.iter().flat_map(|arm| &arm.ranges);
                // The reference shows the last elements first.
                let mut shown: Vec<_> = ranges
                    .map(|range| (last_value(range), range_text(table, index, range, context)))
                    .collect();
                shown.sort_by(|(one, _), (other, _)| types::json::compare(other, one));
                let shown: Vec<String> = shown.into_iter().map(|(_, text)| text).collect();
                let (named, shown_list) = (named(index), range_list(&shown));
                let text = format!("Index range scan on {alias} using {named} over {shown_list}");
                Node::new(text, "index")
                    .with("index_access_type", Json::text("index_range_scan"))
                    .with("ranges", Json::texts(shown))
            }
        },
        Access::Fulltext { search, against } => {
            let stored = |at| definition.columns.iter().find(|column| column.stored == Some(at));
            let columns = search.columns.iter().filter_map(|at| stored(*at));
            let shown =
                |column: &catalog::Column| format!("{} = {}", column.name, context.expr(against));
            let (name, columns) = (&search.name, columns.map(shown).collect::<Vec<_>>().join(", "));
            let text = format!("Full-text index search on {alias} using {name} ({columns})");
            Node::new(text, "index")
        }
        // HANDLER is not explained.
        Access::Walk(_) => Node::new(format!("Index scan on {alias}"), "index"),
        Access::Full { index: 0, backward: false } => {
            Node::new(format!("Table scan on {alias}"), "table")
        }
        Access::Full { index, backward } => {
            let word = covering(*index, skips.unwrap_or("Index scan"));
            let text = format!("{word} on {alias} using {}{}", named(*index), reverse(*backward));
            Node::new(text, "index").with("index_access_type", Json::text("index_scan"))
        }
    };
    if let Some(index) = context.index_used(access) {
        node = node
            .with("index_name", Json::Text(named(index)))
            .with("covering", Json::Bool(covers(index)))
            .with("key_columns", Json::texts(context.key_columns(table, access)));
    }
    if **alias != *definition.name {
        node = node.with("alias", Json::text(alias));
    }
    node.with("schema_name", Json::text(&definition.schema))
        .with("table_name", Json::text(&definition.name))
        .with("used_columns", Json::texts(used))
}

/// What a scan that gives one row of each group is called.
fn skip_text(firsts: &plan::Firsts) -> &'static str {
    match firsts.groups {
        true => "Index skip scan for grouping",
        false => "Index skip scan for deduplication",
    }
}

/// The reference's names for a union of indexes. Here rows need no sorting: a row in several arms comes from a known one.
fn merge_node(table: &TableAccess, arms: &[plan::MergeArm], context: &Context<'_>) -> Node {
    let inputs = arms.iter().map(|arm| {
        let own = Access::Ranges {
            index: arm.index,
            ranges: arm.ranges.clone(),
            backward: false,
            or_all: false,
            keys: false,
        };
        describe_scan(table, &own, context)
    });
    let (text, kind) = match crate::index_merge::is_in_row_order(context.table(table), arms) {
        true => ("Deduplicate rows sorted by row ID", "rowid_union"),
        false => ("Sort-deduplicate by row ID", "index_merge"),
    };
    Node::new(text, kind).over(inputs.collect())
}

fn lookup(
    node: Node,
    key: &[plan::IndexKeySource],
    condition: String,
    context: &Context<'_>,
) -> Node {
    let references: Vec<String> = key
        .iter()
        .map(|part| match part.value.as_column().and_then(|register| context.full_name(register)) {
            Some(name) => name,
            None if part.value.is_constant() => "const".into(),
            None => "func".into(),
        })
        .collect();
    node.with("index_access_type", Json::text("index_lookup"))
        .with("lookup_condition", Json::Text(condition))
        .with("lookup_references", Json::texts(references))
}

/// Ranges shown one by one.
const RANGES_SHOWN: usize = 3;

fn range_list(ranges: &[String]) -> String {
    match ranges.len() {
        0..=RANGES_SHOWN => ranges.join(" OR "),
        count => format!("{} OR ({} more)", ranges[..2].join(" OR "), count - 2),
    }
}

/// The value of the last part of a range of points, as a document.
fn last_value(range: &RangeSpec) -> types::SqlBytes {
    let value = range.equal.last().and_then(|part| {
        let plan::Expr::Literal { value, .. } = &part.value else { return None };
        Some(value)
    });
    value
        .map_or(types::JsonValue::Null, |value| types::JsonValue::from_sql(value, false))
        .to_binary()
}

/// `(a = 1 AND 2 < b <= 5)`.
fn range_text(table: &TableAccess, index: u32, range: &RangeSpec, context: &Context<'_>) -> String {
    let name =
        |position: usize| key_column(table, index, position, context).unwrap_or_else(|| "?".into());
    if is_spatial(context.table(table), index) {
        return format!("({} unprintable_geometry_value)", name(0));
    }
    let mut parts: Vec<String> = range
        .equal
        .iter()
        .enumerate()
        .map(|(position, part)| match array_part(table, index, position, context) {
            Some(array) => format!("{} MEMBER OF ({array})", element_text(part, context)),
            None => format!("{} = {}", name(position), context.expr(&part.value)),
        })
        .collect();
    let column = name(range.equal.len());
    let sign = |bound: &plan::RangeBound| if bound.inclusive { "<=" } else { "<" };
    let lower = range.lower.as_ref();
    let lower = lower.map(|bound| format!("{} {} ", context.expr(&bound.key.value), sign(bound)));
    let upper = range.upper.as_ref();
    let upper = upper.map(|bound| format!(" {} {}", sign(bound), context.expr(&bound.key.value)));
    if lower.is_some() || upper.is_some() {
        parts.push(format!("{}{column}{}", lower.unwrap_or_default(), upper.unwrap_or_default()));
    }
    format!("({})", parts.join(" AND "))
}

/// The document of the array in a part of an index.
fn array_part(
    table: &TableAccess,
    index: u32,
    position: usize,
    context: &Context<'_>,
) -> Option<String> {
    let definition = context.table(table);
    let known = definition.indexes.iter().find(|known| known.id.0 == index)?;
    let generated = definition.columns[known.parts.get(position)?.column].generated.as_ref()?;
    generated.elements.as_ref()?;
    Some(generated.expression.replace('`', ""))
}

/// The element that is looked up, as text.
fn element_text(part: &plan::IndexKeySource, context: &Context<'_>) -> String {
    let plan::Expr::Literal { value, ty } = &part.value else { return context.expr(&part.value) };
    let mut text = Vec::new();
    types::to_text(value, ty, &mut text);
    let text = String::from_utf8_lossy(&text);
    if ty.is_numeric() { text.into_owned() } else { format!("'{text}'") }
}

/// The same as the reference shows it in a look-up.
fn document_text(part: &plan::IndexKeySource, context: &Context<'_>) -> String {
    let plan::Expr::Literal { value, ty } = &part.value else { return context.expr(&part.value) };
    let document = types::elements::shown(value, ty).to_value();
    plan::print::value(&document)
}

fn key_column(
    table: &TableAccess,
    index: u32,
    position: usize,
    context: &Context<'_>,
) -> Option<String> {
    let definition = context.table(table);
    let known = definition.indexes.iter().find(|known| known.id.0 == index)?;
    // The end of the row follows the parts of the definition.
    let leading = usize::from(definition.has_leading_part(known));
    let parts = definition.key_parts(known);
    Some(super::shown(&definition.columns[parts.get(position + leading)?.column]))
}

fn key_text(
    table: &TableAccess,
    index: u32,
    key: &[plan::IndexKeySource],
    context: &Context<'_>,
) -> String {
    key.iter()
        .enumerate()
        .map(|(position, part)| {
            let name = key_column(table, index, position, context).unwrap_or_else(|| "?".into());
            let value = match array_part(table, index, position, context) {
                Some(_) => document_text(part, context),
                None => context.expr(&part.value),
            };
            format!("{name} = {value}")
        })
        .collect::<Vec<_>>()
        .join(", ")
}

impl Node {
    fn into_operator(self) -> Operator {
        Operator {
            text: self.operation,
            is_heading: self.actual.is_none(),
            actual: self.actual.and_then(|(actual, _)| actual),
            before_filter: self.actual.is_some_and(|(_, before_filter)| before_filter),
            inputs: self.inputs.into_iter().map(Node::into_operator).collect(),
        }
    }

    fn into_json(self) -> Json {
        let mut members = self.members;
        members.retain(|(_, value)| !matches!(value, Json::List(items) if items.is_empty()));
        members.push(("operation", Json::Text(self.operation)));
        members.push(("access_type", Json::text(self.access_type)));
        if let Some(Estimate { rows, cost, first }) = self.estimate {
            members.push(("estimated_rows", Json::Number(rows)));
            members.push(("estimated_total_cost", Json::Number(cost)));
            if first > 0.0 || self.access_type == "rows_fetched_before_execution" {
                members.push(("estimated_first_row_cost", Json::Number(first)));
            }
        }
        match self.actual {
            None => {}
            Some((None, _)) => members.push(("actual_loops", Json::Count(0))),
            Some((Some(actual), examined)) => {
                let rows = if examined { actual.examined } else { actual.rows };
                let loops = actual.loops;
                members.push(("actual_rows", Json::Number(rows as f64 / loops.max(1) as f64)));
                members.push(("actual_loops", Json::Count(loops)));
                let (first, last) = (millis(actual.first, loops), millis(actual.last, loops));
                members.push(("actual_first_row_ms", Json::Number(first)));
                members.push(("actual_last_row_ms", Json::Number(last)));
            }
        }
        if !self.inputs.is_empty() {
            let inputs = self.inputs.into_iter().map(Node::into_json).collect();
            members.push(("inputs", Json::List(inputs)));
        }
        Json::sorted(members)
    }
}
