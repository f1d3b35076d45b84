//! The classic table: a row for each table reference, in the order in which they are read.

use catalog::Table;
use plan::{Access, Expr, IndexKeySource, JoinKind, Physical, Plan, TableAccess};
use types::{DataType, TypeKind, Value};

use super::{Context, column, ctes, root, subqueries};
use crate::pin::key_type;

/// A line of the answer.
#[derive(Default)]
pub(super) struct Line {
    id: Option<u32>,
    select_type: String,
    pub(super) table: Option<String>,
    pub(super) partitions: Option<String>,
    pub(super) access: Option<&'static str>,
    pub(super) possible_keys: Option<String>,
    pub(super) key: Option<String>,
    pub(super) key_length: Option<String>,
    pub(super) reference: Option<String>,
    pub(super) rows: Option<u64>,
    pub(super) filtered: Option<f64>,
    extra: Vec<String>,
}

/// The line of one scan.
pub(super) fn scan_line(
    access: &TableAccess,
    path: &Access,
    filter: Option<&Expr>,
    context: &Context<'_>,
) -> Line {
    let mut lines = Lines { context, lines: Vec::new(), derived: Vec::new() };
    lines.scan(access, path, filter, &Place { id: 1, select_type: String::new() });
    lines.lines.pop().unwrap_or_default()
}

struct Lines<'a, 'c> {
    context: &'a Context<'c>,
    lines: Vec<Line>,
    /// Derived tables to be shown afterwards: block, plan.
    derived: Vec<(u32, &'a Physical)>,
}

/// The position of a walk.
#[derive(Clone)]
struct Place {
    id: u32,
    select_type: String,
}

/// The plan as rows.
pub(super) fn explain(plan: &Plan, context: &Context<'_>) -> Plan {
    let mut lines = Lines { context, lines: Vec::new(), derived: Vec::new() };
    let live = |index: usize| !subqueries(plan)[index].outputs.is_empty();
    let nested = (0..subqueries(plan).len()).any(live) || !ctes(plan).is_empty();
    let select_type = match plan {
        Plan::Insert(insert) => {
            let mode =
                if matches!(insert.mode, plan::InsertMode::Replace) { "REPLACE" } else { "INSERT" };
            lines.lines.push(Line {
                id: Some(1),
                select_type: mode.into(),
                table: Some(insert.target.name.to_string()),
                access: Some("ALL"),
                ..Line::default()
            });
            "SIMPLE"
        }
        Plan::Update(_) => "UPDATE",
        Plan::Delete(_) => "DELETE",
        _ if nested => "PRIMARY",
        _ => "SIMPLE",
    };
    match root(plan) {
        Some(root) => {
            let first = lines.lines.len();
            lines.walk(root, &Place { id: 1, select_type: select_type.into() });
            if lines.lines[first..]
                .iter()
                .any(|line| line.select_type == "DERIVED" || line.select_type == "UNION")
            {
                for line in &mut lines.lines[first..] {
                    if line.select_type == "SIMPLE" {
                        line.select_type = "PRIMARY".into();
                    }
                }
            }
        }
        None if matches!(plan, Plan::Insert(_)) => {}
        None => lines.lines.push(Line {
            id: Some(1),
            select_type: select_type.into(),
            extra: vec!["No tables used".into()],
            ..Line::default()
        }),
    }
    for (index, subquery) in subqueries(plan).iter().enumerate() {
        if !live(index) {
            continue;
        }
        let block = context.subqueries.get(index).map_or(index as u32 + 2, |s| s.block);
        let kind = if subquery.outer.is_empty() { "SUBQUERY" } else { "DEPENDENT SUBQUERY" };
        lines.walk(&subquery.root, &Place { id: block, select_type: kind.into() });
    }
    for (id, root, _) in ctes(plan) {
        lines.walk(root, &Place { id: id.0 + 2, select_type: "DERIVED".into() });
    }
    let rows = lines.lines.into_iter().map(cells).collect();
    Plan::Rows { columns: columns(context), rows }
}

fn columns(context: &Context<'_>) -> Vec<plan::OutputColumn> {
    let text = |length| DataType::varchar(length, context.collation);
    let mut id = DataType::bigint_unsigned();
    id.length = 3;
    let mut rows = DataType::bigint_unsigned();
    rows.length = 10;
    vec![
        column("id", id),
        column("select_type", text(19).with_nullable(false)),
        column("table", text(64)),
        column("partitions", text(10_922)),
        column("type", text(10)),
        column("possible_keys", text(4096)),
        column("key", text(64)),
        column("key_len", text(4096)),
        column("ref", text(1024)),
        column("rows", rows),
        column("filtered", DataType::new(TypeKind::Double, 4, 2)),
        column("Extra", text(255)),
    ]
}

fn cells(line: Line) -> Vec<Value> {
    let text = |text: Option<String>| text.map_or(Value::Null, |text| Value::text(&text));
    vec![
        line.id.map_or(Value::Null, |id| Value::UInt(u64::from(id))),
        Value::text(&line.select_type),
        text(line.table),
        text(line.partitions),
        line.access.map_or(Value::Null, Value::text),
        text(line.possible_keys),
        text(line.key),
        text(line.key_length),
        text(line.reference),
        line.rows.map_or(Value::Null, Value::UInt),
        line.filtered.map_or(Value::Null, Value::Double),
        text((!line.extra.is_empty()).then(|| line.extra.join("; "))),
    ]
}

impl<'a> Lines<'a, '_> {
    fn walk(&mut self, node: &'a Physical, place: &Place) {
        self.visit(node, place);
        let derived = std::mem::take(&mut self.derived);
        for (block, plan) in derived {
            self.walk(plan, &Place { id: block, select_type: "DERIVED".into() });
        }
    }

