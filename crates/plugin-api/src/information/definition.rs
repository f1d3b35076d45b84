//! Reads the shapes of information tables from a text: `[schema.table]`, then one column a line: name, type, length, options
//! (`unsigned`, `notnull`, `decimals=`, `collation=`).

use types::{CollationId, DataType, TypeKind};

use super::InfoColumn;

/// A table's shape.
#[derive(Clone, Debug, PartialEq)]
pub struct TableDefinition {
    /// Its schema.
    pub schema: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its columns.
    pub columns: Vec<InfoColumn>,
}

/// The tables of a text, in its order.
///
/// # Panics
/// When a line is neither a table nor a column: the text is part of the program.
pub fn table_definitions(text: &'static str) -> Vec<TableDefinition> {
    let mut tables: Vec<TableDefinition> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            let (schema, name) = name.split_once('.').unwrap_or(("", name));
            tables.push(TableDefinition { schema, name, columns: Vec::new() });
            continue;
        }
        let table = tables.last_mut();
        let column = table.as_ref().and_then(|table| column(table.schema, line));
        assert!(column.is_some(), "a line of a table's definition: {line}");
        table.into_iter().zip(column).for_each(|(table, column)| table.columns.push(column));
    }
    tables
}

/// Collation of texts that name none.
fn default_collation(schema: &str) -> CollationId {
    match schema {
        "information_schema" => CollationId::UTF8MB3_GENERAL_CI,
        _ => CollationId::UTF8MB4_0900_AI_CI,
    }
}

fn column(schema: &str, line: &'static str) -> Option<InfoColumn> {
    let mut words = line.split(' ');
    let name = words.next().filter(|name| !name.is_empty())?;
    let kind = kind(words.next()?)?;
    let mut ty = DataType::new(kind, words.next()?.parse().ok()?, 0);
    if ty.is_text() {
        ty.collation = default_collation(schema);
    }
    for option in words {
        match option {
            "unsigned" => ty.unsigned = true,
            "notnull" => ty.nullable = false,
            other => match other.split_once('=')? {
                ("decimals", decimals) => ty.decimals = decimals.parse().ok()?,
                (_, name) => ty.collation = charset::collation_by_name(name)?.id,
            },
        }
    }
    Some(InfoColumn { name, ty })
}

/// The types that columns have.
const KINDS: [TypeKind; 19] = [
    TypeKind::TinyInt,
    TypeKind::SmallInt,
    TypeKind::Int,
    TypeKind::BigInt,
    TypeKind::Decimal,
    TypeKind::Double,
    TypeKind::Float,
    TypeKind::DateTime,
    TypeKind::Timestamp,
    TypeKind::Date,
    TypeKind::Time,
    TypeKind::Char,
    TypeKind::VarChar,
    TypeKind::VarBinary,
    TypeKind::Text,
    TypeKind::MediumText,
    TypeKind::LongText,
    TypeKind::LongBlob,
    TypeKind::Json,
];

/// The type of a word: the name of its `TypeKind`.
fn kind(word: &str) -> Option<TypeKind> {
    KINDS.iter().find(|kind| format!("{kind:?}") == word).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_table_or_a_column() {
        let text =
            "[s.t]\na BigInt 20 unsigned notnull\nb VarChar 64\n[s.u]\nc Double 7 decimals=6\n";
        let tables = table_definitions(text);
        let shape = |table: &TableDefinition| (table.name, table.columns.len());
        assert_eq!(tables.iter().map(shape).collect::<Vec<_>>(), [("t", 2), ("u", 1)]);
        assert!(tables[0].columns[0].ty.unsigned && !tables[0].columns[0].ty.nullable);
        assert_eq!(tables[1].columns[0].ty.decimals, 6);
    }

    #[test]
    #[should_panic(expected = "a line of a table's definition")]
    fn any_other_line_is_refused() {
        table_definitions("[s.t]\na NoSuchType 20\n");
    }
}
