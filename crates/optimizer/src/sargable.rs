//! The predicates that an index can evaluate: `column op value` where the value does not depend on the row.

use charset::PadAttribute;
use plan::{BinaryOp, CastKind, Expr, InstanceId, RegisterSet, UnaryOp};
use types::elements::element_value;
use types::{BoxesOfTruth, CollationId, DataType, FunctionRole, JsonRef, TypeKind, Value};

use crate::Planner;

/// Digits that a double always keeps.
const DIGITS_OF_DOUBLE: u32 = 15;
/// The longest list of OR-ed equalities and IN elements that becomes ranges.
pub(crate) const IN_LIST_MAX: usize = 4096;

/// The restriction of a predicate on a column.
#[derive(Clone, Debug)]
pub(crate) enum SargKind {
    Equal {
        value: Expr,
        null_safe: bool,
    },
    In(Vec<Expr>),
    Range {
        lower: Option<(Expr, bool)>,
        upper: Option<(Expr, bool)>,
    },
    /// A value in any of these: OR-ed ranges and equalities.
    Ranges(Vec<Ends>),
    /// Any value but this one and NULL.
    Outside(Expr),
    /// A geometry whose box meets that of this one.
    Meets(Expr),
}

/// Lower and upper end of a range, each with whether it is inclusive.
pub(crate) type Ends = (Option<(Expr, bool)>, Option<(Expr, bool)>);

/// A predicate that an index can use.
#[derive(Clone, Debug)]
pub(crate) struct Sarg {
    /// Catalog position of the column.
    pub column: usize,
    pub kind: SargKind,
    /// The index covers the predicate exactly: it need not be checked again.
    pub exact: bool,
    /// Position in the list of predicates.
    pub predicate: usize,
    /// Registers that the value reads.
    pub reads: RegisterSet,
}

/// How well a value fits a key: whether the index covers an equality and a range exactly.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Fit {
    equal: bool,
    range: bool,
    /// The keys are in the order of the comparison. Otherwise the index serves equality alone.
    ordered: bool,
}

/// The restriction of a column by a comparison with a value, and whether it covers the predicate completely.
fn comparison(op: BinaryOp, value: Expr, fit: &Fit, nullable: bool) -> Option<(SargKind, bool)> {
    let range = |lower, upper| SargKind::Range { lower, upper };
    // Without a lower end the range starts with the NULLs.
    let exact_below = fit.range && !nullable;
    if !fit.ordered && !matches!(op, BinaryOp::Equal | BinaryOp::NullSafeEqual) {
        return None;
    }
    Some(match op {
        BinaryOp::Equal => (SargKind::Equal { value, null_safe: false }, fit.equal),
        BinaryOp::NullSafeEqual => (SargKind::Equal { value, null_safe: true }, fit.equal),
        BinaryOp::Less => (range(None, Some((value, !fit.range))), exact_below),
        BinaryOp::LessOrEqual => (range(None, Some((value, true))), exact_below),
        BinaryOp::Greater => (range(Some((value, !fit.range)), None), fit.range),
        BinaryOp::GreaterOrEqual => (range(Some((value, true)), None), fit.range),
        BinaryOp::NotEqual if fit.range => (SargKind::Outside(value), true),
        _ => return None,
    })
}

