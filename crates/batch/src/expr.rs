//! Expressions over batches.

use std::borrow::Cow;
use std::cmp::Ordering;

use charset::Collation;
use plan::{BinaryOp, CastKind, Expr, UnaryOp};
use plugin_api::{BindContext, BoundFunction, Coercion, Registry};
use rows::arguments::{arg_infos, trimmed};
use rows::numbers::{Numbers, answers};
use types::{
    CollationId, ComparisonKind, DataType, Date, Decimal, FunctionRef, Threads, TypeKind, Value,
    Volatility,
};

use crate::call::{call, convert};
use crate::column::{Column, Data};
use crate::env::{Conversion, Env};
use crate::in_set::in_set;
use crate::{Fit, Unfit};

/// Columns of one batch, by slot.
#[derive(Debug, Default)]
pub struct Batch {
    /// Rows that are left.
    pub rows: usize,
    /// Columns by their slots; `None` for one that was not read.
    pub columns: Vec<Option<Column>>,
}

impl Batch {
    /// Without rows and columns.
    pub fn new(slots: usize) -> Batch {
        Batch { rows: 0, columns: (0..slots).map(|_| None).collect() }
    }

    /// The column of a slot; unfit when it was not read.
    pub fn column(&self, slot: usize) -> Fit<&Column> {
        self.columns.get(slot).and_then(Option::as_ref).ok_or(Unfit)
    }

    /// Keeps only some rows.
    pub fn select(&mut self, rows: &[u32]) -> Fit<()> {
        if rows.len() == self.rows {
            return Ok(());
        }
        for column in self.columns.iter_mut().flatten() {
            *column = column.gather(rows)?;
        }
        self.rows = rows.len();
        Ok(())
    }
}

/// An expression that a pipeline can compute. The row program computes all others.
pub enum BatchExpr {
    Column(usize),
    /// Computed when the pipeline starts.
    Constant(usize),
    Arithmetic {
        op: BinaryOp,
        left: Box<BatchExpr>,
        right: Box<BatchExpr>,
        numbers: Numbers,
        decimals: u8,
    },
    Compare {
        op: BinaryOp,
        left: Box<BatchExpr>,
        right: Box<BatchExpr>,
        kind: ComparisonKind,
    },
    And(Box<BatchExpr>, Box<BatchExpr>),
    Or(Box<BatchExpr>, Box<BatchExpr>),
    Not(Box<BatchExpr>),
    IsNull {
        operand: Box<BatchExpr>,
        negated: bool,
    },
    InList {
        operand: Box<BatchExpr>,
        list: Vec<BatchExpr>,
        negated: bool,
        kind: ComparisonKind,
    },
    Like {
        operand: Box<BatchExpr>,
        pattern: usize,
        negated: bool,
        collation: CollationId,
    },
    /// The condition, the value when it holds, the other value.
    If {
        condition: Box<BatchExpr>,
        then: Box<BatchExpr>,
        otherwise: Option<Box<BatchExpr>>,
        unified: Unified,
    },
    /// The first of the values that is not NULL.
    FirstNotNull {
        parts: Vec<BatchExpr>,
        unified: Unified,
    },
    /// Values converted one by one.
    Convert {
        operand: Box<BatchExpr>,
        conversion: Conversion,
    },
    /// A function, called for each row.
    Call {
        function: BoundFunction,
        args: Vec<BatchExpr>,
    },
}

/// The conversion of a branch of CASE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unified {
    AsIs,
    Decimal(u8),
}

/// Compiles expressions of one pipeline.
pub struct ExprCompiler<'a> {
    /// The slot of a register that the pipeline sets.
    pub slot_of: &'a dyn Fn(plan::Register) -> Option<usize>,
    /// Takes an expression that reads no column of the pipeline; `None` when it must not be computed in advance.
    pub constant: &'a mut dyn FnMut(&Expr) -> Option<usize>,
    /// Functions.
    pub registry: &'a Registry,
    /// The context that functions are bound with.
    pub bind: &'a BindContext,
}

fn is_number(ty: &DataType) -> bool {
    matches!(ty.kind, TypeKind::Decimal) || ty.is_integer()
}

/// Whether columns hold a type's values in their usual form, and conversions need only the values and their type.
fn is_plain(ty: &DataType) -> bool {
    let is_datetime = matches!(ty.kind, TypeKind::Date | TypeKind::DateTime | TypeKind::Time);
    is_number(ty) || ty.is_string() || is_datetime || ty.kind == TypeKind::Double
}

