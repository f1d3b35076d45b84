//! Tables as writes need them: compiled columns, checks and foreign keys.

use std::collections::HashMap;
use std::sync::Arc;

use engine_api::{EngineIndex, IndexId, TableId};
use errors::Result;
use plan::writing::id_is_read;
use plan::{
    CastKind, Expr, ForeignKeyAction, ForeignKeyCheck, HistoryWrite, KeyColumn, SystemPartitions,
    TableWrite, Triggers, WrittenElements,
};
use rows::layout::Layout;
use types::{DataType, TypeKind};

use super::overlaps::Overlaps;
use crate::expr::{Code, Truth};
use crate::fulltext::KeptFulltext;
use crate::ops::{NodeCompiler, is_utc};

/// A value for a column: an expression, and whether it is UTC already when the column is a TIMESTAMP.
pub(crate) struct StoreCode {
    pub(crate) code: Code,
    pub(crate) from: DataType,
    pub(crate) is_utc: bool,
}

/// A column.
pub(crate) struct WriteColumn {
    pub(crate) name: Arc<str>,
    /// As errors of conversions call it.
    pub(crate) target: Arc<str>,
    pub(crate) ty: DataType,
    pub(crate) register: usize,
    pub(crate) default: Option<StoreCode>,
    /// The default reads other columns: it is computed when they have their values.
    pub(crate) late_default: bool,
    pub(crate) on_update_now: Option<StoreCode>,
    pub(crate) generated: Option<StoreCode>,
    /// The array of a multi-valued index.
    pub(crate) elements: Option<WrittenElements>,
    /// The view through which rows are inserted.
    pub(crate) view: Option<(Arc<str>, Arc<str>)>,
}

/// A foreign key, seen from the table that is written.
pub(crate) struct ForeignKey {
    /// For errors 1451 and 1452.
    pub(crate) text: Arc<str>,
    /// The other table, index into `WriteTables::related`.
    pub(crate) other: usize,
    pub(crate) columns: Vec<usize>,
    pub(crate) other_columns: Vec<usize>,
    pub(crate) other_index: IndexId,
    /// The index ends with the time of the row: it finds the current one.
    pub(crate) only_current: bool,
    pub(crate) on_update: ForeignKeyAction,
    pub(crate) on_delete: ForeignKeyAction,
}

/// A table that is written.
pub(crate) struct WriteTable {
    pub(crate) id: TableId,
    pub(crate) engine: EngineIndex,
    pub(crate) layout: Layout,
    pub(crate) columns: Vec<WriteColumn>,
    /// Computed to check that their expressions accept a new row; not kept.
    pub(crate) virtuals: Vec<WriteColumn>,
    pub(crate) auto_increment: Option<usize>,
    /// An expression computed or checked for a row reads the AUTO_INCREMENT column.
    pub(crate) id_is_read: bool,
    pub(crate) has_generated: bool,
    pub(crate) checks: Vec<(Arc<str>, Truth)>,
    /// Schema and name of a view, and its condition on the row.
    pub(crate) view_checks: Vec<(Arc<str>, Arc<str>, Truth)>,
    /// The row is in the partitions that the statement names.
    pub(crate) selected: Option<Truth>,
    /// Id, name in messages, columns.
    pub(crate) indexes: Vec<(IndexId, Arc<str>, Vec<usize>)>,
    /// The unique index that is asked last.
    pub(crate) last_unique: Option<IndexId>,
    pub(crate) triggers: Option<Box<Triggers>>,
    /// Columns that an UPDATE of this table alone changes by functions that edit documents.
    pub(crate) edited: Box<[usize]>,
    pub(crate) fulltext: Vec<KeptFulltext>,
    /// Parts of the primary key, for tables with FULLTEXT indexes.
    pub(crate) key: Vec<KeyColumn>,
    pub(crate) parents: Vec<ForeignKey>,
    pub(crate) children: Vec<ForeignKey>,
    pub(crate) history: Option<Box<HistoryWrite>>,
    pub(crate) partitions: Option<Arc<SystemPartitions>>,
    /// Its unique keys WITHOUT OVERLAPS.
    pub(crate) overlaps: Option<Box<Overlaps>>,
    /// Writing a row means no more than to give it to the engine: there are neither FULLTEXT indexes nor periods that must not overlap.
    pub(crate) is_plain: bool,
    /// See `needs_values()`.
    pub(super) needs_values: bool,
}

/// Compiles the expressions of written columns.
fn written_columns(
    table: &TableWrite,
    written: &[plan::WrittenColumn],
    compiler: &mut NodeCompiler<'_>,
) -> Result<Vec<WriteColumn>> {
    let mut columns = Vec::with_capacity(written.len());
    for column in written {
        let register = column.register.0 as usize;
        let exprs = &mut compiler.exprs;
        exprs.registers = exprs.registers.max(register + 1);
        // Errors of JSON texts name the table too.
        let target = match column.ty.kind {
            TypeKind::Json => Arc::from(format!("{}.{}", table.name, column.name)),
            _ => column.name.clone(),
        };
        columns.push(WriteColumn {
            name: column.name.clone(),
            target,
            ty: column.ty.clone(),
            register,
            late_default: column.default.as_ref().is_some_and(|default| {
                default.any(&mut |expr| matches!(expr, Expr::Column { .. }))
            }),
            default: store_option(column.default.as_ref(), compiler)?,
            on_update_now: store_option(column.on_update_now.as_ref(), compiler)?,
            generated: store_option(column.generated.as_ref(), compiler)?,
            elements: column.elements.clone(),
            view: table.view.clone(),
        });
    }
    Ok(columns)
}

/// Compiles the tables of one statement, those that foreign keys lead to included.
pub(crate) struct TableCompiler {
    related: Vec<Arc<TableWrite>>,
    by_id: HashMap<u64, usize>,
}

