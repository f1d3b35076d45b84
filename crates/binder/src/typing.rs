//! Types of operators: arithmetic, bit operations, unification of branches and set operations. Knows no names and no catalog.

use types::{CollationId, DataType, NOT_FIXED_DECIMALS, TypeKind};

/// Most digits of a DECIMAL.
const DECIMAL_PRECISION_MAX: u32 = 65;
/// The maximum number of fraction digits of a DECIMAL.
const DECIMAL_SCALE_MAX: u8 = 30;
/// Display width of a DOUBLE without fixed decimals: 15 digits, sign, point and exponent.
const DOUBLE_WIDTH: u32 = 23;
/// Bytes that a VARCHAR can hold.
const VARCHAR_BYTES_MAX: u64 = 65_535;
/// Bytes of a character.
const CHAR_BYTES_MAX: u32 = 4;
/// Widest BIGINT with sign.
const BIGINT_WIDTH: u32 = 21;

/// The kind of an operand in arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberClass {
    Integer { unsigned: bool },
    Decimal,
    Real,
}

/// The class of a type in arithmetic.
pub(crate) fn number_class(ty: &DataType) -> NumberClass {
    use TypeKind::*;
    match ty.kind {
        TinyInt | SmallInt | MediumInt | Int | BigInt => {
            NumberClass::Integer { unsigned: ty.unsigned }
        }
        Bit | Year => NumberClass::Integer { unsigned: true },
        Decimal => NumberClass::Decimal,
        Date => NumberClass::Integer { unsigned: false },
        Time | DateTime | Timestamp if ty.decimals == 0 => NumberClass::Integer { unsigned: false },
        Time | DateTime | Timestamp => NumberClass::Decimal,
        Null | Float | Double | Char | VarChar | Binary | VarBinary | TinyText | Text
        | MediumText | LongText | TinyBlob | Blob | MediumBlob | LongBlob | Enum | Set | Json
        | Vector | Geometry | Fixed(_) => NumberClass::Real,
    }
}

/// Decimal digits that a number of this type can have.
pub(crate) fn precision(ty: &DataType) -> u32 {
    use TypeKind::*;
    match ty.kind {
        TinyInt | SmallInt | MediumInt | Int | BigInt => {
            ty.length.saturating_sub(u32::from(!ty.unsigned)).clamp(1, 20)
        }
        Decimal => ty.length,
        Year => 4,
        Bit => (ty.length * 301 / 1000 + 1).min(20),
        Date => 8,
        Time => 7 + u32::from(ty.decimals),
        DateTime | Timestamp => 14 + u32::from(ty.decimals),
        _ => DECIMAL_PRECISION_MAX,
    }
}

/// Fraction digits in exact arithmetic.
fn scale(ty: &DataType) -> u8 {
    match ty.kind {
        TypeKind::Decimal | TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp => {
            ty.decimals
        }
        _ => 0,
    }
}

/// Fraction digits in floating arithmetic.
fn real_decimals(ty: &DataType) -> u8 {
    match number_class(ty) {
        NumberClass::Integer { .. } => 0,
        NumberClass::Decimal => ty.decimals,
        NumberClass::Real => match ty.kind {
            TypeKind::Float | TypeKind::Double => ty.decimals,
            _ => NOT_FIXED_DECIMALS,
        },
    }
}

/// A DOUBLE with `decimals` fraction digits.
fn double_with(decimals: u8) -> DataType {
    let decimals = decimals.min(NOT_FIXED_DECIMALS);
    let width =
        if decimals == NOT_FIXED_DECIMALS { DOUBLE_WIDTH } else { 17 + u32::from(decimals) };
    DataType::new(TypeKind::Double, width, decimals)
}

/// A BIGINT of this many digits.
fn integer_with(digits: u32, unsigned: bool) -> DataType {
    let mut ty = DataType::bigint();
    ty.length = (digits + u32::from(!unsigned)).min(BIGINT_WIDTH);
    ty.unsigned = unsigned;
    ty
}

/// The arithmetic operators that share a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    IntegerDivide,
    Modulo,
}

