//! Reads `definitions.txt`: `[schema.table]`, then one column a line: name, type, length, options
//! (`unsigned`, `notnull`, `decimals=`, `collation=`).

use plugin_api::InfoColumn;
use types::{CollationId, DataType, TypeKind};

const TEXT: &str = include_str!("definitions.txt");

/// A table's shape.
pub struct Definition {
    pub schema: &'static str,
    pub name: &'static str,
    pub columns: Vec<InfoColumn>,
}

/// All tables, in file order.
pub fn all() -> Vec<Definition> {
    let mut tables: Vec<Definition> = Vec::new();
    for line in TEXT.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            let (schema, name) = name.split_once('.').unwrap_or(("", name));
            tables.push(Definition { schema, name, columns: Vec::new() });
        } else if let Some(table) = tables.last_mut()
            && let Some(column) = column(table.schema, line)
        {
            table.columns.push(column);
        }
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
                ("collation", name) => ty.collation = charset::collation_by_name(name)?.id,
                _ => return None,
            },
        }
    }
    Some(InfoColumn { name, ty })
}

fn kind(word: &str) -> Option<TypeKind> {
    Some(match word {
        "TinyInt" => TypeKind::TinyInt,
        "SmallInt" => TypeKind::SmallInt,
        "Int" => TypeKind::Int,
        "BigInt" => TypeKind::BigInt,
        "Decimal" => TypeKind::Decimal,
        "Double" => TypeKind::Double,
        "Float" => TypeKind::Float,
        "Timestamp" | "DateTime" => TypeKind::DateTime,
        "Date" => TypeKind::Date,
        "Time" => TypeKind::Time,
        "Char" => TypeKind::Char,
        "VarChar" => TypeKind::VarChar,
        "VarBinary" => TypeKind::VarBinary,
        "Text" => TypeKind::Text,
        "MediumText" => TypeKind::MediumText,
        "LongText" => TypeKind::LongText,
        "LongBlob" => TypeKind::LongBlob,
        "Json" => TypeKind::Json,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_table_or_a_column() {
        let is_read = |line: &&'static str| {
            line.is_empty() || line.starts_with('[') || column("", line).is_some()
        };
        let unread: Vec<_> = TEXT.lines().filter(|line| !is_read(line)).collect();
        assert!(unread.is_empty(), "{unread:?}");
    }
}
