//! Arithmetic and bit operations.

use errors::{Error, ErrorCode, Result};
use plan::{BinaryOp, UnaryOp};
use rows::convert;
use rows::numbers::Numbers;
use types::{DataType, Decimal, SqlBytes, SqlMode, TypeKind, Value};

use super::Code;
use crate::run::Run;

/// `left op right`, or `-left`.
pub(crate) struct Arithmetic {
    pub(crate) op: BinaryOp,
    pub(crate) left: Code,
    /// `None`: negation.
    pub(crate) right: Option<Code>,
    pub(crate) left_ty: DataType,
    pub(crate) right_ty: DataType,
    pub(crate) numbers: Numbers,
    pub(crate) ty: DataType,
    /// For error 1690.
    pub(crate) text: Box<str>,
}

impl Arithmetic {
    pub(crate) fn eval(&self, run: &mut Run<'_>) -> Result<Value> {
        let Some(right_code) = &self.right else { return self.negate(run) };
        if let Numbers::Integer { .. } = self.numbers
            && let (Some(Value::Int(left)), Some(Value::Int(right))) =
                (self.left.leaf(run), right_code.leaf(run))
        {
            let (left, right) = (i128::from(*left), i128::from(*right));
            return self.integers(left, right, run);
        }
        let left = self.left.eval(run)?;
        if left.is_null() {
            return Ok(Value::Null);
        }
        let right = right_code.eval(run)?;
        if right.is_null() {
            return Ok(Value::Null);
        }
        match self.numbers {
            Numbers::Integer { .. } => self.eval_integers(left, right, run),
            Numbers::Decimal => {
                let left = convert::to_decimal(&left, &self.left_ty, &mut run.function)?;
                let right = convert::to_decimal(&right, &self.right_ty, &mut run.function)?;
                self.decimals(&left, &right, run)
            }
            Numbers::Double => {
                let left = convert::to_double(&left, &self.left_ty, &mut run.function)?;
                let right = convert::to_double(&right, &self.right_ty, &mut run.function)?;
                self.doubles(left, right, run)
            }
        }
    }

    fn eval_integers(&self, left: Value, right: Value, run: &mut Run<'_>) -> Result<Value> {
        let inexact = |ty: &DataType| {
            matches!(ty.kind, TypeKind::Decimal | TypeKind::Double | TypeKind::Float)
                || ty.is_string()
        };
        if self.op == BinaryOp::IntegerDivide && (inexact(&self.left_ty) || inexact(&self.right_ty))
        {
            let left = convert::to_decimal(&left, &self.left_ty, &mut run.function)?;
            let right = convert::to_decimal(&right, &self.right_ty, &mut run.function)?;
            if right.is_zero() {
                return division_by_zero(run);
            }
            let quotient = left.div_integer(&right).ok_or_else(|| self.out_of_range())?;
            let (number, clamped) = if self.ty.unsigned {
                let (number, clamped) = quotient.to_u64();
                (Value::UInt(number), clamped)
            } else {
                let (number, clamped) = quotient.to_i64();
                (Value::Int(number), clamped)
            };
            return if clamped { Err(self.out_of_range()) } else { Ok(number) };
        }
        let left = convert::to_i128(&left, &self.left_ty, &mut run.function)?;
        let right = convert::to_i128(&right, &self.right_ty, &mut run.function)?;
        self.integers(left, right, run)
    }

    fn integers(&self, left: i128, right: i128, run: &mut Run<'_>) -> Result<Value> {
        let number = match self.op {
            BinaryOp::Add => left + right,
            BinaryOp::Subtract => left - right,
            // Both operands have at most 65 bits with sign.
            BinaryOp::Multiply => left.checked_mul(right).ok_or_else(|| self.out_of_range())?,
            BinaryOp::IntegerDivide | BinaryOp::Divide if right == 0 => {
                return division_by_zero(run);
            }
            BinaryOp::Modulo if right == 0 => return division_by_zero(run),
            BinaryOp::IntegerDivide | BinaryOp::Divide => left / right,
            BinaryOp::Modulo => left % right,
            _ => return Err(Error::internal("not an arithmetic operator")),
        };
        self.integer_result(number)
    }

    fn integer_result(&self, number: i128) -> Result<Value> {
        if self.ty.unsigned {
            u64::try_from(number).map(Value::UInt).map_err(|_| self.out_of_range())
        } else {
            i64::try_from(number).map(Value::Int).map_err(|_| self.out_of_range())
        }
    }