impl Planner<'_> {
    /// The restrictions that `predicates` put on the columns of a table reference.
    pub(crate) fn sargs(&self, id: InstanceId, predicates: &[Expr]) -> Vec<Sarg> {
        let mut sargs = Vec::new();
        for (position, predicate) in predicates.iter().enumerate() {
            self.add_sargs(id, predicate, position, &mut sargs);
        }
        sargs
    }

    fn add_sargs(&self, id: InstanceId, predicate: &Expr, position: usize, into: &mut Vec<Sarg>) {
        let mut push = |column: usize, kind: SargKind, exact: bool, reads: RegisterSet| {
            into.push(Sarg { column, kind, exact, predicate: position, reads });
        };
        match predicate {
            Expr::Binary { op, left, right, collation, .. } => {
                if *op == BinaryOp::Or {
                    if let Some((column, values, exact)) = self.or_list(id, predicate) {
                        push(column, SargKind::In(values), exact, RegisterSet::new());
                    } else if let Some((column, ranges, exact)) = self.or_ranges(id, predicate) {
                        push(column, SargKind::Ranges(ranges), exact, RegisterSet::new());
                    }
                    return;
                }
                for (column, value, op) in [(left, right, *op), (right, left, mirror(*op))] {
                    let Some((column, ty)) = self.key_column(id, column) else { continue };
                    let known = self.key_value(id, &ty, value, *collation);
                    let Some((value, fit, reads)) = known else { continue };
                    if let Some((kind, exact)) = comparison(op, value, &fit, ty.nullable) {
                        push(column, kind, exact, reads);
                    }
                }
            }
            Expr::Between { operand, low, high, negated: false, collation } => {
                let Some((column, ty)) = self.key_column(id, operand) else { return };
                let low = self.key_value(id, &ty, low, *collation);
                let high = self.key_value(id, &ty, high, *collation);
                let (Some((low, a, mut reads)), Some((high, b, more))) = (low, high) else {
                    return;
                };
                if !a.ordered || !b.ordered {
                    return;
                }
                reads.union(&more);
                let kind = SargKind::Range { lower: Some((low, true)), upper: Some((high, true)) };
                push(column, kind, a.range && b.range, reads);
            }
            Expr::InList { operand, list, negated: false, .. }
                if matches!(**operand, Expr::Row(_)) =>
            {
                self.add_row_sargs(id, (operand, list), position, into);
            }
            Expr::InList { operand, list, negated: false, collation } => {
                let Some((column, ty)) = self.key_column(id, operand) else { return };
                if list.len() > IN_LIST_MAX {
                    return;
                }
                let mut values = Vec::with_capacity(list.len());
                let mut reads = RegisterSet::new();
                let mut exact = true;
                for item in list {
                    if matches!(item, Expr::Literal { value: Value::Null, .. }) {
                        continue;
                    }
                    let found = self.key_value(id, &ty, item, *collation);
                    let Some((value, fit, more)) = found else { return };
                    reads.union(&more);
                    exact &= fit.equal;
                    values.push(value);
                }
                push(column, SargKind::In(values), exact, reads);
            }
            Expr::Unary { op: UnaryOp::IsNull, operand, .. } => {
                let Some((column, _)) = self.key_column(id, operand) else { return };
                let value = Expr::literal(Value::Null, DataType::null());
                let kind = SargKind::Equal { value, null_safe: true };
                push(column, kind, true, RegisterSet::new());
            }
            Expr::Unary { op: UnaryOp::IsNotNull, .. } => {}
            Expr::Unary { op: UnaryOp::Not, operand, .. } => {
                let found = self.beside_zero(id, operand, BinaryOp::Equal);
                if let Some((column, kind, exact)) = found {
                    push(column, kind, exact, RegisterSet::new());
                }
            }
            Expr::Column { .. } => {
                let found = self.beside_zero(id, predicate, BinaryOp::NotEqual);
                if let Some((column, kind, exact)) = found {
                    push(column, kind, exact, RegisterSet::new());
                }
            }
            Expr::Function { .. } => self.add_call_sargs(id, predicate, position, into),
            Expr::Like { operand, pattern, escape: None, negated: false, collation } => {
                let Some((column, ty)) = self.key_column(id, operand) else { return };
                if let Some((lower, upper)) = like_range(pattern, &ty, *collation) {
                    let kind =
                        SargKind::Range { lower: Some((lower, true)), upper: Some((upper, true)) };
                    push(column, kind, false, RegisterSet::new());
                }
            }
            _ => {}
        }
    }

    /// A number as a condition: it is true where it is not zero.
    fn beside_zero(
        &self,
        id: InstanceId,
        number: &Expr,
        op: BinaryOp,
    ) -> Option<(usize, SargKind, bool)> {
        let (column, ty) = self.key_column(id, number)?;
        if !ty.is_numeric() {
            return None;
        }
        let zero = Expr::literal(Value::Int(0), DataType::bigint().with_nullable(false));
        let (value, fit, _) = self.key_value(id, &ty, &zero, CollationId::BINARY)?;
        let (kind, exact) = comparison(op, value, &fit, ty.nullable)?;
        Some((column, kind, exact))
    }

    /// `(a, b) IN ((1, 2), (3, 4))`: a list for each column, whose values of one place belong together.
    fn add_row_sargs(
        &self,
        id: InstanceId,
        (columns, rows): (&Expr, &[Expr]),
        position: usize,
        into: &mut Vec<Sarg>,
    ) {
        let Expr::Row(columns) = columns else { return };
        if rows.len() > IN_LIST_MAX || !rows.iter().all(|row| matches!(row, Expr::Row(_))) {
            return;
        }
        let is_null = |item: &Expr| matches!(item, Expr::Literal { value: Value::Null, .. });
        // A row with a NULL is equal to none.
        let rows = || {
            let items = rows.iter().filter_map(|row| {
                let Expr::Row(items) = row else { return None };
                Some(items)
            });
            items.filter(|items| !items.iter().any(is_null))
        };
        for (at, column) in columns.iter().enumerate() {
            let Some((column, ty)) = self.key_column(id, column) else { continue };
            // Which collation compares texts of rows is not known here.
            let item = |row: &Vec<Expr>| {
                let item = row.get(at).filter(|_| !ty.is_string())?;
                self.key_value(id, &ty, item, ty.collation)
            };
            let Some(items) = rows().map(item).collect::<Option<Vec<_>>>() else { continue };
            let mut reads = RegisterSet::new();
            items.iter().for_each(|(_, _, more)| reads.union(more));
            let values = items.into_iter().map(|(value, ..)| value).collect();
            let kind = SargKind::In(values);
            into.push(Sarg { column, kind, exact: false, predicate: position, reads });
        }
    }

    /// The same of a call.
    fn add_call_sargs(&self, id: InstanceId, call: &Expr, position: usize, into: &mut Vec<Sarg>) {
        let mut push = |column: usize, kind: SargKind, reads: RegisterSet| {
            into.push(Sarg { column, kind, exact: false, predicate: position, reads });
        };
        let Expr::Function { function, args, .. } = call else { return };
        if function.traits.boxes == BoxesOfTruth::Meet {
            let [first, second] = &args[..] else { return };
            for (column, value) in [(first, second), (second, first)] {
                if let Some((column, value, reads)) = self.meeting(id, column, value) {
                    push(column, SargKind::Meets(value), reads);
                }
            }
            return;
        }
        let Some((column, mut values)) = self.wanted_elements(id, call) else { return };
        // Several values are alternatives, see `index_merge`.
        if values.len() != 1 {
            return;
        }
        let (Some(value), ty) = (values.pop(), self.key_type_of(id, column)) else { return };
        if let Some((value, _, reads)) = self.key_value(id, &ty, &value, ty.collation) {
            push(column, SargKind::Equal { value, null_safe: false }, reads);
        }
    }

    fn key_type_of(&self, id: InstanceId, column: usize) -> DataType {
        crate::pin::key_type(&self.table(id).columns[column]).clone()
    }

    /// The array column of a multi-valued index, and values of which a row must have one for the predicate to be true.
    pub(crate) fn wanted_elements(
        &self,
        id: InstanceId,
        predicate: &Expr,
    ) -> Option<(usize, Vec<Expr>)> {
        let Expr::Function { function, args, .. } = predicate else { return None };
        let [first, second] = &args[..] else { return None };
        let array = |expr: &Expr| {
            let column = self.instance(id).column_of(expr.as_column()?)?;
            let elements = self.table(id).columns[column].elements()?;
            Some((column, elements.clone()))
        };
        let literal = |element: JsonRef<'_>, ty: &DataType| {
            Expr::literal(element_value(element, ty), ty.clone())
        };
        if function.is(FunctionRole::JsonMemberOf) {
            let (column, ty) = array(second)?;
            let value = match first {
                Expr::Literal { value: Value::Json(document), .. } => {
                    literal(JsonRef::new(document), &ty)
                }
                value => value.clone(),
            };
            return Some((column, vec![value]));
        }
        let contains = function.is(FunctionRole::JsonContains);
        if !contains && !function.is(FunctionRole::JsonOverlaps) {
            return None;
        }
        let ((column, ty), wanted) = match array(first) {
            Some(found) => (found, second),
            None if contains => return None,
            None => (array(second)?, first),
        };
        let Expr::Literal { value: Value::Json(document), .. } = wanted else { return None };
        let mut values: Vec<Expr> = Vec::new();
        for element in JsonRef::new(document).elements() {
            let value = literal(element, &ty);
            let is_null = matches!(&value, Expr::Literal { value: Value::Null, .. });
            if !is_null && !values.contains(&value) {
                values.push(value);
            }
        }
        // A row that has all of them has the first.
        values.truncate(if contains { 1 } else { IN_LIST_MAX + 1 });
        (1..=IN_LIST_MAX).contains(&values.len()).then_some((column, values))
    }

    /// A column whose geometries are all of one reference system, and the value whose box they meet.
    fn meeting(
        &self,
        id: InstanceId,
        column: &Expr,
        value: &Expr,
    ) -> Option<(usize, Expr, RegisterSet)> {
        let (column, ty) = self.key_column(id, column)?;
        // The cells of an index follow from the number alone: of a system that a user made nobody knows there whether it is a sphere.
        let has_cells = |srid| types::geometry::reference_system(srid).is_some();
        let is_geometry = ty.kind == TypeKind::Geometry && ty.spatial.srid.is_some_and(has_cells);
        let reads = self.free_reads(id, value).filter(|_| is_geometry)?;
        // Other texts are not geometries: the condition says so.
        matches!(value.ty().kind, TypeKind::Geometry | TypeKind::Null)
            .then(|| (column, value.clone(), reads))
    }

    /// What a value reads, if it has one value for all rows of the table.
    fn free_reads(&self, id: InstanceId, value: &Expr) -> Option<RegisterSet> {
        // A subquery that reads nothing from outside runs once.
        let is_dependent =
            |node: &Expr| matches!(node, Expr::Subquery { id, .. } if !self.outer(*id).is_empty());
        if value.is_volatile() || value.any(&mut |node| is_dependent(node)) {
            return None;
        }
        let reads = self.reads(value);
        let instance = self.instance(id);
        let is_free = reads.iter().all(|register| instance.column_of(register).is_none());
        is_free.then_some(reads)
    }

    /// The column of the table that an expression reads, and its type.
    fn key_column(&self, id: InstanceId, expr: &Expr) -> Option<(usize, DataType)> {
        let register = match expr {
            Expr::Column { register, .. } => *register,
            Expr::Cast { operand, kind: CastKind::TimestampToLocal, .. } => operand.as_column()?,
            // A member is compared as its text or its number.
            Expr::Cast { operand, kind: CastKind::Implicit, .. }
                if operand.ty().kind == TypeKind::Enum =>
            {
                operand.as_column()?
            }
            _ => return None,
        };
        let column = self.instance(id).column_of(register)?;
        Some((column, self.table(id).columns[column].ty.clone()))
    }

    /// A value as a key of the column, when comparing keys means the same as comparing values.
    fn key_value(
        &self,
        id: InstanceId,
        ty: &DataType,
        value: &Expr,
        collation: CollationId,
    ) -> Option<(Expr, Fit, RegisterSet)> {
        let reads = self.free_reads(id, value)?;
        let fit = fit(ty, value, collation)?;
        let is_utc = matches!(value, Expr::Literal { ty, .. } if ty.kind == TypeKind::Timestamp);
        if ty.kind == TypeKind::Timestamp && !is_utc {
            let target = ty.clone().with_nullable(true);
            let operand = Box::new(value.clone());
            let cast = Expr::Cast { operand, kind: CastKind::TimestampToUtc, ty: target };
            return Some((cast, fit, reads));
        }
        Some((value.clone(), fit, reads))
    }

    /// `a = 1 OR a = 2 OR a IN (3, 4)` is a list.
    fn or_list(&self, id: InstanceId, predicate: &Expr) -> Option<(usize, Vec<Expr>, bool)> {
        match predicate {
            Expr::Binary { op: BinaryOp::Or, left, right, .. } => {
                let (a, mut values, exact) = self.or_list(id, left)?;
                self.table(id).columns[a].elements().is_none().then_some(())?;
                let (b, more, both) = self.or_list(id, right)?;
                values.extend(more);
                (a == b && values.len() <= IN_LIST_MAX).then_some((a, values, exact && both))
            }
            _ => {
                let mut sargs = Vec::new();
                self.add_sargs(id, predicate, 0, &mut sargs);
                let sarg = sargs.pop()?;
                if !sarg.reads.is_empty() {
                    return None;
                }
                match sarg.kind {
                    SargKind::Equal { value, null_safe: false } => {
                        Some((sarg.column, vec![value], sarg.exact))
                    }
                    SargKind::In(values) => Some((sarg.column, values, sarg.exact)),
                    SargKind::Equal { null_safe: true, .. }
                    | SargKind::Range { .. }
                    | SargKind::Ranges(_)
                    | SargKind::Outside(_)
                    | SargKind::Meets(_) => None,
                }
            }
        }
    }

    /// `a BETWEEN 1 AND 2 OR a > 7 OR a = 5` is a union of ranges. They may overlap.
    fn or_ranges(&self, id: InstanceId, predicate: &Expr) -> Option<(usize, Vec<Ends>, bool)> {
        if let Expr::Binary { op: BinaryOp::Or, left, right, .. } = predicate {
            let (a, mut ranges, exact) = self.or_ranges(id, left)?;
            // Rows would come once for each of their elements.
            self.table(id).columns[a].elements().is_none().then_some(())?;
            let (b, more, both) = self.or_ranges(id, right)?;
            ranges.extend(more);
            return (a == b && ranges.len() <= IN_LIST_MAX).then_some((a, ranges, exact && both));
        }
        let mut sargs = Vec::new();
        self.add_sargs(id, predicate, 0, &mut sargs);
        let sarg = sargs.pop().filter(|sarg| sarg.reads.is_empty())?;
        let point = |value: Expr| (Some((value.clone(), true)), Some((value, true)));
        // The end of a range is rounded where an equality would match nothing, so points are checked again.
        let (ranges, exact) = match sarg.kind {
            SargKind::Equal { value, null_safe: false } => (vec![point(value)], false),
            SargKind::In(values) => (values.into_iter().map(point).collect(), false),
            SargKind::Range { lower, upper } => (vec![(lower, upper)], sarg.exact),
            SargKind::Ranges(ranges) => (ranges, sarg.exact),
            SargKind::Equal { null_safe: true, .. } | SargKind::Outside(_) | SargKind::Meets(_) => {
                return None;
            }
        };
        Some((sarg.column, ranges, exact))
    }
}

