//! Values on their way into a module and out of it.

use plugin_api::{FunctionContext, TypedValue, kit};
use types::{CollationId, DataType, TypeKind, Value};
use wasmi::{F32, F64, Val};

use crate::code::Code;
use crate::failure::Failure;
use crate::guest::{Budget, Guest, NULL_BUFFER};
use crate::signature::{Form, Place, Signature};

/// Calls an exported function with SQL values; a result for each of the signature's. NULL results are `None`.
pub(crate) fn call(
    code: &Code,
    export: &str,
    signature: &Signature,
    arguments: &[Value],
    context: &mut FunctionContext<'_>,
) -> Result<Vec<Option<TypedValue>>, Failure> {
    if !signature.takes_nulls && arguments.iter().any(Value::is_null) {
        return Ok(signature.results.iter().map(|_| None).collect());
    }
    let mut guest = code.take()?;
    let callee = Callee { export, signature, state: None };
    let results = callee.call(&mut guest, code.limits.fuel(), arguments, context)?;
    code.put_back(guest);
    Ok(results)
}

/// An exported function with its values.
pub(crate) struct Callee<'a> {
    pub(crate) export: &'a str,
    pub(crate) signature: &'a Signature,
    /// What it gets before its arguments: the group of an aggregate.
    pub(crate) state: Option<i32>,
}

impl Callee<'_> {
    /// Calls it in an instance. After a failure the instance's memory may be in any state.
    pub(crate) fn call(
        &self,
        guest: &mut Guest,
        fuel: u64,
        arguments: &[Value],
        context: &mut FunctionContext<'_>,
    ) -> Result<Vec<Option<TypedValue>>, Failure> {
        debug_assert_eq!(arguments.len(), self.signature.parameters.len());
        let (session, bytes_max) = (&*context.session, context.max_allowed_packet);
        let mut check = || session.check_cancelled();
        let mut budget = Budget { fuel, check: &mut check };
        let results = run(guest, self, arguments, bytes_max, &mut budget);
        for line in guest.take_log() {
            context.diagnostics.note(errors::ErrorCode::UNKNOWN_ERROR, &[&line]);
        }
        results
    }
}

fn run(
    guest: &mut Guest,
    callee: &Callee<'_>,
    arguments: &[Value],
    bytes_max: u64,
    budget: &mut Budget<'_>,
) -> Result<Vec<Option<TypedValue>>, Failure> {
    let signature = callee.signature;
    let mut inputs: Vec<Val> = callee.state.map(Val::I32).into_iter().collect();
    let mut lent = Vec::new();
    if signature.takes_nulls {
        let bits = arguments.iter().enumerate().filter(|(_, value)| value.is_null());
        inputs.push(Val::I64(bits.fold(0, |bits, (at, _)| bits | 1i64 << at)));
    }
    for (place, value) in signature.parameters.iter().zip(arguments) {
        match place.form {
            Form::Buffer if value.is_null() => inputs.extend([Val::I32(0), Val::I32(0)]),
            Form::Buffer => {
                let mut bytes = Vec::new();
                types::to_text(value, &place.ty, &mut bytes);
                let pointer = guest.put(&bytes, budget)?;
                lent.push((pointer, bytes.len() as u32));
                inputs.extend([Val::I32(pointer as i32), Val::I32(bytes.len() as i32)]);
            }
            Form::I32 | Form::I64 | Form::F32 | Form::F64 => inputs.push(number(value, place)?),
        }
    }
    let mut outputs: Vec<Val> = signature.results.iter().map(empty).collect();
    let function = guest.function(callee.export)?;
    guest.call(function, &inputs, &mut outputs, budget)?;
    for (pointer, length) in lent {
        guest.free(pointer, length, budget)?;
    }
    if !signature.results.is_empty() && guest.was_null(budget)? {
        return Ok(signature.results.iter().map(|_| None).collect());
    }
    let taken = signature.results.iter().zip(&outputs);
    taken.map(|(place, output)| result(guest, place, output, bytes_max, budget)).collect()
}