/// Whether values of a type are compared as a kind without any conversion that could warn.
fn compares_as(ty: &DataType, kind: ComparisonKind) -> bool {
    match kind {
        ComparisonKind::Integer => {
            ty.is_integer() || matches!(ty.kind, TypeKind::Year | TypeKind::Null)
        }
        ComparisonKind::Decimal => is_number(ty),
        ComparisonKind::Double => {
            ty.is_integer() || matches!(ty.kind, TypeKind::Double | TypeKind::Float)
        }
        ComparisonKind::String(_) => ty.is_string() || ty.as_fixed().is_some(),
        ComparisonKind::DateTime => {
            matches!(ty.kind, TypeKind::Date | TypeKind::DateTime | TypeKind::Timestamp)
        }
        ComparisonKind::Time => ty.kind == TypeKind::Time,
        ComparisonKind::Json => false,
    }
}

impl ExprCompiler<'_> {
    fn boxed(&mut self, expr: &Expr) -> Option<Box<BatchExpr>> {
        self.expr(expr).map(Box::new)
    }

    /// `None`: it is a case for the row program.
    pub fn expr(&mut self, expr: &Expr) -> Option<BatchExpr> {
        if let Some(constant) = (self.constant)(expr) {
            return Some(BatchExpr::Constant(constant));
        }
        Some(match expr {
            Expr::Column { register, .. } => BatchExpr::Column((self.slot_of)(*register)?),
            Expr::Unary { op, operand, .. } => match op {
                UnaryOp::Not => BatchExpr::Not(self.truth(operand)?),
                UnaryOp::IsNull | UnaryOp::IsNotNull => BatchExpr::IsNull {
                    operand: self.boxed(operand)?,
                    negated: *op == UnaryOp::IsNotNull,
                },
                _ => return None,
            },
            Expr::Binary { op, left, right, collation, ty } => {
                self.binary(*op, left, right, *collation, ty)?
            }
            Expr::Between { operand, low, high, negated, collation } => {
                let low = self.compare(BinaryOp::GreaterOrEqual, operand, low, *collation)?;
                let high = self.compare(BinaryOp::LessOrEqual, operand, high, *collation)?;
                let inside = BatchExpr::And(Box::new(low), Box::new(high));
                if *negated { BatchExpr::Not(Box::new(inside)) } else { inside }
            }
            Expr::InList { operand, list, negated, collation } => {
                let ty = operand.ty();
                let kind_of = |item: &Expr| {
                    ComparisonKind::for_types(&ty, &item.ty()).with_collation(*collation)
                };
                let kind = kind_of(list.first()?);
                let fits = |item: &Expr| kind_of(item) == kind && compares_as(&item.ty(), kind);
                if !compares_as(&ty, kind) || !list.iter().all(fits) {
                    return None;
                }
                let items = list.iter().map(|item| self.expr(item));
                let list = items.collect::<Option<Vec<_>>>()?;
                BatchExpr::InList { operand: self.boxed(operand)?, list, negated: *negated, kind }
            }
            Expr::Like { operand, pattern, escape: None, negated, collation } => {
                let no_escapes = types::SqlMode::NO_BACKSLASH_ESCAPES;
                if !operand.ty().is_string() || self.bind.sql_mode.contains(no_escapes) {
                    return None;
                }
                BatchExpr::Like {
                    operand: self.boxed(operand)?,
                    pattern: (self.constant)(pattern)?,
                    negated: *negated,
                    collation: *collation,
                }
            }
            Expr::Case { operand: None, branches, otherwise, ty, .. } => {
                self.case(branches, otherwise.as_deref(), ty)?
            }
            Expr::FirstNotNull { parts, ty } => {
                let unified = unified(ty);
                if !parts.iter().all(|part| fits_branch(&part.ty(), ty, unified)) {
                    return None;
                }
                let parts = parts.iter().map(|part| self.expr(part)).collect::<Option<Vec<_>>>()?;
                BatchExpr::FirstNotNull { parts, unified }
            }
            Expr::Cast { operand, kind, ty } => self.cast(operand, *kind, ty)?,
            Expr::Function { function, args, .. } => self.call(*function, args)?,
            _ => return None,
        })
    }

    fn cast(&mut self, operand: &Expr, kind: CastKind, ty: &DataType) -> Option<BatchExpr> {
        let from = operand.ty();
        let conversion = match kind {
            CastKind::TimestampToLocal if from.kind == TypeKind::Timestamp => Conversion::Local,
            CastKind::Explicit | CastKind::Implicit if is_plain(&from) && is_plain(ty) => {
                Conversion::Cast(from, ty.clone())
            }
            _ => return None,
        };
        Some(BatchExpr::Convert { operand: self.boxed(operand)?, conversion })
    }

    /// A function of its arguments alone: it may run on any thread.
    fn call(&mut self, function: FunctionRef, args: &[Expr]) -> Option<BatchExpr> {
        let traits = function.traits;
        if traits.volatility != Volatility::Immutable || traits.threads == Threads::One {
            return None;
        }
        let function =
            self.registry.function(function.name)?.bind(self.bind, &arg_infos(args)).ok()?;
        let mut compiled = Vec::with_capacity(args.len());
        for (at, arg) in args.iter().enumerate() {
            let from = arg.ty();
            let operand = self.expr(arg)?;
            compiled.push(match trimmed(function.coercion(at).clone(), &from) {
                Coercion::AsIs => operand,
                Coercion::Json | Coercion::To(_) => return None,
                coercion if is_plain(&from) => BatchExpr::Convert {
                    operand: Box::new(operand),
                    conversion: Conversion::Argument(from, coercion),
                },
                _ => return None,
            });
        }
        Some(BatchExpr::Call { function, args: compiled })
    }

    /// An operand of a logical operator: only integers and truth values.
    fn truth(&mut self, expr: &Expr) -> Option<Box<BatchExpr>> {
        if !expr.ty().is_integer() {
            return None;
        }
        self.boxed(expr)
    }

    fn binary(
        &mut self,
        op: BinaryOp,
        left: &Expr,
        right: &Expr,
        collation: CollationId,
        ty: &DataType,
    ) -> Option<BatchExpr> {
        use BinaryOp::*;
        match op {
            Add | Subtract | Multiply | Divide | Modulo => {
                let numbers = Numbers::of(ty);
                let fits = |ty: &DataType| match numbers {
                    Numbers::Integer { .. } => ty.is_integer(),
                    Numbers::Decimal => is_number(ty),
                    Numbers::Double => {
                        ty.is_integer() || matches!(ty.kind, TypeKind::Double | TypeKind::Float)
                    }
                };
                let divides = matches!(op, Divide | Modulo);
                let division_fits = !divides
                    || matches!(numbers, Numbers::Integer { .. }) && op == Modulo
                    || numbers == Numbers::Decimal;
                // A negative result would be an error.
                let may_fail = op == Subtract && ty.unsigned && matches!(numbers, Numbers::Decimal);
                if !fits(&left.ty()) || !fits(&right.ty()) || !division_fits || may_fail {
                    return None;
                }
                let (left, right) = (self.boxed(left)?, self.boxed(right)?);
                Some(BatchExpr::Arithmetic { op, left, right, numbers, decimals: ty.decimals })
            }
            Equal | NotEqual | Less | LessOrEqual | Greater | GreaterOrEqual => {
                self.compare(op, left, right, collation)
            }
            And => Some(BatchExpr::And(self.truth(left)?, self.truth(right)?)),
            Or => Some(BatchExpr::Or(self.truth(left)?, self.truth(right)?)),
            _ => None,
        }
    }

    fn compare(
        &mut self,
        op: BinaryOp,
        left: &Expr,
        right: &Expr,
        collation: CollationId,
    ) -> Option<BatchExpr> {
        let (left_ty, right_ty) = (left.ty(), right.ty());
        let kind = ComparisonKind::for_types(&left_ty, &right_ty).with_collation(collation);
        if !compares_as(&left_ty, kind) || !compares_as(&right_ty, kind) {
            return None;
        }
        let (left, right) = (self.boxed(left)?, self.boxed(right)?);
        Some(BatchExpr::Compare { op, left, right, kind })
    }

    fn case(
        &mut self,
        branches: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
        ty: &DataType,
    ) -> Option<BatchExpr> {
        let unified = unified(ty);
        let fits = |value: &Expr| fits_branch(&value.ty(), ty, unified);
        let mut rest = match otherwise {
            Some(value) if !fits(value) => return None,
            Some(value) => Some(self.boxed(value)?),
            None => None,
        };
        for (condition, value) in branches.iter().rev() {
            if !fits(value) {
                return None;
            }
            rest = Some(Box::new(BatchExpr::If {
                condition: self.truth(condition)?,
                then: self.boxed(value)?,
                otherwise: rest,
                unified,
            }));
        }
        rest.map(|rest| *rest)
    }
}