pub(crate) fn mirror(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Less => BinaryOp::Greater,
        BinaryOp::LessOrEqual => BinaryOp::GreaterOrEqual,
        BinaryOp::Greater => BinaryOp::Less,
        BinaryOp::GreaterOrEqual => BinaryOp::LessOrEqual,
        other => other,
    }
}

/// The index covers the comparison exactly.
const EXACT: Fit = Fit { equal: true, range: true, ordered: true };
/// The ends of a range are rounded to values of the column.
const ROUNDED: Fit = Fit { equal: true, range: false, ordered: true };
/// The rows that the index finds are compared again.
const ROUGH: Fit = Fit { equal: false, range: false, ordered: true };
/// The same, and the index serves equality alone.
const ALIKE: Fit = Fit { equal: false, range: false, ordered: false };

/// How the index order of `ty` fits a comparison with `value`.
fn fit(ty: &DataType, value: &Expr, collation: CollationId) -> Option<Fit> {
    let from = value.ty();
    if from.kind == TypeKind::Null {
        return Some(EXACT);
    }
    match ty.kind {
        TypeKind::TinyInt
        | TypeKind::SmallInt
        | TypeKind::MediumInt
        | TypeKind::Int
        | TypeKind::BigInt
        | TypeKind::Year
        | TypeKind::Bit
        | TypeKind::Decimal
        | TypeKind::Float
        | TypeKind::Double => fit_number(ty, &from, value),
        TypeKind::Date => match from.kind {
            TypeKind::Date => Some(EXACT),
            TypeKind::DateTime | TypeKind::Timestamp => Some(ROUNDED),
            _ => None,
        },
        TypeKind::DateTime => match from.kind {
            TypeKind::Date => Some(EXACT),
            TypeKind::DateTime | TypeKind::Timestamp if from.decimals <= ty.decimals => Some(EXACT),
            TypeKind::DateTime | TypeKind::Timestamp => Some(ROUNDED),
            _ => None,
        },
        TypeKind::Timestamp => match from.kind {
            TypeKind::Date | TypeKind::DateTime | TypeKind::Timestamp => Some(ROUGH),
            _ => None,
        },
        TypeKind::Time => match from.kind {
            TypeKind::Time if from.decimals <= ty.decimals => Some(EXACT),
            TypeKind::Time => Some(ROUNDED),
            _ => None,
        },
        TypeKind::Enum if from.kind == TypeKind::Enum => {
            (from.members == ty.members).then_some(EXACT)
        }
        // Members are sorted by their numbers and compared as texts. The empty text may be a member, and is the value of the number 0.
        TypeKind::Enum => {
            let is_text = from.is_text() && collation == ty.collation && !has_empty_member(ty);
            (is_text || is_whole(&from)).then_some(ALIKE)
        }
        TypeKind::Char
        | TypeKind::VarChar
        | TypeKind::TinyText
        | TypeKind::Text
        | TypeKind::MediumText
        | TypeKind::LongText
        | TypeKind::Binary
        | TypeKind::VarBinary
        | TypeKind::TinyBlob
        | TypeKind::Blob
        | TypeKind::MediumBlob
        | TypeKind::LongBlob => fit_text(ty, &from, collation),
        TypeKind::Fixed(_) => (from.kind == ty.kind).then_some(EXACT),
        TypeKind::Null | TypeKind::Set | TypeKind::Json | TypeKind::Vector | TypeKind::Geometry => {
            None
        }
    }
}