/// The result type of `left op right`.
pub(crate) fn arithmetic(
    op: Arithmetic,
    left: &DataType,
    right: &DataType,
    division_increment: u8,
    subtract_signed: bool,
) -> DataType {
    let nullable = left.nullable || right.nullable;
    let (a, b) = (number_class(left), number_class(right));
    let real = a == NumberClass::Real || b == NumberClass::Real;
    let decimal = a == NumberClass::Decimal || b == NumberClass::Decimal;
    let any_unsigned = matches!(a, NumberClass::Integer { unsigned: true })
        || matches!(b, NumberClass::Integer { unsigned: true });
    // An exact result is unsigned when both operands are; that of MOD, when the first one is.
    let is_unsigned =
        |ty: &DataType| ty.unsigned && (ty.is_integer() || ty.kind == TypeKind::Decimal);
    let unsigned_decimal = match op {
        Arithmetic::Modulo => is_unsigned(left),
        Arithmetic::Subtract if subtract_signed => false,
        Arithmetic::Add
        | Arithmetic::Subtract
        | Arithmetic::Multiply
        | Arithmetic::Divide
        | Arithmetic::IntegerDivide => is_unsigned(left) && is_unsigned(right),
    };
    let ty = match op {
        Arithmetic::IntegerDivide => {
            let unsigned = any_unsigned || is_unsigned(left) || is_unsigned(right);
            integer_with(display_width(left).saturating_sub(1).max(1), unsigned)
        }
        Arithmetic::Divide if real => {
            let decimals = real_decimals(left).max(real_decimals(right));
            double_with(decimals.saturating_add(division_increment))
        }
        Arithmetic::Divide => {
            let digits = precision(left) + u32::from(scale(right)) + u32::from(division_increment);
            let scale = (scale(left) + division_increment).min(DECIMAL_SCALE_MAX);
            DataType::decimal(digits.min(DECIMAL_PRECISION_MAX), scale)
        }
        _ if real => double_with(real_decimals(left).max(real_decimals(right))),
        Arithmetic::Add | Arithmetic::Subtract => {
            let scale = scale(left).max(scale(right)).min(DECIMAL_SCALE_MAX);
            let whole = whole_digits(left).max(whole_digits(right)) + 1;
            exact(whole + u32::from(scale), scale, decimal, any_unsigned, op, subtract_signed)
        }
        Arithmetic::Multiply => {
            let scale = (scale(left) + scale(right)).min(DECIMAL_SCALE_MAX);
            exact(precision(left) + precision(right), scale, decimal, any_unsigned, op, false)
        }
        Arithmetic::Modulo => {
            let scale = scale(left).max(scale(right));
            let unsigned = matches!(a, NumberClass::Integer { unsigned: true });
            let digits = precision(left).max(precision(right));
            exact(digits.max(u32::from(scale) + 1), scale, decimal, unsigned, op, false)
        }
    };
    let unsigned = if ty.kind == TypeKind::Decimal { unsigned_decimal } else { ty.unsigned };
    let ty = DataType { unsigned, ..ty };
    let null_on_zero =
        matches!(op, Arithmetic::Divide | Arithmetic::IntegerDivide | Arithmetic::Modulo);
    ty.with_nullable(nullable || null_on_zero)
}

/// A literal may have more fraction digits than a type: what they leave of its digits counts as whole ones.
fn whole_digits(ty: &DataType) -> u32 {
    let digits = precision(ty).min(DECIMAL_PRECISION_MAX);
    digits.saturating_sub(u32::from(scale(ty).min(DECIMAL_SCALE_MAX)))
}

fn exact(
    digits: u32,
    scale: u8,
    decimal: bool,
    unsigned: bool,
    op: Arithmetic,
    subtract_signed: bool,
) -> DataType {
    if decimal {
        return DataType::decimal(digits.min(DECIMAL_PRECISION_MAX), scale);
    }
    let unsigned = unsigned && !(op == Arithmetic::Subtract && subtract_signed);
    integer_with(digits, unsigned)
}

/// Characters that a value of this type needs as text.
pub(crate) fn display_width(ty: &DataType) -> u32 {
    use TypeKind::*;
    let fraction = u32::from(ty.decimals.min(6));
    let point = u32::from(ty.decimals > 0 && ty.decimals <= 30);
    match ty.kind {
        Null => 0,
        Decimal => ty.length + point + u32::from(!ty.unsigned),
        Date => 10,
        Time => 10 + fraction + point,
        DateTime | Timestamp => 19 + fraction + point,
        Year => 4,
        Bit => ty.length.div_ceil(8),
        Json => u32::MAX / 4,
        TinyInt | SmallInt | MediumInt | Int | BigInt | Float | Double | Char | VarChar
        | Binary | VarBinary | TinyText | Text | MediumText | LongText | TinyBlob | Blob
        | MediumBlob | LongBlob | Enum | Set | Vector | Geometry | Fixed(_) => ty.length,
    }
}

