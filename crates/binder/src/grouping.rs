//! ONLY_FULL_GROUP_BY: every column outside aggregates must be determined by the group keys (1055, 1140).

use errors::{Result, bail};
use plan::{
    BinaryOp, Expr, GroupSets, InstanceId, Logical, LogicalJoinKind, OutputColumn, Register,
    RegisterSet, SortKey, SubqueryKind, UnaryOp,
};
use types::{FunctionRole, SqlMode};

use crate::binder::Binder;
use crate::scope::ScopeSource;

impl Binder<'_> {
    /// Checks the current block.
    pub(crate) fn check_grouping(
        &mut self,
        filter: Option<&Expr>,
        from: &Logical,
        outputs: &[OutputColumn],
        having: Option<&Expr>,
        order: &[SortKey],
    ) -> Result<()> {
        let block = self.blocks.last().expect("inside a block");
        if !block.grouped && block.aggregates.is_empty() {
            return Ok(());
        }
        if !self.input.bind.sql_mode.contains(SqlMode::ONLY_FULL_GROUP_BY) {
            return Ok(());
        }
        let generated = self.generated_reads(from)?;
        let block = self.blocks.last().expect("inside a block");
        let mut own = RegisterSet::new();
        from.add_definitions(&self.instances, &mut own);
        let known = self.determined(from, filter, &own, &generated);
        for (index, output) in outputs.iter().enumerate() {
            self.check_determined(&output.expr, &own, &known, index + 1, "SELECT list")?;
        }
        if let Some(having) = having {
            self.check_determined(having, &own, &known, 1, "HAVING clause")?;
        }
        for (index, key) in order.iter().enumerate() {
            self.check_determined(&key.expr, &own, &known, index + 1, "ORDER BY clause")?;
        }
        for group in &block.window_groups {
            let specs = group.partition_by.iter().chain(group.order_by.iter().map(|k| &k.expr));
            let args = group.calls.iter().flat_map(|call| &call.args);
            for expr in specs.chain(args) {
                self.check_determined(expr, &own, &known, 1, "WINDOW specification")?;
            }
        }
        Ok(())
    }

    /// Registers that have one value in a group.
    fn determined(
        &self,
        from: &Logical,
        filter: Option<&Expr>,
        own: &RegisterSet,
        generated: &[(Register, RegisterSet)],
    ) -> RegisterSet {
        let block = self.blocks.last().expect("inside a block");
        let mut known = RegisterSet::new();
        // A key that some sets lack determines nothing in their groups.
        let in_all = match &block.sets {
            GroupSets::One | GroupSets::Rollup => u64::MAX,
            GroupSets::Listed(sets) => sets.iter().fold(u64::MAX, |all, set| all & set),
        };
        let determines = |at: usize| at >= GroupSets::KEYS_MAX || in_all >> at & 1 == 1;
        let keys = || block.keys.iter().enumerate();
        let registers = |wanted: bool| {
            let chosen = keys().filter(move |(at, _)| determines(*at) == wanted);
            chosen.filter_map(|(_, (_, key))| plain_register(key))
        };
        registers(true).for_each(|register| _ = known.insert(register));
        let mut equalities = Vec::new();
        self.collect_equalities(from, filter, &mut equalities);
        if let Some(filter) = filter {
            conjunct_equalities(filter, &mut equalities);
        }
        let mut filters: Vec<&Expr> = filter.into_iter().collect();
        collect_filters(from, &mut filters);
        loop {
            let mut grown = false;
            for (column, reads) in generated {
                grown |= reads.is_subset(&known) && known.insert(*column);
            }
            for (left, right) in &equalities {
                grown |= extend_by_equality(left, right, own, &mut known);
            }
            grown |= self.extend_by_outer_joins(from, own, &mut known);
            grown |= self.extend_by_keys(from, &filters, &mut known);
            if !grown {
                registers(false).for_each(|register| _ = known.insert(register));
                return known;
            }
        }
    }

    /// Equalities of the filters and joins of a tree, whose rows then pass `filter`: an outer join whose NULL-extended rows cannot
    /// pass is an inner one.
    fn collect_equalities(
        &self,
        node: &Logical,
        filter: Option<&Expr>,
        equalities: &mut Vec<(Expr, Expr)>,
    ) {
        match node {
            Logical::Filter { predicate, .. } => conjunct_equalities(predicate, equalities),
            Logical::Join { kind, right, on: Some(on), .. } => {
                let is_outer = matches!(kind, LogicalJoinKind::Left | LogicalJoinKind::Full);
                let is_inner = !is_outer
                    || *kind == LogicalJoinKind::Left
                        && filter.is_some_and(|filter| {
                            let mut inner = RegisterSet::new();
                            right.add_definitions(&self.instances, &mut inner);
                            rejects_nulls(filter, &inner)
                        });
                if is_inner {
                    conjunct_equalities(on, equalities);
                }
            }
            _ => {}
        }
        node.for_each_input(&mut |input| self.collect_equalities(input, filter, equalities));
    }

    /// If a group fixes everything that an outer join's condition reads of the outer side, its equalities fix columns of the
    /// inner side too: they hold, or all of these columns are NULL.
    fn extend_by_outer_joins(
        &self,
        node: &Logical,
        own: &RegisterSet,
        known: &mut RegisterSet,
    ) -> bool {
        let mut grown = false;
        if let Logical::Join { kind: LogicalJoinKind::Left, left, on: Some(on), .. } = node
            && !on.is_volatile()
        {
            let (mut outer, mut reads) = (RegisterSet::new(), RegisterSet::new());
            left.add_definitions(&self.instances, &mut outer);
            on.add_registers(&|_| &[], &mut reads);
            reads.subtract(known);
            if !reads.intersects(&outer) {
                let mut equalities = Vec::new();
                conjunct_equalities(on, &mut equalities);
                for (one, other) in &equalities {
                    grown |= extend_by_equality(one, other, own, known);
                }
            }
        }
        node.for_each_input(&mut |input| grown |= self.extend_by_outer_joins(input, own, known));
        grown
    }

    /// Generated columns of the tables, and what each is computed from.
    fn generated_reads(&mut self, from: &Logical) -> Result<Vec<(Register, RegisterSet)>> {
        let mut tables = Vec::new();
        collect_tables(from, &mut tables);
        let mut found = Vec::new();
        for id in tables {
            let instance = self.instance(id);
            let (table, base) = (self.tables[instance.table].clone(), instance.base);
            for (column, at) in table.columns.iter().zip(base.0..) {
                let Some(generated) = &column.generated else { continue };
                // Over the columns that it names, generated ones too.
                let value = self.bind_text_before(&generated.expression, &table, base, &mut [])?;
                let mut reads = RegisterSet::new();
                value.add_registers(&|_| &[], &mut reads);
                found.push((Register(at), reads));
            }
        }
        Ok(found)
    }

    /// A whole unique key without NULLs determines its table; the keys of an inner grouping determine its aggregates.
    fn extend_by_keys(&self, node: &Logical, filters: &[&Expr], known: &mut RegisterSet) -> bool {
        let mut grown = false;
        let is_null_free = |register: Register| {
            let column: RegisterSet = std::iter::once(register).collect();
            filters.iter().any(|filter| rejects_nulls(filter, &column))
        };
        match node {
            Logical::Get(id) => {
                let instance = self.instance(*id);
                let table = &self.tables[instance.table];
                let determines = table.indexes.iter().any(|index| {
                    index.unique
                        && table.distinct_parts(index).iter().all(|part| {
                            let register = instance.register(part.column);
                            part.prefix_length.is_none()
                                && known.contains(register)
                                && (!table.columns[part.column].ty.nullable
                                    || is_null_free(register))
                        })
                });
                if determines {
                    for column in 0..table.columns.len() {
                        grown |= known.insert(instance.register(column));
                    }
                }
            }
            Logical::Aggregate { keys, aggregates, .. }
                if keys.iter().all(|(register, _)| known.contains(*register)) =>
            {
                for call in aggregates {
                    grown |= known.insert(call.output);
                }
            }
            Logical::Project { columns, .. } => {
                for (register, expr) in columns {
                    let mut reads = RegisterSet::new();
                    expr.add_registers(&|_| &[], &mut reads);
                    if reads.is_subset(known) && !expr.is_volatile() {
                        grown |= known.insert(*register);
                    }
                }
            }
            _ => {}
        }
        node.for_each_input(&mut |input| grown |= self.extend_by_keys(input, filters, known));
        grown
    }

    fn check_determined(
        &self,
        expr: &Expr,
        own: &RegisterSet,
        known: &RegisterSet,
        position: usize,
        clause: &str,
    ) -> Result<()> {
        let block = self.blocks.last().expect("inside a block");
        let Some(register) = self.first_undetermined(expr, own, known) else { return Ok(()) };
        let name = self.block_column_name(register).unwrap_or_default();
        if block.grouped {
            bail!(WRONG_FIELD_WITH_GROUP, position, clause, name);
        }
        bail!(MIX_OF_GROUP_FUNC_AND_FIELDS, position, clause, name)
    }

    fn first_undetermined(
        &self,
        expr: &Expr,
        own: &RegisterSet,
        known: &RegisterSet,
    ) -> Option<Register> {
        let block = self.blocks.last().expect("inside a block");
        if block.keys.iter().any(|(_, key)| key == expr) {
            return None;
        }
        match expr {
            Expr::Column { register, .. } => {
                return (own.contains(*register) && !known.contains(*register))
                    .then_some(*register);
            }
            // ANY_VALUE lifts the rule for its argument.
            Expr::Function { function, .. } if function.is(FunctionRole::AnyValue) => return None,
            Expr::Subquery { id, .. } => {
                let outer = &self.subqueries[id.0 as usize].outer;
                let loose = outer.iter().find(|r| own.contains(**r) && !known.contains(**r));
                if let Some(register) = loose {
                    return Some(*register);
                }
            }
            _ => {}
        }
        let mut found = None;
        expr.for_each_child(&mut |child| {
            if found.is_none() {
                found = self.first_undetermined(child, own, known);
            }
        });
        found
    }

    /// `schema.table.column` of a register of the current block.
    pub(crate) fn block_column_name(&self, register: Register) -> Option<String> {
        let block = self.blocks.last()?;
        for table in &block.tables {
            let column = match &table.source {
                ScopeSource::Base { instance, .. } => self.instance(*instance).column_of(register),
                ScopeSource::Columns(columns) => {
                    columns.iter().position(|c| plain_register(&c.expr) == Some(register))
                }
            };
            if let Some(column) = column {
                let name = table.column_name(column);
                return Some(match &table.schema {
                    Some(schema) => format!("{schema}.{}.{name}", table.alias),
                    None => format!("{}.{name}", table.alias),
                });
            }
        }
        None
    }
}

