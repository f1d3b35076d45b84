//! Walking expressions and operators: children, rewriting, and which registers they read and set.

use crate::{
    Access, AggregateCall, Expr, FrameBound, IndexKeySource, Logical, Physical, RangeSpec,
    Register, SortKey, SubqueryKind, WindowCall,
};

/// A set of registers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegisterSet {
    words: Vec<u64>,
}

impl Extend<Register> for RegisterSet {
    fn extend<I: IntoIterator<Item = Register>>(&mut self, registers: I) {
        registers.into_iter().for_each(|register| _ = self.insert(register));
    }
}

impl RegisterSet {
    /// The empty set.
    pub fn new() -> RegisterSet {
        RegisterSet::default()
    }

    /// Adds `register`; was it new?
    pub fn insert(&mut self, register: Register) -> bool {
        let (word, bit) = (register.0 as usize / 64, register.0 % 64);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & (1 << bit) == 0;
        self.words[word] |= 1 << bit;
        new
    }

    /// Removes `register`.
    pub fn remove(&mut self, register: Register) {
        if let Some(word) = self.words.get_mut(register.0 as usize / 64) {
            *word &= !(1 << (register.0 % 64));
        }
    }

    /// Is `register` in the set?
    pub fn contains(&self, register: Register) -> bool {
        self.words
            .get(register.0 as usize / 64)
            .is_some_and(|word| word & (1 << (register.0 % 64)) != 0)
    }

    /// Adds all of `other`.
    pub fn union(&mut self, other: &RegisterSet) {
        if self.words.len() < other.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (word, more) in self.words.iter_mut().zip(&other.words) {
            *word |= more;
        }
    }

    /// Takes all of `other` away.
    pub fn subtract(&mut self, other: &RegisterSet) {
        for (word, less) in self.words.iter_mut().zip(&other.words) {
            *word &= !less;
        }
    }

    /// Have both a register in common?
    pub fn intersects(&self, other: &RegisterSet) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    /// Is every register of `self` in `other`?
    pub fn is_subset(&self, other: &RegisterSet) -> bool {
        self.words
            .iter()
            .enumerate()
            .all(|(index, word)| word & !other.words.get(index).copied().unwrap_or(0) == 0)
    }

    /// No register?
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// In ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Register> + '_ {
        self.words.iter().enumerate().flat_map(|(index, word)| {
            let word = *word;
            (0..64)
                .filter(move |bit| word & (1 << bit) != 0)
                .map(move |bit| Register((index * 64 + bit) as u32))
        })
    }
}

impl FromIterator<Register> for RegisterSet {
    fn from_iter<I: IntoIterator<Item = Register>>(registers: I) -> RegisterSet {
        let mut set = RegisterSet::new();
        for register in registers {
            set.insert(register);
        }
        set
    }
}

macro_rules! expr_children {
    ($name:ident, $each:ident, $($mutability:tt)?) => {
        /// Calls `f` with each direct operand.
        pub fn $name<'a>(&'a $($mutability)? self, f: &mut dyn FnMut(&'a $($mutability)? Expr)) {
            match self {
                Expr::Literal { .. }
                | Expr::Parameter { .. }
                | Expr::Column { .. }
                | Expr::UserVariable { .. }
                | Expr::SystemVariable { .. }
                | Expr::HeldValue { .. } => {}
                Expr::AssignUserVariable { value, .. } => f(value),
                Expr::Unary { operand, .. }
                | Expr::Cast { operand, .. }
                | Expr::Collate { operand, .. } => f(operand),
                Expr::Binary { left, right, .. } => {
                    f(left);
                    f(right);
                }
                Expr::Between { operand, low, high, .. } => {
                    f(operand);
                    f(low);
                    f(high);
                }
                Expr::InList { operand, list, .. } => {
                    f(operand);
                    list.$each().for_each(f);
                }
                Expr::Like { operand, pattern, escape, .. } => {
                    f(operand);
                    f(pattern);
                    if let Some(escape) = escape {
                        f(escape);
                    }
                }
                Expr::Case { operand, branches, otherwise, .. } => {
                    if let Some(operand) = operand {
                        f(operand);
                    }
                    for (when, then) in branches {
                        f(when);
                        f(then);
                    }
                    if let Some(otherwise) = otherwise {
                        f(otherwise);
                    }
                }
                Expr::Function { args, .. }
                | Expr::Stored { args, .. }
                | Expr::FirstNotNull { parts: args, .. } => args.$each().for_each(f),
                Expr::Held { values, rest } => {
                    values.$each().for_each(&mut *f);
                    f(rest);
                }
                Expr::Match { row, against, .. } => {
                    row.$each().for_each(&mut *f);
                    f(against);
                }
                Expr::Row(items) => items.$each().for_each(f),
                Expr::Subquery { kind, .. } => match kind {
                    SubqueryKind::Scalar(_) | SubqueryKind::Exists => {}
                    SubqueryKind::In(left) | SubqueryKind::Quantified(left, ..) => {
                        left.$each().for_each(f);
                    }
                },
            }
        }
    };
}

