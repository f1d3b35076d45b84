//! FROM: tables, views, derived tables, common table expressions and joins.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use catalog::{Relation, Table, View};
use errors::{Error, Result, bail};
use plan::{
    BinaryOp, ColumnSource, Expr, IndexHint, IndexHintKind, IndexHintScope, InstanceId, Logical,
    LogicalJoinKind, RowLocking, TableInstance,
};
use syntax::ast;
use types::{DataType, TypeKind};

use crate::binder::{BLOCK_TABLES_MAX, Binder, NamedView, Reference, VIEW_DEPTH_MAX};
use crate::reader::PrivilegeKind;
use crate::respell::spelled;
use crate::scope::{
    BoundQuery, Clause, ScopeColumn, ScopeSource, ScopeTable, VisibleColumn, column_read,
    make_nullable, names_equal, visible_columns,
};
use crate::view_write::is_one_block;

/// Tables of `information_schema` that the reference is about to drop, and its deprecation texts.
const DEPRECATED_TABLES: &[(&str, &str)] = &[
    (
        "PROCESSLIST",
        "'INFORMATION_SCHEMA.PROCESSLIST' is deprecated and will be removed in a future release. Please use performance_schema.processlist instead",
    ),
    (
        "PROFILING",
        "'INFORMATION_SCHEMA.PROFILING' is deprecated and will be removed in a future release. Please use Performance Schema instead",
    ),
];