    fn visit(&mut self, node: &'a Physical, place: &Place) {
        let first = self.lines.len();
        match node {
            Physical::OneRow => self.note(place, "No tables used"),
            Physical::Nothing => self.note(place, "Impossible WHERE"),
            Physical::Values { .. } => self.note(place, "No tables used"),
            Physical::Scan { table, access, filter } => {
                self.scan(table, access, filter.as_ref(), place);
            }
            Physical::InformationScan { name, filter, .. } => {
                let mut line = self.line(place);
                line.table = Some(name.to_string());
                line.access = Some("ALL");
                line.extra.extend(filter.as_ref().map(|_| "Using where".to_owned()));
                self.lines.push(line);
            }
            Physical::JsonRows(rows) => {
                let mut line = self.line(place);
                line.table = Some(rows.alias.to_string());
                line.access = Some("ALL");
                line.extra.push(format!("Table function: {}", rows.function));
                line.extra.push("Using temporary".into());
                self.lines.push(line);
            }
            Physical::CteScan { id, .. } => {
                let mut line = self.line(place);
                line.table = Some(format!("<derived{}>", id.0 + 2));
                line.access = Some("ALL");
                self.lines.push(line);
            }
            Physical::Filter { input, .. } => {
                self.visit(input, place);
                self.mark(first, "Using where");
            }
            Physical::Project { input, .. } | Physical::Limit { input, .. } => {
                self.visit(input, place);
            }
            Physical::NestedLoop { kind, outer, inner, .. } => {
                self.side(outer, place);
                let at = self.lines.len();
                self.side(inner, place);
                self.mark_kind(*kind, at);
            }
            Physical::HashJoin { kind, outer, inner, .. } => {
                self.side(outer, place);
                let at = self.lines.len();
                self.side(inner, place);
                self.mark_kind(*kind, at);
                self.mark(at, "Using join buffer (hash join)");
            }
            Physical::Aggregate { input, mode, .. } => {
                self.visit(input, place);
                if *mode == plan::AggregateMode::Hash {
                    self.mark(first, "Using temporary");
                }
            }
            Physical::Window { input, .. } => self.visit(input, place),
            Physical::Sort { input, .. } => {
                self.visit(input, place);
                if self.lines.len() > first + 1 {
                    self.mark(first, "Using temporary");
                }
                self.mark(first, "Using filesort");
            }
            Physical::Distinct { input, .. } => {
                self.visit(input, place);
                self.mark(first, "Using temporary");
            }
            Physical::Materialize { input, .. } => self.side(input, place),
            Physical::SetOperation { inputs, operation, .. } => {
                self.set_operation(*operation, inputs, place);
            }
            Physical::RecursiveCte { seed, step, .. } => {
                self.visit(seed, place);
                let union = Place { id: place.id + 1, select_type: "UNION".into() };
                let at = self.lines.len();
                self.visit(step, &union);
                self.mark(at, "Recursive");
            }
        }
    }

