//! Helpers for authors of function plugins: declaring a function, common result types, reading coerced arguments, and the
//! errors and warnings that many functions raise. Knows no function.

use std::borrow::Cow;

use errors::{Error, ErrorCode};
use types::{
    AggregateRole, BoxesOfTruth, CollationId, DataType, DatetimeText, Decimal, DefinitionUse,
    DocumentUse, FunctionRole, FunctionTraits, Growth, JsonValue, NOT_FIXED_DECIMALS, PartitionUse,
    RunsStatements, TextSource, Threads, TypeKind, Value, Volatility,
};

use crate::function::{
    AggregateBinding, AggregateFunction, ArgInfo, ArgumentNames, Arguments, Arity, BindContext,
    Binding, Coercion, CollationRule, FunctionContext, Geometries, MadeAggregate, MadeBinding,
    ScalarFunction, TruthArguments,
};

/// Type of a `ScalarFunction`'s bind function.
pub type Bind = fn(&BindContext, &[ArgInfo]) -> errors::Result<crate::BoundFunction>;

/// Bytes of a result that a `VARCHAR` can hold; longer ones are TEXT.
const VARCHAR_BYTES_MAX: u64 = 65_535;
/// Bytes that a `MEDIUMTEXT` can hold.
const MEDIUM_BYTES_MAX: u64 = (1 << 24) - 1;
/// Bytes of a character of utf8mb4.
const CHARACTER_BYTES_MAX: u64 = 4;
/// Characters that a string function without a known bound announces.
pub const UNBOUNDED_CHARACTERS: u64 = 1 << 26;

/// An immutable function without aliases.
pub const fn scalar(
    name: &'static str,
    arity: Arity,
    help: &'static str,
    bind: Bind,
) -> ScalarFunction {
    ScalarFunction {
        name,
        aliases: &[],
        arity,
        traits: FunctionTraits::PLAIN,
        numbers: Arguments::NONE,
        truths: TruthArguments::Truth,
        collation: CollationRule::Own,
        deprecated: None,
        help,
        names: ArgumentNames::Refused,
        binding: Binding::Code(bind),
    }
}

/// The same of a function that was made at run time.
pub fn scalar_made(
    name: &'static str,
    arity: Arity,
    help: &'static str,
    binding: MadeBinding,
) -> ScalarFunction {
    let none: Bind = |_, _| Err(Error::internal("a function without code"));
    ScalarFunction { binding: Binding::Made(binding), ..scalar(name, arity, help, none) }
}

/// An aggregate that was made at run time, and that calls find by its name.
pub fn aggregate_made(
    name: &'static str,
    arity: Arity,
    help: &'static str,
    binding: MadeAggregate,
) -> AggregateFunction {
    AggregateFunction {
        name,
        aliases: &[],
        arity,
        role: AggregateRole::Named,
        numbers: Arguments::NONE,
        geometries: Geometries::Refused,
        help,
        binding: AggregateBinding::Made(binding),
    }
}

