//! The common type of several values: UNION, CASE, COALESCE; and the collation that wins when texts are combined.

use charset::{Encoding, collation_by_name, collation_or_binary};
use errors::{Error, ErrorCode, Result};

use crate::{CollationId, DataType, NOT_FIXED_DECIMALS, TypeKind};

/// The coercibility of a collation: the lower wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Coercibility {
    /// A `COLLATE` clause.
    Explicit = 0,
    /// Two collations that could not be reconciled.
    None = 1,
    /// A column.
    Implicit = 2,
    /// `USER()`, `VERSION()`.
    SystemConstant = 3,
    /// A literal.
    Coercible = 4,
    /// A number or date.
    Numeric = 5,
    /// NULL.
    Ignorable = 6,
}

impl Coercibility {
    /// The word in error 1267.
    pub fn name(self) -> &'static str {
        match self {
            Coercibility::Explicit => "EXPLICIT",
            Coercibility::None => "NONE",
            Coercibility::Implicit => "IMPLICIT",
            Coercibility::SystemConstant => "SYSCONST",
            Coercibility::Coercible => "COERCIBLE",
            Coercibility::Numeric => "NUMERIC",
            Coercibility::Ignorable => "IGNORABLE",
        }
    }
}

/// The collation of an expression and its coercibility.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollationOf {
    /// The collation.
    pub collation: CollationId,
    /// How firmly.
    pub coercibility: Coercibility,
    /// It is known that all characters are ASCII.
    pub ascii: bool,
}

impl CollationOf {
    /// A collation and its coercibility.
    pub fn new(collation: CollationId, coercibility: Coercibility) -> CollationOf {
        CollationOf { collation, coercibility, ascii: false }
    }
}

/// Whether `wide` holds every text of `narrow`, and wins for that.
fn is_superset(wide: &CollationOf, narrow: &CollationOf) -> bool {
    let (a, b) = (
        collation_or_binary(wide.collation).charset,
        collation_or_binary(narrow.collation).charset,
    );
    if wide.coercibility <= narrow.coercibility && narrow.ascii {
        return true;
    }
    a.is_unicode()
        && wide.coercibility <= narrow.coercibility
        && (!b.is_unicode() || a.encoding == Encoding::Utf8mb4 && b.encoding == Encoding::Utf8mb3)
}

/// The collation of two combined; `None` when neither wins.
fn merge(a: CollationOf, b: CollationOf) -> Option<CollationOf> {
    let ascii = a.ascii && b.ascii;
    let pick = |winner: CollationOf| Some(CollationOf { ascii, ..winner });
    if a.collation == b.collation {
        return pick(if a.coercibility <= b.coercibility { a } else { b });
    }
    let (x, y) = (collation_or_binary(a.collation), collation_or_binary(b.collation));
    if x.charset.name != y.charset.name {
        let binary = a.collation == CollationId::BINARY || b.collation == CollationId::BINARY;
        if binary {
            let a_wins = if a.collation == CollationId::BINARY {
                a.coercibility <= b.coercibility
            } else {
                a.coercibility < b.coercibility
            };
            return pick(if a_wins { a } else { b });
        }
        if is_superset(&a, &b) {
            return pick(a);
        }
        if is_superset(&b, &a) {
            return pick(b);
        }
        return None;
    }
    if a.coercibility != b.coercibility {
        return pick(if a.coercibility < b.coercibility { a } else { b });
    }
    if a.coercibility == Coercibility::Explicit {
        return None;
    }
    if x.is_bin() {
        return pick(a);
    }
    if y.is_bin() {
        return pick(b);
    }
    let bin = collation_by_name(&format!("{}_bin", x.charset.name)).map_or(a.collation, |c| c.id);
    Some(CollationOf { collation: bin, coercibility: Coercibility::None, ascii })
}