impl TableCompiler {
    /// Collects every table that foreign keys of the targets lead to.
    pub(crate) fn new<'t>(targets: impl Iterator<Item = &'t TableWrite>) -> TableCompiler {
        let mut compiler = TableCompiler { related: Vec::new(), by_id: HashMap::new() };
        for target in targets {
            compiler.collect(target);
        }
        compiler
    }

    fn collect(&mut self, table: &TableWrite) {
        // An explicit stack: chains of foreign keys may be long.
        let mut stack: Vec<Arc<TableWrite>> = Vec::new();
        let others = |table: &TableWrite| -> Vec<Arc<TableWrite>> {
            table.parents.iter().chain(&table.children).map(|key| key.other.clone()).collect()
        };
        stack.extend(others(table));
        while let Some(other) = stack.pop() {
            match self.by_id.get(&other.table) {
                Some(at) => {
                    // The description with its own foreign keys is more complete.
                    let known = &self.related[*at];
                    let keys = |table: &TableWrite| table.children.len() + table.parents.len();
                    if keys(&other) <= keys(known) {
                        continue;
                    }
                    self.related[*at] = other.clone();
                }
                None => {
                    self.by_id.insert(other.table, self.related.len());
                    self.related.push(other.clone());
                }
            }
            stack.extend(others(&other));
        }
    }

    /// Compiles the related tables.
    pub(crate) fn related(&self, compiler: &mut NodeCompiler<'_>) -> Result<Vec<WriteTable>> {
        self.related.iter().map(|table| self.table(table, compiler)).collect()
    }

    /// Compiles a target.
    pub(crate) fn table(
        &self,
        table: &TableWrite,
        compiler: &mut NodeCompiler<'_>,
    ) -> Result<WriteTable> {
        let columns = written_columns(table, &table.columns, compiler)?;
        let virtuals = written_columns(table, &table.virtuals, compiler)?;
        let missing = table.columns.iter().map(|column| column.missing.clone()).collect();
        let types: Vec<DataType> = table.columns.iter().map(|column| column.ty.clone()).collect();
        let checks = table
            .checks
            .iter()
            .map(|(name, predicate)| Ok((name.clone(), compiler.exprs.truth(predicate)?)));
        let checks = checks.collect::<Result<_>>()?;
        let view_checks = table.view_checks.iter().map(|check| {
            let truth = compiler.exprs.truth(&check.predicate)?;
            Ok((check.schema.clone(), check.view.clone(), truth))
        });
        let view_checks = view_checks.collect::<Result<_>>()?;
        let indexes = table
            .indexes
            .iter()
            .map(|(id, name, columns)| (IndexId(*id), name.clone(), columns.clone()));
        let engine = compiler.exprs.engine(&table.engine)?;
        Ok(WriteTable {
            id: TableId(table.table),
            engine,
            layout: Layout::new(&types, missing),
            auto_increment: table.columns.iter().position(|column| column.auto_increment),
            id_is_read: id_is_read(table),
            has_generated: table.columns.iter().any(|column| column.generated.is_some()),
            columns,
            virtuals,
            checks,
            view_checks,
            selected: match &table.selected {
                Some(predicate) => Some(compiler.exprs.truth(predicate)?),
                None => None,
            },
            indexes: indexes.collect(),
            last_unique: table.last_unique.map(IndexId),
            triggers: table.triggers.clone(),
            edited: Box::default(),
            fulltext: table.fulltext.iter().map(KeptFulltext::new).collect(),
            key: table.key.clone(),
            parents: self.foreign_keys(&table.parents),
            children: self.foreign_keys(&table.children),
            history: table.history.clone(),
            partitions: table.partitions.clone(),
            needs_values: !table.parents.is_empty()
                || !table.children.is_empty()
                || table.history.is_some()
                || table.portion.is_some(),
            overlaps: Overlaps::of(table, engine),
            is_plain: table.fulltext.is_empty() && table.overlaps.is_empty(),
        })
    }

    fn foreign_keys(&self, keys: &[ForeignKeyCheck]) -> Vec<ForeignKey> {
        keys.iter()
            .filter_map(|key| {
                Some(ForeignKey {
                    text: key.text.clone(),
                    other: *self.by_id.get(&key.other.table)?,
                    columns: key.columns.clone(),
                    other_columns: key.other_columns.clone(),
                    other_index: IndexId(key.other_index),
                    only_current: key.only_current,
                    on_update: key.on_update,
                    on_delete: key.on_delete,
                })
            })
            .collect()
    }
}

fn store_option(expr: Option<&Expr>, compiler: &mut NodeCompiler<'_>) -> Result<Option<StoreCode>> {
    expr.map(|expr| store_code(expr, compiler)).transpose()
}

/// Compiles a value for a column. The assignment itself turns local time to UTC, with the errors of an assignment, so a
/// conversion that the binder put around the value is left out.
pub(crate) fn store_code(expr: &Expr, compiler: &mut NodeCompiler<'_>) -> Result<StoreCode> {
    let (inner, is_utc) = match expr {
        Expr::Cast { operand, kind: CastKind::TimestampToUtc, .. } => (&**operand, false),
        other => (other, is_utc(other)),
    };
    Ok(StoreCode { code: compiler.exprs.expr(inner)?, from: inner.ty(), is_utc })
}

/// Engines of the tables.
pub(crate) fn engines<'t>(tables: impl Iterator<Item = &'t WriteTable>) -> Vec<EngineIndex> {
    let mut engines: Vec<EngineIndex> = Vec::new();
    for table in tables {
        if !engines.contains(&table.engine) {
            engines.push(table.engine);
        }
    }
    engines
}