/// The register of a column, read unchanged or converted to local time.
fn collect_tables(node: &Logical, into: &mut Vec<InstanceId>) {
    if let Logical::Get(id) = node {
        into.push(*id);
    }
    node.for_each_input(&mut |input| collect_tables(input, into));
}

/// The conditions that all rows of tables in a tree satisfy, where they are not NULL-extended.
fn collect_filters<'f>(node: &'f Logical, into: &mut Vec<&'f Expr>) {
    if let Logical::Filter { predicate, .. } = node {
        into.push(predicate);
    }
    node.for_each_input(&mut |input| collect_filters(input, into));
}

pub(crate) fn plain_register(expr: &Expr) -> Option<Register> {
    match expr {
        Expr::Column { register, .. } => Some(*register),
        Expr::Cast { operand, kind: plan::CastKind::TimestampToLocal, .. } => operand.as_column(),
        _ => None,
    }
}

fn extend_by_equality(
    left: &Expr,
    right: &Expr,
    own: &RegisterSet,
    known: &mut RegisterSet,
) -> bool {
    let mut grown = false;
    for (target, value) in [(left, right), (right, left)] {
        let Some(target) = plain_register(target) else { continue };
        if known.contains(target) {
            continue;
        }
        let fixed = match plain_register(value) {
            Some(register) => known.contains(register) || !own.contains(register),
            None => value.is_constant(),
        };
        if fixed {
            grown |= known.insert(target);
        }
    }
    grown
}