impl ScalarFunction {
    /// The same with other names.
    pub const fn aliases(mut self, aliases: &'static [&'static str]) -> ScalarFunction {
        self.aliases = aliases;
        self
    }

    /// The same, evaluated once a statement.
    pub const fn stable(mut self) -> ScalarFunction {
        self.traits.volatility = Volatility::Stable;
        self
    }

    /// The same, evaluated at every call.
    pub const fn volatile(mut self) -> ScalarFunction {
        self.traits.volatility = Volatility::Volatile;
        self
    }

    /// The same; its result is its first argument, a document, with some parts changed.
    pub const fn edits_document(mut self) -> ScalarFunction {
        self.traits.document = DocumentUse::Edited;
        self
    }

    /// The same; it is true only of two geometries whose boxes meet.
    pub const fn where_boxes_meet(mut self) -> ScalarFunction {
        self.traits.boxes = BoxesOfTruth::Meet;
        self
    }

    /// The same with a role in the query compiler.
    pub const fn role(mut self, role: FunctionRole) -> ScalarFunction {
        self.traits.role = Some(role);
        self
    }

    /// The same; these arguments are numbers.
    pub const fn numbers(mut self, numbers: Arguments) -> ScalarFunction {
        self.numbers = numbers;
        self
    }

    /// The same; a truth value among the arguments is a number unless it is a predicate.
    pub const fn truths_are_numbers(mut self) -> ScalarFunction {
        self.truths = TruthArguments::Number;
        self
    }

    /// The same; it compares the texts of these arguments.
    pub const fn compares(mut self, texts: Arguments) -> ScalarFunction {
        self.collation = CollationRule::Compares(texts);
        self
    }

    /// The same; it puts the texts of these arguments together.
    pub const fn joins(mut self, texts: Arguments) -> ScalarFunction {
        self.collation = CollationRule::Joins(texts);
        self
    }

    /// The same; it works on the text at this place, in its collation.
    pub const fn follows(mut self, subject: usize) -> ScalarFunction {
        self.collation = CollationRule::Follows(subject);
        self
    }

    /// The same; a call by this name raises a warning.
    pub const fn deprecated(mut self, name: &'static str, warning: &'static str) -> ScalarFunction {
        self.deprecated = Some((name, warning));
        self
    }

    /// The same; its text is a name of the system.
    pub const fn system_text(mut self) -> ScalarFunction {
        self.traits.text = TextSource::System;
        self
    }

    /// The same; its text is a date or time.
    pub const fn datetime_text(mut self, when: DatetimeText) -> ScalarFunction {
        self.traits.datetime_text = when;
        self
    }

    /// The same; it never falls while its argument grows.
    pub const fn growing(mut self, growth: Growth) -> ScalarFunction {
        self.traits.growth = growth;
        self
    }

    /// The same; expressions of partitioned tables may call it.
    pub const fn partitions_by(mut self, what: PartitionUse) -> ScalarFunction {
        self.traits.partition = what;
        self
    }

    /// The same; definitions of tables may call it anywhere, though its value depends on the session.
    pub const fn in_definitions(mut self) -> ScalarFunction {
        self.traits.definition = DefinitionUse::Anywhere;
        self
    }

    /// The same; definitions of tables may not call it.
    pub const fn not_in_definitions(mut self) -> ScalarFunction {
        self.traits.definition = DefinitionUse::Nowhere;
        self
    }

    /// The same; it runs SQL statements, so each call counts.
    pub const fn runs_statements(mut self) -> ScalarFunction {
        self.traits.statements = RunsStatements::Yes;
        self.volatile()
    }

    /// The same; its arguments may have names, which it gets as a last argument (see `ArgumentNames::Passed`).
    pub const fn named_arguments(mut self) -> ScalarFunction {
        self.names = ArgumentNames::Passed;
        self
    }

    /// The same; it is not worth calling on several threads.
    pub const fn one_thread(mut self) -> ScalarFunction {
        self.traits.threads = Threads::One;
        self
    }
}

/// How a function of numbers sees an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberClass {
    /// Exact integer.
    Integer {
        /// `UNSIGNED`.
        unsigned: bool,
    },
    /// Exact number with a fraction.
    Decimal,
    /// Everything else counts as a double.
    Double,
}

/// The number class of a type: strings, temporal values and NULL are doubles.
pub fn number_class(ty: &DataType) -> NumberClass {
    match ty.kind {
        TypeKind::Bit | TypeKind::Year => NumberClass::Integer { unsigned: true },
        TypeKind::Decimal => NumberClass::Decimal,
        _ if ty.is_integer() => NumberClass::Integer { unsigned: ty.unsigned },
        _ => NumberClass::Double,
    }
}

/// Whether any argument may be NULL.
pub fn any_nullable(args: &[ArgInfo]) -> bool {
    args.iter().any(|arg| arg.ty.nullable || arg.ty.kind == TypeKind::Null)
}

