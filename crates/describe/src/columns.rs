//! Columns of tables.

use catalog::{Column, ColumnDefault, ColumnHistory, Generated, Index, IndexPart, Table};
use definitions::type_text;
use plugin_api::{ColumnView, GeneratedView};
use types::{DataType, TypeKind, Value, ZoneRules};

use crate::histogram::shown_histogram;
use crate::show_create::{constant_text, row_time_text};

/// `PRI`, `UNI`, `MUL` or nothing: the keys that a column is in.
pub fn key_of(table: &Table, position: usize) -> &'static str {
    let in_primary =
        table.primary().is_some_and(|index| index.parts.iter().any(|part| part.column == position));
    if in_primary {
        return "PRI";
    }
    let nullable = |part: &IndexPart| table.columns[part.column].ty.nullable;
    let whole = |index: &Index| {
        index.unique
            && index.parts.iter().all(|part| part.prefix_length.is_none() && !nullable(part))
    };
    // Without a primary key the first unique NOT NULL index is shown as one.
    let stand_in = if table.primary().is_some() {
        None
    } else {
        table.indexes.iter().find(|index| whole(index))
    };
    if stand_in.is_some_and(|index| index.parts.iter().any(|part| part.column == position)) {
        return "PRI";
    }
    let mut key = "";
    for index in &table.indexes {
        if index.parts.first().is_some_and(|part| part.column == position) {
            if index.unique && index.parts.len() == 1 {
                return "UNI";
            }
            key = "MUL";
        }
    }
    if table.fulltext.iter().any(|index| index.columns.first() == Some(&position)) {
        key = "MUL";
    }
    key
}

pub(crate) fn column_view(
    table: &Table,
    position: usize,
    column: &Column,
    zone: &dyn ZoneRules,
) -> ColumnView {
    let (default, default_is_expression) = default_view(column, zone);
    ColumnView {
        name: column.name.to_string(),
        ty: column.ty.clone(),
        column_type: type_text(&column.ty),
        default,
        default_is_expression,
        auto_increment: column.auto_increment,
        on_update: column.on_update_now.map(now_text),
        generated: generated_view(column),
        without_history: column.history == ColumnHistory::NotKept,
        comment: column.comment.clone(),
        invisible: column.invisible,
        key: key_of(table, position),
        histogram: column
            .histogram
            .as_ref()
            .map(|histogram| shown_histogram(histogram, &column.ty)),
    }
}

fn generated_view(column: &Column) -> Option<GeneratedView> {
    if let Some(text) = row_time_text(column.history) {
        return Some(GeneratedView { expression: text.to_owned(), stored: true });
    }
    let Generated { expression, stored, .. } = column.generated.as_ref()?;
    Some(GeneratedView { expression: expression.to_string(), stored: *stored })
}

fn now_text(digits: u8) -> String {
    match digits {
        0 => "CURRENT_TIMESTAMP".to_owned(),
        digits => format!("CURRENT_TIMESTAMP({digits})"),
    }
}

/// The text of a column's default, and whether it is an expression.
pub(crate) fn default_view(column: &Column, zone: &dyn ZoneRules) -> (Option<String>, bool) {
    match &column.default {
        ColumnDefault::None | ColumnDefault::Constant(Value::Null) => (None, false),
        ColumnDefault::Constant(Value::UInt(bits)) if column.ty.kind == TypeKind::Bit => {
            (Some(format!("b'{bits:b}'")), false)
        }
        ColumnDefault::Constant(Value::Bytes(bytes))
            if matches!(column.ty.kind, TypeKind::Binary | TypeKind::VarBinary) =>
        {
            let bytes = bytes.as_slice();
            let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            if bytes.is_empty() {
                return (Some(String::new()), false);
            }
            (Some(hex_text(&bytes[..used])), false)
        }
        ColumnDefault::Constant(value) => (Some(constant_text(column, value, zone)), false),
        ColumnDefault::Now(digits) => (Some(now_text(*digits)), true),
        ColumnDefault::Expression(text) => (Some(text.to_string()), true),
    }
}

/// A column with only a name and a type: of a view, of an information table.
pub(crate) fn plain_column(name: String, ty: DataType) -> ColumnView {
    ColumnView {
        name,
        column_type: type_text(&ty),
        ty,
        default: None,
        default_is_expression: false,
        auto_increment: false,
        on_update: None,
        generated: None,
        without_history: false,
        comment: String::new(),
        invisible: false,
        key: "",
        histogram: None,
    }
}

/// Bytes as a literal of hexadecimal digits.
pub(crate) fn hex_text(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    format!("0x{digits}")
}
