//! Name resolution in query blocks.

use std::sync::Arc;

use catalog::Table;
use errors::{Result, bail};
use plan::{ColumnSource, Expr, InstanceId, LogicalSubquery, Register};
use syntax::ast;

use crate::binder::Binder;
use crate::reader::{PrivilegeKind, RequiredPrivilege};
use crate::respell::spelled;
use crate::scope::{
    Block, Clause, ListedItem, Resolved, ScopeSource, VisibleColumn, base_source, column_read,
    make_nullable, names_equal, written,
};

/// The first register for which `is_one` that an expression reads, by itself or in a subquery.
pub(crate) fn first_read(
    expr: &Expr,
    subqueries: &[LogicalSubquery],
    is_one: impl Fn(Register) -> bool,
) -> Option<Register> {
    let mut found = None;
    expr.any(&mut |node| {
        if let Expr::Subquery { id, .. } = node {
            let subquery = subqueries.get(id.0 as usize);
            let outer = subquery.map_or(&[][..], |subquery| &subquery.outer);
            found = outer.iter().copied().find(|one| is_one(*one));
        } else {
            found = node.as_column().filter(|one| is_one(*one));
        }
        found.is_some()
    });
    found
}

/// Whether an expression reads the result of an aggregate of the block.
pub(crate) fn reads_aggregate(block: &Block, expr: &Expr, subqueries: &[LogicalSubquery]) -> bool {
    let is_result = |register| block.aggregates.iter().any(|call| call.output == register);
    first_read(expr, subqueries, is_result).is_some()
}

/// Whether an expression reads the result of a window function of the block.
pub(crate) fn reads_window(block: &Block, expr: &Expr, subqueries: &[LogicalSubquery]) -> bool {
    let mut calls = block.window_groups.iter().flat_map(|group| &group.calls);
    let outputs: Vec<Register> = calls.by_ref().map(|call| call.output).collect();
    first_read(expr, subqueries, |register| outputs.contains(&register)).is_some()
}