/// A place for a result.
fn empty(place: &Place) -> Val {
    match place.form {
        Form::I32 => Val::I32(0),
        Form::I64 | Form::Buffer => Val::I64(NULL_BUFFER),
        Form::F32 => Val::F32(F32::from(0.0)),
        Form::F64 => Val::F64(F64::from(0.0)),
    }
}

/// A number as an argument; NULL, which only a bit says, is 0.
fn number(value: &Value, place: &Place) -> Result<Val, Failure> {
    if value.is_null() {
        return Ok(match place.form {
            Form::I32 => Val::I32(0),
            Form::I64 | Form::Buffer => Val::I64(0),
            Form::F32 => Val::F32(F32::from(0.0)),
            Form::F64 => Val::F64(F64::from(0.0)),
        });
    }
    Ok(match place.form {
        Form::I32 => {
            let number = kit::integer(value);
            let narrow = match place.ty.unsigned {
                true => u32::try_from(number).map(|number| number as i32),
                false => i32::try_from(number),
            };
            Val::I32(narrow.map_err(|_| Failure::guest("an argument does not fit its i32"))?)
        }
        // Unsigned numbers keep their bits.
        Form::I64 | Form::Buffer => Val::I64(kit::integer(value) as i64),
        Form::F32 => Val::F32(F32::from(real(value) as f32)),
        Form::F64 => Val::F64(F64::from(real(value))),
    })
}

fn real(value: &Value) -> f64 {
    match value {
        Value::Int(number) => *number as f64,
        Value::UInt(number) => *number as f64,
        Value::Null
        | Value::Double(_)
        | Value::Decimal(_)
        | Value::Bytes(_)
        | Value::Date(_)
        | Value::Time(_)
        | Value::DateTime(_)
        | Value::Json(_) => kit::double(value),
    }
}

/// A result as the module returned it, before its conversion to the declared type.
fn result(
    guest: &mut Guest,
    place: &Place,
    output: &Val,
    bytes_max: u64,
    budget: &mut Budget<'_>,
) -> Result<Option<TypedValue>, Failure> {
    let unsigned = place.ty.unsigned;
    let whole = |value| {
        let ty = DataType { unsigned, ..DataType::new(TypeKind::BigInt, 20, 0) };
        Ok(Some(TypedValue { value, ty }))
    };
    match (place.form, output) {
        (Form::Buffer, Val::I64(buffer)) => {
            let bytes = guest.take_buffer(*buffer, bytes_max, budget)?;
            bytes.map(|bytes| text(place, bytes)).transpose()
        }
        (_, Val::I32(number)) if unsigned => whole(Value::UInt(u64::from(*number as u32))),
        (_, Val::I32(number)) => whole(Value::Int(i64::from(*number))),
        (_, Val::I64(number)) if unsigned => whole(Value::UInt(*number as u64)),
        (_, Val::I64(number)) => whole(Value::Int(*number)),
        (_, Val::F32(number)) => finite(f64::from(f32::from(*number))),
        (_, Val::F64(number)) => finite(f64::from(*number)),
        (_, Val::V128(_) | Val::FuncRef(_) | Val::ExternRef(_)) => {
            Err(Failure::guest("its result is neither a number nor a buffer"))
        }
    }
}

fn finite(number: f64) -> Result<Option<TypedValue>, Failure> {
    if !number.is_finite() {
        return Err(Failure::guest("its result is not a finite number"));
    }
    let ty = DataType::new(TypeKind::Double, 22, types::NOT_FIXED_DECIMALS);
    Ok(Some(TypedValue { value: Value::Double(number), ty }))
}

fn text(place: &Place, bytes: Vec<u8>) -> Result<TypedValue, Failure> {
    let is_binary = place.ty.is_string() && place.ty.collation == CollationId::BINARY;
    let collation = if is_binary { CollationId::BINARY } else { CollationId::UTF8MB4_0900_AI_CI };
    if !is_binary && std::str::from_utf8(&bytes).is_err() {
        return Err(Failure::guest("its result is not a text in UTF-8"));
    }
    let kind = if is_binary { TypeKind::LongBlob } else { TypeKind::LongText };
    let ty = DataType { collation, ..DataType::new(kind, u32::MAX, 0) };
    Ok(TypedValue { value: Value::Bytes(bytes.as_slice().into()), ty })
}