/// How branches come to a common type.
fn unified(ty: &DataType) -> Unified {
    let is_decimal = ty.kind == TypeKind::Decimal;
    if is_decimal { Unified::Decimal(ty.decimals) } else { Unified::AsIs }
}

/// Whether a branch of type `from` needs no other conversion.
fn fits_branch(from: &DataType, ty: &DataType, unified: Unified) -> bool {
    from.kind == TypeKind::Null
        || match unified {
            Unified::Decimal(_) => is_number(from),
            Unified::AsIs if ty.is_integer() => from.is_integer() && from.unsigned == ty.unsigned,
            Unified::AsIs => ty.is_string() && from.is_string(),
        }
}

/// A column of the batch, or one value for all rows.
pub enum Operand<'a> {
    Column(Cow<'a, Column>),
    /// The only value of a column.
    Single(&'a Column),
}

impl Operand<'_> {
    /// The column itself, or the column that a constant is kept in.
    pub fn source(&self) -> &Column {
        match self {
            Operand::Column(column) => column,
            Operand::Single(column) => column,
        }
    }

    /// Steps from row to row: 0 for a single value.
    pub(super) fn step(&self) -> usize {
        match self {
            Operand::Column(_) => 1,
            Operand::Single(_) => 0,
        }
    }

    /// As a column of `rows` values.
    pub fn into_column(self, rows: usize) -> Fit<Column> {
        match self {
            Operand::Column(column) => Ok(column.into_owned()),
            Operand::Single(column) => column.gather(&vec![0; rows]),
        }
    }
}

