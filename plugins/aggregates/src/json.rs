//! JSON_ARRAYAGG and JSON_OBJECTAGG.

use std::cmp::Ordering;
use std::sync::Arc;

use errors::{Error, ErrorCode, Result};
use plugin_api::{
    Accumulator, AggregateBinding, AggregateFunction, AggregateRole, ArgInfo, Arguments, Arity,
    BoundAggregate, Coercion, FunctionContext, Geometries, kit,
};
use types::json::JsonObject;
use types::{DataType, JsonValue, Value};

/// Approximate bytes of a value in addition to its own text.
const VALUE_BYTES: usize = 64;

pub(crate) const FUNCTIONS: &[AggregateFunction] = &[
    AggregateFunction {
        name: "JSON_ARRAYAGG",
        aliases: &[],
        arity: Arity::exactly(1),
        role: AggregateRole::JsonArrayAgg,
        numbers: Arguments::NONE,
        geometries: Geometries::Refused,
        help: "JSON_ARRAYAGG(col_or_expr)\nThe values of a group as a JSON array.",
        binding: AggregateBinding::Code(|_, args, _| Ok(bind_array(args))),
    },
    AggregateFunction {
        name: "JSON_OBJECTAGG",
        aliases: &[],
        arity: Arity::exactly(2),
        role: AggregateRole::JsonObjectAgg,
        numbers: Arguments::NONE,
        geometries: Geometries::Refused,
        help: "JSON_OBJECTAGG(key, value)\nThe pairs of a group as a JSON object; the last value of a key stays.",
        binding: AggregateBinding::Code(|_, args, _| Ok(bind_object(args))),
    },
];

/// Order of two documents.
pub(crate) fn compare(left: &[u8], right: &[u8]) -> Ordering {
    types::json::compare(left, right)
}

fn bind_array(args: &[ArgInfo]) -> BoundAggregate {
    let ty = args[0].ty.clone();
    BoundAggregate {
        ty: kit::json_type(),
        coercions: vec![kit::named_coercion(&ty)],
        skip_nulls: false,
        accumulator: Arc::new(move || Box::new(Array { ty: ty.clone(), elements: None, bytes: 0 })),
    }
}

fn bind_object(args: &[ArgInfo]) -> BoundAggregate {
    let ty = args[1].ty.clone();
    BoundAggregate {
        ty: kit::json_type(),
        coercions: vec![Coercion::Text, kit::named_coercion(&ty)],
        skip_nulls: false,
        accumulator: Arc::new(move || Box::new(Object { ty: ty.clone(), members: None, bytes: 0 })),
    }
}

fn value_bytes(value: &Value) -> usize {
    VALUE_BYTES + kit::bytes(value).len()
}

fn check_size(ctx: &FunctionContext<'_>, bytes: usize) -> Result<()> {
    if bytes as u64 > ctx.max_allowed_packet {
        return Err(Error::with(ErrorCode::JSON_VALUE_TOO_BIG, &[]));
    }
    Ok(())
}

struct Array {
    ty: DataType,
    /// An array, in the form of the final value.
    elements: Option<JsonValue>,
    bytes: usize,
}

impl Accumulator for Array {
    fn update(&mut self, ctx: &mut FunctionContext<'_>, args: &[Value]) -> Result<()> {
        self.bytes += value_bytes(&args[0]);
        check_size(ctx, self.bytes)?;
        let elements = self.elements.get_or_insert_with(|| JsonValue::Array(Vec::new()));
        if let JsonValue::Array(elements) = elements {
            elements.push(types::json_of_value(&args[0], &self.ty));
        }
        Ok(())
    }
    fn result(&mut self, _: &mut FunctionContext<'_>) -> Result<Value> {
        match &self.elements {
            None => Ok(Value::Null),
            Some(elements) => kit::json_document(elements),
        }
    }
    fn reset(&mut self) {
        (self.elements, self.bytes) = (None, 0);
    }
    fn memory_bytes(&self) -> usize {
        self.bytes
    }
}

struct Object {
    ty: DataType,
    members: Option<Vec<(Vec<u8>, JsonValue)>>,
    bytes: usize,
}

impl Accumulator for Object {
    fn update(&mut self, ctx: &mut FunctionContext<'_>, args: &[Value]) -> Result<()> {
        if args[0].is_null() {
            return Err(Error::with(ErrorCode::JSON_DOCUMENT_NULL_KEY, &[]));
        }
        self.bytes += value_bytes(&args[0]) + value_bytes(&args[1]);
        check_size(ctx, self.bytes)?;
        let member = (kit::bytes(&args[0]).to_vec(), types::json_of_value(&args[1], &self.ty));
        self.members.get_or_insert_default().push(member);
        Ok(())
    }
    fn result(&mut self, _: &mut FunctionContext<'_>) -> Result<Value> {
        match &self.members {
            None => Ok(Value::Null),
            Some(members) => {
                kit::json_document(&JsonValue::Object(JsonObject::from_members(members.clone())))
            }
        }
    }
    fn reset(&mut self) {
        (self.members, self.bytes) = (None, 0);
    }
    fn memory_bytes(&self) -> usize {
        self.bytes
    }
}
