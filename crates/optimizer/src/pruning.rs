//! Partition pruning: which numbers of a row's partition (the first part of its clustered key) conditions on its columns allow.
//!
//! Invariant: a row that fulfils the conditions has one of the numbers; the conditions themselves are still checked.

use plan::{BinaryOp, CastKind, Expr, InstanceId, PartitionRouting, RegisterSet};
use types::partition::{Below, Router};
use types::{DataType, FunctionRef, FunctionRole, Growth, PartitionQuestion, TypeKind, Value};

use crate::Planner;
use crate::predicate::substitute;
use crate::sargable::{Ends, Sarg, SargKind};

/// Partitions that are read one by one where each has a range of the primary key.
const LOOKED_INTO_MAX: usize = 64;
/// In place of the predicate that a condition follows from: a list of all numbers is combined with every value of the key, not pairwise.
const NO_PREDICATE: usize = usize::MAX;

/// How a table's number is computed.
struct Routed<'p> {
    routing: &'p PartitionRouting,
    router: &'p Expr,
    /// Values that it reads, over the registers of the row.
    values: &'p [Expr],
    ty: DataType,
    /// Catalog position of the hidden column.
    column: usize,
}

impl Routed<'_> {
    fn ask(&self, function: FunctionRef, values: Vec<Expr>, nullable: bool) -> Expr {
        let args = std::iter::once(self.router.clone()).chain(values).collect();
        let ty = self.ty.clone().with_nullable(nullable);
        Expr::Function { function, args, ty }
    }
}

