//! Arguments of functions as a compiler sees them.

use plan::Expr;
use plugin_api::{ArgInfo, Coercion};
use types::DataType;

/// The facts about arguments that the binder of functions may read.
pub fn arg_infos(args: &[Expr]) -> Vec<ArgInfo> {
    let info = |arg: &Expr| ArgInfo {
        ty: arg.ty(),
        constant: match arg {
            Expr::Literal { value, .. } => Some(value.clone()),
            _ => None,
        },
        fixed: matches!(
            arg,
            Expr::Literal { .. } | Expr::Parameter { .. } | Expr::UserVariable { .. }
        ),
    };
    args.iter().map(info).collect()
}

/// A coercion that changes no value of `ty` is omitted.
pub fn trimmed(coercion: Coercion, ty: &DataType) -> Coercion {
    use types::TypeKind;
    let idle = match &coercion {
        Coercion::AsIs => true,
        Coercion::Integer => ty.is_integer(),
        Coercion::Double => matches!(ty.kind, TypeKind::Double | TypeKind::Float),
        Coercion::Decimal => ty.kind == TypeKind::Decimal,
        Coercion::Text => ty.is_string(),
        Coercion::Bytes => {
            ty.is_string() && charset::collation_or_binary(ty.collation).charset.keeps_utf8()
        }
        Coercion::Date => ty.kind == TypeKind::Date,
        Coercion::DateTime => matches!(ty.kind, TypeKind::DateTime | TypeKind::Timestamp),
        Coercion::Time => ty.kind == TypeKind::Time,
        Coercion::Json => ty.kind == TypeKind::Json,
        Coercion::To(target) => target == ty,
    };
    if idle { Coercion::AsIs } else { coercion }
}