impl Binder<'_> {
    /// Binds a FROM list into the current block.
    pub(crate) fn bind_from(&mut self, factors: &[ast::TableFactor]) -> Result<Logical> {
        let mut plan: Option<Logical> = None;
        for factor in factors {
            let next = self.bind_factor(factor)?;
            plan = Some(match plan {
                None => next,
                Some(left) => join(LogicalJoinKind::Inner, left, next, None),
            });
        }
        self.block().range = 0..usize::MAX;
        Ok(plan.unwrap_or(Logical::OneRow))
    }

    fn bind_factor(&mut self, factor: &ast::TableFactor) -> Result<Logical> {
        match factor {
            ast::TableFactor::Table(table) => self.bind_named_table(table),
            ast::TableFactor::Derived(derived) => self.bind_derived(derived),
            ast::TableFactor::JsonTable(table) => self.bind_json_table(table),
            ast::TableFactor::Function(table) => self.bind_table_function(table),
            ast::TableFactor::Join(join) => self.bind_join(join),
            ast::TableFactor::List(factors) => {
                let mut plan: Option<Logical> = None;
                for factor in factors {
                    let next = self.bind_factor(factor)?;
                    plan = Some(match plan {
                        None => next,
                        Some(left) => join(LogicalJoinKind::Inner, left, next, None),
                    });
                }
                Ok(plan.unwrap_or(Logical::OneRow))
            }
        }
    }

    // --- tables by name

    pub(crate) fn bind_named_table(&mut self, named: &ast::NamedTable) -> Result<Logical> {
        if named.sample.is_some() {
            return Err(Error::not_supported("TABLESAMPLE"));
        }
        let alias: Arc<str> = Arc::from(&*named.alias.as_ref().unwrap_or(&named.name.name).text);
        if named.name.schema.is_none()
            && let Some(plan) = self.bind_cte_reference(&named.name.name.text, &alias)?
        {
            return Ok(plan);
        }
        let schema = self.schema_of(&named.name)?;
        let name = &*named.name.name.text;
        let found = self.find_relation(&schema, name)?;
        let is_computed = match &found {
            Found::Information(..) => true,
            Found::View(view) => catalog::system_schema(&view.schema).is_some(),
            Found::Table(_) => false,
        };
        self.spell_table(&named.name, &schema);
        // What the server computes cannot change: a statement keeps nothing of it.
        if self.view_depth == 0 && !is_computed {
            let (schema, name) = (schema.clone(), Arc::from(name));
            self.references.push(Reference { schema, name, alias: alias.clone() });
        }
        let first = self.block().tables.len();
        let plan = self.bind_found(found, named, alias)?;
        if let Some(table) = self.block().tables.get_mut(first) {
            table.aliased = named.alias.is_some();
        }
        Ok(plan)
    }

    fn bind_found(
        &mut self,
        found: Found,
        named: &ast::NamedTable,
        alias: Arc<str>,
    ) -> Result<Logical> {
        match found {
            Found::Table(table) => {
                let id = self.add_instance(&table, alias.clone());
                self.bind_hints(id, &table, &named.index_hints)?;
                self.bind_partition_number(id, &table)?;
                let get =
                    self.select_partitions(id, &table, &named.partitions, Logical::Get(id))?;
                let get = self.rows_of_time(id, &table, named.system_time.as_ref(), get)?;
                let privilege = self.require(&table.schema, &table.name, PrivilegeKind::Select);
                let schema = Some(table.schema.clone());
                let source = ScopeSource::Base { instance: id, table };
                self.add_scope_table(schema, alias, source, Some(privilege))?;
                Ok(get)
            }
            _ if !named.partitions.is_empty() => bail!(PARTITION_CLAUSE_ON_NONPARTITIONED),
            Found::View(view) => self.bind_view_at(&view, alias, named.system_time.as_ref()),
            Found::Information(..) if named.system_time.is_some() => {
                bail!(VERS_NOT_VERSIONED, named.name.name.text)
            }
            Found::Information(schema, name) => self.bind_information(&schema, &name, alias),
        }
    }

    /// The schema that a name means.
    pub(crate) fn schema_of(&self, name: &ast::ObjectName) -> Result<Arc<str>> {
        match &name.schema {
            Some(schema) => Ok(Arc::from(&*schema.text)),
            None => match self.input.catalog.current_database() {
                Some(schema) => Ok(Arc::from(schema)),
                None => bail!(NO_DB_ERROR),
            },
        }
    }

    pub(crate) fn find_relation(&mut self, schema: &Arc<str>, name: &str) -> Result<Found> {
        match self.input.catalog.relation(schema, name) {
            Some(Relation::Table(table)) => return Ok(Found::Table(table)),
            Some(Relation::View(view)) => return Ok(Found::View(view)),
            None => {}
        }
        if self.input.registry.information_table(schema, name).is_some() {
            return Ok(Found::Information(schema.clone(), Arc::from(name)));
        }
        if let Some(view) = self.input.registry.system_view(schema, name) {
            return Ok(Found::View(Arc::new(system_view(view))));
        }
        if !self.input.catalog.schema_exists(schema) {
            bail!(BAD_DB_ERROR, schema);
        }
        if schema.eq_ignore_ascii_case("information_schema") {
            bail!(UNKNOWN_TABLE, name, "information_schema");
        }
        bail!(NO_SUCH_TABLE, schema, name)
    }

    /// A new reference to `table` with registers for all its columns.
    pub(crate) fn add_instance(&mut self, table: &Arc<Table>, alias: Arc<str>) -> InstanceId {
        let index = self.table_index(table);
        let base = self.new_registers(table.columns.len());
        self.instances.push(TableInstance {
            walk: None,
            table: index,
            alias,
            block: self.blocks.last().map_or(1, |block| block.number),
            base,
            columns: table.columns.len() as u32,
            virtuals: Vec::new(),
            locator: None,
            all_columns: false,
            locking: RowLocking::None,
            hints: Vec::new(),
            partition: None,
        });
        InstanceId(self.instances.len() as u32 - 1)
    }

    /// Adds a table reference to the current block (1066 when its alias is taken).
    pub(crate) fn add_scope_table(
        &mut self,
        schema: Option<Arc<str>>,
        alias: Arc<str>,
        source: ScopeSource,
        privilege: Option<usize>,
    ) -> Result<()> {
        let block = self.block();
        if block.tables.len() >= BLOCK_TABLES_MAX {
            bail!(TOO_MANY_TABLES, BLOCK_TABLES_MAX);
        }
        let taken = block.tables.iter().any(|table| table.alias == alias && table.schema == schema);
        if taken {
            bail!(NONUNIQ_TABLE, alias);
        }
        let index = block.tables.len();
        let table = ScopeTable {
            schema,
            alias,
            source,
            nullable: false,
            privilege,
            aliased: false,
            view: None,
        };
        if let Some(visible) = &mut block.visible {
            visible.extend(visible_columns(&table, index));
        }
        block.tables.push(table);
        Ok(())
    }

    fn bind_hints(
        &mut self,
        id: InstanceId,
        table: &Table,
        hints: &[ast::IndexHint],
    ) -> Result<()> {
        let has = |kind: ast::IndexHintKind| hints.iter().any(|hint| hint.kind == kind);
        if has(ast::IndexHintKind::Use) && has(ast::IndexHintKind::Force) {
            bail!(WRONG_USAGE, "USE INDEX", "FORCE INDEX");
        }
        for hint in hints {
            let mut indexes = Vec::with_capacity(hint.indexes.len());
            for name in &hint.indexes {
                let Some(index) = table.index(&name.text) else {
                    bail!(KEY_DOES_NOT_EXITS, name.text, table.name);
                };
                indexes.push(index.id.0);
            }
            let kind = match hint.kind {
                ast::IndexHintKind::Use => IndexHintKind::Use,
                ast::IndexHintKind::Ignore => IndexHintKind::Ignore,
                ast::IndexHintKind::Force => IndexHintKind::Force,
            };
            let scope = match hint.scope {
                ast::IndexHintScope::All => IndexHintScope::All,
                ast::IndexHintScope::Join => IndexHintScope::Join,
                ast::IndexHintScope::OrderBy => IndexHintScope::OrderBy,
                ast::IndexHintScope::GroupBy => IndexHintScope::GroupBy,
            };
            self.instances[id.0 as usize].hints.push(IndexHint { kind, scope, indexes });
        }
        Ok(())
    }

    fn bind_information(
        &mut self,
        schema: &Arc<str>,
        name: &str,
        alias: Arc<str>,
    ) -> Result<Logical> {
        let registry = self.input.registry;
        let Some(info) = registry.information_table(schema, name) else {
            bail!(UNKNOWN_TABLE, name, schema)
        };
        self.uncacheable = true;
        let shown: Arc<str> = Arc::from(info.name());
        let shown_schema: Arc<str> = Arc::from(info.schema());
        if let Some((_, text)) = DEPRECATED_TABLES
            .iter()
            .find(|(table, _)| *table == &*shown && &*shown_schema == "information_schema")
        {
            self.deprecate(text);
        }
        let base = self.new_registers(info.columns().len());
        let mut columns = Vec::with_capacity(info.columns().len());
        let mut scope = Vec::with_capacity(info.columns().len());
        for (index, column) in info.columns().iter().enumerate() {
            let register = plan::Register(base.0 + index as u32);
            let lower: Arc<str> = Arc::from(column.name.to_lowercase());
            columns.push((index, lower, register, column.ty.clone()));
            let source = ColumnSource {
                schema: shown_schema.clone(),
                table: alias.clone(),
                org_table: shown.clone(),
                org_name: Arc::from(column.name),
                ..ColumnSource::default()
            };
            scope.push(ScopeColumn {
                name: Arc::from(column.name),
                // In UTC, like those of stored tables.
                expr: if column.ty.kind == TypeKind::Timestamp {
                    column_read(register, &column.ty)
                } else {
                    Expr::column(register, column.ty.clone())
                },
                source: Some(Arc::new(source)),
                invisible: false,
            });
        }
        let source = ScopeSource::Columns(scope);
        // Other information tables show an account only what it may see.
        let privilege = matches!(&*shown_schema, "mysql" | "ndbinfo")
            .then(|| self.require(&shown_schema, &shown, PrivilegeKind::Select));
        self.add_scope_table(Some(shown_schema.clone()), alias.clone(), source, privilege)?;
        Ok(Logical::InformationGet { schema: shown_schema, name: shown, alias, columns })
    }

    // --- views, derived tables

    /// A view whose tables are read as they were at a time.
    fn bind_view_at(
        &mut self,
        view: &Arc<View>,
        alias: Arc<str>,
        time: Option<&ast::SystemTime>,
    ) -> Result<Logical> {
        let Some(time) = time else { return self.bind_view(view, alias) };
        let time = self.bind_system_time(time)?;
        let outer = (self.view_time.replace(time), self.time_of_view_is_used);
        self.time_of_view_is_used = false;
        let bound = self.bind_view(view, alias);
        let is_used = self.time_of_view_is_used;
        (self.view_time, self.time_of_view_is_used) = outer;
        if bound.is_ok() && !is_used {
            bail!(VERS_NOT_VERSIONED, view.name);
        }
        bound
    }

    pub(crate) fn bind_view(&mut self, view: &Arc<View>, alias: Arc<str>) -> Result<Logical> {
        if self.view_depth >= VIEW_DEPTH_MAX {
            bail!(VIEW_RECURSIVE, view.schema, view.name);
        }
        let privilege = self.require(&view.schema, &view.name, PrivilegeKind::Select);
        let Some(mut query) = view_query(view) else { bail!(VIEW_INVALID, view.schema, view.name) };
        if view.is_duality {
            self.add_document_key(&mut query, &alias)?;
        }
        if catalog::system_schema(&view.schema).is_none() {
            self.views.push(view.clone());
        }
        let checks = self.view_checks.len();
        let (instances, subqueries) = (self.instances.len(), self.subqueries.len());
        let bound = self.bind_view_query(view, &query)?;
        if &*view.algorithm == "TEMPTABLE" || !is_one_block(&query, &bound.plan) {
            self.lock_apart(instances);
        }
        if self.view_depth == 0 {
            let instances = instances..self.instances.len();
            let (schema, name) = (view.schema.clone(), view.name.clone());
            self.named_views.push(NamedView { schema, name, alias: alias.clone(), instances });
        }
        let shown = self.shown_view(view, &query, &bound, instances, subqueries);
        self.add_view_checks(view, &query, &bound.plan, checks);
        if !view.columns.is_empty() && view.columns.len() != bound.outputs.len() {
            bail!(VIEW_INVALID, view.schema, view.name);
        }
        let names: Vec<Arc<str>> = if view.columns.is_empty() {
            bound.outputs.iter().map(|output| output.name.clone()).collect()
        } else {
            view.columns.clone()
        };
        let schema = Some(view.schema.clone());
        let plan = self.attach(bound, schema, alias, &names, false, Some(privilege))?;
        if let Some(table) = self.block().tables.last_mut() {
            table.view = Some(Arc::new(shown));
        }
        Ok(plan)
    }

    /// Binds a view's SELECT where the surrounding statement cannot be seen.
    pub(crate) fn bind_view_query(
        &mut self,
        view: &View,
        query: &ast::Query,
    ) -> Result<BoundQuery> {
        let text = Cow::Owned(view.definition.as_bytes().to_vec());
        let outer_source = std::mem::replace(&mut self.source, text);
        let outer_ctes = std::mem::take(&mut self.cte_scope);
        let outer_definer = self.definer.clone();
        if !view.invoker {
            self.definer = Some(view.definer.clone());
        }
        // Its literals have the collation of the connection that created it.
        let outer_connection = self.coercibilities.connection;
        if let Some(collation) = charset::collation_by_name(&view.collation_connection) {
            self.coercibilities.connection = collation.id;
        }
        self.view_depth += 1;
        let result = self.with_hidden(0, |binder| binder.bind_query(query));
        self.view_depth -= 1;
        self.coercibilities.connection = outer_connection;
        self.definer = outer_definer;
        self.cte_scope = outer_ctes;
        self.source = outer_source;
        result.map_err(|error| match error.code().0 {
            1054 | 1146 | 1049 | 1305 => {
                errors::err!(VIEW_INVALID, view.schema, view.name)
            }
            _ => error,
        })
    }

    /// Runs `f` while the blocks from `level` on are hidden.
    pub(crate) fn with_hidden<T>(
        &mut self,
        level: usize,
        f: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let end = self.blocks.len();
        for block in &mut self.blocks[level.min(end)..end] {
            block.hidden += 1;
        }
        let result = f(self);
        for block in &mut self.blocks[level.min(end)..end] {
            block.hidden -= 1;
        }
        result
    }

    fn bind_derived(&mut self, derived: &ast::DerivedTable) -> Result<Logical> {
        if derived.alias.text.is_empty() {
            bail!(DERIVED_MUST_HAVE_ALIAS);
        }
        let level = self.blocks.len() - 1;
        let subqueries = self.subqueries.len();
        let outside = self.enter_spelled(false);
        let first = self.instances.len();
        let bound = if derived.lateral {
            self.bind_query(&derived.query)?
        } else {
            self.with_hidden(level, |binder| binder.bind_query(&derived.query))?
        };
        self.lock_apart(first);
        self.leave_spelled(outside);
        let bound = self.kept_apart(bound, subqueries);
        let names = derived_names(&bound, &derived.columns)?;
        let alias: Arc<str> = Arc::from(&*derived.alias.text);
        self.attach(bound, None, alias, &names, derived.lateral, None)
    }

    /// In a subquery of UPDATE and DELETE a derived table is computed before rows are written, so that it may read the table
    /// that they are written to. So may its own subqueries: those after the first `subqueries`.
    pub(crate) fn kept_apart(&mut self, bound: BoundQuery, subqueries: usize) -> BoundQuery {
        let mergeable = bound.mergeable && !(self.is_change && self.blocks.len() > 1);
        if !mergeable {
            self.computed_before.push(subqueries..self.subqueries.len());
        }
        BoundQuery { mergeable, ..bound }
    }

    /// Shows a bound query as a table of the current block.
    pub(crate) fn attach(
        &mut self,
        bound: BoundQuery,
        schema: Option<Arc<str>>,
        alias: Arc<str>,
        names: &[Arc<str>],
        lateral: bool,
        privilege: Option<usize>,
    ) -> Result<Logical> {
        for (index, name) in names.iter().enumerate() {
            if names[..index].iter().any(|before| names_equal(before, name)) {
                bail!(DUP_FIELDNAME, name);
            }
        }
        let merges = bound.mergeable && !lateral;
        // The reference keeps the row of a query without tables.
        let is_kept = !merges || matches!(bound.plan, Logical::OneRow);
        let mut computed = Vec::new();
        let mut columns = Vec::with_capacity(names.len());
        let mut shown: Vec<(plan::Register, DataType)> = Vec::with_capacity(names.len());
        for (output, name) in bound.outputs.into_iter().zip(names) {
            let expr = match &output.expr {
                Expr::Column { register, ty } => {
                    shown.push((*register, ty.clone()));
                    output.expr
                }
                _ => {
                    let register = self.new_register();
                    self.coercibilities.show(register, [&output.expr]);
                    let ty = output.expr.ty();
                    shown.push((register, ty.clone()));
                    computed.push((register, output.expr));
                    Expr::column(register, ty)
                }
            };
            let source = derived_source(output.source, &alias, name, is_kept);
            let source = Some(Arc::new(source));
            columns.push(ScopeColumn { name: name.clone(), expr, source, invisible: false });
        }
        let mut plan = bound.plan;
        if !computed.is_empty() {
            plan = Logical::Project { input: Box::new(plan), columns: computed };
        }
        if !merges {
            let (input, block) = (Box::new(plan), bound.block);
            let alias = alias.clone();
            plan = Logical::Derived { input, columns: shown, alias, block, lateral };
        }
        self.add_scope_table(schema, alias, ScopeSource::Columns(columns), privilege)?;
        Ok(plan)
    }

    // --- joins

    fn bind_join(&mut self, ast: &ast::Join) -> Result<Logical> {
        let outer_range = self.block().range.clone();
        let start = self.block().tables.len();
        let left = self.bind_factor(&ast.left)?;
        let middle = self.block().tables.len();
        let bars = matches!(ast.kind, ast::JoinKind::Right | ast::JoinKind::Full);
        if bars {
            self.block().barred.push(start..middle);
        }
        let right = self.bind_factor(&ast.right)?;
        if bars {
            self.block().barred.pop();
        }
        let end = self.block().tables.len();
        let on = match &ast.condition {
            ast::JoinCondition::None => None,
            ast::JoinCondition::On(expr) => Some(self.bind_on(expr, start..end)?),
            ast::JoinCondition::Using(names) => {
                let names: Vec<Arc<str>> = names.iter().map(|n| Arc::from(&*n.text)).collect();
                self.bind_using(&names, ast.kind, start, middle, end)?
            }
            ast::JoinCondition::Natural => {
                let names = self.common_names(start, middle, end)?;
                self.bind_using(&names, ast.kind, start, middle, end)?
            }
        };
        self.block().range = outer_range;
        let (kind, left, right, inner) = match ast.kind {
            ast::JoinKind::Inner => (LogicalJoinKind::Inner, left, right, 0..0),
            ast::JoinKind::Full => (LogicalJoinKind::Full, left, right, start..end),
            ast::JoinKind::Straight => (LogicalJoinKind::Straight, left, right, 0..0),
            ast::JoinKind::Left => (LogicalJoinKind::Left, left, right, middle..end),
            ast::JoinKind::Right => (LogicalJoinKind::Left, right, left, start..middle),
        };
        for table in &mut self.block().tables[inner.clone()] {
            table.nullable = true;
        }
        for column in self.block().visible.iter_mut().flatten() {
            if inner.contains(&column.table)
                && let Some(merged) = &mut column.merged
            {
                make_nullable(merged);
            }
        }
        Ok(join(kind, left, right, on))
    }

    fn bind_on(&mut self, expr: &ast::Expr, range: Range<usize>) -> Result<Expr> {
        let block = self.block();
        let clause = std::mem::replace(&mut block.clause, Clause::On);
        block.range = range;
        let on = self.bind_single(expr);
        self.block().clause = clause;
        on
    }

    /// The columns that unqualified names mean, built when the first USING needs them.
    fn ensure_visible(&mut self) {
        let block = self.block();
        if block.visible.is_none() {
            let columns = block
                .tables
                .iter()
                .enumerate()
                .flat_map(|(index, table)| visible_columns(table, index))
                .collect();
            block.visible = Some(columns);
        }
    }

    fn common_names(&mut self, start: usize, middle: usize, end: usize) -> Result<Vec<Arc<str>>> {
        self.ensure_visible();
        let visible = self.block().visible.as_ref().expect("ensured above");
        let of = |range: Range<usize>| visible.iter().filter(move |c| range.contains(&c.table));
        Ok(of(start..middle)
            .filter(|column| of(middle..end).any(|other| names_equal(&other.name, &column.name)))
            .map(|column| column.name.clone())
            .collect())
    }

    fn bind_using(
        &mut self,
        names: &[Arc<str>],
        kind: ast::JoinKind,
        start: usize,
        middle: usize,
        end: usize,
    ) -> Result<Option<Expr>> {
        self.ensure_visible();
        let right_first = kind == ast::JoinKind::Right;
        let mut condition: Option<Expr> = None;
        let mut merged = Vec::with_capacity(names.len());
        for name in names {
            let left = self.using_side(name, start..middle)?;
            let right = self.using_side(name, middle..end)?;
            let equal = self.comparison(BinaryOp::Equal, left.1.clone(), right.1.clone())?;
            condition = Some(match condition {
                None => equal,
                Some(before) => crate::expr::and(before, equal),
            });
            let mut column = match kind {
                ast::JoinKind::Right => right.0.clone(),
                ast::JoinKind::Inner
                | ast::JoinKind::Straight
                | ast::JoinKind::Left
                | ast::JoinKind::Full => left.0.clone(),
            };
            column.merged = Some(match kind {
                ast::JoinKind::Right => right.1,
                ast::JoinKind::Full => {
                    // Side by side: inside each other they would double with each join.
                    column.parts = self.parts(left);
                    column.parts.extend(self.parts(right));
                    self.first_not_null(&column.parts)?
                }
                ast::JoinKind::Inner | ast::JoinKind::Straight | ast::JoinKind::Left => left.1,
            });
            merged.push(column);
        }
        self.merge_visible(names, merged, right_first, start, middle, end);
        Ok(condition)
    }

    /// The columns that one side of a full join gives to a merged one, each of which may be NULL after it.
    fn parts(&mut self, (column, mut expr): (VisibleColumn, Expr)) -> Vec<(Expr, Arc<str>)> {
        if !column.parts.is_empty() {
            return column.parts;
        }
        make_nullable(&mut expr);
        vec![(expr, Arc::from(spelled(&column, &self.block().tables)))]
    }

    /// Common columns first, then the rest of the first side, then of the second.
    fn merge_visible(
        &mut self,
        names: &[Arc<str>],
        merged: Vec<VisibleColumn>,
        right_first: bool,
        start: usize,
        middle: usize,
        end: usize,
    ) {
        let visible = self.block().visible.as_mut().expect("ensured by bind_using");
        let named = |column: &VisibleColumn| names.iter().any(|n| names_equal(n, &column.name));
        let rest = |range: Range<usize>| -> Vec<VisibleColumn> {
            visible
                .iter()
                .filter(|column| range.contains(&column.table) && !named(column))
                .cloned()
                .collect()
        };
        // In the order of the side that comes first.
        let first_side = if right_first { middle..end } else { start..middle };
        let place = |column: &VisibleColumn| {
            visible.iter().position(|known| {
                first_side.contains(&known.table) && names_equal(&known.name, &column.name)
            })
        };
        let mut merged = merged;
        merged.sort_by_key(place);
        let (left, right) = (rest(start..middle), rest(middle..end));
        let mut result: Vec<_> =
            visible.iter().filter(|column| column.table < start).cloned().collect();
        result.extend(merged);
        let (first, second) = if right_first { (right, left) } else { (left, right) };
        result.extend(first);
        result.extend(second);
        *visible = result;
    }

    fn using_side(&mut self, name: &str, range: Range<usize>) -> Result<(VisibleColumn, Expr)> {
        let visible = self.block().visible.as_ref().expect("ensured by bind_using");
        let mut found = visible
            .iter()
            .filter(|column| range.contains(&column.table) && names_equal(&column.name, name));
        let Some(column) = found.next().cloned() else {
            bail!(BAD_FIELD_ERROR, name, "from clause")
        };
        if found.next().is_some() {
            bail!(NON_UNIQ_ERROR, name, "from clause");
        }
        let expr = match &column.merged {
            Some(expr) => expr.clone(),
            None => self.scope_column(self.blocks.len() - 1, column.table, column.column)?,
        };
        Ok((column, expr))
    }
}

