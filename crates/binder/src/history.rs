//! Tables that keep history: which rows a reference to one means, and how its rows are written. A plain reference means the current rows.

use std::sync::Arc;

use catalog::{Column, ColumnHistory, Table, never, row_time_type};
use errors::{Error, Result, bail};
use plan::{
    BinaryOp, Expr, HistoryWrite, InstanceId, Logical, LogicalTarget, LogicalWrite, Register,
    SystemPartitions,
};
use syntax::ast;
use types::{DataType, DateTime, TypeKind, Value};

use crate::binder::Binder;
use crate::from::Found;
use crate::reader::PrivilegeKind;
use crate::scope::{RowsOf, column_read};
use crate::table_write::WriteKind;

impl Binder<'_> {
    /// FOR SYSTEM_TIME of a reference.
    ///
    /// # Errors
    /// Those of the expressions, which read columns in subqueries alone; 1210 for types that are no times; 1235 for numbers of transactions.
    pub(crate) fn bind_system_time(&mut self, time: &ast::SystemTime) -> Result<RowsOf> {
        Ok(match time {
            ast::SystemTime::All => RowsOf::All,
            ast::SystemTime::AsOf(point) => RowsOf::AsOf(self.bind_point(point)?),
            ast::SystemTime::Between(low, high) => {
                RowsOf::Between(self.bind_point(low)?, self.bind_point(high)?)
            }
            ast::SystemTime::FromTo(low, high) => {
                RowsOf::FromTo(self.bind_point(low)?, self.bind_point(high)?)
            }
        })
    }

    fn bind_point(&mut self, point: &ast::SystemPoint) -> Result<Expr> {
        let ast::SystemPoint::Timestamp(at) = point else {
            return Err(Error::not_supported("transaction-precise system versioning"));
        };
        // No table of the query itself is in sight; a subquery may read those of queries around it.
        let block = self.blocks.pop();
        let view_time = self.view_time.take();
        let outer = self.push_block();
        let bound = self.bind_single(at);
        self.blocks.truncate(outer);
        self.blocks.extend(block);
        self.view_time = view_time;
        let mut bound = bound?;
        self.infer(&mut bound, &row_time_type());
        let is_column = bound.any(&mut |part| matches!(part, Expr::Column { .. }));
        if is_column || !may_be_time(&bound.ty()) {
            bail!(WRONG_ARGUMENTS, "FOR SYSTEM_TIME");
        }
        Ok(bound)
    }

    /// Restricts a reference to the rows that it means: of its own time, of that of the view around it, of the session's, or the current ones.
    ///
    /// # Errors
    /// 4124.
    pub(crate) fn rows_of_time(
        &mut self,
        id: InstanceId,
        table: &Table,
        time: Option<&ast::SystemTime>,
        get: Logical,
    ) -> Result<Logical> {
        let times = table.row_times();
        if table.by_system_time() && self.selection_of(id).is_some() {
            // The partitions say which rows.
            if time.is_some() {
                bail!(VERS_QUERY_IN_PARTITION, table.name);
            }
            self.not_current.push(id);
            return Ok(get);
        }
        let Some(times) = times.filter(|_| time.is_some() || !self.sees_stored_rows()) else {
            if times.is_none() && time.is_some() {
                bail!(VERS_NOT_VERSIONED, table.name);
            }
            return Ok(get);
        };
        let own = time.map(|time| self.bind_system_time(time)).transpose()?;
        let base = self.instance(id).base;
        let ty = row_time_type();
        let read = |at: usize| column_read(Register(base.0 + at as u32), &ty);
        let (start, end) = (read(times.start), read(times.end));
        let rows = own.or_else(|| self.view_time.clone()).or_else(|| self.session_time());
        if rows.is_some() {
            self.not_current.push(id);
        }
        self.time_of_view_is_used |= self.view_time.is_some();
        let predicate = match rows {
            Some(RowsOf::All) => return Ok(get),
            Some(RowsOf::AsOf(point)) => self.between_times(
                (BinaryOp::LessOrEqual, start, point.clone()),
                (BinaryOp::Greater, end, point),
            )?,
            Some(RowsOf::Between(low, high)) => self.between_times(
                (BinaryOp::LessOrEqual, start, high),
                (BinaryOp::Greater, end, low),
            )?,
            Some(RowsOf::FromTo(low, high)) => {
                self.between_times((BinaryOp::Less, start, high), (BinaryOp::Greater, end, low))?
            }
            None => is_current(table, base),
        };
        Ok(Logical::Filter { input: Box::new(get), predicate })
    }

    /// DELETE HISTORY: rows that are not current, or those that ended before a time.
    ///
    /// # Errors
    /// 4124; 1347 for views.
    pub(crate) fn bind_delete_history(
        &mut self,
        named: &ast::NamedTable,
        before: Option<&ast::SystemPoint>,
    ) -> Result<LogicalWrite> {
        let schema = self.schema_of(&named.name)?;
        let name = &*named.name.name.text;
        let Found::Table(table) = self.find_relation(&schema, name)? else {
            bail!(WRONG_OBJECT, schema, name, "BASE TABLE")
        };
        let Some(times) = table.row_times() else { bail!(VERS_NOT_VERSIONED, table.name) };
        self.push_block();
        let point = before.map(|point| self.bind_point(point)).transpose()?;
        let all = ast::NamedTable { system_time: Some(ast::SystemTime::All), ..named.clone() };
        let get = self.bind_named_table(&all)?;
        let instance = InstanceId(self.instances.len() as u32 - 1);
        self.not_current.clear();
        let base = self.instance(instance).base;
        let Expr::Binary { left, right, collation, ty, .. } = is_current(&table, base) else {
            return Err(Error::internal("not a comparison"));
        };
        let mut predicate = Expr::Binary { op: BinaryOp::NotEqual, left, right, collation, ty };
        if let Some(point) = point {
            let end = column_read(Register(base.0 + times.end as u32), &row_time_type());
            let is_earlier = self.comparison(BinaryOp::Less, end, point)?;
            predicate = Expr::connected(BinaryOp::And, predicate, is_earlier);
        }
        let write = self.mark_target(instance, WriteKind::Erase)?;
        self.require(&table.schema, &table.name, PrivilegeKind::Delete);
        self.lock_reads();
        self.blocks.pop();
        Ok(LogicalWrite {
            root: Logical::Filter { input: Box::new(get), predicate },
            targets: vec![LogicalTarget { instance, write, assignments: Vec::new() }],
            ignore: false,
            limit: None,
            ordered: false,
            multi_table: false,
            returning: Vec::new(),
            old: Vec::new(),
        })
    }

    fn between_times(
        &mut self,
        first: (BinaryOp, Expr, Expr),
        second: (BinaryOp, Expr, Expr),
    ) -> Result<Expr> {
        let first = self.comparison(first.0, first.1, first.2)?;
        let second = self.comparison(second.0, second.1, second.2)?;
        Ok(Expr::connected(BinaryOp::And, first, second))
    }

    /// `system_versioning_asof`, which queries heed.
    fn session_time(&self) -> Option<RowsOf> {
        let micros = self.input.bind.history.as_of_micros.filter(|_| self.is_query)?;
        let utc = Value::DateTime(DateTime::from_unix_micros(micros)?);
        let ty = row_time_type();
        let literal = Expr::literal(utc, ty.clone());
        let kind = plan::CastKind::TimestampToLocal;
        Some(RowsOf::AsOf(Expr::Cast { operand: Box::new(literal), kind, ty }))
    }

    /// Whether a statement may give the column a value.
    pub(crate) fn takes_values(&self, column: &Column) -> bool {
        let settings = self.input.bind.history;
        let gives = settings.gives_row_times || settings.stored_rows;
        !column.is_computed() || column.history.is_time() && gives
    }

    /// `system_versioning_stored_rows`.
    fn sees_stored_rows(&self) -> bool {
        self.input.bind.history.stored_rows
    }

    /// Whether an UPDATE may give a time of a row another value.
    pub(crate) fn assigns_time(&self, column: &Column) -> bool {
        column.history.is_time() && self.sees_stored_rows()
    }

    /// What writing the table's rows has to keep.
    pub(crate) fn history_write(&self, table: &Table) -> Option<Box<HistoryWrite>> {
        let times = table.row_times().filter(|_| !self.sees_stored_rows())?;
        let stored = |at: usize| table.columns[at].stored;
        let is_kept =
            |column: &&Column| column.history == ColumnHistory::Kept && column.generated.is_none();
        let kept =
            table.columns.iter().filter(is_kept).filter_map(|column| column.stored).collect();
        let (start, end) = (stored(times.start)?, stored(times.end)?);
        Some(Box::new(HistoryWrite { start, end, kept, never: never() }))
    }

    /// Which partition takes a row of a table partitioned by SYSTEM_TIME.
    pub(crate) fn system_partitions(&self, table: &Table) -> Option<Arc<SystemPartitions>> {
        let partitioning = table.partitioning.as_deref().filter(|own| own.by_system_time())?;
        let number = table.columns[table.partition_column()?].stored?;
        let end = table.columns[table.row_times()?.end].stored?;
        let history = partitioning.history();
        let end_of = |own: &catalog::Partition| own.values.first()?.first()?.value.clone();
        Some(Arc::new(SystemPartitions {
            id: table.id.0,
            number,
            end,
            never: never(),
            subpartitions: partitioning.subpartitions(),
            history: history.iter().map(|own| own.number).collect(),
            ends: history.iter().filter_map(end_of).collect(),
            limit: partitioning.method.rotation.limit,
            table: (table.schema.clone(), table.name.clone()),
            last: history.last().map_or_else(|| "".into(), |own| own.name.clone()),
            index: table.number_index().0,
            warns: !self.input.bind.history.gives_row_times && !self.sees_stored_rows(),
        }))
    }

    /// Whether a statement that writes may name the column.
    pub(crate) fn is_named_for_writes(&self, column: &Column) -> bool {
        !column.history.is_undeclared_time() || self.takes_values(column)
    }
}

/// Whether values of a type may say a time.
fn may_be_time(ty: &DataType) -> bool {
    let is_number =
        matches!(ty.kind, TypeKind::Decimal | TypeKind::Float | TypeKind::Double | TypeKind::Json);
    !is_number && ty.as_fixed().is_none()
}

/// The row is current.
pub(crate) fn is_current(table: &Table, base: Register) -> Expr {
    let end = table.row_times().map_or(0, |times| times.end);
    let register = Register(base.0 + end as u32);
    let column = Expr::column(register, row_time_type());
    Expr::connected(BinaryOp::Equal, column, Expr::literal(never(), row_time_type()))
}