impl Planner<'_> {
    /// Conditions on the hidden column that follow from `usable` ones.
    pub(crate) fn partition_sargs(&self, id: InstanceId, usable: &[&Sarg]) -> Vec<Sarg> {
        let (instance, table) = (self.instance(id), self.table(id));
        let (Some(column), Some(primary)) = (table.partition_column(), table.primary()) else {
            return Vec::new();
        };
        let Some(routing) = instance.partition.as_deref() else { return Vec::new() };
        let Expr::Function { args, ty, .. } = &routing.number else { return Vec::new() };
        let [router, values @ ..] = &args[..] else { return Vec::new() };
        let routed = Routed { routing, router, values, ty: ty.clone(), column };
        let Some(partitioning) = &table.partitioning else { return Vec::new() };
        let mut found: Vec<Sarg> = Vec::new();
        if !partitioning.by_system_time() {
            found.extend(self.by_equality(id, &routed, usable));
        } else if self.only_current(id, usable) {
            let number = partitioning.partitions.last().map_or(0, |current| current.number);
            let count = partitioning.subpartitions();
            let literal =
                |number: u16| Expr::literal(Value::UInt(number.into()), routed.ty.clone());
            let numbers = (number * count..(number + 1) * count).map(literal).collect();
            let (kind, reads) = (SargKind::In(numbers), RegisterSet::new());
            found.push(Sarg { column, kind, exact: false, predicate: NO_PREDICATE, reads });
        }
        if found.is_empty() && partitioning.has_bounds() {
            let first = partitioning.partitions.first().map_or(0, |own| own.number);
            let count = partitioning.subpartitions();
            let nulls = (first * count, first * count + (count - 1));
            found.extend(self.by_range(id, &routed, usable, nulls));
        }
        // Values or a range of the key within each partition are more selective than whole partitions.
        let key = primary.parts.first().map(|part| part.column);
        let is_bounded = |sarg: &&Sarg| Some(sarg.column) == key;
        let numbers = partitioning.numbers();
        let has_point = |sarg: &Sarg| {
            let kind = &sarg.kind;
            !matches!(kind, SargKind::Range { .. } | SargKind::Ranges(_) | SargKind::Outside(_))
        };
        if !found.iter().any(has_point)
            && numbers.len() <= LOOKED_INTO_MAX
            && usable.iter().any(is_bounded)
        {
            let literal =
                |number: u16| Expr::literal(Value::UInt(number.into()), routed.ty.clone());
            let may_hold = |number: &u16| found.iter().all(|sarg| lies_in(*number, &sarg.kind));
            let numbers: Vec<u16> = numbers.into_iter().filter(may_hold).collect();
            found = vec![Sarg {
                column,
                kind: SargKind::In(numbers.into_iter().map(literal).collect()),
                exact: false,
                predicate: NO_PREDICATE,
                reads: RegisterSet::new(),
            }];
        }
        found
    }

    /// By SYSTEM_TIME: whether a condition wants current rows alone.
    fn only_current(&self, id: InstanceId, usable: &[&Sarg]) -> bool {
        let Some(times) = self.table(id).row_times() else { return false };
        let never = Expr::literal(catalog::never(), catalog::row_time_type());
        usable
            .iter()
            .filter(|sarg| sarg.column == times.end)
            .any(|sarg| matches!(&sarg.kind, SargKind::Equal { value, .. } if *value == never))
    }

    /// All columns have one value, or one of them a list: each gives one number.
    fn by_equality(&self, id: InstanceId, routed: &Routed<'_>, usable: &[&Sarg]) -> Option<Sarg> {
        if routed.values.iter().any(may_overflow) {
            return None;
        }
        let (instance, table) = (self.instance(id), self.table(id));
        let mut registers = RegisterSet::new();
        routed.values.iter().for_each(|value| registers.union(&self.reads(value)));
        let mut fixed = Vec::new();
        let mut list: Option<(plan::Register, &[Expr], &Sarg)> = None;
        let mut reads = RegisterSet::new();
        let mut predicate = None;
        for register in registers.iter() {
            let column = instance.column_of(register)?;
            let ty = &table.columns[column].ty;
            let of = usable.iter().filter(|sarg| sarg.column == column);
            let equal = of.clone().find_map(|sarg| match &sarg.kind {
                SargKind::Equal { value, .. } => Some((*sarg, fitted(value, ty)?)),
                _ => None,
            });
            if let Some((sarg, value)) = equal {
                fixed.push((register, value));
                reads.union(&sarg.reads);
                predicate = Some(sarg.predicate);
                continue;
            }
            let values = of.clone().find_map(|sarg| match &sarg.kind {
                SargKind::In(values) => Some((register, &values[..], *sarg)),
                _ => None,
            });
            if list.is_some() || values.is_none() {
                return None;
            }
            list = values;
        }
        let probe = |fixed: &[(plan::Register, Expr)]| {
            let mut values = routed.values.to_vec();
            values.iter_mut().for_each(|value| substitute(value, fixed));
            routed.ask(routed.routing.probe, values, false)
        };
        let Some((register, values, sarg)) = list else {
            let kind = SargKind::Equal { value: probe(&fixed), null_safe: false };
            let predicate = predicate?;
            return Some(Sarg { column: routed.column, kind, exact: false, predicate, reads });
        };
        let ty = &table.columns[sarg.column].ty;
        let mut numbers = Vec::with_capacity(values.len());
        for value in values {
            fixed.push((register, fitted(value, ty)?));
            numbers.push(probe(&fixed));
            fixed.pop();
        }
        reads.union(&sarg.reads);
        let (kind, predicate) = (SargKind::In(numbers), sarg.predicate);
        Some(Sarg { column: routed.column, kind, exact: false, predicate, reads })
    }

    /// RANGE: numbers grow with the first column, or with an expression of it. `nulls`: the numbers of the partition with NULL.
    fn by_range(
        &self,
        id: InstanceId,
        routed: &Routed<'_>,
        usable: &[&Sarg],
        nulls: (u16, u16),
    ) -> Vec<Sarg> {
        let (instance, table) = (self.instance(id), self.table(id));
        let Some(first) = routed.values.first() else { return Vec::new() };
        let Some((register, plain, makes_null)) = growing(first) else { return Vec::new() };
        let Some(column) = instance.column_of(register) else { return Vec::new() };
        let ty = &table.columns[column].ty;
        let end = |function: FunctionRef, value: &Expr| {
            let mut made = first.clone();
            substitute(&mut made, &[(register, fitted(value, ty)?)]);
            Some(routed.ask(function, vec![made], true))
        };
        let ends = |lower: &Option<(Expr, bool)>, upper: &Option<(Expr, bool)>| -> Option<Ends> {
            let lower = match lower {
                Some((value, _)) => Some((end(routed.routing.first, value)?, true)),
                None => None,
            };
            let upper = match upper {
                Some((value, included)) => {
                    let before = plain && !included && ty.is_integer() && value.ty().is_integer();
                    let (before_it, last) = (routed.routing.before, routed.routing.last);
                    let function = if before { before_it } else { last };
                    Some((end(function, value)?, true))
                }
                None => None,
            };
            Some((lower, upper))
        };
        let literal = |number: u16| Expr::literal(Value::UInt(number.into()), routed.ty.clone());
        let mut found = Vec::new();
        for sarg in usable.iter().filter(|sarg| sarg.column == column) {
            let pieces: Option<Vec<Ends>> = match &sarg.kind {
                SargKind::Range { lower, upper } => ends(lower, upper).map(|ends| vec![ends]),
                SargKind::Ranges(list) => list.iter().map(|(low, high)| ends(low, high)).collect(),
                SargKind::Equal { value, null_safe: false } => {
                    let point = Some((value.clone(), true));
                    ends(&point, &point).map(|ends| vec![ends])
                }
                SargKind::In(values) => values
                    .iter()
                    .map(|value| {
                        let point = Some((value.clone(), true));
                        ends(&point, &point)
                    })
                    .collect(),
                SargKind::Equal { null_safe: true, .. }
                | SargKind::Outside(_)
                | SargKind::Meets(_) => None,
            };
            let Some(mut pieces) = pieces.filter(|pieces| !pieces.is_empty()) else { continue };
            // Invalid dates are among the NULLs but compare as dates.
            if makes_null && pieces.iter().any(|(lower, _)| lower.is_some()) {
                let null_ends = (Some((literal(nulls.0), true)), Some((literal(nulls.1), true)));
                pieces.push(null_ends);
            }
            let kind = match (pieces.len(), pieces.pop()) {
                (1, Some((lower, upper))) => SargKind::Range { lower, upper },
                (_, last) => {
                    pieces.extend(last);
                    SargKind::Ranges(pieces)
                }
            };
            let (predicate, reads) = (sarg.predicate, sarg.reads.clone());
            found.push(Sarg { column: routed.column, kind, exact: false, predicate, reads });
        }
        found
    }
}

