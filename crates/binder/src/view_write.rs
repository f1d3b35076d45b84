//! Which views can be written through, and to which of their tables a write goes.
//!
//! Invariant: a table reference is written through a view only where each row of the view is one row of it.

use std::sync::Arc;

use catalog::View;
use errors::{Result, bail};
use plan::{InstanceId, Logical, LogicalJoinKind};
use syntax::ast;

use crate::binder::Binder;
use crate::from::view_query;
use crate::grouping::plain_register;
use crate::scope::{BoundQuery, ScopeColumn, ShownView};

impl Binder<'_> {
    /// Whether rows can be changed through a view.
    pub fn is_updatable(mut self, view: &Arc<View>) -> bool {
        self.push_block();
        let bound = self.bind_view(view, view.name.clone());
        let table = self.blocks.last().and_then(|block| block.tables.last());
        let shown = table.and_then(|table| table.view.as_ref());
        bound.is_ok() && shown.is_some_and(|shown| shown.is_updatable())
    }

    /// Whether a view's query is one block whose rows are those of its FROM clause: then ALGORITHM=MERGE can be kept.
    pub fn is_mergeable(mut self, view: &View) -> bool {
        let Some(query) = view_query(view) else { return false };
        self.push_block();
        let bound = self.bind_view_query(view, &query);
        bound.is_ok_and(|bound| is_one_block(&query, &bound.plan))
    }

    /// The description of a view that was just bound; `instances` and `subqueries` existed before it.
    pub(crate) fn shown_view(
        &mut self,
        view: &View,
        query: &ast::Query,
        bound: &BoundQuery,
        instances: usize,
        subqueries: usize,
    ) -> ShownView {
        let mut written = Vec::new();
        let is_plain = self.add_written(&bound.plan, &mut written)
            && &*view.algorithm != "TEMPTABLE"
            && !has_having(query);
        let has_column = bound.outputs.iter().any(|output| {
            let register = plain_register(&output.expr);
            register.is_some_and(|register| {
                written.iter().any(|id| self.instance(*id).column_of(register).is_some())
            })
        });
        // A subquery of the view would read the written table: the other tables of a join can be written.
        let is_read = |id: &InstanceId| {
            let table = &self.tables[self.instance(*id).table];
            let mut own = self.subqueries[subqueries..].iter();
            own.any(|subquery| self.read_of(&subquery.root, table, None).is_some())
        };
        let read: Vec<InstanceId> = written.iter().copied().filter(is_read).collect();
        let joins = written.len() > 1;
        if !is_plain || !has_column || read.len() == written.len() {
            written.clear();
            self.read_only
                .extend((instances..self.instances.len()).map(|id| InstanceId(id as u32)));
        } else {
            written.retain(|id| !read.contains(id));
            self.read_only.extend(read);
        }
        ShownView { schema: view.schema.clone(), name: view.name.clone(), joins, written }
    }

    /// Adds the table references whose rows a tree shows one by one; false when it has an outer join.
    fn add_written(&self, node: &Logical, written: &mut Vec<InstanceId>) -> bool {
        match node {
            Logical::Get(id) => {
                if !self.read_only.contains(id) {
                    written.push(*id);
                }
                true
            }
            Logical::Join { kind: LogicalJoinKind::Left | LogicalJoinKind::Full, .. } => false,
            Logical::Filter { .. }
            | Logical::Project { .. }
            | Logical::Join { .. }
            | Logical::Sort { .. }
            | Logical::Derived { .. } => {
                let mut plain = true;
                node.for_each_input(&mut |input| plain &= self.add_written(input, written));
                plain
            }
            Logical::OneRow
            | Logical::Nothing
            | Logical::InformationGet { .. }
            | Logical::Values { .. }
            | Logical::JsonRows(_)
            | Logical::Aggregate { .. }
            | Logical::Window { .. }
            | Logical::Distinct { .. }
            | Logical::Limit { .. }
            | Logical::SetOperation { .. }
            | Logical::CteScan { .. }
            | Logical::RecursiveCte { .. } => true,
        }
    }

    /// The column of a stored table that a view's column shows.
    pub(crate) fn column_through(
        &self,
        view: &ShownView,
        column: &ScopeColumn,
    ) -> Option<(InstanceId, usize)> {
        let register = plain_register(&column.expr)?;
        let found = |id: &InstanceId| Some((*id, self.instance(*id).column_of(register)?));
        view.written.iter().find_map(found)
    }

    /// The table that an INSERT into a view writes, and the view's columns that belong to it.
    ///
    /// # Errors
    /// 1471, 1394, 1393, 1348.
    pub(crate) fn inserted_through(
        &self,
        view: &ShownView,
        shown: &[ScopeColumn],
        listed: Option<&[&str]>,
    ) -> Result<(InstanceId, Vec<(Arc<str>, usize)>)> {
        if !view.is_updatable() {
            bail!(NON_INSERTABLE_TABLE, view.name, "INSERT");
        }
        if view.joins && listed.is_none() {
            bail!(VIEW_NO_INSERT_FIELD_LIST, view.schema, view.name);
        }
        let named = |column: &ScopeColumn| {
            listed
                .is_none_or(|names| names.iter().any(|name| catalog::same_name(name, &column.name)))
        };
        let mut target = None;
        for column in shown.iter().filter(|column| named(column)) {
            match (self.column_through(view, column), target) {
                (None, _) => bail!(NONUPDATEABLE_COLUMN, column.name),
                (Some((id, _)), Some(known)) if id != known => {
                    bail!(VIEW_MULTIUPDATE, view.schema, view.name)
                }
                (Some((id, _)), _) => target = Some(id),
            }
        }
        let mut columns: Vec<(InstanceId, Arc<str>, usize)> = Vec::with_capacity(shown.len());
        for column in shown {
            let Some((id, at)) = self.column_through(view, column) else {
                bail!(NON_INSERTABLE_TABLE, view.name, "INSERT")
            };
            if columns.iter().any(|(known, _, before)| *known == id && *before == at) {
                bail!(NON_INSERTABLE_TABLE, view.name, "INSERT");
            }
            columns.push((id, column.name.clone(), at));
        }
        let target = target.unwrap_or(view.written[0]);
        let own = columns.into_iter().filter(|(id, ..)| *id == target);
        Ok((target, own.map(|(_, name, at)| (name, at)).collect()))
    }
}

fn has_having(query: &ast::Query) -> bool {
    matches!(&query.body, ast::SetExpr::Select(select) if select.having.is_some())
}

/// Whether a bound query computes nothing but rows of a FROM clause.
pub(crate) fn is_one_block(query: &ast::Query, node: &Logical) -> bool {
    !has_having(query) && shows_rows(node)
}

fn shows_rows(node: &Logical) -> bool {
    match node {
        Logical::Filter { input, .. }
        | Logical::Project { input, .. }
        | Logical::Sort { input, .. } => shows_rows(input),
        Logical::Get(_)
        | Logical::InformationGet { .. }
        | Logical::JsonRows(_)
        | Logical::Join { .. }
        | Logical::Derived { .. }
        | Logical::CteScan { .. }
        | Logical::RecursiveCte { .. } => true,
        Logical::OneRow
        | Logical::Nothing
        | Logical::Values { .. }
        | Logical::Aggregate { .. }
        | Logical::Window { .. }
        | Logical::Distinct { .. }
        | Logical::Limit { .. }
        | Logical::SetOperation { .. } => false,
    }
}
