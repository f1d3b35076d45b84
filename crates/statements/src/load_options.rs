//! What of LOAD DATA is not built, and the INSERT that its records become.

use errors::{Error, Result, bail};
use syntax::ast::{
    ColumnName, Expr, ExprKind, Ident, Insert, InsertSource, LoadColumn, LoadData, LoadDuplicates,
    LoadSource, Priority, Span,
};
use types::{CollationId, DataType, Value};

use crate::file_records::Field;

/// Longest text of a field in its parameter's type.
const FIELD_CHARS: u32 = 1 << 24;

/// Refuses what LOAD DATA does not take.
///
/// # Errors
/// 1083, 1235: LOAD DATA does not take it.
pub fn refuse_unbuilt(load: &LoadData) -> Result<()> {
    if load.source != LoadSource::File || load.bulk || load.compression.is_some() {
        return Err(Error::not_supported("LOAD DATA from URLs and bulk loading"));
    }
    let format = &load.format;
    let long = |part: &Option<Box<[u8]>>| part.as_ref().is_some_and(|bytes| bytes.len() > 1);
    if long(&format.fields_enclosed_by) || long(&format.fields_escaped_by) {
        bail!(WRONG_FIELD_TERMINATORS);
    }
    let empty = |part: &Option<Box<[u8]>>, default: bool| {
        part.as_ref().map_or(default, |bytes| bytes.is_empty())
    };
    if empty(&format.fields_terminated_by, false) && empty(&format.fields_enclosed_by, true) {
        return Err(Error::not_supported("LOAD DATA with fields of fixed size"));
    }
    Ok(())
}

/// The type of a field's parameter.
pub fn field_type() -> DataType {
    DataType::varchar(FIELD_CHARS, CollationId::UTF8MB4_0900_AI_CI)
}

/// A column without a table's name.
pub fn column_name(name: &str) -> ColumnName {
    ColumnName { schema: None, table: None, name: Ident::new(name) }
}

/// The INSERT for `records` records with fields for `targets`: a parameter for each column of the list, then the SET clause.
pub fn insert_of(load: &LoadData, targets: &[LoadColumn], ignore: bool, records: usize) -> Insert {
    let listed = targets.iter().filter_map(|target| match target {
        LoadColumn::Column(column) => Some(column.clone()),
        LoadColumn::UserVar(_) => None,
    });
    let mut columns: Vec<ColumnName> = listed.collect();
    let fields = columns.len();
    let row = |record: usize| {
        let parameters = (record * fields..(record + 1) * fields)
            .map(|number| Expr { kind: ExprKind::Param(number as u32), span: Span::default() });
        parameters.chain(load.set.iter().map(|assignment| assignment.value.clone())).collect()
    };
    let values: Vec<Vec<Expr>> = (0..records).map(row).collect();
    columns.extend(load.set.iter().map(|assignment| assignment.column.clone()));
    Insert {
        replace: load.duplicates == LoadDuplicates::Replace,
        priority: Priority::Normal,
        ignore,
        hints: None,
        table: load.table.clone(),
        partitions: load.partitions.clone(),
        columns: Some(columns),
        source: InsertSource::Values(values),
        row_alias: None,
        on_duplicate: Vec::new(),
        returning: Vec::new(),
    }
}

/// The value of a field.
pub fn field_value(charset: &charset::Charset, field: Field<'_>) -> Value {
    let Some(bytes) = field else { return Value::Null };
    if bytes.is_ascii() && charset.is_utf8() {
        return Value::Bytes(bytes.into());
    }
    Value::Bytes(charset.decode(bytes).bytes.into())
}

/// A message of an INSERT as the message of a load that stored `before` records already.
pub fn at_row(message: &str, before: u64) -> String {
    const PLACE: &str = " at row ";
    let place = message.rfind(PLACE).map(|at| at + PLACE.len());
    let row = place.and_then(|at| message[at..].parse::<u64>().ok().map(|row| (at, row)));
    match row {
        Some((at, row)) => format!("{}{}", &message[..at], before + row),
        None => message.to_owned(),
    }
}
