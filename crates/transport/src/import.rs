//! Which files a statement reads.

use std::path::{Path, PathBuf};

use catalog::{CatalogSnapshot, Table, system_schema};
use errors::{Error, Result, bail, err};
use syntax::Statement;
use syntax::ast::{
    AlterAction, AlterTable, CreateTable, Ident, ObjectName, PartitionAction, PartitionNames,
};
use sys::files;

use crate::definition::Definition;
use crate::file_names::{IMPORT_DIRECTORY, file_of, leaf_names, matching};
use crate::reader::FileError;
use crate::rows::{Rows, open, unreadable};

/// A file with rows of a table, or of a partition.
#[derive(Clone, Debug)]
pub struct TableFile {
    /// Where it is.
    pub path: PathBuf,
    /// The partition that takes its rows: the lowest level.
    pub partition: Option<String>,
}

/// The partitions of IMPORT TABLESPACE, `None` without such a list; `None` for any other ALTER TABLE.
pub fn imported(alter: &AlterTable) -> Option<Option<&PartitionNames>> {
    let [action] = &alter.actions[..] else { return None };
    if let AlterAction::Partition(action) = action
        && let PartitionAction::Import(names) = &**action
    {
        return Some(Some(names));
    }
    matches!(action, AlterAction::ImportTablespace).then_some(None)
}

/// A table's name as the reference quotes it in errors about its file.
pub fn shown(table: &Table) -> String {
    quoted(&table.schema, &table.name)
}

fn quoted(schema: &str, name: &str) -> String {
    format!("`{schema}`.`{name}`")
}

/// The files that IMPORT TABLESPACE reads for `table`, or for some of its partitions, and the numbers of the partitions that stay without rows.
///
/// # Errors
/// 1813 when rows are there; 1735.
pub fn files_to_import(
    directory: &Path,
    table: &Table,
    named: Option<&[&str]>,
) -> Result<(Vec<TableFile>, Vec<u16>)> {
    let exists =
        |leaf: &str| err!(TABLESPACE_EXISTS, format!("{}/{}{leaf}", table.schema, table.name));
    let path = |leaf: &str| file_of(directory, &table.schema, &table.name, leaf);
    let Some(partitioning) = &table.partitioning else {
        if !table.is_discarded() {
            return Err(exists(""));
        }
        return Ok((vec![TableFile { path: path(""), partition: None }], Vec::new()));
    };
    let mut numbers = Vec::new();
    match named {
        None => numbers = partitioning.numbers(),
        Some(names) => {
            for name in names {
                let found = partitioning.named(name);
                numbers.extend(found.ok_or_else(|| err!(UNKNOWN_PARTITION, name, table.name))?);
            }
            numbers.sort_unstable();
            numbers.dedup();
        }
    }
    let mut still = table.discarded_partitions();
    let mut found = Vec::new();
    for number in numbers {
        let names = leaf_names(partitioning, number);
        let (leaf, name) = names.ok_or_else(|| Error::internal("a partition has a name"))?;
        if !still.contains(&number) {
            return Err(exists(&leaf));
        }
        still.retain(|known| *known != number);
        found.push(TableFile { path: path(&leaf), partition: Some(name) });
    }
    Ok((found, still))
}

/// The path of files in the directory for imports, which IMPORT TABLE may read whatever `secure_file_priv` says.
pub fn below_import(data: &Path, pattern: &str) -> Option<PathBuf> {
    let path = data.join(pattern);
    let directory = files::canonical(&data.join(IMPORT_DIRECTORY)).ok()?;
    let parent = files::canonical(path.parent()?).ok()?;
    parent.starts_with(directory).then_some(path)
}

/// The files beside `path` whose names have the form of the last part of `written`, which it was made of.
///
/// # Errors
/// 3608 when there are none.
pub fn expand(path: &Path, written: &str) -> Result<Vec<PathBuf>> {
    let pattern = written.rsplit('/').next().unwrap_or_default();
    let none = || err!(IMP_NO_FILES_MATCHED, pattern);
    let parent = path.parent().ok_or_else(none)?;
    let names = files::names(parent).map_err(|_| none())?;
    let paths: Vec<PathBuf> =
        names.iter().filter(|name| matching(pattern, name)).map(|name| parent.join(name)).collect();
    if pattern.is_empty() || paths.is_empty() {
        return Err(none());
    }
    Ok(paths)
}

