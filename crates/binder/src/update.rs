//! UPDATE and DELETE, of one or more tables.

use std::sync::Arc;

use catalog::Table;
use errors::{Result, bail};
use plan::{
    Assignment, Expr, InstanceId, Logical, LogicalTarget, LogicalWrite, RowLocking, SortKey,
};
use syntax::ast;

use crate::binder::{Binder, NamedView};
use crate::duality;
use crate::grouping::plain_register;
use crate::reader::PrivilegeKind;
use crate::scope::{Clause, ScopeSource, ScopeTable, ShownView};
use crate::table_write::WriteKind;
use crate::view_check::ViewWrite;

/// The table that a statement writes, to check whether the statement also reads it.
pub(crate) struct Written<'a> {
    pub(crate) table: &'a Table,
    /// The name that it, or the view that it is written through, has in the statement.
    pub(crate) name: &'a str,
    pub(crate) view: Option<&'a NamedView>,
    /// Only reads under this alias count: INSERT may read its table under another.
    pub(crate) alias: Option<&'a str>,
}

/// The target of an assignment.
struct Assigned {
    id: InstanceId,
    table: Arc<Table>,
    /// Catalog position.
    column: usize,
    /// The view that it was named through.
    view: Option<Arc<ShownView>>,
}

impl Binder<'_> {
    pub(crate) fn bind_update(&mut self, update: &ast::Update) -> Result<LogicalWrite> {
        let multi_table = update.is_multi_table();
        let outer = self.cte_scope.len();
        if let Some(with) = &update.with {
            self.declare_ctes(with)?;
        }
        self.is_change = true;
        self.push_block();
        self.block().clause = Clause::On;
        let mut root = self.bind_from(&update.tables)?;
        if self.views.iter().any(|view| view.is_duality) {
            duality::check_duality_update(update)?;
            return Err(duality::planned_change());
        }
        self.apply_hints(update.hints.as_deref(), 0);
        if multi_table && (!update.order_by.is_empty() || update.limit.is_some()) {
            let clause = if update.order_by.is_empty() { "LIMIT" } else { "ORDER BY" };
            bail!(WRONG_USAGE, "UPDATE", clause);
        }
        if multi_table && !update.returning.is_empty() {
            bail!(WRONG_USAGE, "UPDATE", "RETURNING");
        }
        if let Some(filter) = &update.filter {
            self.block().clause = Clause::Where;
            let mut predicate = self.bind_condition(filter)?;
            self.find_zero_dates(&mut predicate);
            root = Logical::Filter { input: Box::new(root), predicate };
        }
        self.block().clause = Clause::FieldList;
        let mut targets = self.bind_assignments(&update.set)?;
        self.check_placed_once(&targets)?;
        let portion = self.bind_portion(update.portion.as_deref(), Some(&mut targets))?;
        if let Some(predicate) = portion.as_ref().map(|portion| portion.holds.clone()) {
            root = Logical::Filter { input: Box::new(root), predicate };
        }
        if !self.block().aggregates.is_empty() {
            bail!(INVALID_GROUP_FUNC_USE);
        }
        root = self.write_order(root, &update.order_by)?;
        let limit = self.write_limit(update.limit.as_ref())?;
        for target in &targets {
            self.check_not_read(target.instance, "UPDATE")?;
            self.need_only_columns(target.instance);
        }
        for target in &mut targets {
            target.write = self.mark_target(target.instance, WriteKind::Update)?;
            target.write.selected = self.selection_of(target.instance);
            target.write.view_checks = self.checks_of(target.instance, ViewWrite::Update)?;
        }
        self.add_portion(portion, &mut targets)?;
        if multi_table {
            self.lock_reads();
        }
        let (returning, old) = self.bind_returning_of_update(&update.returning, &targets, &root)?;
        self.blocks.pop();
        self.cte_scope.truncate(outer);
        Ok(LogicalWrite {
            root,
            targets,
            ignore: update.ignore,
            limit,
            ordered: !update.order_by.is_empty(),
            multi_table,
            returning,
            old,
        })
    }

    /// DELETE, and UPDATE of several tables, lock tables that they only read at every isolation level.
    pub(crate) fn lock_reads(&mut self) {
        for instance in &mut self.instances {
            if instance.locking == RowLocking::None {
                instance.locking = RowLocking::Shared;
            }
        }
    }

    /// Binds SET: each assignment goes to the table that its column belongs to.
    fn bind_assignments(&mut self, set: &[ast::Assignment]) -> Result<Vec<LogicalTarget>> {
        let mut targets: Vec<LogicalTarget> = Vec::new();
        for assignment in set {
            let Assigned { id: instance, table, column: index, view } =
                self.assigned_column(&assignment.column)?;
            if let Some(view) = view {
                let other = |known: &LogicalTarget| {
                    known.instance != instance && view.written.contains(&known.instance)
                };
                if targets.iter().any(other) {
                    bail!(VIEW_MULTIUPDATE, view.schema, view.name);
                }
            }
            let column = &table.columns[index];
            let value = self.bind_value(&assignment.value, &column.ty)?;
            self.require_update(&table, index);
            let is_written = !column.is_computed() || self.assigns_time(column);
            if column.history.is_undeclared_time() && !is_written {
                bail!(BAD_FIELD_ERROR, crate::scope::written(&assignment.column), "field list");
            }
            let stored = match (column.stored, is_written, &value) {
                (Some(stored), true, _) => stored,
                (_, _, None) => continue,
                _ => bail!(NON_DEFAULT_VALUE_FOR_GENERATED_COLUMN, column.name, table.name),
            };
            let assignment = Assignment { column: stored, value };
            match targets.iter_mut().find(|target| target.instance == instance) {
                Some(target) => target.assignments.push(assignment),
                None => targets.push(LogicalTarget {
                    instance,
                    write: empty_write(&table),
                    assignments: vec![assignment],
                }),
            }
        }
        Ok(targets)
    }

    /// Rows of a table that is written under two names keep their place: neither sets a column of the primary key or of the partitions.
    ///
    /// # Errors
    /// 1706.
    fn check_placed_once(&self, targets: &[LogicalTarget]) -> Result<()> {
        let table_of = |target: &LogicalTarget| &self.tables[self.instance(target.instance).table];
        for (at, target) in targets.iter().enumerate() {
            let table = table_of(target);
            let again = targets[at + 1..].iter().filter(|other| table_of(other).id == table.id);
            for other in again {
                let mut set = target.assignments.iter().chain(&other.assignments);
                if set.any(|assignment| places_row(table, assignment.column)) {
                    let alias = |target: &LogicalTarget| &self.instance(target.instance).alias;
                    bail!(MULTI_UPDATE_KEY_CONFLICT, alias(target), alias(other));
                }
            }
        }
        Ok(())
    }

    /// Of a table or view that is written SELECT is needed only on the columns that are read.
    fn need_only_columns(&mut self, instance: InstanceId) {
        let is_written = |table: &ScopeTable| match &table.source {
            ScopeSource::Base { instance: own, .. } => *own == instance,
            ScopeSource::Columns(_) => {
                table.view.as_ref().is_some_and(|view| view.written.contains(&instance))
            }
        };
        let tables = self.block().tables.iter().filter(|table| is_written(table));
        let found: Vec<usize> = tables.filter_map(|table| table.privilege).collect();
        for privilege in found {
            self.privileges[privilege].kind = PrivilegeKind::SelectColumns;
        }
    }

    fn require_update(&mut self, table: &Arc<Table>, index: usize) {
        let name = table.columns[index].name.clone();
        let known = self.privileges.iter_mut().find(|privilege| {
            privilege.kind == PrivilegeKind::Update
                && privilege.schema == table.schema
                && privilege.table == table.name
        });
        match known {
            Some(privilege) => privilege.columns.push(name),
            None => {
                let at = self.require(&table.schema, &table.name, PrivilegeKind::Update);
                self.privileges[at].columns.push(name);
            }
        }
    }

    /// The stored table and column that the left side of an assignment refers to.
    fn assigned_column(&mut self, name: &ast::ColumnName) -> Result<Assigned> {
        let level = self.blocks.len() - 1;
        // A column that is only written needs no SELECT privilege.
        let privileges = self.privileges.clone();
        let found = self.resolve(name)?;
        self.privileges = privileges;
        let Some((table, at)) = found.place.filter(|_| found.level == level) else {
            bail!(NONUPDATEABLE_COLUMN, name.name.text)
        };
        let scope = &self.blocks[level].tables[table];
        if let Some(view) = &scope.view {
            if !view.is_updatable() {
                bail!(NON_UPDATABLE_TABLE, scope.alias, "UPDATE");
            }
            let ScopeSource::Columns(columns) = &scope.source else {
                bail!(NONUPDATEABLE_COLUMN, name.name.text)
            };
            let Some((id, column)) = self.column_through(view, &columns[at]) else {
                bail!(NONUPDATEABLE_COLUMN, name.name.text)
            };
            let table = self.tables[self.instance(id).table].clone();
            return Ok(Assigned { id, table, column, view: Some(view.clone()) });
        }
        let owner = plain_register(&found.expr).and_then(|register| {
            let owner = self.instances.iter().enumerate().find_map(|(id, instance)| {
                let column = instance.column_of(register)?;
                Some((InstanceId(id as u32), column))
            })?;
            let read_only =
                matches!(&scope.source, ScopeSource::Columns(_)) && scope.schema.is_none();
            (!read_only).then_some(owner)
        });
        match owner {
            Some((id, column)) => {
                let table = self.tables[self.instance(id).table].clone();
                Ok(Assigned { id, table, column, view: None })
            }
            None => bail!(NON_UPDATABLE_TABLE, scope.alias, "UPDATE"),
        }
    }

    /// Prepares a table reference for being written.
    pub(crate) fn mark_target(
        &mut self,
        id: InstanceId,
        kind: WriteKind,
    ) -> Result<plan::TableWrite> {
        let by_time = self.tables[self.instance(id).table].by_system_time();
        if by_time && self.selection_of(id).is_some() {
            bail!(VERS_NOT_SUPPORTED, "UPDATE and DELETE of PARTITION");
        }
        if self.not_current.contains(&id) {
            bail!(TABLE_NOT_LOCKED_FOR_WRITE, self.instance(id).alias);
        }
        self.locator_register(id);
        let instance = &mut self.instances[id.0 as usize];
        instance.all_columns = true;
        instance.locking = match kind {
            WriteKind::Update => RowLocking::ExclusivePeek,
            WriteKind::Insert
            | WriteKind::Delete
            | WriteKind::Cascade
            | WriteKind::InsertOrChange
            | WriteKind::Erase => RowLocking::Exclusive,
        };
        let (table, base) = (self.tables[instance.table].clone(), instance.base);
        self.table_write(&table, base, kind)
    }

    /// The register of a table reference's locators.
    pub(crate) fn locator_register(&mut self, id: InstanceId) -> plan::Register {
        if let Some(locator) = self.instance(id).locator {
            return locator;
        }
        let locator = self.new_register();
        self.instances[id.0 as usize].locator = Some(locator);
        locator
    }

    pub(crate) fn check_not_read(&self, target: InstanceId, what: &str) -> Result<()> {
        let instance = self.instance(target);
        let view = self.view_around(target);
        let written = Written {
            table: &self.tables[instance.table],
            name: view.map_or(&instance.alias, |view| &view.alias),
            view,
            alias: None,
        };
        self.refuse_reads(0, &written, what)
    }

    /// 1093, 1443: a subquery of the statement, of those from `first` on, reads the table that is written, by itself or through a
    /// view. Tables that were read before the write do not count.
    pub(crate) fn refuse_reads(
        &self,
        first: usize,
        written: &Written<'_>,
        what: &str,
    ) -> Result<()> {
        let name = written.name;
        for (index, subquery) in self.subqueries.iter().enumerate().skip(first) {
            if self.computed_before.iter().any(|range| range.contains(&index)) {
                continue;
            }
            let read = self.read_of(&subquery.root, written.table, written.alias);
            let Some(read) = read else { continue };
            match (written.view, self.view_around(read)) {
                (None, None) => bail!(UPDATE_TABLE_USED, name),
                (Some(written), Some(read)) if written.is_same(read) => {
                    bail!(UPDATE_TABLE_USED, name)
                }
                (_, Some(read)) => bail!(VIEW_PREVENT_UPDATE, read.alias, what, name),
                (Some(_), None) => bail!(VIEW_PREVENT_UPDATE, name, what, name),
            }
        }
        Ok(())
    }

    /// The view of the statement that contains a table reference.
    fn view_around(&self, id: InstanceId) -> Option<&NamedView> {
        self.named_views.iter().find(|view| view.instances.contains(&(id.0 as usize)))
    }

    /// The first reference to a table among the inputs of a node, under any alias or under one.
    pub(crate) fn read_of(
        &self,
        node: &Logical,
        table: &Table,
        alias: Option<&str>,
    ) -> Option<InstanceId> {
        match node {
            Logical::Get(id) => {
                let instance = self.instance(*id);
                let is_read = self.tables[instance.table].id == table.id
                    && alias.is_none_or(|alias| *alias == *instance.alias);
                is_read.then_some(*id)
            }
            Logical::Derived { .. } | Logical::CteScan { .. } => None,
            _ => {
                let mut found = None;
                node.for_each_input(&mut |input| {
                    found = found.or_else(|| self.read_of(input, table, alias));
                });
                found
            }
        }
    }

    fn write_order(&mut self, root: Logical, order_by: &[ast::OrderItem]) -> Result<Logical> {
        if order_by.is_empty() {
            return Ok(root);
        }
        self.block().clause = Clause::Order;
        let mut keys = Vec::with_capacity(order_by.len());
        for item in order_by {
            let expr = self.bind_single(&item.expr)?;
            keys.push(SortKey { expr, descending: item.desc });
        }
        Ok(Logical::Sort { input: Box::new(root), keys })
    }

    fn write_limit(&mut self, limit: Option<&ast::Limit>) -> Result<Option<Expr>> {
        match limit {
            Some(limit) => {
                self.has_chance = true;
                self.bind_limit_number(&limit.count).map(Some)
            }
            None => Ok(None),
        }
    }

    // --- DELETE

    pub(crate) fn bind_delete(&mut self, delete: &ast::Delete) -> Result<LogicalWrite> {
        self.is_change = true;
        if let ast::DeleteTarget::History { table, before } = &delete.target {
            return self.bind_delete_history(table, before.as_ref());
        }
        let outer = self.cte_scope.len();
        if let Some(with) = &delete.with {
            self.declare_ctes(with)?;
        }
        self.push_block();
        self.block().clause = Clause::On;
        let (mut root, multi_table) = match &delete.target {
            ast::DeleteTarget::Single(table) | ast::DeleteTarget::History { table, .. } => {
                (self.bind_named_table(table)?, false)
            }
            ast::DeleteTarget::Multi { from, .. } => (self.bind_from(from)?, true),
        };
        if self.views.iter().any(|view| view.is_duality) {
            duality::check_duality_delete(delete)?;
            return Err(duality::planned_change());
        }
        let instances = self.deleted_instances(&delete.target)?;
        let portion = self.bind_portion(delete.portion.as_deref(), None)?;
        if let Some(predicate) = portion.as_ref().map(|portion| portion.holds.clone()) {
            root = Logical::Filter { input: Box::new(root), predicate };
        }
        if let Some(filter) = &delete.filter {
            self.block().clause = Clause::Where;
            let mut predicate = self.bind_condition(filter)?;
            self.find_zero_dates(&mut predicate);
            root = Logical::Filter { input: Box::new(root), predicate };
        }
        if multi_table && (!delete.order_by.is_empty() || delete.limit.is_some()) {
            let clause = if delete.order_by.is_empty() { "LIMIT" } else { "ORDER BY" };
            bail!(WRONG_USAGE, "DELETE", clause);
        }
        root = self.write_order(root, &delete.order_by)?;
        let limit = self.write_limit(delete.limit.as_ref())?;
        let mut targets = Vec::with_capacity(instances.len());
        let mut returning = Vec::new();
        for instance in instances {
            self.check_not_read(instance, "DELETE")?;
            let write = self.mark_target(instance, WriteKind::Delete)?;
            let table = self.tables[self.instance(instance).table].clone();
            self.require(&table.schema, &table.name, PrivilegeKind::Delete);
            if !multi_table {
                self.need_only_columns(instance);
            }
            if !delete.returning.is_empty() {
                let base = self.instance(instance).base;
                returning = self.bind_returning(&delete.returning, &table, base)?;
            }
            targets.push(LogicalTarget { instance, write, assignments: Vec::new() });
        }
        self.add_portion(portion, &mut targets)?;
        self.lock_reads();
        self.blocks.pop();
        self.cte_scope.truncate(outer);
        Ok(LogicalWrite {
            root,
            targets,
            ignore: delete.ignore,
            limit,
            ordered: !delete.order_by.is_empty(),
            multi_table,
            returning,
            old: Vec::new(),
        })
    }

    /// The table references whose rows are deleted.
    fn deleted_instances(&self, target: &ast::DeleteTarget) -> Result<Vec<InstanceId>> {
        let block = self.blocks.last().expect("pushed by bind_delete");
        let names: Vec<(Option<&str>, &str)> = match target {
            ast::DeleteTarget::Single(table) | ast::DeleteTarget::History { table, .. } => {
                let alias = table.alias.as_ref().unwrap_or(&table.name.name);
                vec![(None, &alias.text)]
            }
            ast::DeleteTarget::Multi { tables, .. }
                if self.input.catalog.current_database().is_none()
                    && tables.iter().any(|name| name.schema.is_none()) =>
            {
                bail!(NO_DB_ERROR)
            }
            ast::DeleteTarget::Multi { tables, .. } => tables
                .iter()
                .map(|name| (name.schema.as_ref().map(|s| &*s.text), &*name.name.text))
                .collect(),
        };
        let mut instances = Vec::with_capacity(names.len());
        for (schema, name) in names {
            let found = block.tables.iter().find(|table| {
                *table.alias == *name
                    && schema.is_none_or(|schema| table.schema.as_deref() == Some(schema))
            });
            let Some(table) = found else { bail!(UNKNOWN_TABLE, name, "MULTI DELETE") };
            let instance = match &table.source {
                ScopeSource::Base { instance, .. } => *instance,
                ScopeSource::Columns(_) => match &table.view {
                    Some(view) => match view.written[..] {
                        [] => bail!(NON_UPDATABLE_TABLE, name, "DELETE"),
                        [instance] => instance,
                        _ => bail!(VIEW_DELETE_MERGE_VIEW, view.schema, view.name),
                    },
                    None => bail!(NON_UPDATABLE_TABLE, name, "DELETE"),
                },
            };
            if instances.contains(&instance) {
                bail!(NONUNIQ_TABLE, name);
            }
            instances.push(instance);
        }
        Ok(instances)
    }
}