/// Truth of a row.
pub(super) const FALSE: u8 = 0;
pub(super) const TRUE: u8 = 1;
pub(super) const UNKNOWN: u8 = 2;

impl BatchExpr {
    /// The values for every row of the batch.
    pub fn eval<'a>(&self, batch: &'a Batch, env: &'a Env<'_>) -> Fit<Operand<'a>> {
        Ok(match self {
            BatchExpr::Column(slot) => Operand::Column(Cow::Borrowed(batch.column(*slot)?)),
            BatchExpr::Constant(index) => Operand::Single(env.constants.get(*index).ok_or(Unfit)?),
            BatchExpr::Arithmetic { op, left, right, numbers, decimals } => {
                let left = left.eval(batch, env)?;
                let right = right.eval(batch, env)?;
                let data = arithmetic(*op, &left, &right, *numbers, *decimals, batch.rows)?;
                let nulls = either_null(&left, &right, batch.rows);
                Operand::Column(Cow::Owned(Column { data, nulls }))
            }
            BatchExpr::If { condition, then, otherwise, unified } => {
                let truths = condition.truths(batch, env)?;
                let then = then.eval(batch, env)?;
                let otherwise =
                    otherwise.as_ref().map(|other| other.eval(batch, env)).transpose()?;
                let column = choose(&truths, &then, otherwise.as_ref(), *unified)?;
                Operand::Column(Cow::Owned(column))
            }
            BatchExpr::FirstNotNull { parts, unified } => {
                Operand::Column(Cow::Owned(first_not_null(parts, *unified, batch, env)?))
            }
            BatchExpr::Convert { operand, conversion } => {
                Operand::Column(Cow::Owned(convert(operand, conversion, batch, env)?))
            }
            BatchExpr::Call { function, args } => {
                Operand::Column(Cow::Owned(call(function, args, batch, env)?))
            }
            _ => {
                let truths = self.truths(batch, env)?;
                let mut column = Column::new(Data::Int(
                    truths.iter().map(|truth| i64::from(*truth == TRUE)).collect(),
                ));
                if truths.contains(&UNKNOWN) {
                    column.nulls = Some(truths.iter().map(|truth| *truth == UNKNOWN).collect());
                }
                Operand::Column(Cow::Owned(column))
            }
        })
    }

    /// The rows for which it is true.
    pub fn selection(&self, batch: &Batch, env: &Env<'_>) -> Fit<Vec<u32>> {
        let truths = self.truths(batch, env)?;
        let mut rows = Vec::with_capacity(truths.len());
        rows.extend((0..truths.len() as u32).filter(|row| truths[*row as usize] == TRUE));
        Ok(rows)
    }

    fn truths(&self, batch: &Batch, env: &Env<'_>) -> Fit<Vec<u8>> {
        Ok(match self {
            BatchExpr::Compare { op, left, right, kind } => {
                let left = left.eval(batch, env)?;
                let right = right.eval(batch, env)?;
                compare(*op, &left, &right, *kind, batch.rows)?
            }
            BatchExpr::And(left, right) => {
                both(left.truths(batch, env)?, &right.truths(batch, env)?)
            }
            BatchExpr::Or(left, right) => {
                either(left.truths(batch, env)?, &right.truths(batch, env)?)
            }
            BatchExpr::Not(operand) => {
                let mut truths = operand.truths(batch, env)?;
                truths.iter_mut().for_each(|truth| *truth = negated(*truth));
                truths
            }
            BatchExpr::IsNull { operand, negated } => {
                let operand = operand.eval(batch, env)?;
                let (source, step) = (operand.source(), operand.step());
                (0..batch.rows)
                    .map(|row| u8::from(source.is_null(row * step) != *negated))
                    .collect()
            }
            BatchExpr::InList { operand, list, negated: not, kind } => {
                let operand = operand.eval(batch, env)?;
                if let Some(truths) = in_set(&operand, list, *kind, *not, batch.rows, env)? {
                    return Ok(truths);
                }
                let mut truths = vec![FALSE; batch.rows];
                for item in list {
                    let item = item.eval(batch, env)?;
                    let equal = compare(BinaryOp::Equal, &operand, &item, *kind, batch.rows)?;
                    truths = either(truths, &equal);
                }
                if *not {
                    truths.iter_mut().for_each(|truth| *truth = negated(*truth));
                }
                truths
            }
            BatchExpr::Like { operand, pattern, negated, collation } => {
                let operand = operand.eval(batch, env)?;
                let pattern = env.constants.get(*pattern).ok_or(Unfit)?;
                like(&operand, pattern, *negated, *collation, batch.rows)?
            }
            _ => truths_of(&self.eval(batch, env)?, batch.rows)?,
        })
    }
}