    fn decimals(&self, left: &Decimal, right: &Decimal, run: &mut Run<'_>) -> Result<Value> {
        let result = match self.op {
            BinaryOp::Add => left.add(right),
            BinaryOp::Subtract => left.sub(right),
            BinaryOp::Multiply => left.mul(right),
            _ if right.is_zero() => return division_by_zero(run),
            BinaryOp::Divide => {
                // Enough digits for the result type, whatever the operands' own scales.
                let wanted = u32::from(self.ty.decimals);
                let have = u32::from(left.scale());
                let increment = u32::from(run.function.div_precision_increment);
                left.div(right, wanted.saturating_sub(have).max(increment))
            }
            BinaryOp::IntegerDivide => left.div_integer(right),
            BinaryOp::Modulo => left.rem(right),
            _ => return Err(Error::internal("not an arithmetic operator")),
        };
        let result = result.ok_or_else(|| self.out_of_range())?;
        if self.ty.unsigned && result.is_negative() {
            return Err(self.out_of_range());
        }
        let result = if self.op == BinaryOp::Divide && result.scale() > self.ty.decimals {
            result.rescale(self.ty.decimals)
        } else {
            result
        };
        Ok(Value::Decimal(result))
    }

    fn doubles(&self, left: f64, right: f64, run: &mut Run<'_>) -> Result<Value> {
        let number = match self.op {
            BinaryOp::Add => left + right,
            BinaryOp::Subtract => left - right,
            BinaryOp::Multiply => left * right,
            _ if right == 0.0 => return division_by_zero(run),
            BinaryOp::Divide => left / right,
            BinaryOp::IntegerDivide => (left / right).trunc(),
            BinaryOp::Modulo => left % right,
            _ => return Err(Error::internal("not an arithmetic operator")),
        };
        if number.is_finite() { Ok(Value::Double(number)) } else { Err(self.out_of_range()) }
    }

    fn negate(&self, run: &mut Run<'_>) -> Result<Value> {
        let value = self.left.eval(run)?;
        if value.is_null() {
            return Ok(value);
        }
        match self.numbers {
            Numbers::Integer { .. } => {
                let number = convert::to_i128(&value, &self.left_ty, &mut run.function)?;
                self.integer_result(-number)
            }
            Numbers::Decimal => {
                let number = convert::to_decimal(&value, &self.left_ty, &mut run.function)?;
                Ok(Value::Decimal(number.neg()))
            }
            Numbers::Double => {
                let number = convert::to_double(&value, &self.left_ty, &mut run.function)?;
                Ok(Value::Double(-number))
            }
        }
    }

    #[cold]
    fn out_of_range(&self) -> Error {
        let kind = match self.numbers {
            Numbers::Integer { unsigned: true } => "BIGINT UNSIGNED",
            Numbers::Integer { unsigned: false } => "BIGINT",
            Numbers::Decimal if self.ty.unsigned => "DECIMAL UNSIGNED",
            Numbers::Decimal => "DECIMAL",
            Numbers::Double => "DOUBLE",
        };
        Error::with(ErrorCode::DATA_OUT_OF_RANGE, &[&kind, &self.text])
    }
}

/// NULL, with warning 1365 when the SQL mode requires it. The write path turns the warning into an error in strict mode.
#[cold]
fn division_by_zero(run: &mut Run<'_>) -> Result<Value> {
    if run.function.sql_mode.contains(SqlMode::ERROR_FOR_DIVISION_BY_ZERO) {
        if run.is_strict_write && run.function.sql_mode.is_strict() {
            return Err(Error::with(ErrorCode::DIVISION_BY_ZERO, &[]));
        }
        run.function.diagnostics.warn(ErrorCode::DIVISION_BY_ZERO, &[]);
    }
    Ok(Value::Null)
}

/// The kind of a bit operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BitOperator {
    Binary(BinaryOp),
    Not,
}

impl BitOperator {
    pub(crate) fn unary(op: UnaryOp) -> Option<BitOperator> {
        (op == UnaryOp::BitNot).then_some(BitOperator::Not)
    }
}