/// The collation that texts of these expressions are compared or joined in. Error 1267 (two), 1270 (three) or 1271
/// (more) when they do not mix; `operation` is named in it. With `compare`, an undecided result is an error too.
pub fn aggregate_collations(
    parts: &[CollationOf],
    operation: &str,
    compare: bool,
) -> Result<CollationOf> {
    let Some((first, rest)) = parts.split_first() else {
        return Ok(CollationOf::new(CollationId::BINARY, Coercibility::Ignorable));
    };
    let mut merged = *first;
    for part in rest {
        merged = merge(merged, *part).ok_or_else(|| illegal_mix(parts, operation))?;
    }
    if compare && merged.coercibility == Coercibility::None {
        return Err(illegal_mix(parts, operation));
    }
    Ok(merged)
}

#[cold]
fn illegal_mix(parts: &[CollationOf], operation: &str) -> Error {
    let names: Vec<(&str, &str)> = parts
        .iter()
        .map(|part| (collation_or_binary(part.collation).name, part.coercibility.name()))
        .collect();
    match names[..] {
        [a, b] => Error::with(
            ErrorCode::CANT_AGGREGATE_2COLLATIONS,
            &[&a.0, &a.1, &b.0, &b.1, &operation],
        ),
        [a, b, c] => Error::with(
            ErrorCode::CANT_AGGREGATE_3COLLATIONS,
            &[&a.0, &a.1, &b.0, &b.1, &c.0, &c.1, &operation],
        ),
        _ => Error::with(ErrorCode::CANT_AGGREGATE_NCOLLATIONS, &[&operation]),
    }
}

/// Characters of the longest text of a type.
pub fn display_length(ty: &DataType) -> u32 {
    use TypeKind::*;
    let fraction = if ty.decimals > 0 { 1 + u32::from(ty.decimals.min(6)) } else { 0 };
    match ty.kind {
        Null => 0,
        TinyInt => 3 + u32::from(!ty.unsigned),
        SmallInt => 5 + u32::from(!ty.unsigned),
        MediumInt => 8 + u32::from(!ty.unsigned),
        Int => 10 + u32::from(!ty.unsigned),
        // Literals have an exact length.
        BigInt => ty.length.clamp(1, 20),
        Decimal => ty.length + u32::from(ty.decimals > 0) + u32::from(!ty.unsigned),
        Float => 12,
        Double => 22,
        Bit => ty.length,
        Year => 4,
        Date => 10,
        Time => 10 + fraction,
        DateTime | Timestamp => 19 + fraction,
        Enum => members(ty).max().unwrap_or(0),
        Set => members(ty).map(|length| length + 1).sum::<u32>().saturating_sub(1),
        Json => u32::MAX / 4,
        TinyText | TinyBlob => 255,
        Text | Blob => 65_535,
        MediumText | MediumBlob => 16_777_215,
        LongText | LongBlob => u32::MAX,
        Char | VarChar | Binary | VarBinary | Vector | Geometry | Fixed(_) => ty.length,
    }
}

fn members(ty: &DataType) -> impl Iterator<Item = u32> {
    ty.members
        .iter()
        .flat_map(|members| members.names())
        .map(|name| charset::char_length(name) as u32)
}

/// Digits before the point of a numeric type.
fn integer_digits(ty: &DataType) -> u32 {
    use TypeKind::*;
    match ty.kind {
        TinyInt | Year => {
            if ty.kind == Year {
                4
            } else {
                3
            }
        }
        SmallInt => 5,
        MediumInt => 8,
        Int => 10,
        // The type of a literal is as wide as its digits and a sign.
        BigInt if !ty.unsigned => ty.length.saturating_sub(1).clamp(1, 19),
        BigInt => ty.length.clamp(1, 20),
        Bit => ty.length,
        Decimal => ty.length.saturating_sub(u32::from(ty.decimals)),
        _ => 0,
    }
}

fn integer_rank(kind: TypeKind) -> Option<u8> {
    use TypeKind::*;
    Some(match kind {
        Year => 0,
        TinyInt => 1,
        SmallInt => 2,
        MediumInt => 3,
        Int => 4,
        BigInt => 5,
        _ => return None,
    })
}

fn wider(a: &DataType, b: &DataType) -> DataType {
    if integer_rank(a.kind) >= integer_rank(b.kind) { a.clone() } else { b.clone() }
}