impl Expr {
    expr_children!(for_each_child, iter,);
    expr_children!(for_each_child_mut, iter_mut, mut);

    /// Calls `f` with this expression and everything below it, parents first.
    pub fn visit<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        f(self);
        self.for_each_child(&mut |child| child.visit(f));
    }

    /// Whether `f` holds for this expression or anything below it.
    pub fn any(&self, f: &mut dyn FnMut(&Expr) -> bool) -> bool {
        if f(self) {
            return true;
        }
        let mut found = false;
        self.for_each_child(&mut |child| found = found || child.any(f));
        found
    }

    /// Calls `f` with this expression and everything below, parents first; where `f` returns true it has replaced the
    /// expression, and the replacement is not entered.
    pub fn rewrite(&mut self, f: &mut dyn FnMut(&mut Expr) -> bool) {
        if !f(self) {
            self.for_each_child_mut(&mut |child| child.rewrite(f));
        }
    }

    /// Adds the registers that are read. `outer` gives those that a subquery reads from outside.
    pub fn add_registers<'a>(
        &'a self,
        outer: &dyn Fn(crate::SubqueryId) -> &'a [Register],
        set: &mut RegisterSet,
    ) {
        match self {
            Expr::Column { register, .. } => {
                set.insert(*register);
            }
            Expr::Subquery { id, .. } => {
                for register in outer(*id) {
                    set.insert(*register);
                }
            }
            _ => {}
        }
        self.for_each_child(&mut |child| child.add_registers(outer, set));
    }

    /// The register of a plain column.
    pub fn as_column(&self) -> Option<Register> {
        match self {
            Expr::Column { register, .. } => Some(*register),
            _ => None,
        }
    }

    /// Whether it reads no register, no variable and no subquery, so that it has one value for a whole statement.
    /// Functions are for the caller to judge.
    pub fn is_constant(&self) -> bool {
        self.is_constant_with(false)
    }

    /// `held`: whether a held value is one of a constant.
    fn is_constant_with(&self, held: bool) -> bool {
        if let Expr::Held { values, rest } = self {
            let mut values = values.iter();
            return values.all(|value| value.is_constant_with(held)) && rest.is_constant_with(true);
        }
        let reads = matches!(
            self,
            Expr::Column { .. }
                | Expr::Subquery { .. }
                | Expr::UserVariable { .. }
                | Expr::AssignUserVariable { .. }
        );
        let mut constant = !reads && (held || !matches!(self, Expr::HeldValue { .. }));
        self.for_each_child(&mut |child| {
            constant = constant && child.is_constant_with(held);
        });
        constant
    }
}

fn sort_key_exprs<'a>(keys: &'a [SortKey], f: &mut dyn FnMut(&'a Expr)) {
    keys.iter().for_each(|key| f(&key.expr));
}

fn sort_key_exprs_mut<'a>(keys: &'a mut [SortKey], f: &mut dyn FnMut(&'a mut Expr)) {
    keys.iter_mut().for_each(|key| f(&mut key.expr));
}

fn aggregate_exprs<'a>(calls: &'a [AggregateCall], f: &mut dyn FnMut(&'a Expr)) {
    for call in calls {
        call.args.iter().for_each(&mut *f);
        sort_key_exprs(&call.order_by, f);
    }
}

fn aggregate_exprs_mut<'a>(calls: &'a mut [AggregateCall], f: &mut dyn FnMut(&'a mut Expr)) {
    for call in calls {
        call.args.iter_mut().for_each(&mut *f);
        sort_key_exprs_mut(&mut call.order_by, f);
    }
}