/// `&`, `|`, `^`, `<<`, `>>`, `~` on 64 bits, or on binary strings when the type is one.
pub(crate) struct BitOperation {
    pub(crate) op: BitOperator,
    pub(crate) left: Code,
    pub(crate) right: Option<Code>,
    pub(crate) left_ty: DataType,
    pub(crate) right_ty: DataType,
    pub(crate) ty: DataType,
}

impl BitOperation {
    pub(crate) fn eval(&self, run: &mut Run<'_>) -> Result<Value> {
        let left = self.left.eval(run)?;
        let right = self.right.as_ref().map(|right| right.eval(run)).transpose()?;
        if left.is_null() || right.as_ref().is_some_and(Value::is_null) {
            return Ok(Value::Null);
        }
        if self.ty.is_binary() {
            return self.eval_strings(&left, right.as_ref(), run);
        }
        let left = convert::to_bits(&left, &self.left_ty, &mut run.function)?;
        let right = match &right {
            Some(right) => convert::to_bits(right, &self.right_ty, &mut run.function)?,
            None => 0,
        };
        let shift = u32::try_from(right).ok().filter(|shift| *shift < 64);
        Ok(Value::UInt(match self.op {
            BitOperator::Not => !left,
            BitOperator::Binary(BinaryOp::BitAnd) => left & right,
            BitOperator::Binary(BinaryOp::BitOr) => left | right,
            BitOperator::Binary(BinaryOp::BitXor) => left ^ right,
            BitOperator::Binary(BinaryOp::ShiftLeft) => shift.map_or(0, |shift| left << shift),
            BitOperator::Binary(BinaryOp::ShiftRight) => shift.map_or(0, |shift| left >> shift),
            BitOperator::Binary(_) => return Err(Error::internal("not a bit operator")),
        }))
    }

    fn eval_strings(
        &self,
        left: &Value,
        right: Option<&Value>,
        run: &mut Run<'_>,
    ) -> Result<Value> {
        let left_bytes = plugin_api::kit::bytes(left);
        let combine = |operate: fn(u8, u8) -> u8| -> Result<Value> {
            let right = right.map_or(&[] as &[u8], plugin_api::kit::bytes);
            if left_bytes.len() != right.len() {
                return Err(Error::with(ErrorCode(3513), &[]));
            }
            let bytes: Vec<u8> =
                left_bytes.iter().zip(right).map(|(a, b)| operate(*a, *b)).collect();
            Ok(Value::Bytes(SqlBytes::from(bytes)))
        };
        match self.op {
            BitOperator::Not => {
                let bytes: Vec<u8> = left_bytes.iter().map(|byte| !byte).collect();
                Ok(Value::Bytes(SqlBytes::from(bytes)))
            }
            BitOperator::Binary(BinaryOp::BitAnd) => combine(|a, b| a & b),
            BitOperator::Binary(BinaryOp::BitOr) => combine(|a, b| a | b),
            BitOperator::Binary(BinaryOp::BitXor) => combine(|a, b| a ^ b),
            BitOperator::Binary(op) => {
                let count = match right {
                    Some(right) => convert::to_bits(right, &self.right_ty, &mut run.function)?,
                    None => 0,
                };
                Ok(shifted(left_bytes, count, op == BinaryOp::ShiftLeft))
            }
        }
    }
}

/// A binary string shifted as one large number.
fn shifted(bytes: &[u8], count: u64, left: bool) -> Value {
    let bits = bytes.len() as u64 * 8;
    let mut out = vec![0u8; bytes.len()];
    if count < bits {
        let (whole, part) = ((count / 8) as usize, (count % 8) as u32);
        for (at, place) in out.iter_mut().enumerate() {
            // Each result byte takes bits of two neighbours.
            let pair = |near: Option<u8>, far: Option<u8>| {
                (u16::from(near.unwrap_or(0)), u16::from(far.unwrap_or(0)))
            };
            let get = |index: Option<usize>| index.and_then(|index| bytes.get(index)).copied();
            *place = if left {
                let (near, far) = pair(get(Some(at + whole)), get(Some(at + whole + 1)));
                ((near << 8 | far) << part >> 8) as u8
            } else {
                let near = get(at.checked_sub(whole));
                let far = get(at.checked_sub(whole + 1));
                let (near, far) = pair(near, far);
                ((far << 8 | near) >> part) as u8
            };
        }
    }
    Value::Bytes(SqlBytes::from(out))
}
