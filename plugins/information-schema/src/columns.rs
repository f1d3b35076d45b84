//! Columns and index parts.

use errors::Result;
use plugin_api::{ColumnView, InfoFilter, InformationContext, TableDetail, TableView};
use types::{CollationId, DataType, NOT_FIXED_DECIMALS, TypeKind, Value};

use crate::row::{Emit, catalog, optional, optional_number, yes_no};
use crate::tables::visit_tables;

/// `COLUMNS`.
pub fn columns(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let detail = TableDetail::Definition;
    visit_tables(ctx, filter, "table_schema", "table_name", detail, &mut |table| {
        for (index, column) in table.columns.iter().enumerate() {
            emit(&column_row(table, index, column))?;
        }
        Ok(())
    })
}

/// `COLUMN_STATISTICS`.
pub fn histograms(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let detail = TableDetail::Definition;
    visit_tables(ctx, filter, "schema_name", "table_name", detail, &mut |table| {
        for column in &table.columns {
            if let Some(histogram) = &column.histogram {
                emit(&[
                    Value::text(&table.schema),
                    Value::text(&table.name),
                    Value::text(&column.name),
                    histogram.clone(),
                ])?;
            }
        }
        Ok(())
    })
}

fn column_row(table: &TableView, index: usize, column: &ColumnView) -> Vec<Value> {
    let ty = &column.ty;
    let collation = charset::collation(ty.collation).filter(|_| has_character_set(ty));
    let data_type = column.column_type.split(['(', ' ']).next().unwrap_or_default();
    let (characters, octets) = lengths(ty);
    let (precision, scale) = numeric_size(ty);
    let fraction = match ty.kind {
        TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp => Some(u64::from(ty.decimals)),
        _ => None,
    };
    vec![
        catalog(),
        Value::text(&table.schema),
        Value::text(&table.name),
        Value::text(&column.name),
        Value::UInt(table.columns_before + index as u64 + 1),
        optional(column.default.as_deref()),
        yes_no(ty.nullable),
        Value::text(data_type),
        characters.map_or(Value::Null, |length| Value::Int(length as i64)),
        octets.map_or(Value::Null, |length| Value::Int(length as i64)),
        optional_number(precision),
        optional_number(scale),
        optional_number(fraction),
        optional(collation.map(|collation| collation.charset.name)),
        optional(collation.map(|collation| collation.name)),
        Value::text(&column.column_type),
        Value::text(column.key),
        Value::text(&extra(column)),
        Value::text("select,insert,update,references"),
        Value::text(&column.comment),
        Value::text(
            column.generated.as_ref().map_or("", |generated| generated.expression.as_str()),
        ),
        optional_number(ty.spatial.srid.map(u64::from)),
    ]
}

/// ENUM and SET have a character set too.
pub fn has_character_set(ty: &DataType) -> bool {
    ty.is_text()
        || matches!(ty.kind, TypeKind::Enum | TypeKind::Set) && ty.collation != CollationId::BINARY
}

/// The `EXTRA` column.
fn extra(column: &ColumnView) -> String {
    let mut words: Vec<String> = Vec::new();
    if column.auto_increment {
        words.push("auto_increment".into());
    }
    if column.default_is_expression {
        words.push("DEFAULT_GENERATED".into());
    }
    if let Some(now) = &column.on_update {
        words.push(format!("on update {now}"));
    }
    if let Some(generated) = &column.generated {
        words.push(if generated.stored {
            "STORED GENERATED".into()
        } else {
            "VIRTUAL GENERATED".into()
        });
    }
    if column.invisible {
        words.push("INVISIBLE".into());
    }
    if column.without_history {
        words.push("WITHOUT SYSTEM VERSIONING".into());
    }
    words.join(" ")
}

