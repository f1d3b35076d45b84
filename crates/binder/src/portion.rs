//! Periods of application time: what writing a table's rows checks because of them, and FOR PORTION OF.

use std::sync::Arc;

use catalog::{Table, never};
use errors::{Error, Result, bail, err};
use plan::{
    BinaryOp, CastKind, Expr, InsertMode, InsertPlan, InsertSource, InstanceId, KeyColumn,
    LogicalTarget, OverlapCheck, PortionWrite, Register,
};
use syntax::ast;
use types::{DataType, TypeKind};

use crate::binder::Binder;
use crate::scope::{Clause, ScopeSource};
use crate::table_write::WriteKind;
use crate::update::empty_write;

/// FOR PORTION OF of a statement.
pub(crate) struct BoundPortion {
    /// The row holds at some time of the portion.
    pub(crate) holds: Expr,
    table: Arc<Table>,
    /// Columns of the record.
    start: usize,
    end: usize,
    from: Expr,
    to: Expr,
}

impl Binder<'_> {
    /// FOR PORTION OF. An UPDATE has `targets`: the table is one of them even if the statement assigns nothing.
    ///
    /// # Errors
    /// 1487, 1965, 4156, 4157.
    pub(crate) fn bind_portion(
        &mut self,
        portion: Option<&ast::Portion>,
        targets: Option<&mut Vec<LogicalTarget>>,
    ) -> Result<Option<BoundPortion>> {
        let Some(portion) = portion else { return Ok(None) };
        let instance = self.table_of_portion()?;
        let table = self.tables[self.instance(instance).table].clone();
        let period = table.period(&portion.name.text);
        let period = period.ok_or_else(|| err!(PERIOD_NOT_FOUND, portion.name.text))?.clone();
        let stored = |at: usize| {
            let stored = table.columns[at].stored;
            stored.ok_or_else(|| Error::internal("a period of columns that are not stored"))
        };
        let (start, end) = (stored(period.start)?, stored(period.end)?);
        if let Some(targets) = targets {
            if targets.is_empty() {
                let write = empty_write(&table);
                targets.push(LogicalTarget { instance, write, assignments: Vec::new() });
            }
            let mut written = targets.iter().flat_map(|target| &target.assignments);
            if let Some(written) = written.find(|set| set.column == start || set.column == end) {
                let at = if written.column == start { period.start } else { period.end };
                bail!(PERIOD_COLUMNS_UPDATED, table.columns[at].name, period.name);
            }
        }
        let ty = bound_type(&table.columns[period.start].ty);
        self.block().clause = Clause::Where;
        let from = self.bind_bound(&portion.from, &ty)?;
        let to = self.bind_bound(&portion.to, &ty)?;
        // Who cuts rows reads the columns of the period.
        let end_read = self.period_column(&table, period.end)?;
        let start_read = self.period_column(&table, period.start)?;
        let begins = self.comparison(BinaryOp::Less, start_read, to.clone())?;
        let ends = self.comparison(BinaryOp::Greater, end_read, from.clone())?;
        let is_some = self.comparison(BinaryOp::Less, from.clone(), to.clone())?;
        let holds = Expr::connected(BinaryOp::And, begins, ends);
        let holds = Expr::connected(BinaryOp::And, holds, is_some);
        Ok(Some(BoundPortion { holds, table, start, end, from, to }))
    }

    /// The only table of the statement.
    fn table_of_portion(&mut self) -> Result<InstanceId> {
        let table = self.block().tables.first();
        let table = table.ok_or_else(|| Error::internal("a statement without a table"))?;
        match &table.source {
            ScopeSource::Base { instance, .. } => Ok(*instance),
            ScopeSource::Columns(_) => bail!(IT_IS_A_VIEW, table.alias),
        }
    }

    /// An end of the portion, as a value for the columns of the period.
    fn bind_bound(&mut self, bound: &ast::Expr, ty: &DataType) -> Result<Expr> {
        let mut operand = self.bind_single(bound)?;
        self.infer(&mut operand, ty);
        let varies = operand.any(&mut |part| match part {
            Expr::Subquery { id, .. } => !self.subqueries[id.0 as usize].outer.is_empty(),
            part => matches!(part, Expr::Column { .. }),
        });
        if varies || operand.is_volatile() {
            bail!(NOT_CONSTANT_EXPRESSION, "FOR PORTION OF");
        }
        let ty = ty.clone().with_nullable(true);
        Ok(Expr::Cast { operand: Box::new(operand), kind: CastKind::Explicit, ty })
    }

    fn period_column(&mut self, table: &Table, column: usize) -> Result<Expr> {
        let name = ast::Ident::new(&table.columns[column].name);
        let name = ast::ColumnName { schema: None, table: None, name };
        Ok(self.resolve(&name)?.expr)
    }

    /// What the statement does with the rows: cuts them, and inserts what is left.
    ///
    /// # Errors
    /// Those of the description of an INSERT.
    pub(crate) fn add_portion(
        &mut self,
        portion: Option<BoundPortion>,
        targets: &mut [LogicalTarget],
    ) -> Result<()> {
        let (Some(portion), [target]) = (portion, targets) else { return Ok(()) };
        let BoundPortion { table, start, end, from, to, .. } = portion;
        let base = self.new_registers(table.columns.len());
        let written = self.table_write(&table, base, WriteKind::Insert)?;
        let first = self.new_registers(written.columns.len());
        let given: Vec<Register> =
            (0..written.columns.len()).map(|at| Register(first.0 + at as u32)).collect();
        let times = table.row_times();
        let times = times.map(|times| [times.start, times.end].map(|at| table.columns[at].stored));
        let is_given = |at: &usize| {
            let column = &written.columns[*at];
            let is_time = times.is_some_and(|times| times.contains(&Some(*at)));
            column.generated.is_none() && !column.auto_increment && !is_time
        };
        let columns: Vec<usize> = (0..written.columns.len()).filter(is_given).collect();
        let value = |at: &usize| Some(Expr::column(given[*at], written.columns[*at].ty.clone()));
        let row = columns.iter().map(value).collect();
        let rest = InsertPlan {
            targets: columns,
            source: InsertSource::Values(vec![row]),
            target: written,
            mode: InsertMode::Error,
            ignore: false,
            returning: Vec::new(),
            subqueries: Vec::new(),
            ctes: Vec::new(),
            registers: 0,
        };
        target.write.portion = Some(Box::new(PortionWrite { start, end, from, to, given, rest }));
        Ok(())
    }
}