/// A BIGINT of display width `length`.
pub fn integer_type(length: u32, nullable: bool) -> DataType {
    DataType::new(TypeKind::BigInt, length, 0).with_nullable(nullable)
}

/// A DOUBLE with the fixed decimals that the argument's type has, if it has any.
pub fn double_type_like(ty: &DataType) -> DataType {
    match ty.kind {
        TypeKind::Float | TypeKind::Double if ty.decimals < NOT_FIXED_DECIMALS => {
            DataType::new(TypeKind::Double, 17 + u32::from(ty.decimals), ty.decimals)
        }
        _ => DataType::double(),
    }
}

/// A string of at most `characters` in `collation`: VARCHAR, MEDIUMTEXT or LONGTEXT by size, binary for the binary collation.
pub fn text_type(characters: u64, collation: CollationId) -> DataType {
    if collation == CollationId::BINARY {
        return binary_type(characters);
    }
    let bytes = characters.saturating_mul(CHARACTER_BYTES_MAX);
    let kind = match bytes {
        ..=VARCHAR_BYTES_MAX => TypeKind::VarChar,
        _ if bytes <= MEDIUM_BYTES_MAX => TypeKind::MediumText,
        _ => TypeKind::LongText,
    };
    let length = characters.min(u64::from(u32::MAX) / CHARACTER_BYTES_MAX) as u32;
    let mut ty = DataType::new(kind, length, 0);
    ty.collation = collation;
    ty
}

/// A binary string of at most `bytes`.
pub fn binary_type(bytes: u64) -> DataType {
    let kind = match bytes {
        ..=VARCHAR_BYTES_MAX => TypeKind::VarBinary,
        _ if bytes <= MEDIUM_BYTES_MAX => TypeKind::MediumBlob,
        _ => TypeKind::LongBlob,
    };
    DataType::new(kind, bytes.min(u64::from(u32::MAX)) as u32, 0)
}

/// The most characters that a double prints as.
const DOUBLE_CHARACTERS: u64 = 22;

/// The most characters that a value of this type prints as.
pub fn text_length(ty: &DataType) -> u64 {
    let fraction = |whole: u64| match ty.decimals {
        0 => whole,
        digits @ 1..=6 => whole + 1 + u64::from(digits),
        _ => whole + 7,
    };
    match ty.kind {
        TypeKind::Null => 0,
        TypeKind::Decimal => {
            u64::from(ty.length) + u64::from(ty.decimals > 0) + u64::from(!ty.unsigned)
        }
        TypeKind::Date => 10,
        // A time of day is shorter than a duration.
        TypeKind::Time => fraction(if ty.length < 10 + u32::from(ty.decimals) { 8 } else { 10 }),
        TypeKind::DateTime | TypeKind::Timestamp => fraction(19),
        TypeKind::Year => 4,
        TypeKind::Double => DOUBLE_CHARACTERS,
        TypeKind::Json => UNBOUNDED_CHARACTERS / CHARACTER_BYTES_MAX,
        _ => u64::from(ty.length),
    }
}

/// The same where the result is in `collation`: in a binary string every character counts with all its bytes.
pub fn text_length_in(ty: &DataType, collation: CollationId) -> u64 {
    let bytes =
        if collation == CollationId::BINARY && ty.is_text() { CHARACTER_BYTES_MAX } else { 1 };
    text_length(ty).saturating_mul(bytes)
}

