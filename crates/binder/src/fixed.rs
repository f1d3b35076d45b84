//! UUID, INET4 and INET6 in expressions. Comparisons and choices make texts and bytes values of the type, functions get its text, and what would
//! take a value for a number or a date is refused: MariaDB does the same.

use errors::{Error, ErrorCode, Result, bail};
use plan::{CastKind, Expr};
use plugin_api::{ArgInfo, BoundFunction, Coercion, FunctionRole, ScalarFunction};
use types::{AggregateRole, CollationId, DataType, Fixed, TypeKind, Value};

use crate::expr::to_text;
use crate::typing::is_stringy;

/// Whether any of these has one of the types.
pub(crate) fn any(exprs: &[&Expr]) -> bool {
    exprs.iter().any(|expr| !matches!(expr, Expr::Row(_)) && expr.ty().as_fixed().is_some())
}

/// Both sides of a comparison: a text or bytes beside one of the types become a value of it.
pub(crate) fn compared(left: Expr, right: Expr) -> (Expr, Expr) {
    if matches!(left, Expr::Row(_)) || matches!(right, Expr::Row(_)) {
        return (left, right);
    }
    let (a, b) = (left.ty().as_fixed(), right.ty().as_fixed());
    match (a, b) {
        (Some(kind), None) => (left, of_kind(right, kind)),
        (None, Some(kind)) => (of_kind(left, kind), right),
        _ => (left, right),
    }
}

/// A text or bytes as a value of a type; other values unchanged.
fn of_kind(expr: Expr, kind: Fixed) -> Expr {
    let from = expr.ty();
    if !is_stringy(&from) && from.kind != TypeKind::Json {
        return expr;
    }
    if let Expr::Literal { value: Value::Bytes(text), .. } = &expr {
        let known = if from.is_binary() { kind.of_native(text) } else { kind.parse(text) };
        if let Some(known) = known {
            let ty = DataType::fixed(kind).with_nullable(false);
            return Expr::literal(Value::Bytes(known), ty);
        }
    }
    let ty = DataType::fixed(kind).with_nullable(true);
    Expr::Cast { operand: Box::new(expr), kind: CastKind::Implicit, ty }
}

/// The type from which a parameter beside one of these types is converted.
pub(crate) fn written_type(ty: &DataType, collation: CollationId) -> DataType {
    match ty.as_fixed() {
        Some(kind) => DataType::varchar(kind.characters(), collation),
        None => ty.clone(),
    }
}

/// Refuses different types in one comparison.
///
/// # Errors
/// 4078.
pub(crate) fn check_compared(exprs: &[&Expr], operation: &str) -> Result<()> {
    if !any(exprs) {
        return Ok(());
    }
    let types: Vec<DataType> = exprs.iter().map(|expr| expr.ty()).collect();
    check_types(&types, false, operation)
}

/// Refuses types of which no value of all can be made: any but texts and bytes beside one of these types.
///
/// # Errors
/// 4078.
pub(crate) fn check_unified(types: &[DataType], operation: &str) -> Result<()> {
    if types.iter().all(|ty| ty.as_fixed().is_none()) {
        return Ok(());
    }
    check_types(types, true, operation)
}

fn check_types(types: &[DataType], with_texts: bool, operation: &str) -> Result<()> {
    let Some(known) = types.iter().find(|ty| ty.as_fixed().is_some()) else { return Ok(()) };
    let fits = |ty: &&DataType| {
        ty.kind == known.kind || ty.kind == TypeKind::Null || with_texts && is_stringy(ty)
    };
    match types.iter().position(|ty| !fits(&ty)) {
        None => Ok(()),
        Some(other) => {
            let known_first = types[..other].iter().any(|ty| ty.kind == known.kind);
            let (a, b) = if known_first { (known, &types[other]) } else { (&types[other], known) };
            bail!(ILLEGAL_PARAMETER_DATA_TYPES, a.kind.name(), b.kind.name(), operation)
        }
    }
}

/// Refuses the types as operands of arithmetic.
///
/// # Errors
/// 4078.
pub(crate) fn refuse(exprs: &[&Expr], operation: &str) -> Result<()> {
    let Some(found) = exprs.iter().find(|expr| expr.ty().as_fixed().is_some()) else {
        return Ok(());
    };
    match exprs {
        [a, b] => {
            bail!(ILLEGAL_PARAMETER_DATA_TYPES, a.ty().kind.name(), b.ty().kind.name(), operation)
        }
        _ => Err(one_type(&found.ty(), operation)),
    }
}