    fn set_operation(
        &mut self,
        operation: plan::SetOperation,
        inputs: &'a [(Physical, Vec<Expr>)],
        place: &Place,
    ) {
        let word = match operation {
            plan::SetOperation::UnionAll | plan::SetOperation::UnionDistinct => "UNION",
            plan::SetOperation::IntersectAll | plan::SetOperation::IntersectDistinct => "INTERSECT",
            plan::SetOperation::ExceptAll | plan::SetOperation::ExceptDistinct => "EXCEPT",
        };
        let mut ids = Vec::with_capacity(inputs.len());
        for (index, (input, _)) in inputs.iter().enumerate() {
            let id = if index == 0 {
                place.id
            } else {
                self.block_of(input).unwrap_or(place.id + index as u32)
            };
            let select_type = match (index, place.select_type.as_str()) {
                (0, "SIMPLE") => "PRIMARY".to_owned(),
                (0, other) => other.to_owned(),
                _ => word.to_owned(),
            };
            ids.push(id.to_string());
            self.visit(input, &Place { id, select_type });
        }
        if operation != plan::SetOperation::UnionAll {
            let mut line = self.line(place);
            line.id = None;
            line.select_type = format!("{word} RESULT");
            line.table = Some(format!("<{}{}>", word.to_lowercase(), ids.join(",")));
            line.access = Some("ALL");
            line.extra.push("Using temporary".into());
            self.lines.push(line);
        }
    }

    /// One side of a join: a separately computed one is shown as a derived table.
    fn side(&mut self, node: &'a Physical, place: &Place) {
        let mut plain = node;
        while let Physical::Filter { input, .. }
        | Physical::Project { input, .. }
        | Physical::Materialize { input, .. } = plain
        {
            plain = input;
        }
        let joined = matches!(
            plain,
            Physical::Scan { .. }
                | Physical::InformationScan { .. }
                | Physical::CteScan { .. }
                | Physical::JsonRows(_)
                | Physical::NestedLoop { .. }
                | Physical::HashJoin { .. }
                | Physical::OneRow
                | Physical::Nothing
        );
        if joined {
            self.visit(plain, place);
            return;
        }
        let block = self.block_of(plain).unwrap_or(place.id + 1);
        let mut line = self.line(place);
        line.table = Some(format!("<derived{block}>"));
        line.access = Some("ALL");
        self.lines.push(line);
        self.derived.push((block, plain));
    }

    /// The block of the first table below.
    fn block_of(&self, node: &Physical) -> Option<u32> {
        if let Physical::Scan { table, .. } = node {
            return Some(self.context.instances[table.instance as usize].block);
        }
        let mut found = None;
        node.for_each_input(&mut |input| {
            if found.is_none() {
                found = self.block_of(input);
            }
        });
        found
    }

    fn line(&self, place: &Place) -> Line {
        Line { id: Some(place.id), select_type: place.select_type.clone(), ..Line::default() }
    }

    fn note(&mut self, place: &Place, extra: &str) {
        let mut line = self.line(place);
        line.extra.push(extra.into());
        self.lines.push(line);
    }

    fn mark(&mut self, at: usize, extra: &str) {
        if let Some(line) = self.lines.get_mut(at)
            && !line.extra.iter().any(|known| known == extra)
        {
            line.extra.push(extra.into());
        }
    }

    fn mark_kind(&mut self, kind: JoinKind, at: usize) {
        match kind {
            JoinKind::Inner | JoinKind::Left | JoinKind::Full => {}
            JoinKind::Semi => {
                let outer = at.checked_sub(1).and_then(|at| self.lines[at].table.clone());
                self.mark(at, &format!("FirstMatch({})", outer.unwrap_or_default()));
            }
            JoinKind::Anti => self.mark(at, "Not exists"),
        }
    }

