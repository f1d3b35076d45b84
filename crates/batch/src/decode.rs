//! From records to columns.

use rows::layout::{KeyPlace, Layout};
use types::key::{fixed_width, split_key_record};
use types::record::{Cell, ColumnPlace, decode_cell, integer_bits};
use types::{DataType, TypeKind, Value};

use crate::column::{Column, Data, Texts};
use crate::{Fit, Unfit};

/// A stored column that a pipeline reads.
pub struct ColumnReader {
    place: ColumnPlace,
    ty: DataType,
    /// For records older than the column.
    missing: Value,
    /// For key records.
    key: Option<KeyPlace>,
}

/// Decimals of up to this many digits fit 128 bits.
const DECIMAL_DIGITS_MAX: u32 = 38;

/// The vector for columns of a type.
pub(super) fn empty_data(ty: &DataType) -> Option<Data> {
    use TypeKind::*;
    Some(match ty.kind {
        TinyInt | SmallInt | MediumInt | Int | BigInt if ty.unsigned => Data::UInt(Vec::new()),
        TinyInt | SmallInt | MediumInt | Int | BigInt => Data::Int(Vec::new()),
        Year | Bit | Enum | Set => Data::UInt(Vec::new()),
        Float | Double => Data::Double(Vec::new()),
        Decimal if ty.length <= DECIMAL_DIGITS_MAX => Data::Decimal(Vec::new(), ty.decimals),
        Date => Data::Date(Vec::new()),
        Time => Data::Time(Vec::new()),
        DateTime | Timestamp => Data::DateTime(Vec::new()),
        Char | VarChar | Binary | VarBinary | TinyText | Text | MediumText | LongText
        | TinyBlob | Blob | MediumBlob | LongBlob | Fixed(_) => Data::Texts(Texts::default()),
        Null | Decimal | Json | Vector | Geometry => return None,
    })
}

impl ColumnReader {
    /// `None` when the column's type has no vector.
    pub fn new(layout: &Layout, column: usize) -> Option<ColumnReader> {
        let ty = layout.types().get(column)?.clone();
        empty_data(&ty)?;
        let key = layout.key_place(column).cloned();
        Some(ColumnReader {
            place: layout.place(column),
            missing: layout.stand_in(column),
            ty,
            key,
        })
    }

    /// The column of some key records.
    pub fn read_keys<'a>(&self, records: impl ExactSizeIterator<Item = &'a [u8]>) -> Fit<Column> {
        let place = self.key.as_ref().ok_or(Unfit)?;
        let mut column = Column::new(empty_data(&self.ty).ok_or(Unfit)?);
        reserve(&mut column.data, records.len());
        let width = fixed_width(&self.ty).filter(|_| self.ty.is_integer() && !place.descending);
        if let (Some(offset), Some(width)) = (place.offset, width) {
            for record in records {
                let (index, primary) = split_key_record(record).ok_or(Unfit)?;
                let key = if place.in_primary { primary } else { index };
                let bytes = key.get(offset..offset + width).ok_or(Unfit)?;
                let bits = bytes.iter().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
                let unused = 64 - 8 * width as u32;
                match &mut column.data {
                    Data::UInt(values) => values.push(bits),
                    Data::Int(values) => {
                        values.push(((bits << unused ^ 1 << 63) as i64) >> unused);
                    }
                    _ => return Err(Unfit),
                }
            }
            return Ok(column);
        }
        for record in records {
            column.push(&place.value(record).ok_or(Unfit)?)?;
        }
        Ok(column)
    }

    /// The column of some records.
    pub fn read<'a>(
        &self,
        layout: &Layout,
        records: impl ExactSizeIterator<Item = &'a [u8]>,
    ) -> Fit<Column> {
        let mut column = Column::new(empty_data(&self.ty).ok_or(Unfit)?);
        reserve(&mut column.data, records.len());
        let unsigned = self.ty.unsigned;
        for record in records {
            let bytes = match layout.cell_at(record, &self.place)? {
                Cell::Bytes(bytes) => bytes,
                Cell::Null => {
                    column.push_null();
                    continue;
                }
                Cell::Missing => {
                    column.push(&self.missing)?;
                    continue;
                }
            };
            match &mut column.data {
                Data::Int(values) => values.push(integer_bits(bytes, false)),
                Data::UInt(values) if unsigned => values.push(integer_bits(bytes, true) as u64),
                Data::Texts(texts) => texts.push(bytes),
                Data::Decimal(values, _) if bytes.len() <= 8 => values.push(short_decimal(bytes)),
                Data::Date(values) if bytes.len() == 3 => {
                    values.push(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]));
                }
                data => data.push(&decode_cell(bytes, &self.ty).map_err(|_| Unfit)?)?,
            }
            column.note_value();
        }
        Ok(column)
    }
}

fn reserve(data: &mut Data, rows: usize) {
    match data {
        Data::Int(values) | Data::Time(values) => values.reserve(rows),
        Data::UInt(values) | Data::DateTime(values) => values.reserve(rows),
        Data::Double(values) => values.reserve(rows),
        Data::Decimal(values, _) => values.reserve(rows),
        Data::Date(values) => values.reserve(rows),
        Data::Texts(_) => {}
    }
}

/// A decimal of up to eight bytes, see `Decimal::write_key`.
#[inline]
fn short_decimal(bytes: &[u8]) -> i128 {
    let bits = bytes.iter().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
    let sign = 1u64 << (8 * bytes.len().max(1) - 1);
    match bits & sign != 0 {
        true => i128::from(bits ^ sign),
        false => -i128::from(bits ^ (sign - 1)),
    }
}