fn window_exprs<'a>(calls: &'a [WindowCall], f: &mut dyn FnMut(&'a Expr)) {
    for call in calls {
        call.args.iter().for_each(&mut *f);
        for bound in [&call.frame.start, &call.frame.end] {
            if let FrameBound::Preceding(expr) | FrameBound::Following(expr) = bound {
                f(expr);
            }
        }
    }
}

fn window_exprs_mut<'a>(calls: &'a mut [WindowCall], f: &mut dyn FnMut(&'a mut Expr)) {
    for call in calls {
        call.args.iter_mut().for_each(&mut *f);
        for bound in [&mut call.frame.start, &mut call.frame.end] {
            if let FrameBound::Preceding(expr) | FrameBound::Following(expr) = bound {
                f(expr);
            }
        }
    }
}

macro_rules! logical_walk {
    ($inputs:ident, $exprs:ident, $each:ident, $sort:ident, $aggregate:ident, $window:ident, $($m:tt)?) => {
        /// Calls `f` with each direct input.
        pub fn $inputs<'a>(&'a $($m)? self, f: &mut dyn FnMut(&'a $($m)? Logical)) {
            match self {
                Logical::OneRow
                | Logical::Nothing
                | Logical::Get(_)
                | Logical::InformationGet { .. }
                | Logical::Values { .. }
                | Logical::JsonRows(_)
                | Logical::CteScan { .. } => {}
                Logical::Filter { input, .. }
                | Logical::Project { input, .. }
                | Logical::Aggregate { input, .. }
                | Logical::Window { input, .. }
                | Logical::Sort { input, .. }
                | Logical::Distinct { input, .. }
                | Logical::Limit { input, .. }
                | Logical::Derived { input, .. } => f(input),
                Logical::Join { left, right, .. } => {
                    f(left);
                    f(right);
                }
                Logical::SetOperation { inputs, .. } => {
                    for (input, _) in inputs {
                        f(input);
                    }
                }
                Logical::RecursiveCte { seed, step, .. } => {
                    f(seed);
                    f(step);
                }
            }
        }

        /// Calls `f` with each expression of this operator itself.
        pub fn $exprs<'a>(&'a $($m)? self, f: &mut dyn FnMut(&'a $($m)? Expr)) {
            match self {
                Logical::OneRow
                | Logical::Nothing
                | Logical::Get(_)
                | Logical::InformationGet { .. }
                | Logical::Distinct { .. }
                | Logical::Derived { .. }
                | Logical::CteScan { .. } => {}
                Logical::Values { rows, .. } => rows.$each().flatten().for_each(f),
                Logical::JsonRows(rows) => f(&$($m)? rows.document),
                Logical::Filter { predicate, .. } => f(predicate),
                Logical::Project { columns, .. } => {
                    columns.$each().for_each(|(_, expr)| f(expr));
                }
                Logical::Join { on, .. } => {
                    if let Some(on) = on {
                        f(on);
                    }
                }
                Logical::Aggregate { keys, aggregates, .. } => {
                    keys.$each().for_each(|(_, expr)| f(expr));
                    $aggregate(aggregates, f);
                }
                Logical::Window { partition_by, order_by, calls, .. } => {
                    partition_by.$each().for_each(&mut *f);
                    $sort(order_by, f);
                    $window(calls, f);
                }
                Logical::Sort { keys, .. } => $sort(keys, f),
                Logical::Limit { limit, offset, .. } => {
                    limit.$each().for_each(&mut *f);
                    offset.$each().for_each(f);
                }
                Logical::SetOperation { inputs, .. } => {
                    for (_, outputs) in inputs {
                        outputs.$each().for_each(&mut *f);
                    }
                }
                Logical::RecursiveCte { seed_outputs, step_outputs, .. } => {
                    seed_outputs.$each().for_each(&mut *f);
                    step_outputs.$each().for_each(f);
                }
            }
        }
    };
}

impl Logical {
    logical_walk!(
        for_each_input,
        for_each_expr,
        iter,
        sort_key_exprs,
        aggregate_exprs,
        window_exprs,
    );
    logical_walk!(
        for_each_input_mut,
        for_each_expr_mut,
        iter_mut,
        sort_key_exprs_mut,
        aggregate_exprs_mut,
        window_exprs_mut,
        mut
    );

