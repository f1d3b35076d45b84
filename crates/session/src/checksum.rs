//! CHECKSUM TABLE: MySQL's number for the same rows, so that the contents of two servers can be compared.
//!
//! It is the sum of the CRC32 of all rows, whose order does not matter. A row is the bits of its NULLs, then its columns, also virtual and hidden
//! ones, as MySQL has them in memory. The form was found by checksums of tables of MySQL 9.7.

use catalog::{Column, ColumnDefault, Table};
use errors::{Diagnostics, Result};
use exec::RowSink;
use plugin_api::RowSource;
use types::convert::{CastContext, StoreMode, store};
use types::{DataType, SqlMode, TypeKind, Value};

use crate::column_values::{plan_columns, read_columns};
use crate::session::Session;
use definitions::column_values::{kept_value, selected};
use definitions::is_hidden;

/// The checksum of a table's rows.
pub(crate) fn checksum(session: &mut Session, table: &Table) -> Result<u64> {
    let is_summed = |column: &&Column| match &column.generated {
        // Of a functional index. The arrays of multi-valued ones, the partition and dropped columns are in no row of MySQL's.
        Some(generated) if generated.hidden => !generated.stored && generated.elements.is_none(),
        _ => true,
    };
    let mut columns: Vec<&Column> = table.columns.iter().filter(is_summed).collect();
    columns.sort_by_key(|column| is_hidden(column));
    let values: Vec<String> = columns.iter().map(|column| selected(column)).collect();
    let planned = plan_columns(session, table, &values.join(", "), "")?;
    let columns = columns.into_iter().zip(planned.program.columns().iter());
    let mut columns: Vec<Summed<'_>> = columns
        .map(|(column, read)| {
            // Of an index's expression, as computed.
            let nullable = if is_hidden(column) { read.ty.nullable } else { column.ty.nullable };
            // These are selected as other types, and made the column's own by `kept_value`.
            let is_cast = matches!(
                column.ty.kind,
                TypeKind::Enum | TypeKind::Set | TypeKind::Bit | TypeKind::Timestamp
            );
            let from = (is_hidden(column) && !is_cast).then(|| read.ty.clone());
            Summed { column, from, null_bit: nullable.then_some(0) }
        })
        .collect();
    // The bits of virtual columns follow those of the others.
    let mut bits = usize::from(!is_packed(table, &columns));
    let is_virtual = |column: &Column| column.generated.as_ref().is_some_and(|made| !made.stored);
    let (computed, stored): (Vec<_>, Vec<_>) =
        columns.iter_mut().partition(|summed| is_virtual(summed.column));
    for bit in stored.into_iter().chain(computed).filter_map(|summed| summed.null_bit.as_mut()) {
        *bit = bits;
        bits += 1;
    }
    let mut sums = Sums { columns, bits, row: Vec::new(), sum: 0 };
    read_columns(session, &planned, &mut sums)?;
    Ok(u64::from(sums.sum))
}

/// Whether rows have no bit that marks them as deleted: they vary in length.
fn is_packed(table: &Table, columns: &[Summed<'_>]) -> bool {
    let is_dynamic = |(name, value): &(String, String)| {
        name.eq_ignore_ascii_case("ROW_FORMAT") && value.eq_ignore_ascii_case("DYNAMIC")
    };
    let varies = |ty: &DataType| {
        let is_filled = matches!(ty.kind, TypeKind::Char | TypeKind::Binary);
        ty.is_string() && !is_filled && !matches!(ty.kind, TypeKind::Enum | TypeKind::Set)
            || matches!(ty.kind, TypeKind::Json | TypeKind::Geometry | TypeKind::Vector)
    };
    table.options.iter().any(is_dynamic) || columns.iter().any(|summed| varies(&summed.column.ty))
}

struct Summed<'t> {
    column: &'t Column,
    /// The type of an index's expression: another than the column's when what it reads was changed since the index was made.
    from: Option<DataType>,
    /// The bit that is set for NULL.
    null_bit: Option<usize>,
}

struct Sums<'t> {
    columns: Vec<Summed<'t>>,
    /// Of the mark and of columns that can be NULL.
    bits: usize,
    /// The row at hand: kept for its memory.
    row: Vec<u8>,
    sum: u32,
}

impl RowSink for Sums<'_> {
    fn row(&mut self, row: &dyn RowSource) -> Result<()> {
        self.row.clear();
        // Bits that belong to no column are set. When none is left in the last byte, MySQL sets all of that byte.
        self.row.resize(self.bits.div_ceil(8), 0xff);
        let known =
            if self.bits.is_multiple_of(8) { self.bits.saturating_sub(8) } else { self.bits };
        for (at, Summed { column, from, null_bit }) in self.columns.iter().enumerate() {
            let value = match from {
                Some(from) => kept_in_index(&row.value(at)?, from, &column.ty)?,
                None => kept_value(row.value(at)?, &column.ty),
            };
            if let Some(bit) = null_bit.filter(|bit| *bit < known)
                && !value.is_null()
            {
                self.row[bit / 8] &= !(1 << (bit % 8));
            }
            // A NULL has the default's bytes.
            let shown = if let ColumnDefault::Constant(default) = &column.default
                && value.is_null()
            {
                default
            } else {
                &value
            };
            binlog::put_in_row_format(shown, &column.ty, &mut self.row);
        }
        self.sum = self.sum.wrapping_add(binlog::event::checksum(&self.row));
        Ok(())
    }
}

/// The value that an index keeps of its expression's.
fn kept_in_index(value: &Value, from: &DataType, to: &DataType) -> Result<Value> {
    let mut silent = Diagnostics::default();
    let mut context = CastContext::new(SqlMode::default(), &mut silent);
    store(value, from, to, &mut context, StoreMode::Lenient)
}
