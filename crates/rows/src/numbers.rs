//! The operators of arithmetic and comparison, by the types that the binder chose.

use plan::BinaryOp;
use types::{DataType, TypeKind, Value};

/// The kind of numbers that an operation works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    Integer { unsigned: bool },
    Decimal,
    Double,
}

impl Numbers {
    /// From the result type that the binder chose.
    pub fn of(ty: &DataType) -> Numbers {
        match ty.kind {
            TypeKind::Double | TypeKind::Float => Numbers::Double,
            TypeKind::Decimal => Numbers::Decimal,
            _ => Numbers::Integer { unsigned: ty.unsigned },
        }
    }
}

/// The comparison that answers `a op b` from their order.
pub fn answers(op: BinaryOp, order: std::cmp::Ordering) -> bool {
    match op {
        BinaryOp::Equal | BinaryOp::NullSafeEqual => order.is_eq(),
        BinaryOp::NotEqual => order.is_ne(),
        BinaryOp::Less => order.is_lt(),
        BinaryOp::LessOrEqual => order.is_le(),
        BinaryOp::Greater => order.is_gt(),
        BinaryOp::GreaterOrEqual => order.is_ge(),
        _ => false,
    }
}

/// The value, if it is a positive number.
pub fn positive(value: &Value) -> Option<u64> {
    match value {
        Value::Int(number) => u64::try_from(*number).ok().filter(|number| *number > 0),
        Value::UInt(number) => Some(*number).filter(|number| *number > 0),
        Value::Double(number) if *number >= 1.0 => Some(*number as u64),
        _ => None,
    }
}

/// The id in the column's type; `None` when it does not fit.
pub fn store_id(id: u64, ty: &DataType) -> Option<Value> {
    if !ty.is_integer() {
        return Some(Value::Double(id as f64));
    }
    let (_, high) = ty.integer_range()?;
    if id > high {
        return None;
    }
    Some(if ty.unsigned { Value::UInt(id) } else { Value::Int(id as i64) })
}