    fn scan(&mut self, access: &TableAccess, path: &Access, filter: Option<&Expr>, place: &Place) {
        let context = self.context;
        let table = context.table(access);
        let partitions = super::partitions::read(table, path);
        let path = &*super::partitions::without_numbers(table, path);
        let total = context.statistics.rows(table.id.0).max(1);
        let mut line = self.line(place);
        line.table = Some(access.alias.to_string());
        line.partitions = partitions;
        let mut fetched = access.estimated_rows.max(1);
        match path {
            Access::Unique { index, key } => {
                let constant = key.iter().all(|part| part.value.is_constant());
                line.access = Some(if constant { "const" } else { "eq_ref" });
                self.key(&mut line, access, *index, key, key.len());
                fetched = 1;
            }
            Access::Ranges { index, ranges, backward, .. } => {
                let first = ranges.first();
                let bounded = first.is_some_and(|r| r.lower.is_some() || r.upper.is_some());
                let equal = first.map_or(0, |range| range.equal.len());
                if ranges.len() == 1 && !bounded && !is_spatial(table, *index) {
                    line.access = Some("ref");
                    let key = first.map_or(&[][..], |range| &range.equal);
                    self.key(&mut line, access, *index, key, equal);
                } else {
                    line.access = Some("range");
                    self.key(&mut line, access, *index, &[], equal + usize::from(bounded));
                }
                if *backward {
                    line.extra.push("Backward index scan".into());
                }
            }
            Access::Merge { arms, .. } if array_index(table, arms).is_some() => {
                line.access = Some("range");
                let parts = arms.iter().map(|arm| range_parts(&arm.ranges)).max().unwrap_or(0);
                let index = array_index(table, arms).unwrap_or_default();
                self.key(&mut line, access, index, &[], parts);
            }
            Access::Merge { arms, .. } => {
                line.access = Some("index_merge");
                let mut shown = Vec::with_capacity(arms.len());
                for arm in arms {
                    self.key(&mut line, access, arm.index, &[], range_parts(&arm.ranges));
                    let length = line.key_length.take().unwrap_or_default();
                    shown.push((line.key.take().unwrap_or_default(), length));
                }
                let (keys, lengths): (Vec<String>, Vec<String>) = shown.into_iter().unzip();
                line.key = Some(keys.join(","));
                line.key_length = Some(lengths.join(","));
                let word = if crate::index_merge::is_in_row_order(table, arms) {
                    "union"
                } else {
                    "sort_union"
                };
                line.extra.push(format!("Using {word}({})", keys.join(",")));
                line.possible_keys = possible_keys(access, table, filter, context);
            }
            Access::Fulltext { search, .. } => {
                line.access = Some("fulltext");
                line.key = Some(search.name.to_string());
                line.possible_keys = Some(search.name.to_string());
                (line.key_length, line.reference) = (Some("0".into()), Some("const".into()));
                line.extra.push("Ft_hints: sorted".into());
            }
            Access::Walk(_) => {}
            Access::Full { index, backward } => {
                fetched = if access.firsts.is_some() { fetched } else { total };
                line.access = Some(if *index == 0 && !*backward { "ALL" } else { "index" });
                if *index != 0 || *backward {
                    let found = table.indexes.iter().find(|known| known.id.0 == *index);
                    let parts = found.map_or(0, |known| known.parts.len());
                    self.key(&mut line, access, *index, &[], parts);
                }
                if *backward {
                    line.extra.push("Backward index scan".into());
                }
            }
        }
        if line.possible_keys.is_none() || line.access == Some("index") {
            line.possible_keys = possible_keys(access, table, filter, context);
        }
        line.rows = Some(fetched);
        let share = access.estimated_rows as f64 / fetched as f64 * 100.0;
        line.filtered = Some((share.clamp(0.0, 100.0) * 100.0).round() / 100.0);
        if access.firsts.is_some() {
            line.access = Some("range");
            line.extra.insert(0, "Using index for group-by".into());
        } else if access.entries.is_some() {
            line.extra.insert(0, "Using index".into());
        }
        if filter.is_some() {
            // The reference names the indexes of a merge first.
            let at = usize::from(line.access == Some("index_merge"));
            line.extra.insert(at, "Using where".into());
        } else {
            line.filtered = Some(100.0);
        }
        self.lines.push(line);
    }