/// A text or binary string of at most `length` characters (bytes).
pub(crate) fn string_type(length: u32, collation: CollationId) -> DataType {
    let binary = collation == CollationId::BINARY;
    let bytes = u64::from(length) * if binary { 1 } else { 4 };
    let kind = match (bytes, binary) {
        (0..=VARCHAR_BYTES_MAX, true) => TypeKind::VarBinary,
        (0..=VARCHAR_BYTES_MAX, false) => TypeKind::VarChar,
        (0..=0xFF_FFFF, true) => TypeKind::MediumBlob,
        (0..=0xFF_FFFF, false) => TypeKind::MediumText,
        (_, true) => TypeKind::LongBlob,
        (_, false) => TypeKind::LongText,
    };
    let mut ty = DataType::new(kind, length, 0);
    ty.collation = collation;
    ty
}

/// Whether a value counts as a string in comparisons and unification.
pub(crate) fn is_stringy(ty: &DataType) -> bool {
    ty.is_string() || matches!(ty.kind, TypeKind::Enum | TypeKind::Set)
}

fn integer_rank(kind: TypeKind) -> Option<u8> {
    use TypeKind::*;
    Some(match kind {
        TinyInt => 0,
        SmallInt => 1,
        Year => 1,
        MediumInt => 2,
        Int => 3,
        Bit => 4,
        BigInt => 4,
        _ => return None,
    })
}

fn integer_kind(rank: u8) -> TypeKind {
    match rank {
        0 => TypeKind::TinyInt,
        1 => TypeKind::SmallInt,
        2 => TypeKind::MediumInt,
        3 => TypeKind::Int,
        _ => TypeKind::BigInt,
    }
}

/// The type that can hold values of all `types` (CASE, COALESCE, UNION). `collation` is that of a textual result.
pub(crate) fn unify(types: &[DataType], collation: CollationId) -> DataType {
    let nullable = types.iter().any(|ty| ty.nullable);
    let mut known = types.iter().filter(|ty| ty.kind != TypeKind::Null);
    let Some(first) = known.next() else {
        return string_type(0, CollationId::BINARY);
    };
    let mut ty = first.clone();
    for next in known {
        ty = unify_pair(&ty, next, collation);
    }
    if ty.is_text() {
        ty.collation = collation;
    }
    if ty.is_text() && collation == CollationId::BINARY {
        ty = string_type(ty.length, collation);
    }
    // A text may be no value of such a type.
    let may_fail = ty.as_fixed().is_some() && types.iter().any(is_stringy);
    ty.with_nullable(nullable || may_fail)
}

fn unify_pair(a: &DataType, b: &DataType, collation: CollationId) -> DataType {
    use TypeKind::*;
    if a.kind == b.kind && a.members == b.members && a.unsigned == b.unsigned {
        return same_kind(a, b);
    }
    // Texts and bytes become values of the type.
    if a.as_fixed().is_some() && b.is_string() {
        return a.clone();
    }
    if b.as_fixed().is_some() && a.is_string() {
        return b.clone();
    }
    if let Some(ty) = unify_numbers(a, b) {
        return ty;
    }
    let fraction = a.decimals.max(b.decimals).min(6);
    if a.is_temporal() && b.is_temporal() {
        let length = if fraction > 0 { 20 + u32::from(fraction) } else { 19 };
        return DataType::new(DateTime, length, fraction);
    }
    let raw = |ty: &DataType| ty.is_binary() || ty.kind == Geometry;
    let binary = raw(a) || raw(b);
    let bytes = |ty: &DataType| {
        let text = binary && ty.is_text() && ty.collation != CollationId::BINARY;
        display_width(ty).saturating_mul(if text { CHAR_BYTES_MAX } else { 1 })
    };
    let width = bytes(a).max(bytes(b));
    let collation = if binary { CollationId::BINARY } else { collation };
    if matches!((a.kind, b.kind), (Json, _) | (_, Json)) {
        return string_type(u32::MAX / 4, collation);
    }
    let mut ty = string_type(width, collation);
    if a.is_blob() || b.is_blob() {
        let larger = if blob_rank(a.kind) >= blob_rank(b.kind) { a.kind } else { b.kind };
        ty.kind = match (larger, binary) {
            (TinyText | TinyBlob, false) => TinyText,
            (TinyText | TinyBlob, true) => TinyBlob,
            (Text | Blob, false) => Text,
            (Text | Blob, true) => Blob,
            (MediumText | MediumBlob, false) => MediumText,
            (MediumText | MediumBlob, true) => MediumBlob,
            (_, false) => LongText,
            (_, true) => LongBlob,
        };
    } else if let Some(fixed) = fixed_kind(a, b) {
        ty.kind = fixed;
    }
    ty
}

