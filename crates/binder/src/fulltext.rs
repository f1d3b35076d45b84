//! MATCH .. AGAINST: finds the FULLTEXT index that answers it, and describes such indexes for writes.

use std::sync::Arc;

use catalog::{FulltextIndex, IndexPart, Table};
use errors::{Result, bail};
use plan::{Expr, FulltextMode, FulltextSearch, FulltextWrite, InstanceId, KeyColumn};
use syntax::ast::{self, MatchMode};
use types::fulltext::LOCATOR_BYTES_MAX;
use types::{CollationId, DataType, Value};

use crate::binder::Binder;

impl Binder<'_> {
    pub(crate) fn bind_match(&mut self, found: &ast::Match) -> Result<Expr> {
        let mode = match found.mode {
            MatchMode::NaturalLanguage => FulltextMode::Natural,
            MatchMode::Boolean => FulltextMode::Boolean,
            MatchMode::NaturalLanguageWithExpansion | MatchMode::WithExpansion => {
                FulltextMode::Expanded
            }
        };
        let mut instance: Option<usize> = None;
        let mut columns = Vec::with_capacity(found.columns.len());
        for name in &found.columns {
            let resolved = self.resolve(name)?;
            let is_own = resolved.level + 1 == self.blocks.len() && !resolved.from_list;
            let Some(register) = resolved.expr.as_column().filter(|_| is_own) else {
                bail!(WRONG_ARGUMENTS, "MATCH");
            };
            let mut instances = self.instances.iter().enumerate();
            let found = instances.find_map(|(at, known)| Some((at, known.column_of(register)?)));
            // A materialized derived table has no index.
            let Some((at, column)) = found else { bail!(TABLE_CANT_HANDLE_FT) };
            if instance.is_some_and(|known| known != at) {
                bail!(WRONG_ARGUMENTS, "MATCH");
            }
            instance = Some(at);
            columns.push(column);
        }
        let Some(at) = instance else { bail!(WRONG_ARGUMENTS, "MATCH") };
        let table = self.tables[self.instances[at].table].clone();
        if table.temporary {
            bail!(TABLE_CANT_HANDLE_FT);
        }
        let answers = |index: &&FulltextIndex| {
            index.visible
                && index.columns.len() == columns.len()
                && columns.iter().all(|column| index.columns.contains(column))
        };
        let Some(index) = table.fulltext.iter().find(answers) else {
            bail!(FT_MATCHING_KEY_NOT_FOUND);
        };
        let against = self.bind_single(&found.against)?;
        let moves = |node: &Expr| matches!(node, Expr::Column { .. } | Expr::Subquery { .. });
        if against.any(&mut |node| moves(node)) || against.is_volatile() {
            bail!(WRONG_ARGUMENTS, "AGAINST");
        }
        let alias = &self.instances[at].alias;
        let shown = columns.iter().map(|at| format!("{alias}.{}", table.columns[*at].name));
        let shown = shown.collect::<Vec<_>>().join(",");
        let search = search(&table, index, shown, mode);
        let row = match table.primary() {
            Some(primary) => {
                let column = |part: &IndexPart| {
                    let register = self.instances[at].register(part.column);
                    Expr::column(register, table.columns[part.column].ty.clone())
                };
                primary.parts.iter().map(column).collect()
            }
            None => {
                let locator = self.locator_register(InstanceId(at as u32));
                vec![Expr::column(locator, DataType::varbinary(LOCATOR_BYTES_MAX as u32))]
            }
        };
        Ok(Expr::Match { search: Arc::new(search), row, against: Box::new(against) })
    }
}

fn search(
    table: &Table,
    index: &FulltextIndex,
    shown: String,
    mode: FulltextMode,
) -> FulltextSearch {
    let write = fulltext_write(table, index);
    let (layout, missing) = record_of(table);
    FulltextSearch {
        table: table.id.0,
        engine: table.engine.clone(),
        entries: write.entries,
        name: index.name.clone(),
        shown: shown.into(),
        mode,
        collation: write.collation,
        parser: write.parser,
        layout: layout.into(),
        missing: missing.into(),
        columns: write.columns,
        key: key_columns(table),
    }
}

/// The columns of a table's records, and the values of those that old records do not have.
pub fn record_of(table: &Table) -> (Vec<DataType>, Vec<Value>) {
    let columns = table.definition.columns.iter();
    columns
        .map(|column| {
            let missing = column.instant_default.clone().unwrap_or(Value::Null);
            (column.ty.clone(), missing)
        })
        .unzip()
}

/// The parts of a row's locator; empty for a table without a primary key.
pub fn key_columns(table: &Table) -> Vec<KeyColumn> {
    let parts = table.definition.primary().map_or(&[][..], |primary| &primary.parts);
    let parts = parts.iter().map(|part| KeyColumn {
        column: part.column,
        ty: table.definition.columns[part.column].ty.clone(),
        prefix_length: part.prefix_length,
        descending: part.descending,
    });
    parts.collect()
}

/// A FULLTEXT index as writes of the table maintain it.
pub fn fulltext_write(table: &Table, index: &FulltextIndex) -> FulltextWrite {
    let first = index.columns.first().and_then(|column| table.columns.get(*column));
    FulltextWrite {
        entries: index.entries.0,
        columns: index.columns.iter().filter_map(|at| table.columns[*at].stored).collect(),
        collation: first.map_or(CollationId::BINARY, |column| column.ty.collation),
        parser: index.parser,
    }
}
