//! Places of dropped columns in records: DROP COLUMN leaves the rows as they are, and a hidden column in the place of the dropped one. A copy of the
//! rows has no such places.

use catalog::{Column, ColumnDefault, Generated, Table};
use types::{DataType, TypeKind, Value};

use super::Altered;
use super::algorithm::implicit_default;
use crate::draft::DraftColumn;

/// What stays of a column of `table` that is dropped; `None` when it has no place in the records, or new rows would have no value there: then the rows
/// are copied.
pub(super) fn vacant_place(table: &Table, dropped: &DraftColumn) -> Option<DraftColumn> {
    let origin = dropped.origin?;
    let was = table.columns.get(origin)?;
    let place = was.stored?;
    let value = if was.ty.nullable { Value::Null } else { some_value(&was.ty)? };
    let generated =
        Generated { expression: Column::VACANT.into(), stored: true, hidden: true, elements: None };
    let column = Column {
        // No two columns have the same place.
        name: format!("!dropped!{place}").into(),
        ty: was.ty.clone(),
        stored: None,
        default: ColumnDefault::Constant(value),
        on_update_now: None,
        auto_increment: false,
        generated: Some(generated),
        invisible: true,
        comment: String::new(),
        collation_written: false,
        histogram: None,
        placement: catalog::Placement::default(),
        history: catalog::ColumnHistory::Kept,
    };
    Some(DraftColumn { column, origin: Some(origin), null_written: None, history_written: None })
}

/// Any value of a type without NULL, which every SQL mode allows; `None` when that takes more than the type.
fn some_value(ty: &DataType) -> Option<Value> {
    use TypeKind::*;
    let date = types::Date::new(2000, 1, 1)?;
    Some(match ty.kind {
        Date => Value::Date(date),
        DateTime | Timestamp => Value::DateTime(date.at_midnight()),
        Time => Value::Time(types::Time::ZERO),
        Year => Value::UInt(0),
        Json => types::JsonValue::Null.to_value(),
        Binary => Value::Bytes(vec![0; ty.length as usize].into()),
        Null | TinyInt | SmallInt | MediumInt | Int | BigInt | Bit | Set | Enum | Float
        | Double | Decimal | Char | VarChar | VarBinary | TinyText | Text | MediumText
        | LongText | TinyBlob | Blob | MediumBlob | LongBlob | Vector | Geometry | Fixed(_) => {
            implicit_default(ty)?
        }
    })
}

impl Altered {
    /// Leaves out the places of dropped columns: the rows will be copied.
    pub fn drop_vacant(&mut self) {
        let table = &mut self.table;
        if !table.columns.iter().any(Column::is_vacant) {
            return;
        }
        let vacant: Vec<usize> =
            table.columns.iter().filter(|c| c.is_vacant()).filter_map(|c| c.stored).collect();
        let kept: Vec<bool> = table.columns.iter().map(|column| !column.is_vacant()).collect();
        // Positions and places move up by what is left out before them.
        let column_now = |at: usize| kept[..at].iter().filter(|kept| **kept).count();
        let place_now = |at: usize| at - vacant.iter().filter(|place| **place < at).count();
        for part in table.indexes.iter_mut().flat_map(|index| &mut index.parts) {
            part.column = column_now(part.column);
        }
        for column in table.fulltext.iter_mut().flat_map(|index| &mut index.columns) {
            *column = column_now(*column);
        }
        for column in table.foreign_keys.iter_mut().flat_map(|key| &mut key.columns) {
            *column = column_now(*column);
        }
        let mut at = 0..;
        table.definition.columns.retain(|_| at.next().is_none_or(|at| !vacant.contains(&at)));
        for part in table.definition.indexes.iter_mut().flat_map(|index| &mut index.parts) {
            part.column = place_now(part.column);
        }
        table.columns.retain(|column| !column.is_vacant());
        for column in &mut table.columns {
            column.stored = column.stored.map(place_now);
        }
        let mut kept = kept.into_iter();
        self.origins.retain(|_| kept.next().unwrap_or(true));
    }
}
