//! Query expressions: WITH, set operations, VALUES, parentheses, LIMIT, locking clauses.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use errors::{ErrorCode, Result, bail};
use plan::{
    CteId, Expr, InstanceId, Logical, LogicalCte, Making, OutputColumn, Register, RegisterSet,
    RowLocking, SetOperation, SortKey,
};
use syntax::ast;
use types::DataType;

use crate::binder::{Binder, QUERY_DEPTH_MAX};
use crate::collation::{self, Differing};
use crate::from::{derived_names, derived_source};
use crate::recursion::mentions_itself;
use crate::scope::{
    BoundQuery, Clause, CteDefinition, ListedItem, ScopeColumn, ScopeSource, SharedCte,
};
use crate::table_expression::stored_as;
use crate::typing::unify;

/// Changes of the operator in one chain of set operations.
const SET_OPERATIONS_DEPTH_MAX: u32 = 200;

impl Binder<'_> {
    /// Binds a query expression.
    pub(crate) fn bind_query(&mut self, query: &ast::Query) -> Result<BoundQuery> {
        if self.query_depth >= QUERY_DEPTH_MAX {
            bail!(TOO_HIGH_LEVEL_OF_NESTING_FOR_SELECT);
        }
        if query.into.is_some() && !self.blocks.is_empty() {
            bail!(MISPLACED_INTO);
        }
        let outer = self.cte_scope.len();
        let asks_membership = std::mem::take(&mut self.asks_membership);
        if let Some(with) = &query.with {
            self.declare_ctes(with)?;
        }
        let is_select = matches!(query.body, ast::SetExpr::Select(_));
        self.asks_membership = asks_membership && is_select && query.limit.is_none();
        let first_instance = self.instances.len();
        self.query_depth += 1;
        let bound = self.bind_query_body(query);
        self.query_depth -= 1;
        self.cte_scope.truncate(outer);
        let bound = bound?;
        let mut locked = Vec::new();
        for locking in &query.locking {
            self.apply_locking(locking, first_instance, &mut locked)?;
        }
        Ok(bound)
    }

    fn bind_query_body(&mut self, query: &ast::Query) -> Result<BoundQuery> {
        if let ast::SetExpr::Query(inner) = &query.body
            && let Some(select) = plain_select(inner)
        {
            return self.bind_select(select, &query.order_by, query.limit.as_ref());
        }
        match &query.body {
            ast::SetExpr::Select(select) => {
                self.bind_select(select, &query.order_by, query.limit.as_ref())
            }
            ast::SetExpr::Table(name) => {
                let select = select_all(name);
                self.bind_select(&select, &query.order_by, query.limit.as_ref())
            }
            body @ (ast::SetExpr::Values(_) | ast::SetExpr::SetOp(_) | ast::SetExpr::Query(_)) => {
                let bound = self.bind_set_expr(body)?;
                self.bind_tail(bound, &query.order_by, query.limit.as_ref())
            }
        }
    }

    pub(crate) fn bind_set_expr(&mut self, body: &ast::SetExpr) -> Result<BoundQuery> {
        match body {
            ast::SetExpr::Select(select) => self.bind_select(select, &[], None),
            ast::SetExpr::Table(name) => self.bind_select(&select_all(name), &[], None),
            ast::SetExpr::Values(rows) => self.bind_values_rows(rows),
            ast::SetExpr::Query(query) => self.bind_query(query),
            ast::SetExpr::SetOp(chain) => self.bind_set_operation(chain),
        }
    }

    fn bind_values_rows(&mut self, rows: &[Vec<ast::Expr>]) -> Result<BoundQuery> {
        self.push_block();
        self.block().clause = Clause::Values;
        let number = self.block().number;
        let width = rows.first().map_or(0, Vec::len);
        let mut bound = Vec::with_capacity(rows.len());
        for (index, row) in rows.iter().enumerate() {
            if row.len() != width {
                bail!(WRONG_VALUE_COUNT_ON_ROW, index + 1);
            }
            if row.is_empty() {
                bail!(TABLE_VALUE_CONSTRUCTOR_MUST_HAVE_COLUMNS);
            }
            let cells: Result<Vec<_>> = row.iter().map(|cell| self.bind_expr(cell)).collect();
            bound.push(cells?);
        }
        self.blocks.pop();
        let mut columns = Vec::with_capacity(width);
        let mut outputs = Vec::with_capacity(width);
        for index in 0..width {
            let cells: Vec<&Expr> = bound.iter().map(|row| &row[index]).collect();
            let ty = self.unify_exprs(&cells, "VALUES")?;
            if !self.blocks.is_empty() {
                // Inside a query a column has one type; a client gets the values as they are written.
                for row in &mut bound {
                    let cell = std::mem::replace(
                        &mut row[index],
                        Expr::literal(types::Value::Null, DataType::null()),
                    );
                    row[index] = stored_as(cell, &ty);
                }
            }
            let register = self.new_register();
            columns.push((register, ty.clone()));
            outputs.push(OutputColumn {
                name: Arc::from(format!("column_{index}")),
                expr: Expr::column(register, ty),
                source: None,
                making: Making::Kept,
            });
        }
        let plan = Logical::Values { rows: bound, columns };
        Ok(BoundQuery { plan, outputs, mergeable: false, block: number })
    }

    /// The type and collation of a column made of these expressions.
    pub(crate) fn unify_exprs(&self, exprs: &[&Expr], operation: &str) -> Result<DataType> {
        let differing =
            if operation == collation::UNION { Differing::Refuse } else { Differing::Binary };
        let exprs_in_turn = exprs.iter().copied();
        let collation =
            collation::aggregate(exprs_in_turn, &self.coercibilities, operation, differing)?;
        let types: Vec<DataType> = exprs.iter().map(|expr| expr.ty()).collect();
        crate::fixed::check_unified(&types, operation)?;
        Ok(unify(&types, collation))
    }

    // --- set operations

    /// An operand of a set operation: an order that no LIMIT uses has no effect here.
    fn bind_operand(&mut self, body: &ast::SetExpr) -> Result<BoundQuery> {
        let mut bound = self.bind_set_expr(body)?;
        if let Logical::Sort { input, .. } = bound.plan {
            bound.plan = *input;
        }
        Ok(bound)
    }

    fn bind_set_operation(&mut self, chain: &ast::SetOp) -> Result<BoundQuery> {
        let start = self.instances.len();
        let first = self.bind_operand(&chain.first)?;
        let block = first.block;
        let mut parts = vec![first];
        let mut operation: Option<SetOperation> = None;
        let mut depth = 0;
        for term in &chain.rest {
            // A locking clause behind belongs to the last operand.
            self.lock_apart(start);
            let right = self.bind_operand(&term.right)?;
            if right.outputs.len() != parts[0].outputs.len() {
                bail!(WRONG_NUMBER_OF_COLUMNS_IN_SELECT);
            }
            let next = set_operation(term.op, term.all);
            match (operation, next) {
                // Operators of one kind are one operation: the operands right of the first are removed or added.
                (Some(same), _) if same == next && is_flat(same) => parts.push(right),
                (None, _) => {
                    parts.push(right);
                    operation = Some(next);
                }
                // A later UNION DISTINCT makes all previous ones distinct.
                (Some(SetOperation::UnionAll), SetOperation::UnionDistinct) => {
                    parts.push(right);
                    operation = Some(next);
                }
                (Some(before), _) => {
                    depth += 1;
                    if depth > SET_OPERATIONS_DEPTH_MAX {
                        bail!(TOO_HIGH_LEVEL_OF_NESTING_FOR_SELECT);
                    }
                    let combined = self.combine(before, std::mem::take(&mut parts), block)?;
                    parts = vec![combined, right];
                    operation = Some(next);
                }
            }
        }
        let operation = operation.unwrap_or(SetOperation::UnionAll);
        self.combine(operation, parts, block)
    }

    pub(crate) fn combine(
        &mut self,
        operation: SetOperation,
        parts: Vec<BoundQuery>,
        block: u32,
    ) -> Result<BoundQuery> {
        let width = parts[0].outputs.len();
        let mut columns = Vec::with_capacity(width);
        let mut outputs = Vec::with_capacity(width);
        for index in 0..width {
            let exprs: Vec<&Expr> = parts.iter().map(|part| &part.outputs[index].expr).collect();
            let mut ty = self.unify_exprs(&exprs, "UNION")?;
            if matches!(operation, SetOperation::ExceptAll | SetOperation::ExceptDistinct) {
                ty.nullable = exprs[0].ty().nullable;
            }
            if matches!(operation, SetOperation::IntersectAll | SetOperation::IntersectDistinct) {
                ty.nullable = exprs.iter().all(|expr| expr.is_nullable());
            }
            let register = self.new_register();
            self.coercibilities.show(register, exprs);
            columns.push((register, ty.clone()));
            outputs.push(OutputColumn {
                name: parts[0].outputs[index].name.clone(),
                expr: Expr::column(register, ty),
                source: None,
                making: Making::Kept,
            });
        }
        let mut inputs = Vec::with_capacity(parts.len());
        for part in parts {
            let mut exprs = Vec::with_capacity(width);
            for (output, (_, ty)) in part.outputs.into_iter().zip(&columns) {
                exprs.push(if ty.is_binary() { self.encoded(output.expr)? } else { output.expr });
            }
            inputs.push((part.plan, exprs));
        }
        let plan = Logical::SetOperation { operation, inputs, columns };
        Ok(BoundQuery { plan, outputs, mergeable: false, block })
    }

    /// ORDER BY and LIMIT after a set operation or parentheses: names mean result columns.
    pub(crate) fn bind_tail(
        &mut self,
        bound: BoundQuery,
        order_by: &[ast::OrderItem],
        limit: Option<&ast::Limit>,
    ) -> Result<BoundQuery> {
        if order_by.is_empty() && limit.is_none() {
            return Ok(bound);
        }
        let mut plan = bound.plan;
        if !order_by.is_empty() {
            let keys = self.bind_tail_order(&bound.outputs, order_by)?;
            plan = Logical::Sort { input: Box::new(plan), keys };
        }
        if let Some(limit) = limit {
            plan = self.bind_limit(plan, limit, false)?;
        }
        Ok(BoundQuery { plan, mergeable: false, ..bound })
    }

    fn bind_tail_order(
        &mut self,
        outputs: &[OutputColumn],
        order_by: &[ast::OrderItem],
    ) -> Result<Vec<SortKey>> {
        self.push_block();
        let columns = outputs
            .iter()
            .map(|output| ScopeColumn {
                name: output.name.clone(),
                expr: output.expr.clone(),
                source: None,
                invisible: false,
            })
            .collect();
        let block = self.block();
        block.clause = Clause::Order;
        block.tail = true;
        block.items = outputs
            .iter()
            .map(|output| ListedItem {
                name: output.name.clone(),
                aliased: true,
                table: None,
                expr: output.expr.clone(),
            })
            .collect();
        self.add_scope_table(None, Arc::from(""), ScopeSource::Columns(columns), None)?;
        let mut keys = Vec::with_capacity(order_by.len());
        for (index, item) in order_by.iter().enumerate() {
            let expr = match self.bind_order_expr(&item.expr) {
                Err(error) if error.code() == ErrorCode::WINDOW_INVALID_WINDOW_FUNC_USE => {
                    bail!(AGGREGATE_ORDER_FOR_UNION, index + 1)
                }
                bound => bound?,
            };
            if !self.block().aggregates.is_empty() {
                bail!(AGGREGATE_ORDER_FOR_UNION, index + 1);
            }
            keys.push(SortKey { expr, descending: item.desc });
        }
        self.blocks.pop();
        Ok(keys)
    }

    /// Wraps `plan` in LIMIT.
    pub(crate) fn bind_limit(
        &mut self,
        plan: Logical,
        limit: &ast::Limit,
        count_all: bool,
    ) -> Result<Logical> {
        let count = self.bind_limit_number(&limit.count)?;
        let offset = match &limit.offset {
            Some(offset) => Some(self.bind_limit_number(offset)?),
            None => None,
        };
        Ok(Logical::Limit { input: Box::new(plan), limit: Some(count), offset, count_all })
    }

    pub(crate) fn bind_limit_number(&mut self, expr: &ast::Expr) -> Result<Expr> {
        match &expr.kind {
            ast::ExprKind::Literal(ast::Literal::Integer(number)) => {
                let ty = DataType::bigint_unsigned().with_nullable(false);
                Ok(Expr::literal(types::Value::UInt(*number), ty))
            }
            ast::ExprKind::Param(index) => {
                Ok(self.parameter(*index, Some(&DataType::bigint_unsigned())))
            }
            ast::ExprKind::Column(name) => bail!(SP_UNDECLARED_VAR, name.name.text),
            _ => bail!(WRONG_ARGUMENTS, "LIMIT"),
        }
    }

    // --- common table expressions

    pub(crate) fn declare_ctes(&mut self, with: &ast::With) -> Result<()> {
        let start = self.cte_scope.len();
        let level = self.blocks.len();
        for (index, cte) in with.ctes.iter().enumerate() {
            if with.ctes[..index].iter().any(|before| before.name == cte.name) {
                bail!(NONUNIQ_TABLE, cte.name.text);
            }
            self.cte_scope.push(Rc::new(CteDefinition {
                name: Arc::from(&*cte.name.text),
                columns: cte.columns.clone(),
                query: (*cte.query).clone(),
                recursive: with.recursive,
                level,
                visible: start + index + usize::from(with.recursive),
                shared: RefCell::new(None),
                working: RefCell::new(None),
                referenced: Cell::new(0),
                depth: Cell::new(0),
                binding: Cell::new(false),
            }));
        }
        Ok(())
    }

    /// A table reference that may name a common table expression.
    pub(crate) fn bind_cte_reference(
        &mut self,
        name: &str,
        alias: &Arc<str>,
    ) -> Result<Option<Logical>> {
        let Some(cte) = self.cte_scope.iter().rev().find(|cte| *cte.name == *name).cloned() else {
            return Ok(None);
        };
        let working = cte.working.borrow().clone();
        if let Some((id, columns)) = working {
            self.count_recursive_reference(&cte)?;
            return self.scan_cte(id, &columns, alias).map(Some);
        }
        let shared = cte.shared.borrow().clone();
        if let Some(shared) = shared {
            return self.scan_cte(shared.id, &shared.columns, alias).map(Some);
        }
        if cte.binding.get() {
            bail!(CTE_RECURSIVE_REQUIRES_NONRECURSIVE_FIRST, cte.name);
        }
        let plan = if cte.recursive && mentions_itself(&cte, &self.source) {
            self.bind_recursive(&cte, alias)?
        } else {
            self.bind_plain_cte(&cte, alias)?
        };
        Ok(Some(plan))
    }

    fn bind_plain_cte(&mut self, cte: &Rc<CteDefinition>, alias: &Arc<str>) -> Result<Logical> {
        let subqueries = self.subqueries.len();
        let bound = self.in_definition(cte, |binder| binder.bind_query(&cte.query))?;
        let bound = self.kept_apart(bound, subqueries);
        let names = derived_names(&bound, &cte.columns)?;
        if bound.mergeable || self.reads_outside(&bound) {
            return self.attach(bound, None, alias.clone(), &names, false, None);
        }
        let columns = self.share_cte(cte, bound, &names)?;
        self.scan_cte(columns.id, &columns.columns, alias)
    }

    /// Runs `f` with the names that the definition could see.
    pub(crate) fn in_definition<T>(
        &mut self,
        cte: &CteDefinition,
        f: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        cte.binding.set(true);
        let later = self.cte_scope.split_off(cte.visible.min(self.cte_scope.len()));
        let outside = self.enter_spelled(false);
        let first = self.instances.len();
        let result = self.with_hidden(cte.level, f);
        self.lock_apart(first);
        self.leave_spelled(outside);
        self.cte_scope.truncate(cte.visible);
        self.cte_scope.extend(later);
        cte.binding.set(false);
        result
    }

    pub(crate) fn share_cte(
        &mut self,
        cte: &CteDefinition,
        bound: BoundQuery,
        names: &[Arc<str>],
    ) -> Result<SharedCte> {
        check_names(names)?;
        let id = self.new_cte();
        let columns = names
            .iter()
            .zip(&bound.outputs)
            .map(|(name, output)| (name.clone(), output.expr.ty()))
            .collect();
        let outputs = bound.outputs.into_iter().map(|output| output.expr).collect();
        self.ctes.push(LogicalCte { id, name: cte.name.clone(), root: bound.plan, outputs });
        let shared = SharedCte { id, columns };
        *cte.shared.borrow_mut() = Some(shared.clone());
        Ok(shared)
    }

    pub(crate) fn scan_cte(
        &mut self,
        id: CteId,
        columns: &[(Arc<str>, DataType)],
        alias: &Arc<str>,
    ) -> Result<Logical> {
        let base = self.new_registers(columns.len());
        let mut scope = Vec::with_capacity(columns.len());
        let mut registers = Vec::with_capacity(columns.len());
        for (index, (name, ty)) in columns.iter().enumerate() {
            let register = Register(base.0 + index as u32);
            registers.push((register, ty.clone()));
            scope.push(ScopeColumn {
                name: name.clone(),
                expr: Expr::column(register, ty.clone()),
                source: Some(Arc::new(derived_source(None, alias, name, true))),
                invisible: false,
            });
        }
        self.add_scope_table(None, alias.clone(), ScopeSource::Columns(scope), None)?;
        Ok(Logical::CteScan { id, columns: registers, alias: alias.clone() })
    }

    /// Whether a bound query reads registers of enclosing blocks.
    pub(crate) fn reads_outside(&self, bound: &BoundQuery) -> bool {
        let outputs: Vec<&Expr> = bound.outputs.iter().map(|output| &output.expr).collect();
        !self.outer_registers(&bound.plan, &outputs).is_empty()
    }

    /// Registers that a plan reads and does not set.
    pub(crate) fn outer_registers(&self, plan: &Logical, outputs: &[&Expr]) -> Vec<Register> {
        let mut defined = RegisterSet::new();
        plan.add_definitions(&self.instances, &mut defined);
        let mut used = RegisterSet::new();
        let outer = |id: plan::SubqueryId| &*self.subqueries[id.0 as usize].outer;
        plan.visit_exprs(&mut |expr| expr.add_registers(&outer, &mut used));
        for output in outputs {
            output.add_registers(&outer, &mut used);
        }
        used.subtract(&defined);
        used.iter().collect()
    }

    // --- locking

    /// `locked`: places of the references that a clause before this one names.
    fn apply_locking(
        &mut self,
        locking: &ast::Locking,
        first: usize,
        locked: &mut Vec<usize>,
    ) -> Result<()> {
        let exclusive = locking.strength == ast::LockStrength::Update;
        let mode = match (exclusive, locking.wait) {
            (true, ast::LockWait::Wait) => RowLocking::Exclusive,
            (true, ast::LockWait::NoWait) => RowLocking::ExclusiveNoWait,
            (true, ast::LockWait::SkipLocked) => RowLocking::ExclusiveSkipLocked,
            (false, ast::LockWait::Wait) => RowLocking::Shared,
            (false, ast::LockWait::NoWait) => RowLocking::SharedNoWait,
            (false, ast::LockWait::SkipLocked) => RowLocking::SharedSkipLocked,
            (_, ast::LockWait::Seconds(0)) if exclusive => RowLocking::ExclusiveNoWait,
            (_, ast::LockWait::Seconds(0)) => RowLocking::SharedNoWait,
            (_, ast::LockWait::Seconds(seconds)) => {
                self.lock_wait_seconds = Some(seconds);
                if exclusive { RowLocking::Exclusive } else { RowLocking::Shared }
            }
        };
        if locking.of.is_empty() {
            if let Some(again) = locked.first() {
                bail!(DUPLICATE_TABLE_LOCK, self.instances[*again].alias);
            }
            let own: Vec<usize> = self.own_references(first).collect();
            for index in own {
                self.instances[index].locking = mode;
                locked.push(index);
            }
            return self.check_lockable(exclusive, &locked[..]);
        }
        for name in &locking.of {
            let found = self.own_references(first).find(|index| {
                let instance = &self.instances[*index];
                let schema = &self.tables[instance.table].schema;
                *instance.alias == *name.name.text
                    && name.schema.as_ref().is_none_or(|wanted| **schema == *wanted.text)
            });
            let Some(index) = found else { bail!(UNRESOLVED_TABLE_LOCK, name.name.text) };
            if locked.contains(&index) {
                bail!(DUPLICATE_TABLE_LOCK, format!("`{}`", name.name.text));
            }
            locked.push(index);
            self.lock_instance(InstanceId(index as u32), mode);
        }
        self.check_lockable(exclusive, &locked[..])
    }

    /// The references from `first` on that a locking clause of the query locks.
    fn own_references(&self, first: usize) -> impl Iterator<Item = usize> + '_ {
        let is_apart = |index: &usize| self.locked_apart.iter().any(|range| range.contains(index));
        (first..self.instances.len()).filter(move |index| !is_apart(index))
    }

    /// The references from `first` on are locked by clauses of their own only.
    pub(crate) fn lock_apart(&mut self, first: usize) {
        if first < self.instances.len() {
            self.locked_apart.push(first..self.instances.len());
        }
    }

    /// # Errors
    /// 3989 for FOR UPDATE of rows that nothing may write.
    fn check_lockable(&self, exclusive: bool, locked: &[usize]) -> Result<()> {
        let tables = locked.iter().map(|place| &self.tables[self.instances[*place].table]);
        let mut written = tables.filter(|table| exclusive && !table.temporary);
        written.try_for_each(|table| self.check_schema_writable(&table.schema))
    }

    pub(crate) fn lock_instance(&mut self, id: InstanceId, mode: RowLocking) {
        let instance = &mut self.instances[id.0 as usize];
        // The row of a sequence is locked by whoever draws values, within his statement.
        if !self.tables[instance.table].is_sequence() {
            instance.locking = mode;
        }
    }
}