/// The object that a table name refers to.
pub(crate) enum Found {
    Table(Arc<Table>),
    View(Arc<View>),
    Information(Arc<str>, Arc<str>),
}

/// The query of a view; `None` where it cannot be read.
pub fn view_query(view: &View) -> Option<Box<ast::Query>> {
    let parsed = syntax::parse_one(&view.definition, &syntax::ParseOptions::default());
    let Ok((syntax::Statement::Query(mut query), _)) = parsed else { return None };
    if view.is_duality
        && let Some(root) = query.duality_root()
    {
        root.is_root = true;
    }
    Some(query)
}

/// A plugin's view as the catalog would have it.
pub fn system_view(view: &plugin_api::SystemView) -> View {
    View {
        schema: Arc::from(view.schema),
        name: view.name.clone(),
        definition: view.query.clone(),
        columns: Vec::new(),
        definer: Arc::from("mysql.sys@localhost"),
        invoker: true,
        algorithm: Arc::from("UNDEFINED"),
        check_option: Arc::from("NONE"),
        charset_client: Arc::from("utf8mb4"),
        collation_connection: Arc::from("utf8mb4_0900_ai_ci"),
        is_duality: false,
    }
}

/// Names of a derived table's columns.
pub(crate) fn derived_names(bound: &BoundQuery, listed: &[ast::Ident]) -> Result<Vec<Arc<str>>> {
    if listed.is_empty() {
        return Ok(bound.outputs.iter().map(|output| output.name.clone()).collect());
    }
    if listed.len() != bound.outputs.len() {
        bail!(VIEW_WRONG_LIST);
    }
    Ok(listed.iter().map(|name| Arc::from(&*name.text)).collect())
}

/// The source of a result column from a derived table. `source` is the source in the derived table's own result.
pub(crate) fn derived_source(
    source: Option<ColumnSource>,
    alias: &Arc<str>,
    name: &Arc<str>,
    materialized: bool,
) -> ColumnSource {
    let (table, org_name) = (alias.clone(), name.clone());
    match source {
        None => ColumnSource { table, org_name, materialized, ..ColumnSource::default() },
        Some(source) if !materialized => source,
        // Keys of the source are not keys of the temporary table.
        Some(source) => ColumnSource {
            table,
            schema: source.schema,
            org_table: source.org_table,
            org_name: source.org_name,
            no_default: source.no_default,
            display_width: source.display_width,
            materialized,
            ..ColumnSource::default()
        },
    }
}

fn join(kind: LogicalJoinKind, left: Logical, right: Logical, on: Option<Expr>) -> Logical {
    Logical::Join { kind, left: Box::new(left), right: Box::new(right), on }
}