fn merge_integers(a: &DataType, b: &DataType) -> DataType {
    // A YEAR is a SMALLINT of either sign.
    let year_as = |year: &DataType, other: &DataType| {
        let mut ty = DataType::new(TypeKind::SmallInt, year.length, 0);
        ty.unsigned = other.unsigned;
        ty
    };
    if a.kind == TypeKind::Year {
        return merge_integers(&year_as(a, b), b);
    }
    if b.kind == TypeKind::Year {
        return merge_integers(a, &year_as(b, a));
    }
    let mut ty = wider(a, b);
    ty.length = a.length.max(b.length);
    ty.zerofill = false;
    if a.unsigned == b.unsigned {
        return ty;
    }
    // Mixed signed and unsigned types need the next wider type.
    ty.unsigned = false;
    let unsigned_rank = integer_rank(if a.unsigned { a.kind } else { b.kind });
    let signed_rank = integer_rank(if a.unsigned { b.kind } else { a.kind });
    if unsigned_rank < signed_rank {
        return ty;
    }
    match ty.kind {
        TypeKind::Year | TypeKind::TinyInt => ty.kind = TypeKind::SmallInt,
        TypeKind::SmallInt => ty.kind = TypeKind::MediumInt,
        TypeKind::MediumInt => ty.kind = TypeKind::Int,
        TypeKind::Int => ty.kind = TypeKind::BigInt,
        _ => return DataType::decimal(20, 0),
    }
    ty
}

/// BIT is an unsigned BIGINT.
fn merge_bits(bits: &DataType, other: &DataType) -> DataType {
    if other.unsigned || other.kind == TypeKind::Year {
        return DataType::bigint_unsigned();
    }
    DataType::decimal(integer_digits(other).max(bits.length), 0)
}

fn merge_decimals(a: &DataType, b: &DataType) -> DataType {
    let scale = |ty: &DataType| if ty.kind == TypeKind::Decimal { ty.decimals } else { 0 };
    let decimals = scale(a).max(scale(b));
    let digits = integer_digits(a).max(integer_digits(b));
    let mut ty = DataType::decimal((digits + u32::from(decimals)).clamp(1, 65), decimals);
    ty.unsigned = a.unsigned && b.unsigned;
    ty
}

fn merge_floats(a: &DataType, b: &DataType) -> DataType {
    use TypeKind::*;
    let narrow = |ty: &DataType| matches!(ty.kind, Float | TinyInt | SmallInt | MediumInt | Year);
    // The reference is not symmetrical here.
    let narrow_after = narrow(b) || b.kind == BigInt;
    let kind = if narrow(a) && narrow_after { Float } else { Double };
    let mut ty = DataType::new(kind, if kind == Float { 12 } else { 22 }, NOT_FIXED_DECIMALS);
    if a.kind == b.kind && a.decimals == b.decimals {
        ty.decimals = a.decimals;
        ty.length = a.length.max(b.length);
    }
    ty.unsigned = a.unsigned && b.unsigned;
    ty
}

fn merge_temporals(a: &DataType, b: &DataType) -> DataType {
    let fsp = a.decimals.max(b.decimals).min(6);
    if a.kind == b.kind {
        let mut ty = a.clone();
        ty.decimals = fsp;
        ty.length = a.length.max(b.length);
        return ty;
    }
    DataType::datetime(fsp)
}

/// Rank among the four sizes of TEXT and BLOB.
fn blob_rank(ty: &DataType) -> Option<u8> {
    use TypeKind::*;
    Some(match ty.kind {
        TinyText | TinyBlob => 0,
        Text | Blob => 1,
        MediumText | MediumBlob => 2,
        LongText | LongBlob | Json | Geometry => 3,
        _ => return None,
    })
}

/// The TEXT or BLOB for this many characters or bytes; a character may take four bytes.
fn blob_kind(length: u32, binary: bool) -> TypeKind {
    use TypeKind::*;
    let bytes = u64::from(length) * if binary { 1 } else { 4 };
    match (bytes, binary) {
        (..=255, true) => TinyBlob,
        (..=255, false) => TinyText,
        (..=65_535, true) => Blob,
        (..=65_535, false) => Text,
        (..=16_777_215, true) => MediumBlob,
        (..=16_777_215, false) => MediumText,
        (_, true) => LongBlob,
        (_, false) => LongText,
    }
}