/// Three-valued AND, row by row.
fn both(mut truths: Vec<u8>, others: &[u8]) -> Vec<u8> {
    for (truth, other) in truths.iter_mut().zip(others) {
        *truth = match (*truth, *other) {
            (FALSE, _) | (_, FALSE) => FALSE,
            (TRUE, TRUE) => TRUE,
            _ => UNKNOWN,
        };
    }
    truths
}

/// Three-valued OR, row by row.
fn either(mut truths: Vec<u8>, others: &[u8]) -> Vec<u8> {
    for (truth, other) in truths.iter_mut().zip(others) {
        *truth = match (*truth, *other) {
            (TRUE, _) | (_, TRUE) => TRUE,
            (FALSE, FALSE) => FALSE,
            _ => UNKNOWN,
        };
    }
    truths
}

/// The truth of integers; other values are for the row program.
fn truths_of(value: &Operand<'_>, rows: usize) -> Fit<Vec<u8>> {
    let (source, step) = (value.source(), value.step());
    let is_true = |row: usize| match &source.data {
        Data::Int(values) => Ok(values[row] != 0),
        Data::UInt(values) => Ok(values[row] != 0),
        _ => Err(Unfit),
    };
    let truth = |row: usize| match source.is_null(row * step) {
        true => Ok(UNKNOWN),
        false => is_true(row * step).map(u8::from),
    };
    (0..rows).map(truth).collect()
}

fn negated(truth: u8) -> u8 {
    match truth {
        FALSE => TRUE,
        TRUE => FALSE,
        other => other,
    }
}

fn either_null(left: &Operand<'_>, right: &Operand<'_>, rows: usize) -> Option<Vec<bool>> {
    let (a, b) = (left.source(), right.source());
    if a.nulls.is_none() && b.nulls.is_none() {
        return None;
    }
    let (step_a, step_b) = (left.step(), right.step());
    Some((0..rows).map(|row| a.is_null(row * step_a) || b.is_null(row * step_b)).collect())
}

/// Exact numbers of an operand with their scale.
fn decimals_of(column: &Column) -> Fit<(Cow<'_, [i128]>, u8)> {
    Ok(match &column.data {
        Data::Decimal(values, scale) => (Cow::Borrowed(values.as_slice()), *scale),
        Data::Int(values) => (values.iter().map(|v| i128::from(*v)).collect(), 0),
        Data::UInt(values) => (values.iter().map(|v| i128::from(*v)).collect(), 0),
        _ => return Err(Unfit),
    })
}