fn fit_number(ty: &DataType, from: &DataType, value: &Expr) -> Option<Fit> {
    let is_float = |ty: &DataType| matches!(ty.kind, TypeKind::Float | TypeKind::Double);
    let is_decimal = from.kind == TypeKind::Decimal;
    // Of a text that is compared as a double.
    let is_double = is_float(from) || from.is_text() && ty.kind != TypeKind::Bit;
    if is_float(ty) {
        return (is_double || is_decimal || is_whole(from)).then_some(ROUGH);
    }
    if ty.kind == TypeKind::Decimal {
        // As doubles, DECIMALs of more digits equal their neighbours.
        let is_double = is_double && ty.length <= DIGITS_OF_DOUBLE;
        return if is_whole(from) || is_decimal {
            Some(ROUNDED)
        } else {
            is_double.then_some(ROUGH)
        };
    }
    // The ends of a range are rounded to the integers next to them.
    if ty.is_integer() && (from.is_integer() || is_decimal) {
        return Some(EXACT);
    }
    if is_whole(from) {
        let same = from.kind == ty.kind && from.unsigned == ty.unsigned;
        return Some(if same || in_range(ty, value) { EXACT } else { ROUNDED });
    }
    if is_decimal { Some(ROUNDED) } else { is_double.then_some(ROUGH) }
}