fn blob_length(kind: TypeKind) -> u32 {
    display_length(&DataType::new(kind, 0, 0))
}

fn merge_strings(a: &DataType, b: &DataType) -> DataType {
    use TypeKind::*;
    let raw = |ty: &DataType| {
        ty.is_binary()
            || matches!(ty.kind, Bit | Geometry | Vector) && ty.collation == CollationId::BINARY
    };
    let binary = raw(a) || raw(b);
    // Among bytes a character of text may take four.
    let length_of = |ty: &DataType| {
        let wide = binary && (ty.is_text() || ty.is_enum_or_set());
        display_length(ty).saturating_mul(if wide { 4 } else { 1 })
    };
    let length = length_of(a).max(length_of(b));
    let has_collation = |ty: &DataType| ty.is_text() || ty.is_enum_or_set();
    let collation = if binary {
        CollationId::BINARY
    } else if has_collation(a) {
        a.collation
    } else if has_collation(b) {
        b.collation
    } else {
        CollationId::UTF8MB4_0900_AI_CI
    };
    let any = |kind: TypeKind| a.kind == kind || b.kind == kind;
    let text = |ty: &DataType| ty.is_string() || ty.is_enum_or_set();
    let kind = if blob_rank(a).is_some() || blob_rank(b).is_some() {
        blob_kind(length, binary)
    } else if any(VarChar) || any(VarBinary) || !(text(a) || text(b)) {
        if binary { VarBinary } else { VarChar }
    } else if a.kind == Binary && b.kind == Binary && a.length == b.length {
        Binary
    } else if any(Char) || any(Binary) {
        if binary { Binary } else { Char }
    } else if binary {
        VarBinary
    } else {
        VarChar
    };
    let length =
        if blob_rank(a).is_some() || blob_rank(b).is_some() { blob_length(kind) } else { length };
    let mut ty = DataType::new(kind, length, 0);
    ty.collation = collation;
    ty
}

/// The type that holds values of both.
pub fn merge_types(a: &DataType, b: &DataType) -> DataType {
    use TypeKind::*;
    let nullable = a.nullable || b.nullable;
    let integer = |ty: &DataType| ty.is_integer() || ty.kind == Year;
    let exact = |ty: &DataType| integer(ty) || matches!(ty.kind, Decimal | Bit);
    let merged = match (a.kind, b.kind) {
        (Null, Null) => DataType::null(),
        (Null, _) => b.clone(),
        (_, Null) => a.clone(),
        (Year, Year) | (Json, Json) | (Vector, Vector) => a.clone(),
        // Texts and bytes become values of the type.
        (Fixed(_), _) if a.kind == b.kind || b.is_string() => a.clone(),
        (_, Fixed(_)) if a.is_string() => b.clone(),
        (Geometry, Geometry) => DataType { nullable: a.nullable, ..DataType::geometry() },
        (Bit, Bit) => {
            if a.length >= b.length {
                a.clone()
            } else {
                b.clone()
            }
        }
        (Bit, _) if integer(b) => merge_bits(a, b),
        (_, Bit) if integer(a) => merge_bits(b, a),
        _ if integer(a) && integer(b) => merge_integers(a, b),
        _ if exact(a) && exact(b) => merge_decimals(a, b),
        _ if a.is_numeric() && b.is_numeric() => merge_floats(a, b),
        _ if a.is_temporal() && b.is_temporal() => merge_temporals(a, b),
        _ => merge_strings(a, b),
    };
    let nullable = nullable || matches!((a.kind, b.kind), (Null, _) | (_, Null));
    merged.with_nullable(nullable)
}

/// The type of UNION columns, CASE, COALESCE, IFNULL, LEAST of strings: holds the values of all. Nullable when any is.
/// The collation of texts is that of the first text, `binary` when any is; see `aggregate_collations`.
pub fn common_type(types: &[DataType]) -> DataType {
    let Some((first, rest)) = types.split_first() else { return DataType::null() };
    rest.iter().fold(first.clone(), |merged, ty| merge_types(&merged, ty))
}
