//! Multi-valued index parts, `CAST(expression AS type ARRAY)`: which types their elements may have.

use errors::{Error, Result, bail};
use syntax::ast::{self, ExprKind, TypeName};
use types::{CollationId, DataType, Fixed, TypeKind};

/// Longest elements, in characters or bytes.
const LENGTH_MAX: u64 = 512;
/// Most digits of a DECIMAL, and of its fraction.
const DIGITS_MAX: u64 = 65;
const SCALE_MAX: u32 = 30;
/// Most digits of a fraction of a second.
const FRACTION_MAX: u64 = 6;

/// The cast to an array that a key part consists of.
pub(crate) fn array_cast(expr: &ast::Expr) -> Option<&ast::Cast> {
    let ExprKind::Cast(cast) = &expr.kind else { return None };
    cast.array.then_some(cast)
}

/// The type of the elements of an array.
///
/// # Errors
/// 1235 for types that elements cannot have, 1426 and similar ones for wrong digits.
pub(crate) fn element_type(cast: &ast::Cast) -> Result<DataType> {
    let target = &cast.target;
    if target.charset.is_some() || target.collation.is_some() || target.binary {
        return Err(Error::not_supported("specifying charset for multi-valued index"));
    }
    let fraction = || match target.length.unwrap_or(0) {
        digits if digits > FRACTION_MAX => bail!(TOO_BIG_PRECISION, digits, "CAST", FRACTION_MAX),
        digits => Ok(digits as u8),
    };
    // A fraction has a point before it.
    let width = |whole: u32, digits: u8| whole + u32::from(digits) + u32::from(digits > 0);
    let string = |kind, collation| match target.length {
        Some(length) if length <= LENGTH_MAX => {
            Ok(DataType { collation, ..DataType::new(kind, length as u32, 0) })
        }
        _ => Err(Error::not_supported("CAST-ing data to array of char/binary BLOBs")),
    };
    Ok(match target.name {
        TypeName::Signed | TypeName::BigInt | TypeName::Int => DataType::bigint(),
        TypeName::Unsigned => DataType::bigint_unsigned(),
        TypeName::Char | TypeName::Varchar => {
            string(TypeKind::VarChar, CollationId::UTF8MB4_0900_BIN)?
        }
        TypeName::Binary | TypeName::Varbinary => string(TypeKind::VarBinary, CollationId::BINARY)?,
        TypeName::Decimal => decimal_type(target)?,
        TypeName::Date => DataType::new(TypeKind::Date, 10, 0),
        TypeName::Datetime | TypeName::Timestamp => {
            let digits = fraction()?;
            DataType::new(TypeKind::DateTime, width(19, digits), digits)
        }
        TypeName::Time => {
            let digits = fraction()?;
            DataType::new(TypeKind::Time, width(10, digits), digits)
        }
        TypeName::Uuid => DataType::fixed(Fixed::Uuid),
        TypeName::Inet4 => DataType::fixed(Fixed::Inet4),
        TypeName::Inet6 => DataType::fixed(Fixed::Inet6),
        other => {
            let name = format!("{other:?}").to_uppercase();
            return Err(Error::not_supported(format!("CAST-ing data to array of {name}")));
        }
    }
    .with_nullable(true))
}

fn decimal_type(target: &ast::DataType) -> Result<DataType> {
    let precision = target.length.filter(|length| *length > 0).unwrap_or(10);
    let scale = target.decimals.unwrap_or(0);
    if precision > DIGITS_MAX {
        bail!(TOO_BIG_PRECISION, precision, "CAST", DIGITS_MAX);
    }
    if scale > SCALE_MAX {
        bail!(TOO_BIG_SCALE, scale, "CAST", SCALE_MAX);
    }
    if u64::from(scale) > precision {
        bail!(M_BIGGER_THAN_D, "CAST");
    }
    Ok(DataType::decimal(precision as u32, scale as u8))
}