/// The collation of a result made of these arguments: binary when any is a binary string, else that of the first column-like
/// text, else of the first literal, else the connection's.
pub fn result_collation(ctx: &BindContext, args: &[ArgInfo]) -> CollationId {
    if !args.is_empty() && args.iter().all(|arg| arg.ty.kind == TypeKind::Null) {
        return CollationId::BINARY;
    }
    let mut literal = None;
    let mut column = None;
    for arg in args {
        let ty = &arg.ty;
        if ty.is_binary() || matches!(ty.kind, TypeKind::Geometry | TypeKind::Bit) {
            return CollationId::BINARY;
        }
        if ty.is_text() || matches!(ty.kind, TypeKind::Enum | TypeKind::Set) {
            let slot = if arg.constant.is_some() { &mut literal } else { &mut column };
            if slot.is_none() {
                *slot = Some(ty.collation);
            }
        } else if matches!(ty.kind, TypeKind::Json) && column.is_none() {
            column = Some(CollationId::UTF8MB4_BIN);
        }
    }
    column.or(literal).unwrap_or(ctx.collation_connection)
}

/// An integer argument; a double or decimal is rounded, anything else is 0.
pub fn integer(value: &Value) -> i128 {
    match value {
        Value::Int(number) => i128::from(*number),
        Value::UInt(number) => i128::from(*number),
        Value::Double(number) => number.round_ties_even() as i128,
        Value::Decimal(number) => i128::from(number.to_i64().0),
        _ => 0,
    }
}

/// Whether a value is an integer, a decimal or a double.
pub fn is_number(value: &Value) -> bool {
    matches!(value, Value::Int(_) | Value::UInt(_) | Value::Decimal(_) | Value::Double(_))
}

/// An integer argument clamped to the signed range.
pub fn integer_i64(value: &Value) -> i64 {
    integer(value).clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

/// A number as a double; a value that is not a number is 0.
pub fn double(value: &Value) -> f64 {
    match value {
        Value::Double(number) => *number,
        Value::Int(number) => *number as f64,
        Value::UInt(number) => *number as f64,
        Value::Decimal(number) => number.to_f64(),
        _ => 0.0,
    }
}

/// A number as a decimal; a value that is not a number is 0.
pub fn decimal(value: &Value) -> Decimal {
    match value {
        Value::Decimal(number) => number.clone(),
        Value::Int(number) => Decimal::from_i64(*number),
        Value::UInt(number) => Decimal::from_u64(*number),
        Value::Double(number) => Decimal::from_f64(*number).unwrap_or_default(),
        _ => Decimal::ZERO,
    }
}

/// The bytes of a text argument; empty for anything else.
pub fn bytes(value: &Value) -> &[u8] {
    match value {
        Value::Bytes(bytes) | Value::Json(bytes) => bytes,
        _ => &[],
    }
}

/// The bytes that a text has in its own character set: the server keeps all text in UTF-8.
pub fn native_bytes(collation: CollationId, text: &[u8]) -> Cow<'_, [u8]> {
    charset::collation_or_binary(collation).charset.native(text)
}

/// The collation of an argument once it is text: numbers and temporal values take the connection's.
pub fn text_collation(ctx: &BindContext, arg: &ArgInfo) -> CollationId {
    // The bytes of these sort as they are.
    if arg.ty.as_fixed().is_some() {
        return CollationId::BINARY;
    }
    result_collation(ctx, std::slice::from_ref(arg))
}

/// A text argument; bytes that are not UTF-8 become replacement characters.
pub fn text(value: &Value) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes(value))
}

/// A double as a result: error 1690 naming the call when it is not finite.
///
/// # Errors
/// 1690.
pub fn finite(number: f64, name: &str, args: &[Value]) -> errors::Result<Value> {
    if number.is_finite() {
        Ok(Value::Double(number))
    } else {
        Err(out_of_range("DOUBLE", name, args))
    }
}

/// Error 1690: `DOUBLE value is out of range in 'exp(1000)'`.
#[cold]
pub fn out_of_range(kind: &str, name: &str, args: &[Value]) -> Error {
    Error::with(ErrorCode::DATA_OUT_OF_RANGE, &[&kind, &call_text(name, args)])
}

/// A call as the reference prints it in messages, with the arguments' values in place of their expressions.
pub fn call_text(name: &str, args: &[Value]) -> String {
    let args: Vec<String> = args.iter().map(argument_text).collect();
    format!("{name}({})", args.join(","))
}