/// The type of values that are compared with the columns of a period: in the session's time zone.
fn bound_type(column: &DataType) -> DataType {
    let is_utc = column.kind == TypeKind::Timestamp;
    let kind = if is_utc { TypeKind::DateTime } else { column.kind };
    DataType { kind, ..column.clone() }
}

/// The period begins before it ends.
pub(crate) fn period_check(table: &Table, base: Register) -> Option<(Arc<str>, Expr)> {
    let (name, period) = (table.period_check()?, table.period.as_ref()?);
    let column = |at: usize| {
        let ty = table.columns[at].ty.clone();
        Expr::column(Register(base.0 + at as u32), ty)
    };
    let check = Expr::connected(BinaryOp::Less, column(period.start), column(period.end));
    Some((name, check))
}

/// The keys of a table that refuse overlaps. `number`: what says the partition of a row, over registers from `base`.
pub(crate) fn overlap_checks(
    table: &Table,
    base: Register,
    number: Option<&Expr>,
) -> Vec<OverlapCheck> {
    let Some(period) = &table.period else { return Vec::new() };
    let stored = |at: usize| table.columns[at].stored;
    let checked = table.indexes.iter().filter(|index| index.without_overlaps);
    let check = |index: &catalog::Index| {
        let alike = index.own_parts().iter().map(|part| {
            Some(KeyColumn {
                column: stored(part.column)?,
                ty: table.definition.columns[stored(part.column)?].ty.clone(),
                prefix_length: part.prefix_length,
                descending: part.descending,
            })
        });
        let times = table.row_times();
        Some(OverlapCheck {
            index: index.id.0,
            alike: alike.collect::<Option<_>>()?,
            start: stored(period.start)?,
            end: stored(period.end)?,
            partitions: match table.has_leading_part(index) {
                true => Some(leading_part(table, index, base, number)?),
                false => None,
            },
            current: times.and_then(|times| Some((stored(times.end)?, never()))),
        })
    };
    checked.filter_map(check).collect()
}

/// The number of the partition in a clustered key, and the numbers under which rows that are alike in the key may be where it depends on the period.
fn leading_part(
    table: &Table,
    index: &catalog::Index,
    base: Register,
    number: Option<&Expr>,
) -> Option<(KeyColumn, Vec<u16>)> {
    let column = table.columns[table.partition_column()?].stored?;
    let ty = table.definition.columns[column].ty.clone();
    let part = KeyColumn { column, ty, prefix_length: None, descending: false };
    // Current rows, which alone count, all have the same end.
    let end = table.row_times().map(|times| times.end);
    let mut alike: Vec<usize> = index.own_parts().iter().map(|part| part.column).collect();
    alike.extend(end);
    let is_alike =
        |register: Register| alike.iter().any(|at| Register(base.0 + *at as u32) == register);
    let varies = number.is_none_or(|number| {
        number
            .any(&mut |node| matches!(node, Expr::Column { register, .. } if !is_alike(*register)))
    });
    let numbers = table.partitioning.as_ref().map(|own| own.numbers()).filter(|_| varies);
    Some((part, numbers.unwrap_or_default()))
}
