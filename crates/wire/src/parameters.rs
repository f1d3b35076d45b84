//! Parameters in binary form: of COM_STMT_EXECUTE, and the query attributes of COM_QUERY.

use types::{Decimal, Value};

use crate::{
    Capabilities, ColumnType, CommandCode, CursorFlags, Malformed, Reader, put_binary_date,
    put_binary_datetime, put_binary_time, put_lenenc_bytes, put_lenenc_int,
    temporal::{decode_binary_datetime, decode_binary_time},
};

/// No statement has more parameters than this.
const PARAMETERS_MAX: u64 = u16::MAX as u64;
/// Set in the type's second byte for unsigned integers.
const UNSIGNED_FLAG: u8 = 0x80;

/// Type of a parameter as the client bound it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterType {
    /// Type.
    pub ty: ColumnType,
    /// Unsigned integer.
    pub unsigned: bool,
    /// Name of a query attribute; empty for a parameter.
    pub name: Box<[u8]>,
}

/// A named value of COM_QUERY.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Name; may be empty.
    pub name: Box<[u8]>,
    /// Value.
    pub value: Value,
}

/// How parameter types are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Naming {
    Named,
    Unnamed,
}

/// Reads the attributes that precede the text of COM_QUERY. Leaves `reader` at the text.
///
/// # Errors
/// Cut short, or an impossible type.
pub fn decode_query_attributes(reader: &mut Reader<'_>) -> Result<Vec<Parameter>, Malformed> {
    let count = reader.lenenc_int()?;
    if reader.lenenc_int()? != 1 || count > PARAMETERS_MAX {
        return Err(Malformed);
    }
    if count == 0 {
        return Ok(Vec::new());
    }
    let mut types = Vec::new();
    let mut values = Vec::new();
    read_block(reader, count as usize, Naming::Named, &mut types, &|_| None, &mut values)?;
    let named = types.into_iter().zip(values);
    Ok(named.map(|(ty, value)| Parameter { name: ty.name, value }).collect())
}

/// Reads the rest of COM_STMT_EXECUTE after its head. `statement_parameters` is the number of the statement's parameters;
/// further ones are attributes. `types` keeps the types between executions: a client may send them
/// once. `long_data` gives parameters that were sent in pieces.
///
/// # Errors
/// Truncated, an invalid type, types never sent, or fewer parameters than the statement has.
pub fn decode_parameters<'a>(
    reader: &mut Reader<'_>,
    in_force: Capabilities,
    flags: CursorFlags,
    statement_parameters: usize,
    types: &mut Vec<ParameterType>,
    long_data: &dyn Fn(usize) -> Option<&'a [u8]>,
    values: &mut Vec<Value>,
) -> Result<(), Malformed> {
    values.clear();
    let attributes = in_force.contains(Capabilities::QUERY_ATTRIBUTES);
    let counted = attributes && flags.contains(CursorFlags::PARAMETER_COUNT_AVAILABLE);
    if statement_parameters == 0 && !counted {
        return Ok(());
    }
    if counted {
        return read_counted(reader, statement_parameters, types, long_data, values);
    }
    if !attributes {
        return read_block(reader, statement_parameters, Naming::Unnamed, types, long_data, values);
    }
    // Clients differ on whether the count is there when the flag is not: the reading that uses up the
    // packet is the right one.
    let mut attempt = *reader;
    let mut tried_types = types.clone();
    let tried = &mut tried_types;
    let count = statement_parameters;
    let read = read_block(&mut attempt, count, Naming::Unnamed, tried, long_data, values);
    if read.is_ok() && attempt.is_empty() {
        *types = tried_types;
        *reader = attempt;
        return Ok(());
    }
    values.clear();
    read_counted(reader, statement_parameters, types, long_data, values)
}

fn read_counted<'a>(
    reader: &mut Reader<'_>,
    statement_parameters: usize,
    types: &mut Vec<ParameterType>,
    long_data: &dyn Fn(usize) -> Option<&'a [u8]>,
    values: &mut Vec<Value>,
) -> Result<(), Malformed> {
    let count = reader.lenenc_int()?;
    if count < statement_parameters as u64 || count > PARAMETERS_MAX {
        return Err(Malformed);
    }
    if count == 0 {
        return Ok(());
    }
    read_block(reader, count as usize, Naming::Named, types, long_data, values)
}