fn conjunct_equalities(predicate: &Expr, equalities: &mut Vec<(Expr, Expr)>) {
    equalities_of(predicate, false, equalities);
}

/// Equalities that hold wherever the predicate, or its negation, is true.
fn equalities_of(predicate: &Expr, negated: bool, equalities: &mut Vec<(Expr, Expr)>) {
    match predicate {
        Expr::Unary { op: UnaryOp::Not, operand, .. } => {
            equalities_of(operand, !negated, equalities);
        }
        Expr::Binary { op: BinaryOp::And, left, right, .. } if !negated => {
            equalities_of(left, negated, equalities);
            equalities_of(right, negated, equalities);
        }
        Expr::Binary { op: BinaryOp::Or, left, right, .. } if negated => {
            equalities_of(left, negated, equalities);
            equalities_of(right, negated, equalities);
        }
        Expr::Binary { op, left, right, .. } => {
            let wanted = if negated { BinaryOp::NotEqual } else { BinaryOp::Equal };
            if *op == wanted {
                equalities.push(((**left).clone(), (**right).clone()));
            }
        }
        Expr::InList { operand, list, negated: not_in, .. }
            if list.len() == 1 && *not_in == negated =>
        {
            equalities.push(((**operand).clone(), list[0].clone()));
        }
        _ => {}
    }
}

