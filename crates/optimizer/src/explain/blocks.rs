//! The first version of FORMAT=JSON: query blocks with the operations on their rows, and the tables in the order in which they are
//! read.

use plan::{Access, Expr, JoinKind, Physical, Plan, SetOperation, TableAccess};

use super::{Context, ctes, root, subqueries, table};
use crate::json::Json;

type Members = Vec<(&'static str, Json)>;

/// The cost and rows of tables as they are joined one after the other.
#[derive(Default)]
struct Prefix {
    rows: f64,
    cost: f64,
}

struct Blocks<'a, 'c> {
    context: &'a Context<'c>,
}

/// The plan as a JSON document.
pub(super) fn json(plan: &Plan, context: &Context<'_>) -> String {
    let blocks = Blocks { context };
    let mut block = match root(plan) {
        Some(root) => blocks.block(root, 1),
        None => vec![("select_id", Json::Count(1)), ("message", Json::text("No tables used"))],
    };
    if let Some((flag, name)) = written(plan) {
        let target = vec![(flag, Json::Bool(true)), ("table_name", Json::text(name))];
        match block.iter_mut().find(|(member, _)| *member == "table") {
            Some((_, Json::Object(members))) if flag != "insert" => {
                members.splice(..0, [target[0].clone()]).for_each(drop)
            }
            _ => block.push(("table", Json::Object(target))),
        }
    }
    let mut attached = Vec::new();
    for (index, subquery) in subqueries(plan).iter().enumerate() {
        if !subquery.outputs.is_empty() {
            let number = context.subqueries.get(index).map_or(index as u32 + 2, |s| s.block);
            attached.push(blocks.nested(&subquery.root, number, !subquery.outer.is_empty()));
        }
    }
    for (id, root, _) in ctes(plan) {
        attached.push(blocks.nested(root, id.0 + 2, false));
    }
    if !attached.is_empty() {
        block.push(("attached_subqueries", Json::List(attached)));
    }
    Json::Object(vec![("query_block", Json::Object(block))]).print()
}

/// The mark of a writing statement, and the table that it writes.
fn written(plan: &Plan) -> Option<(&'static str, &str)> {
    match plan {
        Plan::Insert(insert) => Some(("insert", &insert.target.name)),
        Plan::Update(update) => update.targets.first().map(|(table, ..)| ("update", &*table.name)),
        Plan::Delete(delete) => delete.targets.first().map(|(table, _)| ("delete", &*table.name)),
        Plan::Query(_) | Plan::Do { .. } | Plan::Rows { .. } => None,
    }
}

fn fixed(number: f64) -> Json {
    Json::Text(format!("{number:.2}"))
}

/// Bytes as the reference shortens them.
fn bytes(count: f64) -> Json {
    const UNITS: [&str; 6] = ["", "K", "M", "G", "T", "P"];
    let (mut count, mut unit) = (count, 0);
    while count >= 1024.0 && unit + 1 < UNITS.len() {
        count /= 1024.0;
        unit += 1;
    }
    Json::Text(format!("{count:.0}{}", UNITS[unit]))
}

fn flags(members: &[(&'static str, bool)]) -> Members {
    members.iter().map(|(name, value)| (*name, Json::Bool(*value))).collect()
}

impl Blocks<'_, '_> {
    fn block(&self, node: &Physical, id: u32) -> Members {
        if let Some(message) = message(node) {
            return vec![("select_id", Json::Count(id.into())), ("message", Json::text(message))];
        }
        if let Some((operation, inputs)) = set_operation(node) {
            return vec![(operation, self.set_operation(operation, inputs, id))];
        }
        let cost = vec![("query_cost", fixed(self.context.estimate(node).cost))];
        let mut members =
            vec![("select_id", Json::Count(id.into())), ("cost_info", Json::Object(cost))];
        members.extend(self.operations(node));
        members
    }

    fn nested(&self, node: &Physical, id: u32, dependent: bool) -> Json {
        Json::Object(vec![
            ("dependent", Json::Bool(dependent)),
            ("cacheable", Json::Bool(!dependent)),
            ("query_block", Json::Object(self.block(node, id))),
        ])
    }

    fn set_operation(
        &self,
        operation: &'static str,
        inputs: &[(Physical, Vec<Expr>)],
        id: u32,
    ) -> Json {
        let temporary = operation != "union_all_result";
        let ids: Vec<u32> = (0..inputs.len() as u32).map(|number| id + number).collect();
        let mut members = flags(&[("using_temporary_table", temporary)]);
        if temporary {
            let shown: Vec<String> = ids.iter().map(u32::to_string).collect();
            let word = operation.split('_').next().unwrap_or("union");
            members.push(("select_id", Json::Count(u64::from(id) + inputs.len() as u64)));
            members.push(("table_name", Json::Text(format!("<{word}{}>", shown.join(",")))));
            members.push(("access_type", Json::text("ALL")));
        }
        let blocks = inputs.iter().zip(ids).map(|((input, _), id)| self.nested(input, id, false));
        members.push(("query_specifications", Json::List(blocks.collect())));
        Json::Object(members)
    }

    /// The operations on the rows of the tables, outermost first, then the tables.
    fn operations(&self, node: &Physical) -> Members {
        let around = |name: &'static str, mut members: Members, input: &Physical| -> Members {
            members.extend(self.operations(input));
            vec![(name, Json::Object(members))]
        };
        match node {
            Physical::Filter { input, .. }
            | Physical::Project { input, .. }
            | Physical::Limit { input, .. } => self.operations(input),
            Physical::Sort { input, .. } => {
                around("ordering_operation", flags(&[("using_filesort", true)]), input)
            }
            Physical::Distinct { input, .. } => {
                let members = flags(&[("using_temporary_table", true), ("using_filesort", false)]);
                around("duplicates_removal", members, input)
            }
            Physical::Aggregate { input, mode: plan::AggregateMode::Scalar, .. } => {
                self.operations(input)
            }
            Physical::Aggregate { input, mode, .. } => {
                let hash = *mode == plan::AggregateMode::Hash;
                let members = flags(&[("using_temporary_table", hash), ("using_filesort", false)]);
                around("grouping_operation", members, input)
            }
            Physical::Window { input, calls, .. } => {
                let functions =
                    Json::texts(calls.iter().map(|call| call.function.name().to_lowercase()));
                let window =
                    vec![("name", Json::text("<unnamed window>")), ("functions", functions)];
                let windows = Json::List(vec![Json::Object(window)]);
                around("windowing", vec![("windows", windows)], input)
            }
            Physical::OneRow
            | Physical::Nothing
            | Physical::Scan { .. }
            | Physical::InformationScan { .. }
            | Physical::Values { .. }
            | Physical::JsonRows(_)
            | Physical::NestedLoop { .. }
            | Physical::HashJoin { .. }
            | Physical::SetOperation { .. }
            | Physical::Materialize { .. }
            | Physical::CteScan { .. }
            | Physical::RecursiveCte { .. } => {
                let mut tables = Vec::new();
                let mut prefix = Prefix { rows: 1.0, cost: 0.0 };
                self.tables(node, Vec::new(), &mut prefix, &mut tables);
                match <[Json; 1]>::try_from(tables) {
                    Ok([table]) => vec![("table", table)],
                    Err(tables) => {
                        let tables = tables.into_iter();
                        let entries = tables.map(|table| Json::Object(vec![("table", table)]));
                        vec![("nested_loop", Json::List(entries.collect()))]
                    }
                }
            }
        }
    }

    /// The tables of a join in the order in which they are read. `join`: how the first of them is joined.
    fn tables(&self, node: &Physical, join: Members, prefix: &mut Prefix, out: &mut Vec<Json>) {
        match node {
            Physical::Filter { input, .. } | Physical::Project { input, .. } => {
                self.tables(input, join, prefix, out);
            }
            Physical::NestedLoop { kind, outer, inner, .. } => {
                self.tables(outer, join, prefix, out);
                self.tables(inner, joined(*kind, false), prefix, out);
            }
            Physical::HashJoin { kind, outer, inner, .. } => {
                self.tables(outer, join, prefix, out);
                self.tables(inner, joined(*kind, true), prefix, out);
            }
            Physical::Scan { table, access, filter } => {
                out.push(self.table(table, access, filter.as_ref(), join, prefix));
            }
            Physical::InformationScan { name, .. } => {
                let mut members =
                    vec![("table_name", Json::text(name)), ("access_type", Json::text("ALL"))];
                members.extend(join);
                out.push(Json::Object(members));
            }
            Physical::JsonRows(rows) => out.push(table_function(rows, join)),
            Physical::Materialize { input, .. } if json_rows(input).is_some() => {
                self.tables(input, join, prefix, out);
            }
            _ => out.push(self.derived(node, join, prefix)),
        }
    }

    fn derived(&self, node: &Physical, join: Members, prefix: &mut Prefix) -> Json {
        let estimate = self.context.estimate(node);
        prefix.cost += prefix.rows * estimate.cost;
        prefix.rows *= estimate.rows.max(1.0);
        let input = match node {
            Physical::Materialize { input, .. } => input,
            other => other,
        };
        let block = self.block_number(input);
        let mut members = vec![
            ("table_name", Json::Text(format!("<derived{block}>"))),
            ("access_type", Json::text("ALL")),
            ("rows_examined_per_scan", Json::Count(estimate.rows.ceil() as u64)),
            ("rows_produced_per_join", Json::Count(prefix.rows.ceil() as u64)),
        ];
        members.extend(join);
        if !matches!(input, Physical::CteScan { .. }) {
            let mut nested = flags(&[("using_temporary_table", true)]);
            if let Json::Object(rest) = self.nested(input, block, false) {
                nested.extend(rest);
            }
            members.push(("materialized_from_subquery", Json::Object(nested)));
        }
        Json::Object(members)
    }

    /// The block of the first table below.
    fn block_number(&self, node: &Physical) -> u32 {
        match node {
            Physical::Scan { table, .. } => self.context.instances[table.instance as usize].block,
            Physical::CteScan { id, .. } => id.0 + 2,
            _ => {
                let mut found = None;
                node.for_each_input(&mut |input| {
                    found = found.or_else(|| Some(self.block_number(input)));
                });
                found.unwrap_or(2)
            }
        }
    }

    fn table(
        &self,
        access: &TableAccess,
        path: &Access,
        filter: Option<&Expr>,
        join: Members,
        prefix: &mut Prefix,
    ) -> Json {
        let context = self.context;
        let line = table::scan_line(access, path, filter, context);
        let fetched = context.fetch_estimate(access, path);
        let kept = line.filtered.unwrap_or(100.0) / 100.0 * fetched.rows;
        let evaluated = prefix.rows * kept * super::cost::ROW;
        prefix.cost += prefix.rows * fetched.cost;
        prefix.rows *= kept;
        let text = |text: Option<String>| text.map(Json::Text);
        let list =
            |text: Option<String>| text.map(|text| Json::texts(text.split(',').map(str::to_owned)));
        let used = context.used_columns(access);
        let width: u32 = context
            .table(access)
            .columns
            .iter()
            .filter(|column| used.iter().any(|name| **name == *column.name))
            .map(|column| table::key_length(&column.ty, None))
            .sum();
        let keyed = line.key.is_some();
        let mut members: Members = vec![("table_name", Json::Text(line.table.unwrap_or_default()))];
        members.extend(list(line.partitions).map(|names| ("partitions", names)));
        members.push(("access_type", Json::text(line.access.unwrap_or("ALL"))));
        members.extend(list(line.possible_keys).map(|keys| ("possible_keys", keys)));
        members.extend(text(line.key).map(|key| ("key", key)));
        if keyed {
            let path = &*super::partitions::without_numbers(context.table(access), path);
            let parts = Json::texts(context.key_columns(access, path));
            members.push(("used_key_parts", parts));
        }
        members.extend(text(line.key_length).map(|length| ("key_length", length)));
        members.extend(list(line.reference).map(|reference| ("ref", reference)));
        members.push(("rows_examined_per_scan", Json::Count(line.rows.unwrap_or(1))));
        members.push(("rows_produced_per_join", Json::Count(prefix.rows.round() as u64)));
        members.push(("filtered", fixed(line.filtered.unwrap_or(100.0))));
        if context.index_used(path).is_some_and(|index| context.covers(access, index)) {
            members.push(("using_index", Json::Bool(true)));
        }
        members.extend(join);
        members.push((
            "cost_info",
            Json::Object(vec![
                ("read_cost", fixed((fetched.cost - evaluated).max(0.0))),
                ("eval_cost", fixed(evaluated)),
                ("prefix_cost", fixed(prefix.cost)),
                ("data_read_per_join", bytes(prefix.rows * f64::from(width))),
            ]),
        ));
        members.push(("used_columns", Json::texts(used)));
        if let Some(filter) = filter {
            members.push(("attached_condition", Json::Text(context.expr(filter))));
        }
        Json::Object(members)
    }
}

/// The JSON_TABLE rows below the operators that compute its columns.
fn json_rows(node: &Physical) -> Option<&plan::JsonRows> {
    match node {
        Physical::JsonRows(rows) => Some(rows),
        Physical::Project { input, .. } | Physical::Filter { input, .. } => json_rows(input),
        _ => None,
    }
}

fn table_function(rows: &plan::JsonRows, join: Members) -> Json {
    let mut members = vec![
        ("table_name", Json::text(&rows.alias)),
        ("access_type", Json::text("ALL")),
        ("table_function", Json::text(&rows.function)),
        ("using_temporary_table", Json::Bool(true)),
    ];
    members.extend(join);
    Json::Object(members)
}

fn message(node: &Physical) -> Option<&'static str> {
    match node {
        Physical::OneRow | Physical::Values { .. } => Some("No tables used"),
        Physical::Nothing => Some("Impossible WHERE"),
        Physical::Project { input, .. } | Physical::Filter { input, .. } => message(input),
        _ => None,
    }
}

fn set_operation(node: &Physical) -> Option<(&'static str, &[(Physical, Vec<Expr>)])> {
    let Physical::SetOperation { operation, inputs, .. } = node else {
        return match node {
            Physical::Project { input, .. } => set_operation(input),
            _ => None,
        };
    };
    let name = match operation {
        SetOperation::UnionAll => "union_all_result",
        SetOperation::UnionDistinct => "union_result",
        SetOperation::IntersectAll | SetOperation::IntersectDistinct => "intersect_result",
        SetOperation::ExceptAll | SetOperation::ExceptDistinct => "except_result",
    };
    Some((name, inputs))
}

fn joined(kind: JoinKind, hash: bool) -> Members {
    let mut members = match kind {
        JoinKind::Inner | JoinKind::Left | JoinKind::Full => Vec::new(),
        JoinKind::Semi => vec![("first_match", Json::Bool(true))],
        JoinKind::Anti => vec![("not_exists", Json::Bool(true))],
    };
    if hash {
        members.push(("using_join_buffer", Json::text("hash join")));
    }
    members
}