fn read_block<'a>(
    reader: &mut Reader<'_>,
    count: usize,
    naming: Naming,
    types: &mut Vec<ParameterType>,
    long_data: &dyn Fn(usize) -> Option<&'a [u8]>,
    values: &mut Vec<Value>,
) -> Result<(), Malformed> {
    let bitmap = reader.bytes(count.div_ceil(8))?;
    if reader.u8()? == 1 {
        types.clear();
        for _ in 0..count {
            types.push(read_type(reader, naming)?);
        }
    }
    if types.len() != count {
        return Err(Malformed);
    }
    for (index, ty) in types.iter().enumerate() {
        let null = bitmap[index / 8] & 1 << (index % 8) != 0;
        let value = match long_data(index) {
            Some(bytes) => Value::Bytes(bytes.into()),
            None if null => Value::Null,
            None => decode_value(reader, ty.ty, ty.unsigned)?,
        };
        values.push(value);
    }
    Ok(())
}

fn read_type(reader: &mut Reader<'_>, naming: Naming) -> Result<ParameterType, Malformed> {
    let ty = ColumnType::from_u8(reader.u8()?).ok_or(Malformed)?;
    let unsigned = reader.u8()? & UNSIGNED_FLAG != 0;
    let name = match naming {
        Naming::Named => reader.lenenc_bytes()?.into(),
        Naming::Unnamed => Box::default(),
    };
    Ok(ParameterType { ty, unsigned, name })
}

/// Reads one value of type `ty`. Text that is not a decimal stays text; the binder judges it.
pub(crate) fn decode_value(
    reader: &mut Reader<'_>,
    ty: ColumnType,
    unsigned: bool,
) -> Result<Value, Malformed> {
    let signed_or = |signed: i64, bits: u64| {
        if unsigned { Value::UInt(bits) } else { Value::Int(signed) }
    };
    Ok(match ty {
        ColumnType::Null => Value::Null,
        ColumnType::Tiny | ColumnType::Bool => {
            let bits = reader.u8()?;
            signed_or(i64::from(bits as i8), u64::from(bits))
        }
        ColumnType::Short | ColumnType::Year => {
            let bits = reader.u16()?;
            signed_or(i64::from(bits as i16), u64::from(bits))
        }
        ColumnType::Long | ColumnType::Int24 => {
            let bits = reader.u32()?;
            signed_or(i64::from(bits as i32), u64::from(bits))
        }
        ColumnType::LongLong => {
            let bits = reader.u64()?;
            signed_or(bits as i64, bits)
        }
        ColumnType::Float => finite(f64::from(reader.f32()?)),
        ColumnType::Double => finite(reader.f64()?),
        ColumnType::Date | ColumnType::NewDate => {
            Value::Date(decode_binary_datetime(reader)?.date())
        }
        ColumnType::DateTime | ColumnType::Timestamp => {
            Value::DateTime(decode_binary_datetime(reader)?)
        }
        ColumnType::Time => Value::Time(decode_binary_time(reader)?),
        ColumnType::Decimal | ColumnType::NewDecimal => {
            let text = reader.lenenc_bytes()?;
            Decimal::parse(text).map_or_else(|| Value::Bytes(text.into()), Value::Decimal)
        }
        ColumnType::VarChar
        | ColumnType::Bit
        | ColumnType::Vector
        | ColumnType::Json
        | ColumnType::Enum
        | ColumnType::Set
        | ColumnType::TinyBlob
        | ColumnType::MediumBlob
        | ColumnType::LongBlob
        | ColumnType::Blob
        | ColumnType::VarString
        | ColumnType::String
        | ColumnType::Geometry => Value::Bytes(reader.lenenc_bytes()?.into()),
        ColumnType::Timestamp2
        | ColumnType::DateTime2
        | ColumnType::Time2
        | ColumnType::TypedArray
        | ColumnType::Invalid => return Err(Malformed),
    })
}