fn doubles_of(column: &Column) -> Fit<Cow<'_, [f64]>> {
    Ok(match &column.data {
        Data::Double(values) => Cow::Borrowed(values.as_slice()),
        Data::Int(values) => values.iter().map(|v| *v as f64).collect(),
        Data::UInt(values) => values.iter().map(|v| *v as f64).collect(),
        _ => return Err(Unfit),
    })
}

fn rescaled(values: Cow<'_, [i128]>, by: u8) -> Fit<Cow<'_, [i128]>> {
    if by == 0 {
        return Ok(values);
    }
    let factor = 10i128.checked_pow(by.into()).ok_or(Unfit)?;
    let scaled = values.iter().map(|value| value.checked_mul(factor));
    Ok(Cow::Owned(scaled.collect::<Option<Vec<_>>>().ok_or(Unfit)?))
}

fn arithmetic(
    op: BinaryOp,
    left: &Operand<'_>,
    right: &Operand<'_>,
    numbers: Numbers,
    decimals: u8,
    rows: usize,
) -> Fit<Data> {
    let (a, b, step_a, step_b) = (left.source(), right.source(), left.step(), right.step());
    // A NULL's place may hold anything: it must not overflow.
    let skip = |row: usize| a.is_null(row * step_a) || b.is_null(row * step_b);
    match numbers {
        Numbers::Integer { unsigned } => {
            integers(op, (a, step_a), (b, step_b), unsigned, rows, skip)
        }
        Numbers::Decimal => {
            let ((x, s), (y, t)) = (decimals_of(a)?, decimals_of(b)?);
            if matches!(op, BinaryOp::Divide | BinaryOp::Modulo) {
                return divide(op, (&x, s, step_a), (&y, t, step_b), decimals, rows, skip);
            }
            let (x, y, scale) = match op {
                BinaryOp::Multiply => (x, y, s.checked_add(t).ok_or(Unfit)?),
                _ => {
                    let scale = s.max(t);
                    (rescaled(x, scale - s)?, rescaled(y, scale - t)?, scale)
                }
            };
            if scale > types::decimal::MAX_SCALE {
                return Err(Unfit);
            }
            let mut out = Vec::with_capacity(rows);
            for row in 0..rows {
                let (x, y) = (x[row * step_a], y[row * step_b]);
                let result = match op {
                    BinaryOp::Add => x.checked_add(y),
                    BinaryOp::Subtract => x.checked_sub(y),
                    _ => narrow_product(x, y),
                };
                match result {
                    Some(result) => out.push(result),
                    None if skip(row) => out.push(0),
                    None => return Err(Unfit),
                }
            }
            Ok(Data::Decimal(out, scale))
        }
        Numbers::Double => {
            let (x, y) = (doubles_of(a)?, doubles_of(b)?);
            let mut out = Vec::with_capacity(rows);
            for row in 0..rows {
                let (x, y) = (x[row * step_a], y[row * step_b]);
                let result = match op {
                    BinaryOp::Add => x + y,
                    BinaryOp::Subtract => x - y,
                    BinaryOp::Multiply => x * y,
                    _ => return Err(Unfit),
                };
                if !result.is_finite() && !skip(row) {
                    return Err(Unfit);
                }
                out.push(result);
            }
            Ok(Data::Double(out))
        }
    }
}

/// The product, by one multiplication where both factors are short.
#[inline]
fn narrow_product(x: i128, y: i128) -> Option<i128> {
    match (i64::try_from(x), i64::try_from(y)) {
        (Ok(x), Ok(y)) => Some(i128::from(x) * i128::from(y)),
        _ => x.checked_mul(y),
    }
}

fn integers(
    op: BinaryOp,
    (a, step_a): (&Column, usize),
    (b, step_b): (&Column, usize),
    unsigned: bool,
    rows: usize,
    skip: impl Fn(usize) -> bool,
) -> Fit<Data> {
    let ((x, _), (y, _)) = (decimals_of(a)?, decimals_of(b)?);
    let mut out = Vec::with_capacity(rows);
    for row in 0..rows {
        let (x, y) = (x[row * step_a], y[row * step_b]);
        let number = match op {
            BinaryOp::Add => Some(x + y),
            BinaryOp::Subtract => Some(x - y),
            BinaryOp::Multiply => x.checked_mul(y),
            BinaryOp::Modulo if y != 0 => Some(x % y),
            _ => None,
        };
        match number {
            Some(number) => out.push(number),
            None if skip(row) => out.push(0),
            None => return Err(Unfit),
        }
    }
    // The place of a NULL may hold a value that does not fit.
    let narrow = |row: usize, fits: bool| if fits || skip(row) { Ok(()) } else { Err(Unfit) };
    let numbers = out.iter().enumerate();
    Ok(match unsigned {
        true => Data::UInt(
            numbers
                .map(|(row, n)| narrow(row, u64::try_from(*n).is_ok()).map(|()| *n as u64))
                .collect::<Fit<_>>()?,
        ),
        false => Data::Int(
            numbers
                .map(|(row, n)| narrow(row, i64::try_from(*n).is_ok()).map(|()| *n as i64))
                .collect::<Fit<_>>()?,
        ),
    })
}

/// Quotients and remainders of decimals, one at a time by the exact rule.
fn divide(
    op: BinaryOp,
    (x, s, step_a): (&[i128], u8, usize),
    (y, t, step_b): (&[i128], u8, usize),
    decimals: u8,
    rows: usize,
    skip: impl Fn(usize) -> bool,
) -> Fit<Data> {
    let mut out = Vec::with_capacity(rows);
    let mut scale = None;
    for row in 0..rows {
        if skip(row) {
            out.push(0);
            continue;
        }
        let left = Decimal::from_i128(x[row * step_a], s);
        let right = Decimal::from_i128(y[row * step_b], t);
        // The row program warns of division by zero, and knows the increment of the session.
        let result = match op {
            BinaryOp::Divide if decimals > s => left.div(&right, u32::from(decimals - s)),
            BinaryOp::Modulo => left.rem(&right),
            _ => None,
        };
        let (number, own) = result.ok_or(Unfit)?.as_i128().ok_or(Unfit)?;
        if *scale.get_or_insert(own) != own || op == BinaryOp::Divide && own != decimals {
            return Err(Unfit);
        }
        out.push(number);
    }
    Ok(Data::Decimal(out, scale.unwrap_or(decimals)))
}

/// Compares each row's values by a rule that never fails.
fn each_row(
    op: BinaryOp,
    left: &Operand<'_>,
    right: &Operand<'_>,
    rows: usize,
    order: impl Fn(usize, usize) -> Ordering,
) -> Vec<u8> {
    let (step_a, step_b) = (left.step(), right.step());
    let (a, b) = (left.source(), right.source());
    if a.nulls.is_none() && b.nulls.is_none() {
        return (0..rows).map(|r| u8::from(answers(op, order(r * step_a, r * step_b)))).collect();
    }
    let truth = |row: usize| match a.is_null(row * step_a) || b.is_null(row * step_b) {
        true => UNKNOWN,
        false => u8::from(answers(op, order(row * step_a, row * step_b))),
    };
    (0..rows).map(truth).collect()
}

fn compare(
    op: BinaryOp,
    left: &Operand<'_>,
    right: &Operand<'_>,
    kind: ComparisonKind,
    rows: usize,
) -> Fit<Vec<u8>> {
    let (a, b) = (left.source(), right.source());
    macro_rules! ordered {
        ($a:ident, $b:ident) => {
            each_row(op, left, right, rows, |x, y| $a[x].cmp(&$b[y]))
        };
    }
    Ok(match (&a.data, &b.data, kind) {
        (Data::Int(a), Data::Int(b), ComparisonKind::Integer) => ordered!(a, b),
        (Data::UInt(a), Data::UInt(b), ComparisonKind::Integer) => ordered!(a, b),
        (Data::Date(a), Data::Date(b), ComparisonKind::DateTime) => ordered!(a, b),
        (Data::DateTime(a), Data::DateTime(b), ComparisonKind::DateTime) => ordered!(a, b),
        (Data::Time(a), Data::Time(b), ComparisonKind::Time) => ordered!(a, b),
        (Data::Texts(a), Data::Texts(b), ComparisonKind::String(collation)) => {
            let collation = charset::collation_or_binary(collation);
            let equality = matches!(op, BinaryOp::Equal | BinaryOp::NotEqual);
            each_row(op, left, right, rows, |x, y| {
                compare_texts(collation, a.get(x), b.get(y), equality)
            })
        }
        (_, _, ComparisonKind::Integer | ComparisonKind::Decimal) => {
            let ((x, s), (y, t)) = (decimals_of(a)?, decimals_of(b)?);
            let scale = s.max(t);
            let (x, y) = (rescaled(x, scale - s)?, rescaled(y, scale - t)?);
            ordered!(x, y)
        }
        (_, _, ComparisonKind::Double) => {
            let (x, y) = (doubles_of(a)?, doubles_of(b)?);
            each_row(op, left, right, rows, |a, b| {
                x[a].partial_cmp(&y[b]).unwrap_or(Ordering::Equal)
            })
        }
        (_, _, ComparisonKind::DateTime) => {
            let (x, y) = (datetimes_of(a)?, datetimes_of(b)?);
            ordered!(x, y)
        }
        _ => return Err(Unfit),
    })
}

/// Dates and datetimes as packed datetimes.
fn datetimes_of(column: &Column) -> Fit<Cow<'_, [u64]>> {
    Ok(match &column.data {
        Data::DateTime(values) => Cow::Borrowed(values.as_slice()),
        Data::Date(values) => values
            .iter()
            .map(|date| Date::from_packed(*date).map_or(0, |date| date.at_midnight().packed()))
            .collect(),
        _ => return Err(Unfit),
    })
}