fn check_names(names: &[Arc<str>]) -> Result<()> {
    for (index, name) in names.iter().enumerate() {
        if names[..index].iter().any(|before| crate::scope::names_equal(before, name)) {
            bail!(DUP_FIELDNAME, name);
        }
    }
    Ok(())
}

/// Whether `a op b op c` is one operation over three inputs.
fn is_flat(operation: SetOperation) -> bool {
    match operation {
        SetOperation::UnionAll
        | SetOperation::UnionDistinct
        | SetOperation::IntersectDistinct
        | SetOperation::ExceptDistinct => true,
        SetOperation::IntersectAll | SetOperation::ExceptAll => false,
    }
}

/// A SELECT enclosed only in parentheses: the clauses after them are its own.
fn plain_select(query: &ast::Query) -> Option<&ast::Select> {
    let is_plain = query.with.is_none()
        && query.order_by.is_empty()
        && query.limit.is_none()
        && query.locking.is_empty()
        && query.into.is_none();
    match &query.body {
        ast::SetExpr::Select(select) if is_plain => Some(select),
        _ => None,
    }
}

fn set_operation(op: ast::SetOperator, all: bool) -> SetOperation {
    match (op, all) {
        (ast::SetOperator::Union, true) => SetOperation::UnionAll,
        (ast::SetOperator::Union, false) => SetOperation::UnionDistinct,
        (ast::SetOperator::Intersect, true) => SetOperation::IntersectAll,
        (ast::SetOperator::Intersect, false) => SetOperation::IntersectDistinct,
        (ast::SetOperator::Except, true) => SetOperation::ExceptAll,
        (ast::SetOperator::Except, false) => SetOperation::ExceptDistinct,
    }
}

/// `TABLE t` means `SELECT * FROM t`.
fn select_all(name: &ast::ObjectName) -> ast::Select {
    ast::Select {
        items: vec![ast::SelectItem {
            kind: ast::SelectItemKind::Wildcard,
            span: ast::Span::default(),
        }],
        from: vec![ast::TableFactor::Table(Box::new(ast::NamedTable {
            name: name.clone(),
            ..ast::NamedTable::default()
        }))],
        ..ast::Select::default()
    }
}