/// Characters and bytes of a string column.
pub fn lengths(ty: &DataType) -> (Option<u64>, Option<u64>) {
    let widest = charset::collation(ty.collation).map_or(1, |c| u64::from(c.charset.max_length));
    match ty.kind {
        TypeKind::Char | TypeKind::VarChar => {
            (Some(ty.length.into()), Some(u64::from(ty.length) * widest))
        }
        TypeKind::Binary | TypeKind::VarBinary => (Some(ty.length.into()), Some(ty.length.into())),
        TypeKind::TinyText | TypeKind::TinyBlob => (Some(255), Some(255)),
        TypeKind::Text | TypeKind::Blob => (Some(65_535), Some(65_535)),
        TypeKind::MediumText | TypeKind::MediumBlob => (Some(16_777_215), Some(16_777_215)),
        TypeKind::LongText | TypeKind::LongBlob => (Some(4_294_967_295), Some(4_294_967_295)),
        TypeKind::Enum => {
            let names = ty.members.iter().flat_map(|members| members.names());
            let longest = names.map(|name| charset_length(ty, name)).max().unwrap_or(0);
            (Some(longest), Some(longest * widest))
        }
        TypeKind::Set => {
            let names = ty.members.iter().flat_map(|members| members.names());
            let (count, sum) = names
                .fold((0, 0), |(count, sum), name| (count + 1, sum + charset_length(ty, name)));
            let all = sum + u64::max(count, 1) - 1;
            (Some(all), Some(all * widest))
        }
        _ => (None, None),
    }
}

fn charset_length(ty: &DataType, text: &[u8]) -> u64 {
    charset::collation_or_binary(ty.collation).char_length(text) as u64
}

/// Precision and scale of a number.
pub fn numeric_size(ty: &DataType) -> (Option<u64>, Option<u64>) {
    let scale = (ty.decimals != NOT_FIXED_DECIMALS).then_some(u64::from(ty.decimals));
    let integer = |digits| (Some(digits), Some(0));
    match ty.kind {
        TypeKind::TinyInt => integer(3),
        TypeKind::SmallInt => integer(5),
        TypeKind::MediumInt => integer(7),
        TypeKind::Int => integer(10),
        TypeKind::BigInt => integer(if ty.unsigned { 20 } else { 19 }),
        TypeKind::Decimal => (Some(ty.length.into()), scale),
        TypeKind::Float => (Some(if scale.is_some() { ty.length.into() } else { 12 }), scale),
        TypeKind::Double => (Some(if scale.is_some() { ty.length.into() } else { 22 }), scale),
        TypeKind::Bit => (Some(ty.length.into()), None),
        _ => (None, None),
    }
}

/// `STATISTICS`.
pub fn statistics(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    /// CARDINALITY.
    const DISTINCT: usize = 9;
    let detail = match filter.reads_any(&[DISTINCT]) {
        true => TableDetail::Statistics,
        false => TableDetail::Definition,
    };
    visit_tables(ctx, filter, "table_schema", "table_name", detail, &mut |table| {
        for index in &table.indexes {
            for (position, part) in index.parts.iter().enumerate() {
                let nullable = part.column.as_deref().is_none_or(|name| is_nullable(table, name));
                emit(&[
                    catalog(),
                    Value::text(&table.schema),
                    Value::text(&table.name),
                    Value::Int(i64::from(!index.unique)),
                    Value::text(&table.schema),
                    Value::text(&index.name),
                    Value::UInt(position as u64 + 1),
                    optional(part.column.as_deref()),
                    match (index.kind, part.descending) {
                        ("FULLTEXT" | "HASH", _) => Value::Null,
                        (_, true) => Value::text("D"),
                        (_, false) => Value::text("A"),
                    },
                    Value::Int(part.distinct as i64),
                    part.prefix_length.map_or(Value::Null, |length| Value::Int(length.into())),
                    Value::Null,
                    Value::text(if nullable { "YES" } else { "" }),
                    Value::text(index.kind),
                    Value::text(""),
                    Value::text(&index.comment),
                    yes_no(index.visible),
                    optional(part.expression.as_deref()),
                ])?;
            }
        }
        Ok(())
    })
}

/// A column that is not there is that of a hidden primary key.
fn is_nullable(table: &TableView, column: &str) -> bool {
    table.columns.iter().find(|c| c.name == column).is_some_and(|column| column.ty.nullable)
}
