//! `PARTITION (p0, ..)` after a table's name: reads see those partitions only, and writes must not leave them.

use catalog::Table;
use errors::{Result, bail, err};
use plan::{CastKind, Expr, InstanceId, Logical, PartitionRouting, Register};
use syntax::ast::Ident;
use types::{CollationId, DataType, FunctionRole, PartitionQuestion, Value};

use crate::binder::Binder;
use crate::scope::column_read;

impl Binder<'_> {
    /// Shows the optimizer how a row's partition follows from its columns.
    pub(crate) fn bind_partition_number(&mut self, id: InstanceId, table: &Table) -> Result<()> {
        let Some(column) = table.partition_column() else { return Ok(()) };
        let base = self.instance(id).base;
        let Some(generated) = &table.columns[column].generated else { return Ok(()) };
        let number = self.bind_text_over(&generated.expression, table, base)?;
        let ask = |question| self.function_of(FunctionRole::Partition(question));
        let routing = PartitionRouting {
            number,
            probe: ask(PartitionQuestion::Probe)?.reference(),
            first: ask(PartitionQuestion::First)?.reference(),
            last: ask(PartitionQuestion::Last)?.reference(),
            before: ask(PartitionQuestion::Before)?.reference(),
        };
        self.instances[id.0 as usize].partition = Some(Box::new(routing));
        Ok(())
    }

    /// Restricts a table reference to the partitions that it names.
    pub(crate) fn select_partitions(
        &mut self,
        id: InstanceId,
        table: &Table,
        names: &[Ident],
        get: Logical,
    ) -> Result<Logical> {
        let base = self.instance(id).base;
        let Some(predicate) = selected(table, names, base)? else { return Ok(get) };
        self.selections.push((id, predicate.clone()));
        Ok(Logical::Filter { input: Box::new(get), predicate })
    }

    /// The condition on a row written through a table reference.
    pub(crate) fn selection_of(&self, id: InstanceId) -> Option<Expr> {
        let found = self.selections.iter().find(|(own, _)| *own == id);
        found.map(|(_, predicate)| predicate.clone())
    }

    /// A row's partition does not depend on a session's time zone: its number reads timestamps themselves, not local times, of which some are
    /// ambiguous.
    pub(crate) fn read_timestamps(&self, number: &mut Expr) -> Result<()> {
        let is_number = FunctionRole::Partition(PartitionQuestion::Number);
        if !matches!(number, Expr::Function { function, .. } if function.is(is_number)) {
            return Ok(());
        }
        let seconds = self.function_of(FunctionRole::PartitionSeconds)?.reference();
        if let Expr::Function { args, .. } = number {
            // The columns of KEY and of SYSTEM_TIME.
            for arg in args {
                if let Expr::Cast { operand, kind: CastKind::TimestampToLocal, .. } = arg {
                    *arg = (**operand).clone();
                }
            }
        }
        number.rewrite(&mut |node| {
            let Expr::Function { function, args, .. } = node else { return false };
            let timestamp = match &mut args[..] {
                [Expr::Cast { operand, kind: CastKind::TimestampToLocal, .. }]
                    if function.is(FunctionRole::UnixTimestamp) =>
                {
                    operand.clone()
                }
                _ => return false,
            };
            let (args, ty) = (vec![*timestamp], DataType::bigint());
            *node = Expr::Function { function: seconds, args, ty };
            true
        });
        Ok(())
    }
}

/// 1814 for rows that DISCARD TABLESPACE took. Which partitions a condition leaves is known later, so the others can be used by name only.
pub(crate) fn refuse_discarded(table: &Table, names: &[Ident]) -> Result<()> {
    if !table.is_discarded() {
        return Ok(());
    }
    let discarded = table.discarded_partitions();
    let partitioning = table.partitioning.as_ref().filter(|_| !names.is_empty());
    let is_there = |name: &Ident| {
        let numbers = partitioning.and_then(|partitioning| partitioning.named(&name.text));
        numbers.is_some_and(|numbers| !numbers.iter().any(|number| discarded.contains(number)))
    };
    match partitioning.is_some() && names.iter().all(is_there) {
        true => Ok(()),
        false => Err(err!(TABLESPACE_DISCARDED, table.name)),
    }
}

/// `number IN (..)` for the named partitions; `None` where none is named. Column `i` has register `base + i`; 1735, 1747, 1814.
pub(crate) fn selected(table: &Table, names: &[Ident], base: Register) -> Result<Option<Expr>> {
    refuse_discarded(table, names)?;
    if names.is_empty() {
        return Ok(None);
    }
    let (Some(partitioning), Some(column)) = (&table.partitioning, table.partition_column()) else {
        bail!(PARTITION_CLAUSE_ON_NONPARTITIONED)
    };
    let mut numbers: Vec<u16> = Vec::new();
    for name in names {
        match partitioning.named(&name.text) {
            Some(found) => numbers.extend(found),
            None => bail!(UNKNOWN_PARTITION, name.text, table.name),
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    let ty = &table.columns[column].ty;
    let literal = |number: &u16| Expr::literal(Value::UInt(u64::from(*number)), ty.clone());
    Ok(Some(Expr::InList {
        operand: Box::new(column_read(Register(base.0 + column as u32), ty)),
        list: numbers.iter().map(literal).collect(),
        negated: false,
        collation: CollationId::BINARY,
    }))
}