/// A value as messages quote it in a call.
pub fn argument_text(value: &Value) -> String {
    let number = match value {
        Value::Null => return "NULL".into(),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Decimal(number) => {
            let mut digits = Vec::new();
            number.write_text(&mut digits);
            String::from_utf8_lossy(&digits).into_owned()
        }
        Value::Bytes(bytes) => return format!("'{}'", String::from_utf8_lossy(bytes)),
        Value::Date(_) | Value::Time(_) | Value::DateTime(_) | Value::Json(_) => {
            return format!("{value:?}");
        }
    };
    match number.strip_prefix('-') {
        Some(magnitude) => format!("-({magnitude})"),
        None => number,
    }
}

impl FunctionContext<'_> {
    /// Whether a result of `length` bytes fits `max_allowed_packet`; raises warning 1301 for function `name` when not.
    pub fn fits_packet(&mut self, name: &str, length: u64) -> bool {
        if length <= self.max_allowed_packet {
            return true;
        }
        let limit = self.max_allowed_packet;
        self.diagnostics.warn(ErrorCode::WARN_ALLOWED_PACKET_OVERFLOWED, &[&name, &limit]);
        false
    }

    /// Warning 1292, `Truncated incorrect DOUBLE value: 'x'`.
    pub fn warn_truncated(&mut self, kind: &str, value: &str) {
        self.diagnostics.warn(ErrorCode::TRUNCATED_WRONG_VALUE, &[&kind, &value]);
    }
}

/// Digits before the point of an exact type.
pub fn whole_digits(ty: &DataType) -> u32 {
    match ty.kind {
        TypeKind::Decimal => ty.length.saturating_sub(ty.decimals.into()),
        TypeKind::Bit => (ty.length * 3).div_ceil(10).max(1),
        _ if ty.unsigned => ty.length,
        _ => ty.length.saturating_sub(1).max(1),
    }
}

/// The type that holds the values of all arguments, as IF, COALESCE and CASE find it.
pub fn common_type(ctx: &BindContext, args: &[ArgInfo]) -> DataType {
    let types: Vec<DataType> = args.iter().map(|arg| arg.ty.clone()).collect();
    let mut ty = types::common_type(&types);
    if matches!(ty.kind, TypeKind::Float | TypeKind::Double) && ty.decimals >= NOT_FIXED_DECIMALS {
        ty.length = DataType::double().length;
    }
    if ty.is_text() {
        ty.collation = match result_collation(ctx, args) {
            CollationId::BINARY => ctx.collation_connection,
            collation => collation,
        };
    }
    ty
}

/// How an argument becomes a value of the common type.
pub fn coercion_to(ty: &DataType) -> Coercion {
    match ty.kind {
        TypeKind::Null => Coercion::AsIs,
        TypeKind::Float | TypeKind::Double => Coercion::Double,
        TypeKind::Json => Coercion::Json,
        _ if ty.is_integer() => Coercion::Integer,
        _ if ty.is_string() => Coercion::Text,
        _ => Coercion::To(ty.clone()),
    }
}

/// A JSON document's type.
pub fn json_type() -> DataType {
    let mut ty = DataType::new(TypeKind::Json, u32::MAX, 0);
    ty.collation = CollationId::UTF8MB4_BIN;
    ty
}

/// How an argument that is read as it is written is wanted: ENUM and SET by name, everything else as it is.
pub fn named_coercion(ty: &DataType) -> Coercion {
    match ty.kind {
        TypeKind::Enum | TypeKind::Set => Coercion::Text,
        _ => Coercion::AsIs,
    }
}

/// Error 3157 when a document is too deep.
///
/// # Errors
/// 3157.
pub fn json_document(value: &JsonValue) -> errors::Result<Value> {
    if value.depth() > types::json::MAX_DEPTH {
        return Err(Error::with(ErrorCode::JSON_DOCUMENT_TOO_DEEP, &[]));
    }
    Ok(value.to_value())
}