fn fit_text(ty: &DataType, from: &DataType, collation: CollationId) -> Option<Fit> {
    if !from.is_string() {
        return None;
    }
    if collation == ty.collation {
        // Keys are equal where the collation finds the texts equal, as unique indexes need.
        return Some(ROUNDED);
    }
    // Equal bytes are equal in every collation.
    implies_equal(collation, ty.collation).then_some(ALIKE)
}

fn has_empty_member(ty: &DataType) -> bool {
    ty.members.as_ref().is_some_and(|members| members.names().any(<[u8]>::is_empty))
}

/// Whether values that `bytes`, a collation of bytes, finds equal are equal in `collation`.
fn implies_equal(bytes: CollationId, collation: CollationId) -> bool {
    if bytes == CollationId::BINARY {
        return true;
    }
    let bytes = charset::collation_or_binary(bytes);
    let collation = charset::collation_or_binary(collation);
    // Texts that differ in blanks at the end are equal where blanks are padding.
    bytes.is_bin()
        && bytes.charset.name == collation.charset.name
        && (bytes.pad == PadAttribute::NoPad || collation.pad == PadAttribute::PadSpace)
}

fn is_whole(ty: &DataType) -> bool {
    ty.is_integer() || matches!(ty.kind, TypeKind::Year | TypeKind::Bit)
}