/// Whether a number may be in ranges, as far as constants show.
fn lies_in(number: u16, kind: &SargKind) -> bool {
    let inside = |lower: &Option<(Expr, bool)>, upper: &Option<(Expr, bool)>| {
        let end =
            |side: &Option<(Expr, bool)>| side.as_ref().and_then(|(end, _)| known_number(end));
        let above = end(lower).is_none_or(|lower| lower.is_some_and(|lower| lower <= number));
        above && end(upper).is_none_or(|upper| upper.is_some_and(|upper| number <= upper))
    };
    match kind {
        SargKind::Range { lower, upper } => inside(lower, upper),
        SargKind::Ranges(ends) => ends.iter().any(|(lower, upper)| inside(lower, upper)),
        _ => true,
    }
}

/// The number that an expression of this module gives, where its values are constants: `Some(None)` for NULL. `None`: not known yet.
pub(crate) fn known_number(expr: &Expr) -> Option<Option<u16>> {
    let literal = |expr: &Expr| match expr {
        Expr::Literal { value, ty } => Some((value.clone(), ty.clone())),
        Expr::Collate { operand, ty } => match &**operand {
            Expr::Literal { value, .. } => Some((value.clone(), ty.clone())),
            _ => None,
        },
        _ => None,
    };
    let Expr::Function { function, args, .. } = expr else {
        return match literal(expr)?.0 {
            Value::UInt(number) => Some(u16::try_from(number).ok()),
            Value::Null => Some(None),
            _ => None,
        };
    };
    let [Expr::Literal { value: Value::Bytes(router), .. }, values @ ..] = &args[..] else {
        return None;
    };
    let (values, types): (Vec<Value>, Vec<DataType>) =
        values.iter().map(literal).collect::<Option<Vec<_>>>()?.into_iter().unzip();
    let router = Router::read(router)?;
    let span = |below| router.span(&values, &types, below);
    let Some(FunctionRole::Partition(question)) = function.traits.role else { return None };
    let is_null = values.iter().any(Value::is_null);
    Some(match question {
        PartitionQuestion::Number => return None,
        PartitionQuestion::Probe => router.leaf(&values, &types),
        PartitionQuestion::First | PartitionQuestion::Last | PartitionQuestion::Before
            if is_null =>
        {
            None
        }
        PartitionQuestion::First => span(Below::Included).map(|span| span.0),
        PartitionQuestion::Last => span(Below::Included).map(|span| span.1),
        PartitionQuestion::Before => span(Below::Excluded).map(|span| span.1),
    })
}

