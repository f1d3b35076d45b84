//! Values as JSON texts.

use errors::Result;
use types::{DataType, ResultCell, TypeKind, json, to_text};

/// Appends a cell as JSON: dates are strings, documents stay documents, vectors are arrays of numbers, binary strings and geometries are
/// hexadecimal digits.
pub(crate) fn put_json(ty: &DataType, cell: ResultCell<'_>, out: &mut Vec<u8>) -> Result<()> {
    use TypeKind::*;
    if matches!(cell, ResultCell::Null) {
        out.extend_from_slice(b"null");
        return Ok(());
    }
    match ty.kind {
        Null | TinyInt | SmallInt | MediumInt | Int | BigInt | Bit | Year | Float | Double
        | Decimal => {
            // Without ZEROFILL, and bits as a number.
            to_text(&cell.into_value()?, &DataType::new(Decimal, ty.length, ty.decimals), out);
        }
        Json => {
            cell.write_text(ty, out)?;
        }
        Char | VarChar | TinyText | Text | MediumText | LongText | Enum | Set | Date | Time
        | DateTime | Timestamp | Fixed(_) => {
            let mut text = Vec::new();
            cell.write_text(ty, &mut text)?;
            json::quote(&text, out);
        }
        Binary | VarBinary | TinyBlob | Blob | MediumBlob | LongBlob | Geometry => {
            let mut bytes = Vec::new();
            cell.write_text(ty, &mut bytes)?;
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            json::quote(digits.as_bytes(), out);
        }
        Vector => {
            let mut bytes = Vec::new();
            cell.write_text(ty, &mut bytes)?;
            let numbers = bytes.chunks_exact(4).filter_map(|chunk| chunk.first_chunk());
            let numbers: Vec<String> =
                numbers.map(|number| f32::from_le_bytes(*number).to_string()).collect();
            out.extend_from_slice(format!("[{}]", numbers.join(",")).as_bytes());
        }
    }
    Ok(())
}
