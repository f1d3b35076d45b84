//! The operators of arithmetic and comparison, by the types that the binder chose.

use plan::BinaryOp;
use types::{DataType, TypeKind};

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