/// Sums and products of values that are not from rows might overflow where those of the rows do not.
fn may_overflow(value: &Expr) -> bool {
    value.any(&mut |node| {
        matches!(
            node,
            Expr::Binary { op: BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Multiply, .. }
                | Expr::Unary { .. }
        )
    })
}

/// The column that a monotonic expression reads, whether it is that column, and whether it may be NULL for a value.
fn growing(expr: &Expr) -> Option<(plan::Register, bool, bool)> {
    match expr {
        Expr::Column { register, .. } => Some((*register, true, false)),
        Expr::Cast { operand, .. } => {
            growing(operand).map(|(register, ..)| (register, false, false))
        }
        Expr::Function { function, args, .. } => {
            let makes_null = match function.traits.growth {
                Growth::Unknown => return None,
                Growth::Growing => false,
                Growth::GrowingOrNull => true,
            };
            let [arg] = &args[..] else { return None };
            growing(arg).map(|(register, ..)| (register, false, makes_null))
        }
        _ => None,
    }
}

/// A value compared with a column, converted to the column's type: its key is that of the column's equal values.
fn fitted(value: &Expr, ty: &DataType) -> Option<Expr> {
    let from = value.ty();
    let cast = || {
        let (operand, ty) = (Box::new(value.clone()), ty.clone().with_nullable(true));
        Some(Expr::Cast { operand, kind: CastKind::Implicit, ty })
    };
    let whole =
        |ty: &DataType| ty.is_integer() || matches!(ty.kind, TypeKind::Year | TypeKind::Bit);
    match (ty.kind, from.kind) {
        (_, TypeKind::Null) => Some(value.clone()),
        _ if whole(ty) && whole(&from) => Some(value.clone()),
        _ if ty.is_string() && from.is_string() => {
            let mut own = from;
            own.collation = ty.collation;
            Some(Expr::Collate { operand: Box::new(value.clone()), ty: own })
        }
        (TypeKind::Date, TypeKind::DateTime) | (TypeKind::DateTime, TypeKind::Date) => cast(),
        (TypeKind::DateTime, TypeKind::DateTime) | (TypeKind::Time, TypeKind::Time) => {
            (from.decimals <= ty.decimals).then(|| value.clone())
        }
        (column, kind) if column == kind => matches!(
            kind,
            TypeKind::Date | TypeKind::Timestamp | TypeKind::Enum | TypeKind::Fixed(_)
        )
        .then(|| value.clone()),
        _ => None,
    }
}