/// Equal bytes are equal texts; only unequal ones need the collation.
#[inline]
fn compare_texts(collation: &Collation, a: &[u8], b: &[u8], equality: bool) -> Ordering {
    if equality && a == b {
        return Ordering::Equal;
    }
    collation.compare(a, b)
}

fn like(
    operand: &Operand<'_>,
    pattern: &Column,
    negated: bool,
    collation: CollationId,
    rows: usize,
) -> Fit<Vec<u8>> {
    if pattern.is_null(0) {
        return Ok(vec![UNKNOWN; rows]);
    }
    let (source, step) = (operand.source(), operand.step());
    let (Data::Texts(texts), Data::Texts(pattern)) = (&source.data, &pattern.data) else {
        return Err(Unfit);
    };
    let collation = charset::collation_or_binary(collation);
    let pattern = pattern.get(0);
    let truth = |row: usize| match source.is_null(row) {
        true => UNKNOWN,
        false => u8::from(collation.like(pattern, texts.get(row), Some('\\')) != negated),
    };
    Ok((0..rows).map(|row| truth(row * step)).collect())
}

/// The rows of one column or the other.
fn first_not_null(
    parts: &[BatchExpr],
    unified: Unified,
    batch: &Batch,
    env: &Env<'_>,
) -> Fit<Column> {
    let (last, first) = parts.split_last().ok_or(Unfit)?;
    let mut rest = last.eval(batch, env)?;
    for part in first.iter().rev() {
        let value = part.eval(batch, env)?;
        let (source, step) = (value.source(), value.step());
        let known: Vec<u8> =
            (0..batch.rows).map(|row| u8::from(!source.is_null(row * step))).collect();
        rest = Operand::Column(Cow::Owned(choose(&known, &value, Some(&rest), unified)?));
    }
    rest.into_column(batch.rows)
}

