//! `d IS NULL` of a DATE or DATETIME column that is NOT NULL: as a condition it is true for the zero date, too. The reference has the
//! rule for clients that read zero dates as NULL and search for them. It knows the tables of the query alone, not those inside of
//! derived tables and views.

use plan::{BinaryOp, Expr, Register, UnaryOp};
use types::temporal::{Date, DateTime};
use types::{CollationId, DataType, TypeKind, Value};

use crate::binder::Binder;
use crate::expr::{binary, logical};

impl Binder<'_> {
    /// Rewrites a condition of WHERE, and what it joins with AND.
    pub(crate) fn find_zero_dates(&self, predicate: &mut Expr) {
        if let Expr::Binary { op: BinaryOp::And, left, right, .. } = predicate {
            self.find_zero_dates(left);
            self.find_zero_dates(right);
            return;
        }
        if let Expr::Unary { op: UnaryOp::IsNull, operand, .. } = predicate
            && let Expr::Column { register, ty } = &**operand
            && let Some(zero) = zero_of(ty)
            && self.is_declared_not_null(*register)
        {
            let zero = Expr::literal(zero, ty.clone().with_nullable(false));
            let truth = DataType::boolean().with_nullable(ty.nullable);
            let nullable = ty.nullable;
            let column = (**operand).clone();
            let is_zero = binary(BinaryOp::Equal, column, zero, CollationId::BINARY, truth);
            // On the inner side of an outer join it may be NULL all the same.
            *predicate = match nullable {
                true => logical(BinaryOp::Or, predicate.clone(), is_zero),
                false => is_zero,
            };
        }
    }

    fn is_declared_not_null(&self, register: Register) -> bool {
        let block = self.blocks.last().map(|block| block.number);
        let instance = self.instances.iter().find(|instance| {
            let at = register.0.checked_sub(instance.base.0);
            at.is_some_and(|at| at < instance.columns) && Some(instance.block) == block
        });
        let column = instance.and_then(|instance| {
            self.tables[instance.table].columns.get((register.0 - instance.base.0) as usize)
        });
        column.is_some_and(|column| !column.ty.nullable)
    }
}

fn zero_of(ty: &DataType) -> Option<Value> {
    if ty.kind == TypeKind::Date {
        return Some(Value::Date(Date::ZERO));
    }
    (ty.kind == TypeKind::DateTime).then_some(Value::DateTime(DateTime::ZERO))
}