impl Binder<'_> {
    pub(crate) fn block(&mut self) -> &mut Block {
        self.blocks.last_mut().expect("a name or expression is bound inside a block")
    }

    pub(crate) fn push_block(&mut self) -> usize {
        self.block_count += 1;
        self.blocks.push(Block::new(self.block_count));
        self.blocks.len() - 1
    }

    /// Binds a column reference.
    pub(crate) fn bind_column(&mut self, name: &ast::ColumnName) -> Result<Expr> {
        Ok(self.resolve(name)?.expr)
    }

    /// Resolves `name` in the innermost block that has it.
    pub(crate) fn resolve(&mut self, name: &ast::ColumnName) -> Result<Resolved> {
        for level in (0..self.blocks.len()).rev() {
            if self.blocks[level].hidden > 0 {
                continue;
            }
            if let Some(found) = self.resolve_in(level, name)? {
                if !found.from_list {
                    self.deepest_reference =
                        Some(self.deepest_reference.map_or(level, |deepest| deepest.max(level)));
                }
                return Ok(found);
            }
        }
        let around = self.blocks.len().saturating_sub(1);
        let comes_later = name.table.is_none()
            && self.blocks[..around].iter().any(|block| {
                block.hidden == 0
                    && block.clause == Clause::FieldList
                    && block.aliases.iter().any(|alias| names_equal(alias, &name.name.text))
            });
        if comes_later {
            bail!(ILLEGAL_REFERENCE, name.name.text, "forward reference in item list");
        }
        let clause = self.blocks.last().map_or("field list", |block| block.clause.name());
        if let Some(table) = &name.table
            && self.blocks.last().is_some_and(|block| block.tail)
        {
            bail!(TABLENAME_NOT_ALLOWED_HERE, table.text, "global ORDER clause")
        }
        if let Some(table) = &name.table
            && self.sees_no_table()
        {
            bail!(UNKNOWN_TABLE, table.text, clause)
        }
        bail!(BAD_FIELD_ERROR, written(name), clause)
    }

    /// Whether no table is in sight: none of this block, and there are none around it.
    fn sees_no_table(&self) -> bool {
        let Some((inner, around)) = self.blocks.split_last() else { return true };
        !(0..inner.tables.len()).any(|at| inner.shows(at))
            && around.iter().all(|block| block.tables.is_empty())
    }

    fn resolve_in(&mut self, level: usize, name: &ast::ColumnName) -> Result<Option<Resolved>> {
        let block = &self.blocks[level];
        let resolved = |expr| Some(Resolved { expr, level, place: None, from_list: false });
        // A subquery sees the tables of the blocks around it first, then their select lists.
        let from_inside = level + 1 < self.blocks.len();
        if block.clause == Clause::Having && block.in_aggregate == 0 && !from_inside {
            let listed = self.resolve_listed(level, name)?;
            if let Some(expr) = &listed
                && reads_window(block, expr, &self.subqueries)
            {
                bail!(WINDOW_INVALID_WINDOW_FUNC_ALIAS_USE, name.name.text);
            }
            let place = match self.find_in_tables(level, name) {
                Err(_) if listed.is_some() => None,
                found => found?,
            };
            if let Some((table, column)) = place
                && (listed.is_none() || !self.blocks[level].keys.is_empty())
            {
                let expr = self.scope_column(level, table, column)?;
                let block = &self.blocks[level];
                // A key of GROUP BY comes before an item of the select list. An item that is the column itself may have any alias.
                let is_key = block.keys.iter().any(|(_, key)| *key == expr);
                if is_key || listed.is_none() && block.items.iter().any(|item| item.expr == expr) {
                    self.spell_column(name, level, (table, column));
                    return Ok(Some(Resolved {
                        expr,
                        level,
                        place: Some((table, column)),
                        from_list: false,
                    }));
                }
            }
            return Ok(listed.and_then(resolved));
        }
        if name.table.is_none()
            && let Some(column) = self.find_merged(level, &name.name.text)?
            && let Some(merged) = column.merged.clone()
        {
            match column.parts.is_empty() {
                true => self.spell_column(name, level, (column.table, column.column)),
                false => self.spell_name(name, spelled(&column, &self.blocks[level].tables)),
            }
            return Ok(resolved(merged));
        }
        if let Some((table, column)) = self.find_in_tables(level, name)? {
            self.spell_column(name, level, (table, column));
            let expr = self.scope_column(level, table, column)?;
            return Ok(Some(Resolved {
                expr,
                level,
                place: Some((table, column)),
                from_list: false,
            }));
        }
        let block = &self.blocks[level];
        if from_inside && matches!(block.clause, Clause::FieldList | Clause::Having) {
            let listed = self.resolve_listed_from_inside(level, name)?;
            let found = |expr| Resolved { expr, level, place: None, from_list: true };
            return Ok(listed.map(found));
        }
        if from_inside && matches!(block.clause, Clause::Order | Clause::Group) {
            return Ok(self.resolve_listed_from_inside(level, name)?.and_then(resolved));
        }
        if matches!(block.clause, Clause::Order | Clause::Group) && block.in_aggregate == 0 {
            let listed = self.resolve_listed(level, name)?;
            self.blocks[level].items_named += u32::from(listed.is_some());
            return Ok(listed.and_then(resolved));
        }
        Ok(None)
    }

    /// The same for a name in a subquery, which may only use an aggregate's result in its own HAVING.
    fn resolve_listed_from_inside(
        &self,
        level: usize,
        name: &ast::ColumnName,
    ) -> Result<Option<Expr>> {
        let listed = self.resolve_listed(level, name)?;
        // No group has a result yet while the groups are named.
        let in_having = self.blocks.last().is_some_and(|block| block.clause == Clause::Having);
        let readable = in_having && self.blocks[level].clause != Clause::Group;
        if let Some(expr) = &listed
            && !readable
            && self.blocks.iter().any(|block| reads_aggregate(block, expr, &self.subqueries))
        {
            bail!(ILLEGAL_REFERENCE, written(name), "reference to group function");
        }
        Ok(listed)
    }

    /// Searches the select list: by alias, or for the same column.
    pub(crate) fn resolve_listed(
        &self,
        level: usize,
        name: &ast::ColumnName,
    ) -> Result<Option<Expr>> {
        let block = &self.blocks[level];
        let mut found: Option<&ListedItem> = None;
        for item in &block.items {
            let same = names_equal(&item.name, &name.name.text)
                && match &name.table {
                    None => true,
                    Some(table) => item.table.as_deref() == Some(&*table.text) && !item.aliased,
                };
            if !same {
                continue;
            }
            match found {
                // A plain column is preferred to no match, an alias to a column of the same name.
                Some(before) if before.expr == item.expr => {}
                Some(before) if before.aliased && !item.aliased => {}
                Some(before) if !before.aliased && item.aliased => found = Some(item),
                Some(_) => {
                    bail!(NON_UNIQ_ERROR, written(name), block.clause.name())
                }
                None => found = Some(item),
            }
        }
        Ok(found.map(|item| item.expr.clone()))
    }

    /// A column that a join may have merged from two.
    fn find_merged(&self, level: usize, name: &str) -> Result<Option<VisibleColumn>> {
        let block = &self.blocks[level];
        let Some(visible) = &block.visible else { return Ok(None) };
        let mut found = visible
            .iter()
            .filter(|column| block.shows(column.table))
            .filter(|column| names_equal(&column.name, name));
        let Some(first) = found.next() else { return Ok(None) };
        if found.next().is_some() {
            bail!(NON_UNIQ_ERROR, name, block.clause.name());
        }
        Ok(Some(first.clone()))
    }

    /// Table and column of the block that `name` names.
    fn find_in_tables(
        &self,
        level: usize,
        name: &ast::ColumnName,
    ) -> Result<Option<(usize, usize)>> {
        let block = &self.blocks[level];
        let mut found = None;
        for (index, table) in block.tables.iter().enumerate().filter(|(at, _)| block.shows(*at)) {
            if let Some(wanted) = &name.table
                && !table.matches(name.schema.as_ref().map(|schema| &*schema.text), &wanted.text)
            {
                continue;
            }
            let Some(column) = table.find(&name.name.text) else { continue };
            if let Some(before) = found
                && !self.same_visible(level, before, (index, column))
            {
                bail!(NON_UNIQ_ERROR, written(name), block.clause.name());
            }
            found.get_or_insert((index, column));
        }
        Ok(found)
    }

    /// With USING, one of two equal columns represents both.
    fn same_visible(&self, level: usize, a: (usize, usize), b: (usize, usize)) -> bool {
        let Some(visible) = &self.blocks[level].visible else { return false };
        let shown = |place: (usize, usize)| visible.iter().any(|c| (c.table, c.column) == place);
        shown(a) != shown(b)
    }

    /// The expression for a column of a table reference.
    pub(crate) fn scope_column(
        &mut self,
        level: usize,
        table: usize,
        column: usize,
    ) -> Result<Expr> {
        let scope = &self.blocks[level].tables[table];
        let nullable = scope.nullable;
        let privilege = scope.privilege;
        let mut expr = match &scope.source {
            ScopeSource::Columns(columns) => columns[column].expr.clone(),
            ScopeSource::Base { instance, table } => {
                let (instance, table) = (*instance, table.clone());
                if let Some(index) = privilege {
                    self.use_column(index, &table.columns[column].name);
                }
                self.base_column(instance, &table, column)?
            }
        };
        if let (Some(index), ScopeSource::Columns(columns)) =
            (privilege, &self.blocks[level].tables[table].source)
        {
            let name = columns[column].name.clone();
            self.use_column(index, &name);
        }
        if nullable {
            make_nullable(&mut expr);
        }
        Ok(expr)
    }

    fn use_column(&mut self, privilege: usize, name: &Arc<str>) {
        let columns = &mut self.privileges[privilege].columns;
        if !columns.iter().any(|known| known == name) {
            columns.push(name.clone());
        }
    }

    /// The expression for a column of a stored table.
    pub(crate) fn base_column(
        &mut self,
        id: InstanceId,
        table: &Arc<Table>,
        index: usize,
    ) -> Result<Expr> {
        let column = &table.columns[index];
        let register = self.instance(id).register(index);
        if column.stored.is_none() {
            self.bind_virtual_column(id, table, index)?;
        }
        Ok(column_read(register, &column.ty))
    }

    /// The source of a result column.
    pub(crate) fn column_source(
        &self,
        level: usize,
        table: usize,
        column: usize,
    ) -> Option<ColumnSource> {
        let scope = &self.blocks[level].tables[table];
        match &scope.source {
            ScopeSource::Columns(columns) => {
                let source = columns[column].source.as_ref()?;
                let mut source = ColumnSource::clone(source);
                source.table = scope.alias.clone();
                Some(source)
            }
            ScopeSource::Base { table, .. } => Some(base_source(table, &scope.alias, column)),
        }
    }

    pub(crate) fn require(
        &mut self,
        schema: &Arc<str>,
        table: &Arc<str>,
        kind: PrivilegeKind,
    ) -> usize {
        self.uses_table(schema, table);
        self.privileges.push(RequiredPrivilege {
            schema: schema.clone(),
            table: table.clone(),
            columns: Vec::new(),
            kind,
            definer: self.definer.clone(),
        });
        self.privileges.len() - 1
    }
}
