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
    let document_first = if function.is(FunctionRole::JsonMemberOf) {
        false
    } else if function.is(FunctionRole::JsonContains) {
        true
    } else if function.is(FunctionRole::JsonOverlaps) {
        !is_same(second, &candidate.expression)
    } else {
        return ArrayMatch::None;
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
    let is_known = !args[0].any(&mut |node| matches!(node, Expr::Column { .. }));
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
    let fits = if elements.is_integer() {
        ty.is_integer()
    } else if elements.kind == TypeKind::Decimal {
        ty.kind == TypeKind::Decimal
    } else {
        let is_date = elements.is_temporal() && ty.is_temporal();
        ty.is_string() || ty.kind == TypeKind::Json || is_date
    };
    if !fits || known.is_null() {
        return None;
    }
    let document = JsonValue::from_sql(&known, false).to_binary();
    let document = JsonRef::new(&document);
    if !document.kind().is_scalar() {
        return None;
    }
    let JsonValue::Array(made) = array_of(document, elements, sql_mode).ok()? else { return None };
    made.first().map(json)
}

/// A literal, as JSON if it is cast to that.
fn literal(value: &Expr) -> Option<(Value, DataType)> {
    if let Expr::Literal { value, ty } = value {
        return Some((value.clone(), ty.clone()));
    }
    let Expr::Cast { operand, kind: CastKind::Explicit, ty } = value else { return None };
    if ty.kind != TypeKind::Json {
        return None;
    }
    let (value, from) = literal(operand)?;
    let document = match &value {
        Value::Bytes(text) if from.is_text() => parse(text).ok()?,
        value => JsonValue::from_sql(value, from.is_binary()),
    };
    Some((document.to_value(), ty.clone()))
}

/// The document in a literal.
fn constant_document(value: &Expr) -> Option<JsonValue> {
    let (value, ty) = literal(value)?;
    if let Value::Json(document) = &value {
        return Some(JsonValue::from_ref(JsonRef::new(document)));
    }
    let Value::Bytes(text) = &value else { return None };
    ty.is_text().then(|| parse(text).ok()).flatten()
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
    if document.kind() == types::json::JsonType::Array {
        document.elements().try_for_each(add)?;
    } else {
        add(document)?;
    }
    Ok(JsonValue::Array(made))
}

/// Whether a value that is not known yet is converted to an element without loss or not at all.
fn is_alike(value: &Expr, elements: &DataType) -> bool {
    let ty = value.ty();
    let fits = if elements.is_integer() {
        ty.is_integer()
    } else if elements.is_string() {
        ty.is_string() && ty.is_binary() == elements.is_binary() && !ty.is_enum_or_set()
    } else {
        ty.kind == elements.kind && ty.decimals <= elements.decimals
    };
    let is_constant = matches!(value, Expr::Literal { .. });
    fits && !is_constant
        && !value.is_volatile()
        && !value.any(&mut |node| matches!(node, Expr::Subquery { .. }))
}