/// SQL has no NaN and no infinity: such a parameter is NULL.
fn finite(number: f64) -> Value {
    if number.is_finite() { Value::Double(number) } else { Value::Null }
}

/// Appends the payload of COM_STMT_EXECUTE with `parameters`, on the client's side.
pub fn put_execute(
    out: &mut Vec<u8>,
    statement_id: u32,
    flags: CursorFlags,
    parameters: &[Value],
    in_force: Capabilities,
) {
    let attributes = in_force.contains(Capabilities::QUERY_ATTRIBUTES);
    let flags = flags.with_if(CursorFlags::PARAMETER_COUNT_AVAILABLE, attributes);
    out.push(CommandCode::StmtExecute as u8);
    out.extend_from_slice(&statement_id.to_le_bytes());
    out.push(flags.0);
    out.extend_from_slice(&1u32.to_le_bytes());
    if attributes {
        put_lenenc_int(out, parameters.len() as u64);
    }
    if parameters.is_empty() {
        return;
    }
    let unnamed = parameters.iter().map(|value| (&b""[..], value));
    let naming = if attributes { Naming::Named } else { Naming::Unnamed };
    put_block(out, unnamed, naming);
}

/// Appends the payload of COM_QUERY, with attributes if both sides can, on the client's side.
pub fn put_query_with_attributes(
    out: &mut Vec<u8>,
    sql: &[u8],
    attributes: &[Parameter],
    in_force: Capabilities,
) {
    out.push(CommandCode::Query as u8);
    if in_force.contains(Capabilities::QUERY_ATTRIBUTES) {
        put_lenenc_int(out, attributes.len() as u64);
        put_lenenc_int(out, 1);
        if !attributes.is_empty() {
            put_block(out, attributes.iter().map(|a| (&*a.name, &a.value)), Naming::Named);
        }
    }
    out.extend_from_slice(sql);
}

fn put_block<'v>(
    out: &mut Vec<u8>,
    parameters: impl ExactSizeIterator<Item = (&'v [u8], &'v Value)> + Clone,
    naming: Naming,
) {
    let bitmap_start = out.len();
    out.resize(bitmap_start + parameters.len().div_ceil(8), 0);
    out.push(1);
    for (index, (name, value)) in parameters.clone().enumerate() {
        if value.is_null() {
            out[bitmap_start + index / 8] |= 1 << (index % 8);
        }
        let (ty, sign) = type_of(value);
        out.extend_from_slice(&[ty as u8, sign]);
        if naming == Naming::Named {
            put_lenenc_bytes(out, name);
        }
    }
    for (_, value) in parameters {
        put_value(out, value);
    }
}

fn type_of(value: &Value) -> (ColumnType, u8) {
    match value {
        Value::Null => (ColumnType::Null, 0),
        Value::Int(_) => (ColumnType::LongLong, 0),
        Value::UInt(_) => (ColumnType::LongLong, UNSIGNED_FLAG),
        Value::Double(_) => (ColumnType::Double, 0),
        Value::Date(_) => (ColumnType::Date, 0),
        Value::Time(_) => (ColumnType::Time, 0),
        Value::DateTime(_) => (ColumnType::DateTime, 0),
        Value::Decimal(_) | Value::Bytes(_) | Value::Json(_) => (ColumnType::VarString, 0),
    }
}

fn put_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => {}
        Value::Int(number) => out.extend_from_slice(&number.to_le_bytes()),
        Value::UInt(number) => out.extend_from_slice(&number.to_le_bytes()),
        Value::Double(number) => out.extend_from_slice(&number.to_le_bytes()),
        Value::Date(date) => put_binary_date(out, *date),
        Value::Time(time) => put_binary_time(out, *time),
        Value::DateTime(at) => put_binary_datetime(out, *at),
        Value::Decimal(number) => {
            let mut text = Vec::new();
            number.write_text(&mut text);
            put_lenenc_bytes(out, &text);
        }
        Value::Bytes(bytes) | Value::Json(bytes) => put_lenenc_bytes(out, bytes),
    }
}