/// Whether an integer literal is in the range of an integer type.
fn in_range(ty: &DataType, value: &Expr) -> bool {
    let Expr::Literal { value, .. } = value else { return false };
    let number = match value {
        Value::Int(number) => i128::from(*number),
        Value::UInt(number) => i128::from(*number),
        _ => return false,
    };
    let bits = match ty.kind {
        TypeKind::TinyInt => 8,
        TypeKind::SmallInt => 16,
        TypeKind::MediumInt => 24,
        TypeKind::Int => 32,
        TypeKind::BigInt => 64,
        TypeKind::Year => return (1901..=2155).contains(&number),
        _ => return false,
    };
    if ty.unsigned {
        (0..1i128 << bits).contains(&number)
    } else {
        (-(1i128 << (bits - 1))..1i128 << (bits - 1)).contains(&number)
    }
}

/// Text that sorts after everything that starts with the same characters.
const LAST_CHARACTER: char = '\u{10FFFF}';
/// Most of them: more than an index takes of a text.
const LAST_CHARACTERS_MAX: u32 = 3072;

/// A character that sorts before all others and is not left out of the order.
fn first_character(collation: CollationId) -> char {
    let mut weights = Vec::new();
    charset::collation_or_binary(collation).sort_key(b"\0", &mut weights);
    if weights.is_empty() { '\t' } else { '\0' }
}