/// CHAR with CHAR, a number or a datetime stays CHAR.
fn fixed_kind(a: &DataType, b: &DataType) -> Option<TypeKind> {
    let is_plain = |ty: &DataType| ty.is_numeric() || ty.is_temporal();
    match (a.kind, b.kind) {
        (TypeKind::Char, TypeKind::Char) | (TypeKind::Binary, TypeKind::Binary) => Some(a.kind),
        (TypeKind::Char, _) if is_plain(b) => Some(TypeKind::Char),
        (_, TypeKind::Char) if is_plain(a) => Some(TypeKind::Char),
        _ => None,
    }
}

fn blob_rank(kind: TypeKind) -> u8 {
    use TypeKind::*;
    match kind {
        TinyText | TinyBlob => 1,
        Text | Blob => 2,
        MediumText | MediumBlob => 3,
        LongText | LongBlob | Json | Geometry | Vector => 4,
        _ => 0,
    }
}

fn same_kind(a: &DataType, b: &DataType) -> DataType {
    let mut ty = a.clone();
    ty.zerofill = false;
    match ty.kind {
        TypeKind::Geometry => ty = DataType::geometry(),
        TypeKind::Decimal => {
            let scale = a.decimals.max(b.decimals);
            let whole = whole_digits(a).max(whole_digits(b));
            ty.unsigned = false;
            ty.length = (whole + u32::from(scale)).min(DECIMAL_PRECISION_MAX);
            ty.decimals = scale;
        }
        TypeKind::Float | TypeKind::Double => {
            if a.decimals != b.decimals {
                ty.decimals = NOT_FIXED_DECIMALS;
            }
            ty.length = a.length.max(b.length);
        }
        _ => {
            ty.length = a.length.max(b.length);
            ty.decimals = a.decimals.max(b.decimals);
        }
    }
    ty
}

fn unify_numbers(a: &DataType, b: &DataType) -> Option<DataType> {
    use TypeKind::*;
    if let (Some(x), Some(y)) = (integer_rank(a.kind), integer_rank(b.kind)) {
        let rank = x.max(y);
        let unsigned_a = a.unsigned || a.kind == Bit;
        let unsigned_b = b.unsigned || b.kind == Bit;
        let width = a.length.max(b.length);
        if unsigned_a == unsigned_b {
            let mut ty = DataType::new(integer_kind(rank), width, 0);
            ty.unsigned = unsigned_a;
            return Some(ty);
        }
        let unsigned_rank = if unsigned_a { x } else { y };
        let rank = if unsigned_rank >= rank { rank + 1 } else { rank };
        if rank > 4 {
            let bits = matches!(a.kind, Bit) || matches!(b.kind, Bit);
            let digits = if bits { precision(a).max(precision(b)) } else { 20 };
            return Some(DataType::decimal(digits, 0));
        }
        return Some(DataType::new(integer_kind(rank), width, 0));
    }
    let numeric = |ty: &DataType| integer_rank(ty.kind).is_some() || ty.is_numeric();
    if !numeric(a) || !numeric(b) {
        return None;
    }
    if matches!(a.kind, Float | Double) || matches!(b.kind, Float | Double) {
        let decimals = real_decimals(a).max(real_decimals(b));
        return Some(double_with(decimals));
    }
    let scale = scale(a).max(scale(b));
    let whole = whole_digits(a).max(whole_digits(b));
    Some(DataType::decimal((whole + u32::from(scale)).min(DECIMAL_PRECISION_MAX), scale))
}
