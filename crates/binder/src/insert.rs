//! INSERT and REPLACE.

use std::ops::Range;
use std::sync::Arc;

use catalog::{Table, View};
use errors::{Error, Result, bail};
use plan::{
    Assignment, Expr, InsertMode, Logical, LogicalInsert, LogicalInsertSource, LogicalQuery,
    Register,
};
use syntax::ast;
use types::{DataType, SqlMode, TypeKind, Value};

use crate::binder::{Binder, Reference};
use crate::block::first_read;
use crate::duality;
use crate::from::Found;
use crate::reader::PrivilegeKind;
use crate::scope::{
    Clause, InsertView, NewRow, ScopeColumn, ScopeSource, ScopeTable, VisibleColumn, base_source,
    column_read, names_equal,
};
use crate::table_write::WriteKind;
use crate::update::Written;
use crate::view_check::{ViewWrite, first_register, moved};

impl Binder<'_> {
    pub(crate) fn bind_insert(&mut self, insert: &ast::Insert) -> Result<LogicalInsert> {
        let schema = self.schema_of(&insert.table)?;
        let table = match self.find_relation(&schema, &insert.table.name.text)? {
            Found::Table(table) => table,
            Found::View(_) if !insert.partitions.is_empty() => {
                bail!(PARTITION_CLAUSE_ON_NONPARTITIONED)
            }
            Found::View(view) => return self.bind_view_insert(insert, &view),
            Found::Information(_, name) => bail!(NON_INSERTABLE_TABLE, name, "INSERT"),
        };
        // The name of a view of it is noted already.
        if self.references.is_empty() {
            let (schema, name) = (schema.clone(), table.name.clone());
            self.references.push(Reference { schema, alias: name.clone(), name });
        }
        let privilege = self.require(&table.schema, &table.name, PrivilegeKind::Insert);
        if insert.replace {
            self.require(&table.schema, &table.name, PrivilegeKind::Delete);
        }
        let view = self.named_views.first().cloned();
        let base = self.new_registers(table.columns.len());
        let changes = insert.replace || !insert.on_duplicate.is_empty();
        let kind = if changes { WriteKind::InsertOrChange } else { WriteKind::Insert };
        if changes && table.refuses_overlaps() {
            // A new row may overlap any number of rows.
            return Err(Error::not_supported("WITHOUT OVERLAPS"));
        }
        let mut target = self.table_write(&table, base, kind)?;
        target.selected = crate::partitions::selected(&table, &insert.partitions, base)?;
        let columns = self.target_columns(insert, &table)?;
        for column in &columns {
            let name = table.columns[*column].name.clone();
            self.privileges[privilege].columns.push(name);
        }
        let subqueries = self.subqueries.len();
        self.is_change = !matches!(insert.source, ast::InsertSource::Query(_));
        let (targets, mut source) = self.bind_insert_source(insert, &table, base, &columns)?;
        self.is_change = false;
        if table.is_sequence() {
            self.restore_sequence(&table, &targets, &mut source)?;
        }
        let mode = self.bind_insert_mode(insert, &table, base)?;
        if let LogicalInsertSource::Query(query) = &mut source {
            let own = base.0..base.0 + table.columns.len() as u32;
            self.keep_first_rows(&mut query.root, &mode, &own);
        }
        // The rows of a query are complete before the first is written.
        if matches!(source, LogicalInsertSource::Values(_)) {
            let inside = view.as_ref().and_then(|view| {
                let mut inside = view.instances.clone().map(|id| &self.instances[id]);
                inside.find(|instance| self.tables[instance.table].id == table.id)
            });
            let alias = inside.map_or(&table.name, |instance| &instance.alias);
            let written = Written {
                table: &table,
                name: view.as_ref().map_or(&table.name, |view| &view.alias),
                view: view.as_ref(),
                alias: Some(alias),
            };
            self.refuse_reads(subqueries, &written, "INSERT")?;
        }
        let returning = self.bind_returning(&insert.returning, &table, base)?;
        Ok(LogicalInsert { target, targets, source, mode, ignore: insert.ignore, returning })
    }

    /// INSERT into a view of one table whose columns are that table's: the same on the table.
    fn bind_view_insert(&mut self, insert: &ast::Insert, view: &View) -> Result<LogicalInsert> {
        if view.is_duality {
            duality::check_duality_insert(insert)?;
            return Err(duality::planned_change());
        }
        self.push_block();
        let named = ast::NamedTable { name: insert.table.clone(), ..ast::NamedTable::default() };
        self.bind_named_table(&named)?;
        let block = self.blocks.pop().expect("pushed above");
        let found = block.tables.first().and_then(|table| match (&table.source, &table.view) {
            (ScopeSource::Columns(shown), Some(facts)) => Some((shown, facts)),
            _ => None,
        });
        let Some((shown, facts)) = found else { bail!(NON_INSERTABLE_TABLE, view.name, "INSERT") };
        let names: Option<Vec<&str>> = match (&insert.source, &insert.columns) {
            (ast::InsertSource::Set(assignments), _) => {
                Some(assignments.iter().map(|set| &*set.column.name.text).collect())
            }
            (_, Some(listed)) if !listed.is_empty() => {
                Some(listed.iter().map(|column| &*column.name.text).collect())
            }
            _ => None,
        };
        let (target, columns) = self.inserted_through(facts, shown, names.as_deref())?;
        let id = target.0 as usize;
        let table = self.tables[self.instances[id].table].clone();
        if table.is_sequence() {
            bail!(NON_INSERTABLE_TABLE, view.name, "INSERT");
        }
        let renamed = columns.iter().any(|(name, at)| !names_equal(name, &table.columns[*at].name));
        let through = |name: &ast::ColumnName| -> Result<ast::ColumnName> {
            match columns.iter().find(|(shown, _)| names_equal(shown, &name.name.text)) {
                Some((_, at)) => Ok(column_name(&table.columns[*at].name)),
                None => bail!(BAD_FIELD_ERROR, crate::scope::written(name), "field list"),
            }
        };
        let mut direct = insert.clone();
        direct.table = ast::ObjectName {
            schema: Some(ast::Ident::new(&table.schema)),
            name: ast::Ident::new(&table.name),
        };
        direct.columns = match &insert.columns {
            Some(listed) if !listed.is_empty() => {
                Some(listed.iter().map(&through).collect::<Result<_>>()?)
            }
            _ => {
                let names = columns.iter().map(|(_, at)| column_name(&table.columns[*at].name));
                Some(names.collect())
            }
        };
        if let ast::InsertSource::Set(assignments) = &mut direct.source {
            for assignment in assignments {
                assignment.column = through(&assignment.column)?;
            }
            direct.columns = None;
        }
        // The view's own privileges were checked by its name; those on the tables below belong to its definer.
        self.require(&view.schema, &view.name, PrivilegeKind::Insert);
        let outer = self.definer.clone();
        if !view.invoker {
            self.definer = Some(view.definer.clone());
        }
        let checks = self.checks_of(target, ViewWrite::Insert);
        self.insert_view = (renamed && !insert.on_duplicate.is_empty()).then(|| InsertView {
            schema: view.schema.clone(),
            name: view.name.clone(),
            columns: columns.iter().map(|(name, at)| (Arc::from(&**name), *at)).collect(),
        });
        let bound = self.bind_insert(&direct);
        self.insert_view = None;
        self.definer = outer;
        let mut bound = bound?;
        if !insert.ignore {
            self.require_defaults(&table, &bound.targets, view)?;
        }
        bound.target.view = Some((view.schema.clone(), view.name.clone()));
        let base = self.instances[id].base;
        bound.target.view_checks = moved(checks?, base, first_register(&bound.target, &table)?);
        Ok(bound)
    }

    /// 1423: a column that the view cannot give, or does not give, a value for has no default.
    fn require_defaults(&self, table: &Table, targets: &[usize], view: &View) -> Result<()> {
        let mode = self.input.bind.sql_mode;
        let strict = [SqlMode::STRICT_TRANS_TABLES, SqlMode::STRICT_ALL_TABLES];
        if !strict.into_iter().any(|strict| mode.contains(strict)) {
            return Ok(());
        }
        let missing = table.columns.iter().any(|column| {
            !column.ty.nullable
                && column.default == catalog::ColumnDefault::None
                && column.ty.kind != types::TypeKind::Enum
                && !column.auto_increment
                && !column.is_computed()
                && column.stored.is_some_and(|stored| !targets.contains(&stored))
        });
        if missing {
            bail!(NO_DEFAULT_FOR_VIEW_FIELD, view.schema, view.name);
        }
        Ok(())
    }

    /// Catalog positions of the columns with values.
    fn target_columns(&self, insert: &ast::Insert, table: &Table) -> Result<Vec<usize>> {
        if let ast::InsertSource::Set(assignments) = &insert.source {
            let names = assignments.iter().map(|assignment| &assignment.column);
            return self.named_targets(names, table);
        }
        match &insert.columns {
            Some(columns) if !columns.is_empty() => self.named_targets(columns.iter(), table),
            _ => Ok((0..table.columns.len())
                .filter(|index| {
                    let column = &table.columns[*index];
                    !column.invisible && !column.generated.as_ref().is_some_and(|g| g.hidden)
                })
                .collect()),
        }
    }

    fn named_targets<'n>(
        &self,
        names: impl Iterator<Item = &'n ast::ColumnName> + Clone,
        table: &Table,
    ) -> Result<Vec<usize>> {
        let found = named_columns(names.clone(), table)?;
        let is_unknown = |(_, at): &(_, &usize)| !self.is_named_for_writes(&table.columns[**at]);
        if let Some((name, _)) = names.zip(&found).find(is_unknown) {
            bail!(BAD_FIELD_ERROR, crate::scope::written(name), "field list");
        }
        Ok(found)
    }

    fn bind_insert_source(
        &mut self,
        insert: &ast::Insert,
        table: &Arc<Table>,
        base: Register,
        columns: &[usize],
    ) -> Result<(Vec<usize>, LogicalInsertSource)> {
        match &insert.source {
            ast::InsertSource::Query(query) => {
                let mut bound = self.bind_query(query)?;
                if bound.outputs.len() != columns.len() {
                    bail!(WRONG_VALUE_COUNT_ON_ROW, 1);
                }
                for (output, column) in bound.outputs.iter_mut().zip(columns) {
                    document_as_text(&mut output.expr, &table.columns[*column].ty);
                }
                let targets = self.plain_targets(table, columns)?;
                if !matches!(query.body, ast::SetExpr::Select(_)) {
                    self.last_tables.clear();
                }
                let query = LogicalQuery { root: bound.plan, outputs: bound.outputs };
                Ok((targets, LogicalInsertSource::Query(query)))
            }
            ast::InsertSource::Values(rows) => {
                let listed = insert.columns.as_ref().is_some_and(|listed| !listed.is_empty());
                self.bind_insert_rows(rows, listed, table, base, columns)
            }
            ast::InsertSource::Set(assignments) => {
                let row: Vec<ast::Expr> =
                    assignments.iter().map(|assignment| assignment.value.clone()).collect();
                self.bind_insert_rows(&[row], true, table, base, columns)
            }
        }
    }

    /// Stored positions of columns that have a value in every row.
    fn plain_targets(&self, table: &Table, columns: &[usize]) -> Result<Vec<usize>> {
        let mut targets = Vec::with_capacity(columns.len());
        for index in columns {
            let column = &table.columns[*index];
            match column.stored.filter(|_| self.takes_values(column)) {
                Some(stored) => targets.push(stored),
                None => bail!(NON_DEFAULT_VALUE_FOR_GENERATED_COLUMN, column.name, table.name),
            }
        }
        Ok(targets)
    }

    fn bind_insert_rows(
        &mut self,
        rows: &[Vec<ast::Expr>],
        listed: bool,
        table: &Arc<Table>,
        base: Register,
        columns: &[usize],
    ) -> Result<(Vec<usize>, LogicalInsertSource)> {
        self.push_target_block(table, base, Clause::FieldList)?;
        self.block().clause = Clause::Values;
        // Generated columns take DEFAULT only, so they are not targets.
        let kept: Vec<usize> = (0..columns.len())
            .filter(|at| self.takes_values(&table.columns[columns[*at]]))
            .collect();
        let mut bound = Vec::with_capacity(rows.len());
        // Rows without values: all or none, and where no columns are named.
        let all_empty = rows.first().is_some_and(Vec::is_empty) && !listed;
        for (number, row) in rows.iter().enumerate() {
            if row.is_empty() && all_empty {
                bound.push(vec![None; kept.len()]);
                continue;
            }
            if all_empty || row.len() != columns.len() {
                bail!(WRONG_VALUE_COUNT_ON_ROW, number + 1);
            }
            let mut cells = Vec::with_capacity(kept.len());
            for (at, value) in row.iter().enumerate() {
                let column = &table.columns[columns[at]];
                let cell = self.bind_value(value, &column.ty)?;
                match (self.takes_values(column), cell) {
                    (true, cell) => cells.push(cell),
                    (false, None) => {}
                    (false, Some(_)) => {
                        bail!(NON_DEFAULT_VALUE_FOR_GENERATED_COLUMN, column.name, table.name)
                    }
                }
            }
            bound.push(cells);
        }
        self.blocks.pop();
        let targets = kept.iter().filter_map(|at| table.columns[columns[*at]].stored).collect();
        Ok((targets, LogicalInsertSource::Values(bound)))
    }

    /// A value for a column; `None` is DEFAULT.
    pub(crate) fn bind_value(
        &mut self,
        value: &ast::Expr,
        ty: &types::DataType,
    ) -> Result<Option<Expr>> {
        if matches!(value.kind, ast::ExprKind::Default(None)) {
            return Ok(None);
        }
        let mut bound =
            if ty.is_numeric() { self.bind_number(value)? } else { self.bind_single(value)? };
        self.infer(&mut bound, ty);
        document_as_text(&mut bound, ty);
        Ok(Some(bound))
    }

    /// A block in which the target's columns are known: registers of the row being written.
    pub(crate) fn push_target_block(
        &mut self,
        table: &Arc<Table>,
        base: Register,
        clause: Clause,
    ) -> Result<()> {
        self.push_block();
        self.block().clause = clause;
        let columns = self.target_scope(table, base)?;
        let alias = table.name.clone();
        let schema = Some(table.schema.clone());
        let privilege = self.require(&table.schema, &alias, PrivilegeKind::SelectColumns);
        self.add_scope_table(schema, alias, ScopeSource::Columns(columns), Some(privilege))
    }

    /// The target's columns over `base`.
    pub(crate) fn target_scope(
        &mut self,
        table: &Arc<Table>,
        base: Register,
    ) -> Result<Vec<ScopeColumn>> {
        let mut columns = Vec::with_capacity(table.columns.len());
        for (index, column) in table.columns.iter().enumerate() {
            if column.generated.as_ref().is_some_and(|generated| generated.hidden) {
                continue;
            }
            let expr = match &column.generated {
                Some(generated) if column.stored.is_none() => {
                    let bound = self.bind_text_over(&generated.expression, table, base)?;
                    crate::table_expression::stored_as(bound, &column.ty)
                }
                _ => column_read(Register(base.0 + index as u32), &column.ty),
            };
            columns.push(ScopeColumn {
                name: column.name.clone(),
                expr,
                source: Some(Arc::new(base_source(table, &table.name, index))),
                invisible: column.invisible,
            });
        }
        Ok(columns)
    }

    // --- duplicates

    fn bind_insert_mode(
        &mut self,
        insert: &ast::Insert,
        table: &Arc<Table>,
        base: Register,
    ) -> Result<InsertMode> {
        if table.is_sequence() {
            if insert.replace || insert.ignore || !insert.on_duplicate.is_empty() {
                bail!(ILLEGAL_HA, table.name);
            }
            return Ok(InsertMode::Only);
        }
        if insert.on_duplicate.is_empty() {
            return Ok(match (insert.replace, insert.ignore) {
                (true, _) => InsertMode::Replace,
                (false, true) => InsertMode::Ignore,
                (false, false) => InsertMode::Error,
            });
        }
        let privilege = self.require(&table.schema, &table.name, PrivilegeKind::Update);
        let new_base = self.new_registers(table.columns.len());
        let view = self.insert_view.take();
        let row = NewRow { table: table.clone(), base: new_base, view: view.clone() };
        self.insert_values = Some(row);
        self.push_target_block(table, base, Clause::FieldList)?;
        if let Some(view) = &view {
            self.name_by_view(view, table);
        }
        if let Some(alias) = &insert.row_alias {
            self.add_row_alias(alias, insert, table, new_base)?;
        }
        if let ast::InsertSource::Query(_) = insert.source {
            self.show_source();
        }
        let mut assignments = Vec::with_capacity(insert.on_duplicate.len());
        for assignment in &insert.on_duplicate {
            let index = named_target(&assignment.column, table, view.as_ref())?;
            let column = &table.columns[index];
            if column.history.is_undeclared_time() {
                bail!(BAD_FIELD_ERROR, crate::scope::written(&assignment.column), "field list");
            }
            let value = self.bind_value(&assignment.value, &column.ty)?;
            self.privileges[privilege].columns.push(column.name.clone());
            match (column.stored, column.is_computed(), &value) {
                (Some(stored), false, _) => {
                    assignments.push(Assignment { column: stored, value });
                }
                (_, _, None) => {}
                _ => bail!(NON_DEFAULT_VALUE_FOR_GENERATED_COLUMN, column.name, table.name),
            }
        }
        self.blocks.pop();
        self.insert_values = None;
        let mut stored: Vec<(usize, usize)> = table
            .columns
            .iter()
            .enumerate()
            .filter_map(|(index, column)| column.stored.map(|stored| (stored, index)))
            .collect();
        stored.sort_unstable();
        let new_columns =
            stored.iter().map(|(_, index)| Register(new_base.0 + *index as u32)).collect();
        Ok(InsertMode::Update { assignments, new_columns })
    }

    /// The target's columns have the names that a view gives them.
    fn name_by_view(&mut self, view: &InsertView, table: &Table) {
        let Some(target) = self.block().tables.first_mut() else { return };
        let ScopeSource::Columns(columns) = &target.source else { return };
        let renamed = view.columns.iter().filter_map(|(name, at)| {
            let own = columns.iter().find(|column| column.name == table.columns[*at].name)?;
            Some(ScopeColumn { name: name.clone(), ..own.clone() })
        });
        target.source = ScopeSource::Columns(renamed.collect());
        target.alias = view.name.clone();
        target.schema = Some(view.schema.clone());
    }

    /// ON DUPLICATE KEY UPDATE of INSERT .. SELECT sees the tables of the SELECT as that does, beside the target.
    fn show_source(&mut self) {
        let (tables, visible) = (std::mem::take(&mut self.last_tables), self.last_visible.take());
        let block = self.block();
        let first = block.tables.len();
        let is_hidden =
            |table: &ScopeTable| block.tables.iter().any(|known| known.alias == table.alias);
        // One that has the target's name is not seen.
        let hidden: Vec<bool> = tables.iter().map(is_hidden).collect();
        if let (Some(visible), false) = (visible, hidden.contains(&true)) {
            let own = block.tables.iter().enumerate().flat_map(|(at, table)| match &table.source {
                ScopeSource::Columns(columns) => visible_columns(at, columns),
                ScopeSource::Base { .. } => Vec::new(),
            });
            let shifted = visible
                .into_iter()
                .map(|column| VisibleColumn { table: column.table + first, ..column });
            block.visible = Some(own.chain(shifted).collect());
        }
        let shown = tables.into_iter().zip(hidden).filter(|(_, hidden)| !hidden);
        block.tables.extend(shown.map(|(table, _)| table));
    }

    /// Distinct rows become groups if ON DUPLICATE KEY UPDATE reads other columns than theirs: it reads them in the first row of each.
    /// `own`: registers of the target.
    fn keep_first_rows(&mut self, root: &mut Logical, mode: &InsertMode, own: &Range<u32>) {
        let InsertMode::Update { assignments, new_columns } = mode else { return };
        let mut node = root;
        while let Logical::Sort { input, .. } | Logical::Limit { input, .. } = node {
            node = input;
        }
        let Logical::Distinct { input, columns } = node else { return };
        let is_other = |register: Register| {
            columns.iter().all(|(column, _)| *column != register)
                && !own.contains(&register.0)
                && !new_columns.contains(&register)
        };
        let mut values = assignments.iter().filter_map(|change| change.value.as_ref());
        if !values.any(|value| first_read(value, &self.subqueries, is_other).is_some()) {
            return;
        }
        let input = std::mem::replace(input.as_mut(), Logical::OneRow);
        let columns = std::mem::take(columns);
        *node = self.groups_of(input, columns);
    }

    /// `AS new [(a, b)]`: the row that could not be inserted, as a table.
    fn add_row_alias(
        &mut self,
        alias: &ast::RowAlias,
        insert: &ast::Insert,
        table: &Arc<Table>,
        base: Register,
    ) -> Result<()> {
        let mut columns = self.target_scope(table, base)?;
        if names_equal(&alias.name.text, &self.block().tables[0].alias) {
            bail!(NONUNIQ_TABLE, alias.name.text);
        }
        for (at, name) in alias.columns.iter().enumerate() {
            if alias.columns[..at].iter().any(|before| before.is(&name.text)) {
                bail!(DUP_FIELDNAME, name.text);
            }
        }
        if !alias.columns.is_empty() {
            let targets = self.target_columns(insert, table)?;
            if targets.len() != alias.columns.len() {
                bail!(VIEW_WRONG_LIST);
            }
            let shown: Vec<ScopeColumn> = targets
                .iter()
                .zip(&alias.columns)
                .filter_map(|(target, name)| {
                    let wanted = &table.columns[*target].name;
                    let column = columns.iter().find(|column| column.name == *wanted)?;
                    Some(ScopeColumn { name: Arc::from(&*name.text), ..column.clone() })
                })
                .collect();
            columns = shown;
        }
        for column in &mut columns {
            column.source = None;
        }
        let name = Arc::from(&*alias.name.text);
        // Columns with other names are those of the row alone, which the statement itself gives.
        let privilege = alias
            .columns
            .is_empty()
            .then(|| self.require(&table.schema, &table.name, PrivilegeKind::SelectColumns));
        self.add_scope_table(None, name, ScopeSource::Columns(columns), privilege)
    }

    /// `VALUES(column)`.
    pub(crate) fn bind_insert_value(&mut self, name: &ast::ColumnName) -> Result<Expr> {
        let Some(new) = self.insert_values.clone() else {
            // Outside ON DUPLICATE KEY UPDATE it is NULL.
            let ty = self.bind_column(name)?.ty().with_nullable(true);
            return Ok(Expr::literal(types::Value::Null, ty));
        };
        // Unlike other deprecated words it is noticed when names are resolved.
        let instead = "an alias (INSERT INTO ... VALUES (...) AS alias) and replace VALUES(col) in the ON \
                       DUPLICATE KEY UPDATE clause with alias.col";
        self.notice(errors::ErrorCode::WARN_DEPRECATED_SYNTAX, &[&"VALUES function", &instead]);
        let index = named_target(name, &new.table, new.view.as_ref())?;
        let privilege =
            self.require(&new.table.schema, &new.table.name, PrivilegeKind::SelectColumns);
        self.privileges[privilege].columns.push(new.table.columns[index].name.clone());
        let mut expr =
            column_read(Register(new.base.0 + index as u32), &new.table.columns[index].ty);
        crate::scope::make_nullable(&mut expr);
        Ok(expr)
    }

    /// `DEFAULT(column)`.
    pub(crate) fn bind_default_of(&mut self, name: &ast::ColumnName) -> Result<Expr> {
        let found = self.resolve(name)?;
        let source = found.place.map(|(table, _)| {
            let scope = &self.blocks[found.level].tables[table];
            (scope.schema.clone(), scope.alias.clone(), scope.source.clone())
        });
        let table = match source {
            Some((_, _, ScopeSource::Base { table, .. })) => table,
            Some((Some(schema), alias, ScopeSource::Columns(_))) => {
                match self.input.catalog.relation(&schema, &alias) {
                    Some(catalog::Relation::Table(table)) => table,
                    _ => bail!(NO_DEFAULT_FOR_FIELD, name.name.text),
                }
            }
            _ => bail!(NO_DEFAULT_FOR_FIELD, name.name.text),
        };
        let Some(index) = table.column(&name.name.text) else {
            bail!(NO_DEFAULT_FOR_FIELD, name.name.text)
        };
        if matches!(table.columns[index].default, catalog::ColumnDefault::Expression(_)) {
            bail!(DEFAULT_AS_VAL_GENERATED);
        }
        match self.column_default(&table, Register(0), index)? {
            Some(default) => Ok(default),
            None => bail!(NO_DEFAULT_FOR_FIELD, name.name.text),
        }
    }
}

