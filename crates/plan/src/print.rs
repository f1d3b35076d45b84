//! Plans as text, for tests and debugging: stable, one operator a line.

use std::fmt::Write;

use types::{TypeKind, Value};

use crate::{
    Access, AggregateCall, BinaryOp, CastKind, Expr, FrameBound, FulltextMode, IndexKeySource,
    InsertMode, InsertSource, Logical, LogicalInsertSource, LogicalPlan, LogicalStatement,
    Physical, Plan, RangeSpec, Register, SortKey, SubqueryKind, UnaryOp, WindowCall,
};

/// The operator as SQL writes it.
pub fn operator(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Subtract => "-",
        BinaryOp::Multiply => "*",
        BinaryOp::Divide => "/",
        BinaryOp::IntegerDivide => "DIV",
        BinaryOp::Modulo => "%",
        BinaryOp::BitAnd => "&",
        BinaryOp::BitOr => "|",
        BinaryOp::BitXor => "^",
        BinaryOp::ShiftLeft => "<<",
        BinaryOp::ShiftRight => ">>",
        BinaryOp::Equal => "=",
        BinaryOp::NullSafeEqual => "<=>",
        BinaryOp::NotEqual => "<>",
        BinaryOp::Less => "<",
        BinaryOp::LessOrEqual => "<=",
        BinaryOp::Greater => ">",
        BinaryOp::GreaterOrEqual => ">=",
        BinaryOp::And => "and",
        BinaryOp::Or => "or",
        BinaryOp::Xor => "xor",
    }
}

