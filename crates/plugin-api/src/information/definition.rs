//! Reads the shapes of information tables from a text: `[schema.table]`, then one column a line: name, type, length, options
//! (`unsigned`, `notnull`, `decimals=`, `collation=`). Instead of a length, `Enum` and `Set` have their members: `Enum (READ ONLY|READ WRITE) notnull`.

use std::sync::Arc;

use types::{CollationId, DataType, Members, TypeKind};

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

/// An ENUM or SET of the members between bars.
fn with_members(kind: TypeKind, members: &str) -> DataType {
    let names: Vec<&str> = members.split('|').collect();
    let lengths = names.iter().map(|name| name.len() as u32);
    let length = if kind == TypeKind::Set {
        // With commas.
        lengths.sum::<u32>() + names.len() as u32 - 1
    } else {
        lengths.max().unwrap_or(0)
    };
    DataType { members: Some(Arc::new(Members::new(names))), ..DataType::new(kind, length, 0) }
}

fn column(schema: &str, line: &'static str) -> Option<InfoColumn> {
    let (name, rest) = line.split_once(' ').filter(|(name, _)| !name.is_empty())?;
    let (word, rest) = rest.split_once(' ')?;
    let kind = kind(word)?;
    let (mut ty, options) = match rest.strip_prefix('(') {
        Some(rest) => {
            let (members, options) = rest.split_once(')')?;
            (with_members(kind, members), options)
        }
        None => {
            let (length, options) = rest.split_once(' ').unwrap_or((rest, ""));
            (DataType::new(kind, length.parse().ok()?, 0), options)
        }
    };
    let words = options.split(' ').filter(|word| !word.is_empty());
    if ty.is_text() || ty.has_members() {
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
const KINDS: [TypeKind; 25] = [
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
    TypeKind::MediumInt,
    TypeKind::Binary,
    TypeKind::Blob,
    TypeKind::MediumBlob,
    TypeKind::Enum,
    TypeKind::Set,
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
    fn members_stand_between_bars() {
        let tables = table_definitions("[s.t]\na Enum (|PRI|READ ONLY) notnull\nb Set (x|y)\n");
        let [a, b] = &tables[0].columns[..] else { panic!("{tables:?}") };
        assert_eq!(
            (a.ty.member_count(), a.ty.member(3), a.ty.length),
            (3, Some(&b"READ ONLY"[..]), 9)
        );
        assert!(!a.ty.nullable && b.ty.nullable);
        assert_eq!((b.ty.kind, b.ty.length), (TypeKind::Set, 3));
        assert_eq!(a.ty.member_value(types::Value::text("pri")), types::Value::UInt(2));
        assert_eq!(a.ty.member_value(types::Value::text("none")), types::Value::UInt(0));
        assert_eq!(b.ty.member_value(types::Value::text("y,x")), types::Value::UInt(3));
        assert_eq!(b.ty.member_text(types::Value::UInt(3)), types::Value::text("x,y"));
    }

    #[test]
    #[should_panic(expected = "a line of a table's definition")]
    fn any_other_line_is_refused() {
        table_definitions("[s.t]\na NoSuchType 20\n");
    }
}