    /// Calls `f` with every expression of this operator and all below it.
    pub fn visit_exprs<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        self.for_each_expr(f);
        self.for_each_input(&mut |input| input.visit_exprs(f));
    }

    /// Likewise, to change them.
    pub fn visit_exprs_mut<'a>(&'a mut self, f: &mut dyn FnMut(&mut Expr)) {
        self.for_each_expr_mut(&mut |expr| f(expr));
        self.for_each_input_mut(&mut |input| input.visit_exprs_mut(f));
    }

    /// Adds the registers that this operator itself sets.
    pub fn add_own_definitions(&self, instances: &[crate::TableInstance], set: &mut RegisterSet) {
        match self {
            Logical::OneRow
            | Logical::Nothing
            | Logical::Filter { .. }
            | Logical::Join { .. }
            | Logical::Sort { .. }
            | Logical::Distinct { .. }
            | Logical::Limit { .. }
            | Logical::Derived { .. } => {}
            Logical::Get(id) => {
                let instance = &instances[id.0 as usize];
                for index in 0..instance.columns {
                    set.insert(Register(instance.base.0 + index));
                }
                if let Some(locator) = instance.locator {
                    set.insert(locator);
                }
            }
            Logical::InformationGet { columns, .. } => {
                columns.iter().for_each(|column| _ = set.insert(column.2));
            }
            Logical::Project { columns, .. } => {
                columns.iter().for_each(|column| _ = set.insert(column.0));
            }
            Logical::Aggregate { keys, aggregates, grouping, .. } => {
                keys.iter().for_each(|key| _ = set.insert(key.0));
                aggregates.iter().for_each(|call| _ = set.insert(call.output));
                grouping.iter().flatten().for_each(|register| _ = set.insert(*register));
            }
            Logical::Window { calls, .. } => {
                calls.iter().for_each(|call| _ = set.insert(call.output));
            }
            Logical::JsonRows(rows) => rows.add_definitions(set),
            Logical::Values { columns, .. }
            | Logical::SetOperation { columns, .. }
            | Logical::CteScan { columns, .. }
            | Logical::RecursiveCte { columns, .. } => {
                columns.iter().for_each(|column| _ = set.insert(column.0));
            }
        }
    }

    /// Adds the registers that this operator and all below it set.
    pub fn add_definitions(&self, instances: &[crate::TableInstance], set: &mut RegisterSet) {
        self.add_own_definitions(instances, set);
        self.for_each_input(&mut |input| input.add_definitions(instances, set));
    }
}

fn key_sources<'a>(keys: &'a [IndexKeySource], f: &mut dyn FnMut(&'a Expr)) {
    keys.iter().for_each(|key| f(&key.value));
}

fn range_exprs<'a>(ranges: &'a [RangeSpec], f: &mut dyn FnMut(&'a Expr)) {
    for range in ranges {
        key_sources(&range.equal, f);
        for bound in [&range.lower, &range.upper].into_iter().flatten() {
            f(&bound.key.value);
        }
    }
}

impl Access {
    /// Calls `f` with each key expression.
    pub fn for_each_expr<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        match self {
            Access::Unique { key, .. } => key_sources(key, f),
            Access::Ranges { ranges, .. } => range_exprs(ranges, f),
            Access::Merge { arms, .. } => {
                for arm in arms {
                    range_exprs(&arm.ranges, f);
                    f(&arm.condition);
                }
            }
            Access::Fulltext { against, .. } => f(against),
            Access::Full { .. } | Access::Walk(_) => {}
        }
    }
}

impl Physical {
    /// Calls `f` with each direct input.
    pub fn for_each_input<'a>(&'a self, f: &mut dyn FnMut(&'a Physical)) {
        match self {
            Physical::OneRow
            | Physical::Nothing
            | Physical::Scan { .. }
            | Physical::InformationScan { .. }
            | Physical::Values { .. }
            | Physical::JsonRows(_)
            | Physical::CteScan { .. } => {}
            Physical::Filter { input, .. }
            | Physical::Project { input, .. }
            | Physical::Aggregate { input, .. }
            | Physical::Window { input, .. }
            | Physical::Sort { input, .. }
            | Physical::Distinct { input, .. }
            | Physical::Limit { input, .. }
            | Physical::Materialize { input, .. } => f(input),
            Physical::NestedLoop { outer, inner, .. } | Physical::HashJoin { outer, inner, .. } => {
                f(outer);
                f(inner);
            }
            Physical::SetOperation { inputs, .. } => inputs.iter().for_each(|(input, _)| f(input)),
            Physical::RecursiveCte { seed, step, .. } => {
                f(seed);
                f(step);
            }
        }
    }

