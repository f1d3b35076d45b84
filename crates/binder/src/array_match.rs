//! The array of a multi-valued index takes the place of its document in MEMBER OF, JSON_CONTAINS and JSON_OVERLAPS, so that the index can
//! answer them. Knows nothing of access paths.
//!
//! Invariant: only where a value of the other side is in the document exactly if its conversion is in the array, with the exceptions
//! that the reference makes for what is the same for all rows: it is converted as the elements are.

use plan::{BinaryOp, CastKind, Expr};
use types::elements::array_of;
use types::json::parse;
use types::{DataType, FunctionRole, JsonRef, JsonValue, SqlMode, TypeKind, Value};

use crate::generated_match::{Candidate, is_near, is_same};

/// The outcome of an attempt.
pub(crate) enum ArrayMatch {
    /// The call is of something else.
    None,
    /// It would match if a lifted literal were known.
    Nearly,
    /// It was replaced.
    Done,
}

/// Puts the array of a candidate into a call of MEMBER OF, JSON_CONTAINS or JSON_OVERLAPS with its document.
pub(crate) fn use_array(
    call: &mut Expr,
    candidate: &Candidate,
    elements: &DataType,
    sql_mode: SqlMode,
) -> ArrayMatch {
    let Expr::Function { function, args, .. } = &mut *call else { return ArrayMatch::None };
    let [first, second] = &mut args[..] else { return ArrayMatch::None };
    let document_first = match function.traits.role {
        Some(FunctionRole::JsonMemberOf) => false,
        Some(FunctionRole::JsonContains) => true,
        Some(FunctionRole::JsonOverlaps) => !is_same(second, &candidate.expression),
        _ => return ArrayMatch::None,
    };
    let (value, document) = if document_first { (second, first) } else { (first, second) };
    if !is_same(document, &candidate.expression) {
        return match is_near(document, &candidate.expression) {
            true => ArrayMatch::Nearly,
            false => ArrayMatch::None,
        };
    }
    if function.is(FunctionRole::JsonMemberOf) {
        let Some(literal) = literal_element(value, elements, sql_mode) else {
            return match is_alike(value, elements) {
                true => use_array_for(call, candidate),
                false => ArrayMatch::None,
            };
        };
        *value = literal;
    } else {
        match constant_document(value) {
            Some(known) => {
                let known = known.to_binary();
                let Ok(array) = array_with_nulls(JsonRef::new(&known), elements, sql_mode) else {
                    return ArrayMatch::None;
                };
                *value = json(&array);
            }
            None if matches!(value, Expr::Parameter { .. }) => return ArrayMatch::Nearly,
            None => return ArrayMatch::None,
        }
    }
    *document = candidate.column.clone();
    ArrayMatch::Done
}

/// MEMBER OF with a value that is not known yet. That of a row is compared with the document too, without the conversion.
fn use_array_for(call: &mut Expr, candidate: &Candidate) -> ArrayMatch {
    let before = call.clone();
    let Expr::Function { args, .. } = &mut *call else { return ArrayMatch::None };
    let is_known = args[0].is_constant();
    args[1] = candidate.column.clone();
    if !is_known {
        let (left, right) = (Box::new(call.clone()), Box::new(before));
        let ty = right.ty();
        let collation = types::CollationId::BINARY;
        *call = Expr::Binary { op: BinaryOp::And, left, right, collation, ty };
    }
    ArrayMatch::Done
}

fn json(value: &JsonValue) -> Expr {
    Expr::literal(value.to_value(), DataType::new(TypeKind::Json, u32::MAX, 0))
}

/// A literal as the element that it would be, where the reference converts it.
fn literal_element(value: &Expr, elements: &DataType, sql_mode: SqlMode) -> Option<Expr> {
    let (known, ty) = literal(value)?;
    let fits = match elements.kind {
        TypeKind::BigInt => ty.is_integer(),
        TypeKind::Decimal => ty.kind == TypeKind::Decimal,
        TypeKind::Date | TypeKind::Time | TypeKind::DateTime => {
            ty.is_string() || ty.is_temporal() || ty.kind == TypeKind::Json
        }
        _ => ty.is_string() || ty.kind == TypeKind::Json,
    };
    if !fits || known.is_null() {
        return None;
    }
    let document = JsonValue::from_sql(&known, false).to_binary();
    let document = JsonRef::new(&document);
    if !document.kind().is_scalar() {
        return None;
    }
    match array_of(document, elements, sql_mode).ok()? {
        JsonValue::Array(made) => made.first().map(json),
        _ => None,
    }
}

/// A literal, with its sign.
fn literal(value: &Expr) -> Option<(Value, DataType)> {
    match value {
        Expr::Literal { value, ty } => Some((value.clone(), ty.clone())),
        Expr::Cast { operand, kind: CastKind::Explicit, ty } if ty.kind == TypeKind::Json => {
            let (value, from) = literal(operand)?;
            let document = match &value {
                Value::Bytes(text) if from.is_text() => parse(text).ok()?,
                value => JsonValue::from_sql(value, from.is_binary()),
            };
            Some((document.to_value(), ty.clone()))
        }
        _ => None,
    }
}

/// The document in a literal.
fn constant_document(value: &Expr) -> Option<JsonValue> {
    let (value, ty) = literal(value)?;
    match &value {
        Value::Json(document) => Some(JsonValue::from_ref(JsonRef::new(document))),
        Value::Bytes(text) if ty.is_text() => parse(text).ok(),
        _ => None,
    }
}

/// The elements of a document in its order, converted; `null` stays and is in no array.
fn array_with_nulls(
    document: JsonRef<'_>,
    elements: &DataType,
    sql_mode: SqlMode,
) -> Result<JsonValue, ()> {
    let mut made = Vec::new();
    let mut add = |element: JsonRef<'_>| {
        if element.kind() == types::json::JsonType::Null {
            made.push(JsonValue::Null);
            return Ok(());
        }
        if !element.kind().is_scalar() {
            return Err(());
        }
        match array_of(element, elements, sql_mode) {
            Ok(JsonValue::Array(values)) => made.extend(values),
            Ok(_) | Err(_) => return Err(()),
        }
        Ok(())
    };
    match document.kind() {
        types::json::JsonType::Array => document.elements().try_for_each(add)?,
        _ => add(document)?,
    }
    Ok(JsonValue::Array(made))
}

/// Whether a value that is not known yet is converted to an element without loss or not at all.
fn is_alike(value: &Expr, elements: &DataType) -> bool {
    let ty = value.ty();
    let fits = match elements.kind {
        TypeKind::BigInt => ty.is_integer(),
        TypeKind::Decimal => ty.kind == TypeKind::Decimal && ty.decimals <= elements.decimals,
        TypeKind::Date => ty.kind == TypeKind::Date,
        TypeKind::Time | TypeKind::DateTime => {
            ty.kind == elements.kind && ty.decimals <= elements.decimals
        }
        _ => ty.is_string() && ty.is_binary() == elements.is_binary() && !ty.is_enum_or_set(),
    };
    let is_constant = matches!(value, Expr::Literal { .. });
    fits && !is_constant
        && !value.is_volatile()
        && !value.any(&mut |node| matches!(node, Expr::Subquery { .. }))
}