    fn key(
        &self,
        line: &mut Line,
        access: &TableAccess,
        index: u32,
        key: &[IndexKeySource],
        parts: usize,
    ) {
        let table = self.context.table(access);
        let Some(definition) = table.indexes.iter().find(|known| known.id.0 == index) else {
            return;
        };
        line.key = Some(definition.name.to_string());
        line.possible_keys = line.key.clone();
        let length: u32 = definition
            .parts
            .iter()
            .take(parts)
            .map(|part| part_length(&table.columns[part.column], part.prefix_length))
            .sum();
        line.key_length = Some(length.to_string());
        if !key.is_empty() {
            let references: Vec<String> = key
                .iter()
                .map(|part| match &part.value {
                    value if value.is_constant() => "const".to_owned(),
                    Expr::Column { register, .. } => self
                        .context
                        .name(*register)
                        .map_or("func".to_owned(), |name| format!("{}.{name}", table.schema)),
                    _ => "func".to_owned(),
                })
                .collect();
            line.reference = Some(references.join(","));
        }
    }
}

/// The multi-valued index that all arms read.
pub(super) fn array_index(table: &Table, arms: &[plan::MergeArm]) -> Option<u32> {
    let first = arms.first()?.index;
    let index = table.indexes.iter().find(|index| index.id.0 == first)?;
    let is_alone = table.is_multi_valued(index) && arms.iter().all(|arm| arm.index == first);
    is_alone.then_some(first)
}

/// Parts of an index that ranges go by.
fn range_parts(ranges: &[plan::RangeSpec]) -> usize {
    let parts = |range: &plan::RangeSpec| {
        range.equal.len() + usize::from(range.lower.is_some() || range.upper.is_some())
    };
    ranges.iter().map(parts).max().unwrap_or(0)
}

/// Indexes whose first column the filter mentions.
fn possible_keys(
    access: &TableAccess,
    table: &Table,
    filter: Option<&Expr>,
    context: &Context<'_>,
) -> Option<String> {
    let instance = &context.instances[access.instance as usize];
    let mut mentioned = Vec::new();
    if let Some(filter) = filter {
        filter.visit(&mut |node| {
            if let Some(column) = node.as_column().and_then(|r| instance.column_of(r)) {
                mentioned.push(column);
            }
        });
    }
    let names: Vec<&str> = table
        .indexes
        .iter()
        .filter(|index| index.parts.first().is_some_and(|p| mentioned.contains(&p.column)))
        .map(|index| &*index.name)
        .collect();
    (!names.is_empty()).then(|| names.join(","))
}

/// Whether an index is a spatial one: its ranges are of cells.
pub(super) fn is_spatial(table: &Table, index: u32) -> bool {
    let known = table.indexes.iter().find(|known| known.id.0 == index);
    known.is_some_and(|known| table.spatial_column(known).is_some())
}

/// Bytes of a column in a key as the reference counts them.
fn part_length(column: &catalog::Column, prefix: Option<u32>) -> u32 {
    /// A box and its length.
    const BOX: u32 = 34;
    if column.ty.kind == TypeKind::Geometry {
        return BOX;
    }
    key_length(key_type(column), prefix)
}

/// Bytes of a key part as the reference counts them.
pub(super) fn key_length(ty: &DataType, prefix: Option<u32>) -> u32 {
    use TypeKind::*;
    let fraction = u32::from(ty.decimals.min(6).div_ceil(2));
    let length = prefix.unwrap_or(ty.length);
    let bytes = match ty.kind {
        TinyInt | Year => 1,
        SmallInt => 2,
        MediumInt | Date => 3,
        Int | Float => 4,
        BigInt | Double => 8,
        Decimal => {
            let whole = ty.length.saturating_sub(u32::from(ty.decimals));
            let digits = |count: u32| count / 9 * 4 + (count % 9).div_ceil(2);
            digits(whole) + digits(u32::from(ty.decimals))
        }
        Time => 3 + fraction,
        DateTime => 5 + fraction,
        Timestamp => 4 + fraction,
        Char => length * 4,
        Binary => length,
        VarChar | TinyText | Text | MediumText | LongText => length * 4 + 2,
        VarBinary | TinyBlob | Blob | MediumBlob | LongBlob => length + 2,
        Bit => ty.length.div_ceil(8),
        Enum => 1 + u32::from(ty.members.as_ref().is_some_and(|m| m.len() > 255)),
        Set => ty.members.as_ref().map_or(8, |m| m.len().div_ceil(8) as u32),
        Fixed(kind) => kind.bytes() as u32,
        Null | Json | Vector | Geometry => 0,
    };
    bytes + u32::from(ty.nullable)
}