/// A placeholder until all of SET is bound.
pub(crate) fn empty_write(table: &Arc<Table>) -> plan::TableWrite {
    plan::TableWrite {
        table: table.id.0,
        engine: table.engine.clone(),
        schema: table.schema.clone(),
        name: table.name.clone(),
        columns: Vec::new(),
        checks: Vec::new(),
        virtuals: Vec::new(),
        view_checks: Vec::new(),
        selected: None,
        view: None,
        triggers: None,
        fulltext: Vec::new(),
        key: Vec::new(),
        indexes: Vec::new(),
        last_unique: None,
        parents: Vec::new(),
        children: Vec::new(),
        history: None,
        partitions: None,
        overlaps: Vec::new(),
        portion: None,
    }
}

/// Whether a stored column decides where a row of the table lies.
fn places_row(table: &Table, stored: usize) -> bool {
    let Some(at) = table.columns.iter().position(|column| column.stored == Some(stored)) else {
        return false;
    };
    let in_key =
        table.primary().is_some_and(|primary| primary.parts.iter().any(|part| part.column == at));
    let Some(partitioning) = &table.partitioning else { return in_key };
    let name = &table.columns[at].name;
    let quoted = format!("`{name}`");
    let mut methods = [Some(&partitioning.method), partitioning.sub.as_ref()].into_iter().flatten();
    in_key
        || partitioning.column_names().any(|column| catalog::same_name(column, name))
        || methods.any(|method| {
            method.expression.as_ref().is_some_and(|(text, _)| text.contains(&quoted))
        })
}