/// Whether the predicate is never true where all of `columns` are NULL.
fn rejects_nulls(predicate: &Expr, columns: &RegisterSet) -> bool {
    if let Expr::Unary { op: UnaryOp::Not, operand, .. } = predicate
        && let Expr::Unary { op: UnaryOp::IsNull, operand, .. } = &**operand
    {
        return is_strict(operand, columns);
    }
    match predicate {
        Expr::Binary { op: BinaryOp::And, left, right, .. } => {
            rejects_nulls(left, columns) || rejects_nulls(right, columns)
        }
        Expr::Binary { op: BinaryOp::Or, left, right, .. } => {
            rejects_nulls(left, columns) && rejects_nulls(right, columns)
        }
        Expr::Unary {
            op: UnaryOp::IsNotNull | UnaryOp::IsTrue | UnaryOp::IsFalse,
            operand,
            ..
        } => is_strict(operand, columns),
        Expr::Subquery { kind: SubqueryKind::In(left), negated: false, .. } => {
            left.iter().any(|item| is_strict(item, columns))
        }
        _ => is_strict(predicate, columns),
    }
}

/// Whether the value is NULL where all of `columns` are.
fn is_strict(expr: &Expr, columns: &RegisterSet) -> bool {
    match expr {
        Expr::Column { register, .. } => columns.contains(*register),
        Expr::Cast { operand, .. }
        | Expr::Collate { operand, .. }
        | Expr::Unary { op: UnaryOp::Negate | UnaryOp::BitNot | UnaryOp::Not, operand, .. }
        | Expr::InList { operand, .. } => is_strict(operand, columns),
        Expr::Binary { op, left, right, .. } => match op {
            BinaryOp::And | BinaryOp::Or => is_strict(left, columns) && is_strict(right, columns),
            BinaryOp::NullSafeEqual => false,
            _ => is_strict(left, columns) || is_strict(right, columns),
        },
        Expr::Between { operand, low, high, negated, .. } => {
            let ends = [low, high].map(|end| is_strict(end, columns));
            is_strict(operand, columns) || ends == [true, true] || !negated && ends.contains(&true)
        }
        Expr::Like { operand, pattern, .. } => {
            is_strict(operand, columns) || is_strict(pattern, columns)
        }
        _ => false,
    }
}