fn choose(
    truths: &[u8],
    then: &Operand<'_>,
    otherwise: Option<&Operand<'_>>,
    unified: Unified,
) -> Fit<Column> {
    let unify = |operand: &Operand<'_>| -> Fit<Column> {
        let source = operand.source();
        match unified {
            Unified::AsIs => Ok(source.clone()),
            Unified::Decimal(_) if source.nulls.as_ref().is_some_and(|n| n.iter().all(|n| *n)) => {
                Ok(source.clone())
            }
            Unified::Decimal(scale) => {
                let (values, own) = decimals_of(source)?;
                let values = rescaled(values, scale.checked_sub(own).ok_or(Unfit)?)?;
                let data = Data::Decimal(values.into_owned(), scale);
                Ok(Column { data, nulls: source.nulls.clone() })
            }
        }
    };
    let (then_step, then) = (then.step(), unify(then)?);
    let (other_step, other) = match otherwise {
        Some(operand) => (operand.step(), unify(operand)?),
        None => (0, Column::single(&Value::Null)?),
    };
    let mut out = Column::new(match &then.nulls {
        Some(nulls) if nulls.iter().all(|null| *null) => other.data.empty_like(),
        _ => then.data.empty_like(),
    });
    for (row, truth) in truths.iter().enumerate() {
        let (from, at) = match *truth == TRUE {
            true => (&then, row * then_step),
            false => (&other, row * other_step),
        };
        match from.is_null(at) {
            true => out.push_null(),
            false => out.append_rows(from, &[at as u32])?,
        }
    }
    Ok(out)
}