/// The range that contains everything that starts like a LIKE pattern.
fn like_range(pattern: &Expr, ty: &DataType, collation: CollationId) -> Option<(Expr, Expr)> {
    let Expr::Literal { value: Value::Bytes(text), ty: from } = pattern else { return None };
    if collation != ty.collation || !ty.is_text() || collation == CollationId::BINARY {
        return None;
    }
    let text = std::str::from_utf8(text).ok()?;
    let mut prefix = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '%' | '_' => break,
            '\\' => prefix.push(characters.next().unwrap_or('\\')),
            other => prefix.push(other),
        }
    }
    if prefix.is_empty() {
        return None;
    }
    // In sets by table real characters may weigh as much.
    let known = charset::collation_or_binary(collation);
    let by_table = !known.charset.is_unicode();
    let count = if by_table { ty.length.clamp(16, LAST_CHARACTERS_MAX) } else { 16 };
    let mut lower = prefix.clone();
    if known.pad == PadAttribute::PadSpace {
        // A text ends like one with spaces; what sorts before a space may follow the same characters.
        lower.extend(std::iter::repeat_n(first_character(collation), count as usize));
    }
    let lower = Expr::literal(Value::text(&lower), from.clone());
    prefix.extend(std::iter::repeat_n(LAST_CHARACTER, count as usize));
    let upper = Expr::literal(Value::text(&prefix), from.clone());
    Some((lower, upper))
}