/// A value as a literal, without regard to its type.
pub fn value(value: &Value) -> String {
    match value {
        Value::Null => "NULL".into(),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::Double(number) => format!("{number:?}"),
        Value::Decimal(number) => {
            let mut text = Vec::new();
            number.write_text(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        }
        Value::Bytes(bytes) => format!("'{}'", String::from_utf8_lossy(bytes)),
        Value::Date(date) => {
            format!("{:04}-{:02}-{:02}", date.year(), date.month(), date.day())
        }
        Value::Time(time) => format!("time({})", time.micros()),
        Value::DateTime(at) => {
            let date = at.date();
            format!("{:04}-{:02}-{:02} {:02}:..", date.year(), date.month(), date.day(), at.hour())
        }
        Value::Json(document) => {
            let mut text = Vec::new();
            types::json::write_text(document, &mut text);
            format!("json'{}'", String::from_utf8_lossy(&text))
        }
    }
}

/// A type in short: `int`, `varchar(5)`, `decimal(4,2)`, with `?` when nullable.
pub fn ty(ty: &types::DataType) -> String {
    let name = format!("{:?}", ty.kind).to_lowercase();
    let mut text = match ty.kind {
        TypeKind::Decimal => format!("{name}({},{})", ty.length, ty.decimals),
        _ => format!("{name}({})", ty.length),
    };
    if ty.unsigned {
        text.push_str(" unsigned");
    }
    if ty.nullable {
        text.push('?');
    }
    text
}

/// How registers are called.
pub type Names<'n> = &'n dyn Fn(Register) -> Option<String>;

fn list(exprs: &[Expr]) -> String {
    list_named(exprs, &|_| None)
}

fn list_named(exprs: &[Expr], names: Names<'_>) -> String {
    exprs.iter().map(|expr| expr_named(expr, names)).collect::<Vec<_>>().join(", ")
}

fn register(register: Register) -> String {
    format!("r{}", register.0)
}

/// An expression.
pub fn expr(node: &Expr) -> String {
    expr_named(node, &|_| None)
}

/// An expression with names for registers.
pub fn expr_named(node: &Expr, names: Names<'_>) -> String {
    let expr = |node: &Expr| expr_named(node, names);
    let list = |nodes: &[Expr]| list_named(nodes, names);
    match node {
        Expr::Literal { value: Value::Bytes(bytes), ty } if ty.as_fixed().is_some() => {
            let mut text = Vec::new();
            types::to_text(&Value::Bytes(bytes.clone()), ty, &mut text);
            format!("'{}'", String::from_utf8_lossy(&text))
        }
        Expr::Literal { value: constant, .. } => value(constant),
        Expr::Parameter { index, .. } => format!("?{index}"),
        Expr::Column { register: column, .. } => {
            names(*column).unwrap_or_else(|| register(*column))
        }
        Expr::UserVariable { name, .. } => format!("@{name}"),
        Expr::AssignUserVariable { name, value } => format!("(@{name} := {})", expr(value)),
        Expr::SystemVariable { name, .. } => format!("@@{name}"),
        Expr::Unary { op, operand, .. } => unary(*op, &expr(operand)),
        Expr::Binary { op, left, right, .. } => {
            format!("({} {} {})", expr(left), operator(*op), expr(right))
        }
        Expr::Between { operand, low, high, negated, .. } => format!(
            "({}{} between {} and {})",
            expr(operand),
            if *negated { " not" } else { "" },
            expr(low),
            expr(high)
        ),
        Expr::InList { operand, list: items, negated, .. } => {
            let not = if *negated { " not" } else { "" };
            format!("({}{not} in ({}))", expr(operand), list(items))
        }
        Expr::Like { operand, pattern, negated, .. } => {
            let not = if *negated { " not" } else { "" };
            format!("({}{not} like {})", expr(operand), expr(pattern))
        }
        Expr::Case { operand, branches, otherwise, .. } => {
            let mut text = "case".to_owned();
            if let Some(operand) = operand {
                _ = write!(text, " {}", expr(operand));
            }
            for (when, then) in branches {
                _ = write!(text, " when {} then {}", expr(when), expr(then));
            }
            if let Some(otherwise) = otherwise {
                _ = write!(text, " else {}", expr(otherwise));
            }
            text + " end"
        }
        Expr::FirstNotNull { parts, .. } => format!("coalesce({})", list(parts)),
        Expr::Held { values, rest } => format!("({} with held {})", expr(rest), list(values)),
        Expr::HeldValue { index, .. } => format!("held {index}"),
        Expr::Cast { operand, kind: CastKind::Exact(_), .. } => expr(operand),
        Expr::Cast { operand, kind, ty: target } => {
            format!("{kind:?}({} as {})", expr(operand), ty(target))
        }
        Expr::Collate { operand, ty } => format!("({} collate {})", expr(operand), ty.collation.0),
        Expr::Function { function, args, .. } => format!("{}({})", function.name, list(args)),
        Expr::Stored { program, args, .. } => format!("stored {program}({})", list(args)),
        Expr::Match { search, against, .. } => {
            let mode = match search.mode {
                FulltextMode::Natural => "",
                FulltextMode::Expanded => " with query expansion",
                FulltextMode::Boolean => " in boolean mode",
            };
            format!("(match {} against ({}{mode}))", search.shown, expr(against))
        }
        Expr::Row(items) => format!("({})", list(items)),
        Expr::Subquery { id, kind, negated, .. } => {
            let not = if *negated { "not " } else { "" };
            match kind {
                SubqueryKind::Scalar(0) => format!("{not}#{}", id.0),
                SubqueryKind::Scalar(column) => format!("{not}#{}.{column}", id.0),
                SubqueryKind::Exists => format!("{not}exists #{}", id.0),
                SubqueryKind::In(left) => format!("(({}) {not}in #{})", list(left), id.0),
                SubqueryKind::Quantified(left, op, which) => {
                    format!("{not}(({}) {} {which:?} #{})", list(left), operator(*op), id.0)
                }
            }
        }
    }
}

fn unary(op: UnaryOp, operand: &str) -> String {
    match op {
        UnaryOp::Negate => format!("-{operand}"),
        UnaryOp::BitNot => format!("~{operand}"),
        UnaryOp::Not => format!("not {operand}"),
        UnaryOp::IsNull => format!("({operand} is null)"),
        UnaryOp::IsNotNull => format!("({operand} is not null)"),
        UnaryOp::IsTrue => format!("({operand} is true)"),
        UnaryOp::IsNotTrue => format!("({operand} is not true)"),
        UnaryOp::IsFalse => format!("({operand} is false)"),
        UnaryOp::IsNotFalse => format!("({operand} is not false)"),
    }
}

fn sort_keys(keys: &[SortKey]) -> String {
    keys.iter()
        .map(|key| expr(&key.expr) + if key.descending { " desc" } else { "" })
        .collect::<Vec<_>>()
        .join(", ")
}

fn assignments(columns: &[(Register, Expr)]) -> String {
    columns
        .iter()
        .map(|(target, value)| match value.as_column() {
            Some(source) if source == *target => register(*target),
            _ => format!("{} := {}", register(*target), expr(value)),
        })
        .collect::<Vec<_>>()
        .join(", ")
}

fn aggregates(calls: &[AggregateCall]) -> String {
    calls
        .iter()
        .map(|call| {
            let distinct = if call.distinct { "distinct " } else { "" };
            let args = if call.args.is_empty() { "*".to_owned() } else { list(&call.args) };
            format!("{} := {}({distinct}{args})", register(call.output), call.function.name)
        })
        .collect::<Vec<_>>()
        .join(", ")
}

fn frame_bound(bound: &FrameBound) -> String {
    match bound {
        FrameBound::UnboundedPreceding => "unbounded preceding".into(),
        FrameBound::Preceding(amount) => format!("{} preceding", expr(amount)),
        FrameBound::CurrentRow => "current row".into(),
        FrameBound::Following(amount) => format!("{} following", expr(amount)),
        FrameBound::UnboundedFollowing => "unbounded following".into(),
    }
}

fn window_calls(calls: &[WindowCall]) -> String {
    calls
        .iter()
        .map(|call| {
            format!(
                "{} := {}({}) {:?} {}..{}",
                register(call.output),
                call.function.name(),
                list(&call.args),
                call.frame.unit,
                frame_bound(&call.frame.start),
                frame_bound(&call.frame.end)
            )
        })
        .collect::<Vec<_>>()
        .join(", ")
}

fn registers<T>(columns: &[(Register, T)]) -> String {
    columns.iter().map(|column| register(column.0)).collect::<Vec<_>>().join(" ")
}

fn optional(name: &str, value: Option<&Expr>) -> String {
    value.map_or_else(String::new, |value| format!(" {name} {}", expr(value)))
}

fn line(out: &mut String, depth: usize, text: &str) {
    _ = writeln!(out, "{:width$}{text}", "", width = depth * 2);
}

fn json_rows(rows: &crate::JsonRows) -> String {
    let levels: Vec<_> = rows
        .levels
        .iter()
        .map(|level| format!("{} {} {}", level.path, register(level.item), register(level.ordinal)))
        .collect();
    format!("JsonRows {} {} [{}]", rows.alias, expr(&rows.document), levels.join(", "))
}

/// A logical operator tree.
pub fn logical(node: &Logical, depth: usize, out: &mut String) {
    let text = match node {
        Logical::OneRow => "OneRow".into(),
        Logical::Nothing => "Nothing".into(),
        Logical::Get(id) => format!("Get #{}", id.0),
        Logical::InformationGet { schema, name, .. } => format!("InformationGet {schema}.{name}"),
        Logical::Values { rows, columns } => {
            let rows: Vec<_> = rows.iter().map(|row| format!("({})", list(row))).collect();
            format!("Values {} := {}", registers(columns), rows.join(", "))
        }
        Logical::JsonRows(rows) => json_rows(rows),
        Logical::Filter { predicate, .. } => format!("Filter {}", expr(predicate)),
        Logical::Project { columns, .. } => format!("Project {}", assignments(columns)),
        Logical::Join { kind, on, .. } => format!("Join {kind:?}{}", optional("on", on.as_ref())),
        Logical::Aggregate { keys, aggregates: calls, sets, scalar, .. } => format!(
            "Aggregate{}{} [{}] {}",
            if *scalar { " scalar" } else { "" },
            sets.text(),
            assignments(keys),
            aggregates(calls)
        ),
        Logical::Window { partition_by, order_by, calls, .. } => format!(
            "Window partition [{}] order [{}] {}",
            list(partition_by),
            sort_keys(order_by),
            window_calls(calls)
        ),
        Logical::Sort { keys, .. } => format!("Sort {}", sort_keys(keys)),
        Logical::Distinct { columns, .. } => format!("Distinct {}", registers(columns)),
        Logical::Limit { limit, offset, .. } => format!(
            "Limit{}{}",
            optional("count", limit.as_ref()),
            optional("offset", offset.as_ref())
        ),
        Logical::SetOperation { operation, inputs, columns } => {
            let parts: Vec<_> = inputs.iter().map(|(_, outputs)| list(outputs)).collect();
            format!("{operation:?} {} := {}", registers(columns), parts.join(" | "))
        }
        Logical::Derived { alias, columns, lateral, .. } => format!(
            "Derived {alias}{} {}",
            if *lateral { " lateral" } else { "" },
            registers(columns)
        ),
        Logical::CteScan { id, columns, alias } => {
            format!("CteScan {} {alias} {}", id.0, registers(columns))
        }
        Logical::RecursiveCte { id, columns, seed_outputs, step_outputs, .. } => format!(
            "RecursiveCte {} {} := {} | {}",
            id.0,
            registers(columns),
            list(seed_outputs),
            list(step_outputs)
        ),
    };
    line(out, depth, &text);
    node.for_each_input(&mut |input| logical(input, depth + 1, out));
}

/// A whole bound statement.
pub fn logical_plan(plan: &LogicalPlan) -> String {
    let mut out = String::new();
    logical_statement(&plan.statement, &mut out);
    for (index, subquery) in plan.subqueries.iter().enumerate() {
        let outer: Vec<_> = subquery.outer.iter().map(|column| register(*column)).collect();
        line(
            &mut out,
            0,
            &format!("#{index} [{}] outer [{}]", list(&subquery.outputs), outer.join(" ")),
        );
        logical(&subquery.root, 1, &mut out);
    }
    for cte in &plan.ctes {
        line(&mut out, 0, &format!("cte {} {} [{}]", cte.id.0, cte.name, list(&cte.outputs)));
        logical(&cte.root, 1, &mut out);
    }
    out
}

fn logical_statement(statement: &LogicalStatement, out: &mut String) {
    match statement {
        LogicalStatement::Query(query) => {
            let outputs: Vec<_> = query
                .outputs
                .iter()
                .map(|output| {
                    format!("{}={} {}", output.name, expr(&output.expr), ty(&output.expr.ty()))
                })
                .collect();
            line(out, 0, &format!("Query {}", outputs.join(", ")));
            logical(&query.root, 1, out);
        }
        LogicalStatement::Insert(insert) => {
            line(out, 0, &format!("Insert {} {:?}", insert.target.name, insert.targets));
            match &insert.source {
                LogicalInsertSource::Values(rows) => insert_rows(rows, out),
                LogicalInsertSource::Query(query) => {
                    let outputs: Vec<_> =
                        query.outputs.iter().map(|output| expr(&output.expr)).collect();
                    line(out, 1, &format!("Source {}", outputs.join(", ")));
                    logical(&query.root, 2, out);
                }
            }
            insert_mode(&insert.mode, out);
        }
        LogicalStatement::Update(write) | LogicalStatement::Delete(write) => {
            for target in &write.targets {
                let set: Vec<_> = target
                    .assignments
                    .iter()
                    .map(|set| {
                        let value = set.value.as_ref().map_or("DEFAULT".into(), expr);
                        format!("{} = {value}", target.write.columns[set.column].name)
                    })
                    .collect();
                line(out, 0, &format!("Write {} {}", target.write.name, set.join(", ")));
            }
            logical(&write.root, 1, out);
        }
        LogicalStatement::Do(exprs) => line(out, 0, &format!("Do {}", list(exprs))),
        LogicalStatement::Explain { statement, .. } => {
            line(out, 0, "Explain");
            logical_statement(statement, out);
        }
    }
}

fn insert_rows(rows: &[Vec<Option<Expr>>], out: &mut String) {
    for row in rows {
        let cells: Vec<_> =
            row.iter().map(|cell| cell.as_ref().map_or("DEFAULT".into(), expr)).collect();
        line(out, 1, &format!("({})", cells.join(", ")));
    }
}

fn insert_mode(mode: &InsertMode, out: &mut String) {
    match mode {
        InsertMode::Error => {}
        InsertMode::Ignore => line(out, 1, "Ignore"),
        InsertMode::Replace => line(out, 1, "Replace"),
        InsertMode::Only => line(out, 1, "Only row"),
        InsertMode::Update { assignments, .. } => {
            let set: Vec<_> = assignments
                .iter()
                .map(|set| {
                    let value = set.value.as_ref().map_or("DEFAULT".into(), expr);
                    format!("{} = {value}", set.column)
                })
                .collect();
            line(out, 1, &format!("Update {}", set.join(", ")));
        }
    }
}

fn keys(keys: &[IndexKeySource]) -> String {
    keys.iter()
        .map(|key| expr(&key.value) + if key.null_safe { " (null)" } else { "" })
        .collect::<Vec<_>>()
        .join(", ")
}

fn range(range: &RangeSpec) -> String {
    let mut text = format!("[{}]", keys(&range.equal));
    if let Some(lower) = &range.lower {
        let op = if lower.inclusive { ">=" } else { ">" };
        _ = write!(text, " {op} {}", expr(&lower.key.value));
    }
    if let Some(upper) = &range.upper {
        let op = if upper.inclusive { "<=" } else { "<" };
        _ = write!(text, " {op} {}", expr(&upper.key.value));
    }
    text
}

fn access(access: &Access) -> String {
    let back = |backward: bool| if backward { " backward" } else { "" };
    match access {
        Access::Unique { index, key } => format!("unique {index} [{}]", keys(key)),
        Access::Ranges { index, ranges, backward, .. } => {
            let parts: Vec<_> = ranges.iter().map(range).collect();
            format!("ranges {index}{} {}", back(*backward), parts.join(" | "))
        }
        Access::Merge { arms, .. } => {
            let arm = |arm: &crate::MergeArm| {
                let parts: Vec<_> = arm.ranges.iter().map(range).collect();
                format!("{} {}", arm.index, parts.join(" | "))
            };
            format!("merge {}", arms.iter().map(arm).collect::<Vec<_>>().join(" or "))
        }
        Access::Fulltext { search, against } => {
            format!("fulltext {} against {}", search.name, expr(against))
        }
        Access::Full { index, backward } => format!("full {index}{}", back(*backward)),
        Access::Walk(walk) => format!("walk {}{}", walk.index, back(walk.backward)),
    }
}

/// A physical operator tree.
pub fn physical(node: &Physical, depth: usize, out: &mut String) {
    line(out, depth, &physical_line(node));
    node.for_each_input(&mut |input| physical(input, depth + 1, out));
}

fn physical_line(node: &Physical) -> String {
    match node {
        Physical::OneRow => "OneRow".into(),
        Physical::Nothing => "Nothing".into(),
        Physical::Scan { table, access: path, filter } => {
            let columns: Vec<_> = table
                .columns
                .iter()
                .map(|(index, target)| format!("{index}:{}", register(*target)))
                .collect();
            format!(
                "Scan {} {}{} ({}){}",
                table.alias,
                access(path),
                if table.firsts.is_some() { " first of each group" } else { "" },
                columns.join(" "),
                optional("filter", filter.as_ref())
            )
        }
        Physical::InformationScan { schema, name, equals, filter, .. } => {
            let equals: Vec<_> =
                equals.iter().map(|(name, value)| format!("{name}={}", expr(value))).collect();
            format!(
                "InformationScan {schema}.{name} [{}]{}",
                equals.join(", "),
                optional("filter", filter.as_ref())
            )
        }
        Physical::Values { rows, columns } => {
            let rows: Vec<_> = rows.iter().map(|row| format!("({})", list(row))).collect();
            let columns: Vec<_> = columns.iter().map(|column| register(*column)).collect();
            format!("Values {} := {}", columns.join(" "), rows.join(", "))
        }
        Physical::JsonRows(rows) => json_rows(rows),
        Physical::Filter { predicate, .. } => format!("Filter {}", expr(predicate)),
        Physical::Project { columns, .. } => format!("Project {}", assignments(columns)),
        Physical::NestedLoop { kind, condition, .. } => {
            format!("NestedLoop {kind:?}{}", optional("on", condition.as_ref()))
        }
        Physical::HashJoin { kind, keys, condition, .. } => {
            let keys: Vec<_> = keys
                .iter()
                .map(|(outer, inner, _)| format!("{} = {}", expr(outer), expr(inner)))
                .collect();
            format!("HashJoin {kind:?} [{}]{}", keys.join(", "), optional("on", condition.as_ref()))
        }
        Physical::Aggregate { mode, keys, aggregates: calls, carried, sets, .. } => {
            let carried: Vec<_> = carried.iter().map(|column| register(*column)).collect();
            format!(
                "Aggregate {mode:?}{} [{}] {} carried [{}]",
                sets.text(),
                assignments(keys),
                aggregates(calls),
                carried.join(" ")
            )
        }
        Physical::Window { partition_by, order_by, calls, .. } => format!(
            "Window partition [{}] order [{}] {}",
            list(partition_by),
            sort_keys(order_by),
            window_calls(calls)
        ),
        Physical::Sort { keys, limit, .. } => {
            format!("Sort {}{}", sort_keys(keys), optional("top", limit.as_ref()))
        }
        Physical::Distinct { columns, .. } => format!("Distinct {}", registers(columns)),
        Physical::Limit { limit, offset, .. } => format!(
            "Limit{}{}",
            optional("count", limit.as_ref()),
            optional("offset", offset.as_ref())
        ),
        Physical::SetOperation { operation, inputs, columns } => {
            let parts: Vec<_> = inputs.iter().map(|(_, outputs)| list(outputs)).collect();
            format!("{operation:?} {} := {}", registers(columns), parts.join(" | "))
        }
        Physical::Materialize { id, columns, correlated, .. } => format!(
            "Materialize {}{} {}",
            id.0,
            if *correlated { " correlated" } else { "" },
            registers(columns)
        ),
        Physical::CteScan { id, columns } => format!("CteScan {} {}", id.0, registers(columns)),
        Physical::RecursiveCte { id, columns, .. } => {
            format!("RecursiveCte {} {}", id.0, registers(columns))
        }
    }
}

/// A whole plan.
pub fn plan(plan: &Plan) -> String {
    let mut out = String::new();
    let (subqueries, ctes) = match plan {
        Plan::Query(query) => {
            let outputs: Vec<_> = query
                .outputs
                .iter()
                .map(|output| format!("{}={}", output.name, expr(&output.expr)))
                .collect();
            line(&mut out, 0, &format!("Query {}", outputs.join(", ")));
            physical(&query.root, 1, &mut out);
            (&query.subqueries, &query.ctes)
        }
        Plan::Insert(insert) => {
            line(&mut out, 0, &format!("Insert {} {:?}", insert.target.name, insert.targets));
            match &insert.source {
                InsertSource::Values(rows) => insert_rows(rows, &mut out),
                InsertSource::Query(query) => physical(&query.root, 1, &mut out),
            }
            insert_mode(&insert.mode, &mut out);
            (&insert.subqueries, &insert.ctes)
        }
        Plan::Update(update) => {
            for (target, _, set) in &update.targets {
                let set: Vec<_> = set
                    .iter()
                    .map(|set| {
                        let value = set.value.as_ref().map_or("DEFAULT".into(), expr);
                        format!("{} = {value}", target.columns[set.column].name)
                    })
                    .collect();
                line(&mut out, 0, &format!("Update {} {}", target.name, set.join(", ")));
            }
            if update.buffered {
                line(&mut out, 0, "buffered");
            }
            physical(&update.root, 1, &mut out);
            (&update.subqueries, &update.ctes)
        }
        Plan::Delete(delete) => {
            for (target, _) in &delete.targets {
                line(&mut out, 0, &format!("Delete {}", target.name));
            }
            if delete.buffered {
                line(&mut out, 0, "buffered");
            }
            physical(&delete.root, 1, &mut out);
            (&delete.subqueries, &delete.ctes)
        }
        Plan::Do { exprs, subqueries, ctes, .. } => {
            line(&mut out, 0, &format!("Do {}", list(exprs)));
            (subqueries, ctes)
        }
        Plan::Rows { rows, .. } => {
            for row in rows {
                let cells: Vec<_> = row.iter().map(value).collect();
                line(&mut out, 0, &cells.join(" | "));
            }
            return out;
        }
    };
    for (index, subquery) in subqueries.iter().enumerate() {
        line(&mut out, 0, &format!("#{index} [{}]", list(&subquery.outputs)));
        physical(&subquery.root, 1, &mut out);
    }
    for (id, root, outputs) in ctes {
        line(&mut out, 0, &format!("cte {} [{}]", id.0, list(outputs)));
        physical(root, 1, &mut out);
    }
    out
}