/// The tables that files define, each with its files: one, or those of its partitions.
///
/// # Errors
/// 3610 for a table with two files that are not of different partitions; those of `open`.
pub fn tables_of(paths: &[PathBuf]) -> Result<Vec<(Definition, Vec<TableFile>)>> {
    let mut tables: Vec<(Definition, Vec<TableFile>)> = Vec::new();
    for path in paths {
        let rows: Rows = open(path, &quoted("", ""))?;
        let definition = rows.definition();
        let partition = Some(&definition.partition).filter(|name| !name.is_empty()).cloned();
        let file = TableFile { path: path.clone(), partition };
        let is_same = |known: &&mut (Definition, Vec<TableFile>)| {
            (&known.0.schema, &known.0.name) == (&definition.schema, &definition.name)
        };
        let Some((known, files)) = tables.iter_mut().find(is_same) else {
            tables.push((definition.clone(), vec![file]));
            continue;
        };
        let is_twice = files.iter().any(|other| other.partition == file.partition);
        if is_twice || file.partition.is_none() || known.statement != definition.statement {
            bail!(IMP_TABLE_ALREADY_EXISTS, definition.schema, definition.name);
        }
        files.push(file);
    }
    Ok(tables)
}

/// Whether the tables can be made: their schemas exist, and they do not.
///
/// # Errors
/// 3609, 3610.
pub fn check_new(catalog: &CatalogSnapshot, tables: &[(Definition, Vec<TableFile>)]) -> Result<()> {
    for (definition, _) in tables {
        let (schema, name) = (&*definition.schema, &*definition.name);
        if catalog.schema(schema).is_none() || system_schema(schema).is_some() {
            bail!(IMP_SCHEMA_DOES_NOT_EXIST, schema);
        }
        if catalog.kind(schema, name).is_some() {
            bail!(IMP_TABLE_ALREADY_EXISTS, schema, name);
        }
    }
    Ok(())
}

/// The statement of a definition, which makes this one table and does nothing else.
///
/// # Errors
/// 1816 where it is another statement.
pub fn creation(definition: &Definition, files: &[TableFile]) -> Result<CreateTable> {
    let (schema, name) = (&definition.schema, &definition.name);
    let path = files.first().map_or(Path::new(""), |file| &file.path);
    let damaged = || unreadable(&FileError::Damaged(0), path, &quoted(schema, name));
    let parsed = syntax::parse_one(&definition.statement, &syntax::ParseOptions::default());
    let (statement, _) = parsed.map_err(|_| damaged())?;
    let Statement::CreateTable(mut create) = statement else { return Err(damaged()) };
    let is_plain = create.query.is_none() && create.like.is_none() && !create.temporary;
    if !is_plain || create.flags.or_replace || create.flags.if_not_exists {
        return Err(damaged());
    }
    create.name = ObjectName { schema: Some(Ident::new(schema)), name: Ident::new(name) };
    Ok(*create)
}

/// Whether files have the rows of all partitions of the table that they define.
///
/// # Errors
/// 1808 with the partition that has no file.
pub fn check_complete(table: &Table, files: &[TableFile]) -> Result<()> {
    let Some(partitioning) = &table.partitioning else {
        return match files {
            [TableFile { partition: None, .. }] => Ok(()),
            _ => Err(err!(TABLE_SCHEMA_MISMATCH, "The table has no partitions.")),
        };
    };
    for number in partitioning.numbers() {
        let names = leaf_names(partitioning, number);
        let (_, name) = names.ok_or_else(|| Error::internal("a partition has a name"))?;
        if !files.iter().any(|file| file.partition.as_deref() == Some(&*name)) {
            let text = format!("Partition {name} has no file.");
            bail!(TABLE_SCHEMA_MISMATCH, text);
        }
    }
    Ok(())
}