fn column_name(name: &str) -> ast::ColumnName {
    ast::ColumnName { schema: None, table: None, name: ast::Ident::new(name) }
}

/// Catalog positions of named columns (1054, 1110).
fn named_columns<'n>(
    names: impl Iterator<Item = &'n ast::ColumnName>,
    table: &Table,
) -> Result<Vec<usize>> {
    let mut columns = Vec::new();
    for name in names {
        let index = target_column(name, table)?;
        if columns.contains(&index) {
            bail!(FIELD_SPECIFIED_TWICE, name.name.text);
        }
        columns.push(index);
    }
    Ok(columns)
}

/// The column of the target that `name` names.
/// The column of the table that a name names, through a view or not.
fn named_target(name: &ast::ColumnName, table: &Table, view: Option<&InsertView>) -> Result<usize> {
    let Some(view) = view else { return target_column(name, table) };
    let other_table = name.table.as_ref().is_some_and(|wanted| *wanted.text != *view.name);
    let mut found = view.columns.iter().filter(|(shown, _)| names_equal(shown, &name.name.text));
    match found.next() {
        Some((_, at)) if !other_table => Ok(*at),
        _ => bail!(BAD_FIELD_ERROR, crate::scope::written(name), "field list"),
    }
}

fn visible_columns(table: usize, columns: &[ScopeColumn]) -> Vec<VisibleColumn> {
    let visible = |(column, shown): (usize, &ScopeColumn)| VisibleColumn {
        name: shown.name.clone(),
        table,
        column,
        merged: None,
        parts: Vec::new(),
    };
    columns.iter().enumerate().map(visible).collect()
}

fn target_column(name: &ast::ColumnName, table: &Table) -> Result<usize> {
    let other_table = name.table.as_ref().is_some_and(|wanted| *wanted.text != *table.name);
    let found = table.columns.iter().position(|column| {
        names_equal(&column.name, &name.name.text)
            && !column.generated.as_ref().is_some_and(|generated| generated.hidden)
    });
    match found {
        Some(index) if !other_table => Ok(index),
        _ => bail!(BAD_FIELD_ERROR, crate::scope::written(name), "field list"),
    }
}

/// A document that is computed goes into a YEAR as its text; that of a column as its number.
fn document_as_text(value: &mut Expr, ty: &types::DataType) {
    let computed = !matches!(value, Expr::Column { .. });
    if ty.kind == TypeKind::Year && computed && value.ty().kind == TypeKind::Json {
        let document = std::mem::replace(value, Expr::literal(Value::Null, DataType::null()));
        *value = crate::expr::json_text(document);
    }
}