/// 4078 about one type.
fn one_type(ty: &DataType, operation: &str) -> Error {
    let name = ty.kind.name();
    let message = format!("Illegal parameter data type {name} for operation '{operation}'");
    Error::new(ErrorCode::ILLEGAL_PARAMETER_DATA_TYPES, message)
}

/// Refuses CAST to a number or a date.
///
/// # Errors
/// 4078.
pub(crate) fn check_cast(from: &DataType, to: &DataType) -> Result<()> {
    let takes = to.is_string() || to.kind == TypeKind::Json || to.as_fixed().is_some();
    if from.as_fixed().is_none() || takes {
        return Ok(());
    }
    let operation = match to.kind {
        _ if to.is_integer() && to.unsigned => "cast_as_unsigned".to_owned(),
        _ if to.is_integer() => "cast_as_signed".to_owned(),
        TypeKind::Decimal | TypeKind::Float | TypeKind::Double => {
            format!("{}_typecast", to.kind.name())
        }
        kind => format!("cast_as_{}", kind.name()),
    };
    Err(one_type(from, &operation))
}

/// The arguments of a function, bound as they are, with their texts in place of values of the types; false when nothing changed. An argument that
/// the function wants as one certain type stays.
///
/// # Errors
/// 4078 where the function wants a number or a date.
pub(crate) fn as_arguments(
    function: &ScalarFunction,
    args: &mut [Expr],
    bound: &BoundFunction,
    operation: &str,
    collation: CollationId,
) -> Result<bool> {
    // These take values of every type as they are.
    if matches!(function.traits.role, Some(FunctionRole::AnyValue | FunctionRole::Partition(_))) {
        return Ok(false);
    }
    let mut changed = false;
    for (index, arg) in args.iter_mut().enumerate() {
        if arg.ty().as_fixed().is_none() {
            continue;
        }
        match bound.coercion(index) {
            Coercion::To(_) => {}
            Coercion::Integer
            | Coercion::Double
            | Coercion::Decimal
            | Coercion::Date
            | Coercion::DateTime
            | Coercion::Time => return Err(one_type(&arg.ty(), operation)),
            Coercion::AsIs | Coercion::Text | Coercion::Bytes | Coercion::Json => {
                text_of(arg, collation);
                changed = true;
            }
        }
    }
    Ok(changed)
}

/// Whether any argument has one of the types.
pub(crate) fn has_any(infos: &[ArgInfo]) -> bool {
    infos.iter().any(|arg| arg.ty.as_fixed().is_some())
}

/// Replaces a value of one of the types by its text.
pub(crate) fn text_of(expr: &mut Expr, collation: CollationId) {
    if expr.ty().as_fixed().is_some() {
        let null = Expr::literal(Value::Null, DataType::null());
        *expr = to_text(std::mem::replace(expr, null), collation, CastKind::Implicit);
    }
}

/// Whether an aggregate takes values of the types as they are.
///
/// # Errors
/// 4078 for one that computes with numbers.
pub(crate) fn check_aggregate(role: AggregateRole, name: &str, args: &[ArgInfo]) -> Result<()> {
    let Some(found) = args.iter().find(|arg| arg.ty.as_fixed().is_some()) else { return Ok(()) };
    match role {
        AggregateRole::Sum
        | AggregateRole::Average
        | AggregateRole::BitAnd
        | AggregateRole::BitOr
        | AggregateRole::BitXor
        | AggregateRole::StddevPop
        | AggregateRole::StddevSamp
        | AggregateRole::VarPop
        | AggregateRole::VarSamp
        | AggregateRole::StCollect => {
            Err(one_type(&found.ty, &format!("{}(", name.to_ascii_lowercase())))
        }
        AggregateRole::Count
        | AggregateRole::Minimum
        | AggregateRole::Maximum
        | AggregateRole::GroupConcat
        | AggregateRole::JsonArrayAgg
        | AggregateRole::JsonObjectAgg
        | AggregateRole::AnyValue
        | AggregateRole::Named => Ok(()),
    }
}

/// Whether an aggregate joins texts, or is a plugin's, which knows nothing of the types.
pub(crate) fn takes_text(role: AggregateRole) -> bool {
    matches!(
        role,
        AggregateRole::GroupConcat
            | AggregateRole::JsonArrayAgg
            | AggregateRole::JsonObjectAgg
            | AggregateRole::Named
    )
}
