//! Expressions as error messages show them: columns by name, without implicit conversions.

use std::collections::HashMap;
use std::sync::Arc;

use plan::{CastKind, Expr, UnaryOp};
use types::{DataType, TypeKind};

/// Column names of registers.
pub(crate) type Names = HashMap<usize, Arc<str>>;

/// The text of an expression.
pub(crate) fn text(expr: &Expr, names: &Names) -> String {
    match expr {
        Expr::Column { register, .. } => match names.get(&(register.0 as usize)) {
            Some(name) => name.to_string(),
            None => plan::print::expr(expr),
        },
        Expr::Binary { op, left, right, .. } => {
            let operator = plan::print::operator(*op);
            format!("({} {operator} {})", text(left, names), text(right, names))
        }
        Expr::Unary { op: UnaryOp::Negate, operand, .. } => match &**operand {
            Expr::Literal { .. } => format!("-{}", text(operand, names)),
            operand => format!("-({})", text(operand, names)),
        },
        Expr::Cast { operand, kind: CastKind::Explicit, ty } => {
            format!("cast({} as {})", text(operand, names), cast_name(ty))
        }
        Expr::Cast { operand, .. } | Expr::Collate { operand, .. } => text(operand, names),
        Expr::Function { function, args, .. } => {
            let args: Vec<String> = args.iter().map(|arg| text(arg, names)).collect();
            format!("{}({})", function.name.to_lowercase(), args.join(","))
        }
        other => plan::print::expr(other),
    }
}

/// The type as CAST names it.
fn cast_name(ty: &DataType) -> String {
    match ty.kind {
        TypeKind::Decimal => format!("decimal({},{})", ty.length, ty.decimals),
        TypeKind::Double => "double".into(),
        TypeKind::Float => "float".into(),
        TypeKind::Date => "date".into(),
        TypeKind::Time if ty.decimals > 0 => format!("time({})", ty.decimals),
        TypeKind::Time => "time".into(),
        TypeKind::DateTime if ty.decimals > 0 => format!("datetime({})", ty.decimals),
        TypeKind::DateTime => "datetime".into(),
        TypeKind::Year => "year".into(),
        TypeKind::Json => "json".into(),
        TypeKind::Fixed(kind) => kind.name().into(),
        _ if ty.is_integer() && ty.unsigned => "unsigned".into(),
        _ if ty.is_integer() => "signed".into(),
        _ if ty.is_binary() => format!("char({}) charset binary", ty.length),
        _ => format!("char({})", ty.length),
    }
}
