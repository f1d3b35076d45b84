//! RETURNING: what a statement that changes rows answers with.

use std::sync::Arc;

use catalog::Table;
use errors::{Result, bail};
use plan::{Expr, InstanceId, Logical, LogicalTarget, OutputColumn, Register, RegisterSet};
use syntax::ast;

use crate::binder::Binder;
use crate::reader::PrivilegeKind;
use crate::scope::{Clause, ScopeColumn, ScopeSource, ScopeTable, visible_columns};

/// Registers of values as written, each with the one that keeps the value before.
type KeptBefore = Vec<(Register, Register)>;

impl Binder<'_> {
    /// RETURNING over the rows as written.
    pub(crate) fn bind_returning(
        &mut self,
        items: &[ast::SelectItem],
        table: &Arc<Table>,
        base: Register,
    ) -> Result<Vec<OutputColumn>> {
        if items.is_empty() {
            return Ok(Vec::new());
        }
        self.require(&table.schema, &table.name, PrivilegeKind::Select);
        self.push_target_block(table, base, Clause::FieldList)?;
        let outputs = self.bind_output_list(items)?;
        if !self.block().aggregates.is_empty() {
            bail!(INVALID_GROUP_FUNC_USE);
        }
        self.blocks.pop();
        Ok(outputs)
    }

    /// RETURNING of an UPDATE, whose block is the innermost one: names mean the row as written, and so do those with NEW before them; OLD
    /// means the row before.
    pub(crate) fn bind_returning_of_update(
        &mut self,
        items: &[ast::SelectItem],
        targets: &[LogicalTarget],
        root: &Logical,
    ) -> Result<(Vec<OutputColumn>, KeptBefore)> {
        let ([target], false) = (targets, items.is_empty()) else {
            return Ok((Vec::new(), Vec::new()));
        };
        let Some(mut shown) = self.block().tables.first().cloned() else {
            return Ok((Vec::new(), Vec::new()));
        };
        if let ScopeSource::Columns(columns) = &mut shown.source {
            let mut computed = Vec::new();
            collect_computed(root, &mut computed);
            columns.iter_mut().for_each(|column| write_out(&mut column.expr, &computed));
        }
        let instance = target.instance;
        let table = self.tables[self.instance(instance).table].clone();
        let base = self.instance(instance).base;
        let before = self.new_registers(table.columns.len());
        let new = self.columns_over(&shown, (instance, &table), base)?;
        let old = self.columns_over(&shown, (instance, &table), before)?;
        if let ScopeSource::Base { .. } = shown.source {
            self.require(&table.schema, &table.name, PrivilegeKind::Select);
        }
        let first_subquery = self.subqueries.len();
        self.push_block();
        let block = self.block();
        block.clause = Clause::FieldList;
        let source = ScopeSource::Columns(new.clone());
        let main = ScopeTable { source, ..shown };
        block.visible = Some(visible_columns(&main, 0).collect());
        let pseudo = |alias: &str, columns: &[ScopeColumn]| ScopeTable {
            schema: None,
            alias: alias.into(),
            source: ScopeSource::Columns(columns.to_vec()),
            aliased: true,
            ..main.clone()
        };
        // A table of that name hides the row.
        let rows = [pseudo("old", &old), pseudo("new", &new)];
        block.tables.push(main);
        for row in rows {
            if !block.tables[0].alias.eq_ignore_ascii_case(&row.alias) {
                let upper = row.alias.to_ascii_uppercase().into();
                block.tables.push(ScopeTable { alias: upper, ..row.clone() });
                block.tables.push(row);
            }
        }
        let outputs = self.bind_output_list(items)?;
        if !self.block().aggregates.is_empty() {
            bail!(INVALID_GROUP_FUNC_USE);
        }
        self.blocks.pop();
        self.check_not_read(instance, "UPDATE")?;
        let kept = self.kept_before(&outputs, first_subquery, (base, before), &table);
        Ok((outputs, kept))
    }

    /// The columns that a table or view shows of a row whose stored values are in the registers from `base` on.
    fn columns_over(
        &mut self,
        shown: &ScopeTable,
        (instance, table): (InstanceId, &Arc<Table>),
        base: Register,
    ) -> Result<Vec<ScopeColumn>> {
        let own = self.instance(instance).base;
        let ScopeSource::Columns(columns) = &shown.source else {
            return self.target_scope(table, base);
        };
        let mut values: Vec<Option<Expr>> = vec![None; table.columns.len()];
        for (index, column) in table.columns.iter().enumerate() {
            if let Some(generated) = column.generated.as_ref()
                && column.stored.is_none()
            {
                let bound = self.bind_text_over(&generated.expression, table, base)?;
                values[index] = Some(crate::table_expression::stored_as(bound, &column.ty));
            }
        }
        let mut columns = columns.clone();
        // The registers that a subquery reads are fixed: it sees the row as written.
        columns.retain(|column| {
            base == own || !column.expr.any(&mut |node| matches!(node, Expr::Subquery { .. }))
        });
        for column in &mut columns {
            column.expr.rewrite(&mut |node| {
                let Expr::Column { register, .. } = node else { return false };
                let Some(index) = register.0.checked_sub(own.0).map(|index| index as usize) else {
                    return false;
                };
                match values.get(index) {
                    Some(Some(value)) => *node = value.clone(),
                    Some(None) => *register = Register(base.0 + index as u32),
                    None => {}
                }
                true
            });
        }
        Ok(columns)
    }

    /// The values before the change that outputs, or subqueries from `first` on, read.
    fn kept_before(
        &self,
        outputs: &[OutputColumn],
        first: usize,
        (base, before): (Register, Register),
        table: &Table,
    ) -> KeptBefore {
        let mut read = RegisterSet::new();
        outputs.iter().for_each(|output| output.expr.add_registers(&|_| &[], &mut read));
        let in_subquery = self.subqueries.len() > first;
        (0..table.columns.len() as u32)
            .map(|index| (Register(base.0 + index), Register(before.0 + index)))
            .filter(|(_, kept)| in_subquery || read.contains(*kept))
            .collect()
    }
}

/// What a view computes, by its registers: they hold values from before the write.
fn collect_computed(node: &Logical, computed: &mut Vec<(Register, Expr)>) {
    if let Logical::Project { columns, .. } = node {
        computed.extend(columns.iter().cloned());
    }
    node.for_each_input(&mut |input| collect_computed(input, computed));
}

/// Writes computed values out, down to columns of tables.
fn write_out(expr: &mut Expr, computed: &[(Register, Expr)]) {
    expr.rewrite(&mut |node| {
        let Some(register) = node.as_column() else { return false };
        let Some((_, value)) = computed.iter().find(|(known, _)| *known == register) else {
            return false;
        };
        if value.as_column() != Some(register) {
            *node = value.clone();
            write_out(node, computed);
        }
        true
    });
}