    /// Calls `f` with each expression of this operator itself.
    pub fn for_each_expr<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        match self {
            Physical::OneRow
            | Physical::Nothing
            | Physical::Distinct { .. }
            | Physical::CteScan { .. } => {}
            Physical::Scan { access, filter, .. } => {
                access.for_each_expr(f);
                filter.iter().for_each(f);
            }
            Physical::InformationScan { equals, filter, .. } => {
                equals.iter().for_each(|(_, expr)| f(expr));
                filter.iter().for_each(f);
            }
            Physical::Values { rows, .. } => rows.iter().flatten().for_each(f),
            Physical::JsonRows(rows) => f(&rows.document),
            Physical::Filter { predicate, .. } => f(predicate),
            Physical::Project { columns, .. } => columns.iter().for_each(|(_, expr)| f(expr)),
            Physical::NestedLoop { condition, .. } => condition.iter().for_each(f),
            Physical::HashJoin { keys, condition, .. } => {
                for (outer, inner, _) in keys {
                    f(outer);
                    f(inner);
                }
                condition.iter().for_each(f);
            }
            Physical::Aggregate { keys, aggregates, .. } => {
                keys.iter().for_each(|(_, expr)| f(expr));
                aggregate_exprs(aggregates, f);
            }
            Physical::Window { partition_by, order_by, calls, .. } => {
                partition_by.iter().for_each(&mut *f);
                sort_key_exprs(order_by, f);
                window_exprs(calls, f);
            }
            Physical::Sort { keys, limit, .. } => {
                sort_key_exprs(keys, f);
                limit.iter().for_each(f);
            }
            Physical::Limit { limit, offset, .. } => {
                limit.iter().for_each(&mut *f);
                offset.iter().for_each(f);
            }
            Physical::SetOperation { inputs, .. } => {
                inputs.iter().flat_map(|(_, outputs)| outputs).for_each(f);
            }
            Physical::Materialize { outputs, .. } => outputs.iter().for_each(f),
            Physical::RecursiveCte { seed_outputs, step_outputs, .. } => {
                seed_outputs.iter().for_each(&mut *f);
                step_outputs.iter().for_each(f);
            }
        }
    }

    /// Adds the registers that this operator itself sets.
    pub fn add_own_definitions(&self, set: &mut RegisterSet) {
        match self {
            Physical::OneRow
            | Physical::Nothing
            | Physical::Filter { .. }
            | Physical::NestedLoop { .. }
            | Physical::HashJoin { .. }
            | Physical::Sort { .. }
            | Physical::Distinct { .. }
            | Physical::Limit { .. } => {}
            Physical::Scan { table, .. } => {
                table.columns.iter().for_each(|column| _ = set.insert(column.1));
                table.locator.iter().for_each(|register| _ = set.insert(*register));
            }
            Physical::InformationScan { columns, .. } => {
                columns.iter().for_each(|column| _ = set.insert(column.1));
            }
            Physical::Values { columns, .. } => {
                columns.iter().for_each(|register| _ = set.insert(*register));
            }
            Physical::JsonRows(rows) => rows.add_definitions(set),
            Physical::Project { columns, .. } => {
                columns.iter().for_each(|column| _ = set.insert(column.0));
            }
            Physical::Aggregate { keys, aggregates, carried, grouping, .. } => {
                keys.iter().for_each(|key| _ = set.insert(key.0));
                aggregates.iter().for_each(|call| _ = set.insert(call.output));
                carried.iter().for_each(|register| _ = set.insert(*register));
                grouping.iter().flatten().for_each(|register| _ = set.insert(*register));
            }
            Physical::Window { calls, .. } => {
                calls.iter().for_each(|call| _ = set.insert(call.output));
            }
            Physical::SetOperation { columns, .. }
            | Physical::Materialize { columns, .. }
            | Physical::CteScan { columns, .. }
            | Physical::RecursiveCte { columns, .. } => {
                columns.iter().for_each(|column| _ = set.insert(column.0));
            }
        }
    }

    /// Adds the registers that this operator and all below it set.
    pub fn add_definitions(&self, set: &mut RegisterSet) {
        self.add_own_definitions(set);
        self.for_each_input(&mut |input| input.add_definitions(set));
    }
}
