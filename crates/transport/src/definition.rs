//! The definition in a file: what the table was called, the statement that makes it, and the columns of its rows.

use catalog::{Column, Table};
use definitions::type_text;
use types::TypeKind;

/// A table has fewer columns.
const COLUMNS_MAX: usize = 4096;
const NULLABLE: u8 = 1;

/// What a file says of the table that its rows are from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definition {
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// The partition, or subpartition, that the rows are of; empty for a table without partitions.
    pub partition: String,
    /// CREATE TABLE.
    pub statement: String,
    /// The next value of its AUTO_INCREMENT column; 0 without one.
    pub next: u64,
    /// The columns whose values the rows have.
    pub columns: Vec<FileColumn>,
}

/// A column of the rows in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileColumn {
    /// Name.
    pub name: String,
    /// Type as SHOW CREATE TABLE prints it, with the reference system of a geometry column.
    pub type_text: String,
    /// Collation; empty when it is no text.
    pub collation: String,
    /// It may be NULL.
    pub nullable: bool,
}

impl FileColumn {
    /// The column of a table.
    pub(crate) fn of(column: &Column) -> FileColumn {
        let ty = &column.ty;
        let mut text = type_text(ty);
        if let Some(srid) = ty.spatial.srid.filter(|_| ty.kind == TypeKind::Geometry) {
            text.push_str(&format!(" srid {srid}"));
        }
        let has_collation = ty.is_text() || ty.has_members();
        let collation = match has_collation {
            true => charset::collation_or_binary(ty.collation).name.to_owned(),
            false => String::new(),
        };
        FileColumn {
            name: column.name.to_string(),
            type_text: text,
            collation,
            nullable: ty.nullable,
        }
    }
}

/// The columns whose values a file has: those that are stored and not computed from others.
pub(crate) fn carried(table: &Table) -> impl Iterator<Item = (&Column, usize)> {
    let own = table.columns.iter().filter(|column| column.generated.is_none());
    own.filter_map(|column| column.stored.map(|stored| (column, stored)))
}

impl Definition {
    /// Of a table that `statement` makes, or of a partition of it.
    pub(crate) fn of(table: &Table, statement: &str, partition: &str, next: u64) -> Definition {
        Definition {
            schema: table.schema.to_string(),
            name: table.name.to_string(),
            partition: partition.to_owned(),
            statement: statement.to_owned(),
            next,
            columns: carried(table).map(|(column, _)| FileColumn::of(column)).collect(),
        }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for text in [&self.schema, &self.name, &self.partition, &self.statement] {
            put_text(&mut out, text);
        }
        out.extend_from_slice(&self.next.to_le_bytes());
        out.extend_from_slice(&(self.columns.len() as u16).to_le_bytes());
        for column in &self.columns {
            for text in [&column.name, &column.type_text, &column.collation] {
                put_text(&mut out, text);
            }
            out.push(if column.nullable { NULLABLE } else { 0 });
        }
        out
    }

    /// `None` when the bytes are not those of a definition.
    pub(crate) fn read(bytes: &[u8]) -> Option<Definition> {
        let rest = &mut &*bytes;
        let mut definition = Definition {
            schema: take_text(rest)?,
            name: take_text(rest)?,
            partition: take_text(rest)?,
            statement: take_text(rest)?,
            next: u64::from_le_bytes(take(rest)?),
            columns: Vec::new(),
        };
        let count = usize::from(u16::from_le_bytes(take(rest)?));
        if count == 0 || count > COLUMNS_MAX {
            return None;
        }
        for _ in 0..count {
            let (name, type_text) = (take_text(rest)?, take_text(rest)?);
            let (collation, [flags]) = (take_text(rest)?, take(rest)?);
            if flags & !NULLABLE != 0 {
                return None;
            }
            let nullable = flags & NULLABLE != 0;
            definition.columns.push(FileColumn { name, type_text, collation, nullable });
        }
        rest.is_empty().then_some(definition)
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, left) = rest.split_first_chunk::<N>()?;
    *rest = left;
    Some(*taken)
}

fn take_text(rest: &mut &[u8]) -> Option<String> {
    let length = u32::from_le_bytes(take(rest)?) as usize;
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    String::from_utf8(taken.to_vec()).ok()
}
