//! SELECT: the parts of a block in the order in which names can be known, and their operators.

use std::sync::Arc;

use errors::{Result, bail};
use plan::{Expr, GroupSets, Logical, Making, OutputColumn, Register, SortKey};
use plugin_api::Registry;
use syntax::ast;
use types::{DataType, FunctionRole, OperatorCall, Value};

use crate::binder::Binder;
use crate::block::first_read;
use crate::document_key::document_keys;
use crate::scope::{
    Block, BoundQuery, Clause, ListedItem, ScopeSource, ScopeTable, VisibleColumn, WindowGroup,
    visible_or_all,
};

fn alias_of(item: &ast::SelectItem) -> Option<Arc<str>> {
    match &item.kind {
        ast::SelectItemKind::Expr { alias: Some(alias), .. } => Some(Arc::from(&*alias.text)),
        ast::SelectItemKind::Expr { alias: None, .. }
        | ast::SelectItemKind::Wildcard
        | ast::SelectItemKind::QualifiedWildcard(_) => None,
    }
}

/// The bound parts of a block before they are assembled.
struct Parts {
    filter: Option<Expr>,
    outputs: Vec<OutputColumn>,
    having: Option<Expr>,
    qualify: Option<Expr>,
    order: Vec<SortKey>,
    /// Whether each of them names items of the select list by their aliases.
    order_names_items: Vec<bool>,
}

impl Binder<'_> {
    /// Binds a SELECT with the ORDER BY and LIMIT that belong to it.
    pub(crate) fn bind_select(
        &mut self,
        select: &ast::Select,
        order_by: &[ast::OrderItem],
        limit: Option<&ast::Limit>,
    ) -> Result<BoundQuery> {
        let asks_membership = std::mem::take(&mut self.asks_membership);
        let level = self.push_block();
        let number = self.block().number;
        self.straight_join |= select.options.straight_join;
        if select.options.calc_found_rows {
            self.deprecate(
                "SQL_CALC_FOUND_ROWS is deprecated and will be removed in a future release. Consider \
                 using two separate queries instead.",
            );
        }
        if select.options.no_cache {
            let code = errors::ErrorCode::WARN_DEPRECATED_SYNTAX_NO_REPLACEMENT;
            self.notice(code, &[&"SQL_NO_CACHE"]);
        }
        self.block().clause = Clause::On;
        let first = self.instances.len();
        let keys = document_keys(select.filter.as_ref());
        let outer_keys = std::mem::replace(&mut self.document_keys, keys);
        let from = self.bind_from(&select.from);
        self.document_keys = outer_keys;
        let from = from?;
        self.apply_hints(select.hints.as_deref(), first);
        let mut parts = self.bind_parts(select, order_by)?;
        if asks_membership {
            parts.order.clear();
        }
        if asks_membership && is_only_grouped(select, self.block()) {
            // Groups without an aggregate have their input rows.
            let block = self.block();
            block.grouped = false;
            block.keys.clear();
            block.grouping.clear();
        }
        self.check_grouping(
            parts.filter.as_ref(),
            &from,
            &parts.outputs,
            parts.having.as_ref(),
            &parts.order,
        )?;
        let grouped = self.block().grouped || !self.block().aggregates.is_empty();
        let bound = self.assemble(select, from, parts, limit)?;
        debug_assert_eq!(self.blocks.len(), level + 1);
        let block = self.blocks.pop();
        (self.last_tables, self.last_visible) = match block {
            Some(block) if !grouped => (block.tables, block.visible),
            _ => (Vec::new(), None),
        };
        Ok(BoundQuery { block: number, ..bound })
    }

    fn bind_parts(&mut self, select: &ast::Select, order_by: &[ast::OrderItem]) -> Result<Parts> {
        let filter = match &select.filter {
            Some(filter) => {
                self.block().clause = Clause::Where;
                let mut filter = self.bind_condition(filter)?;
                self.find_zero_dates(&mut filter);
                Some(filter)
            }
            None => None,
        };
        self.block().grouped = select.group_by.is_some();
        self.bind_named_windows(&select.windows)?;
        self.block().clause = Clause::FieldList;
        self.block().allow_windows = true;
        let mut outputs = self.bind_output_list(&select.items)?;
        self.block().allow_windows = false;
        if let Some(group_by) = &select.group_by {
            self.bind_group_by(group_by, &mut outputs)?;
        }
        let having = match &select.having {
            Some(having) => {
                self.block().clause = Clause::Having;
                Some(self.bind_condition(having)?)
            }
            None => None,
        };
        self.block().clause = Clause::Order;
        self.block().allow_windows = true;
        let qualify = match &select.qualify {
            Some(qualify) => Some(self.bind_single(qualify)?),
            None => None,
        };
        let plain = !self.block().grouped && self.block().aggregates.is_empty();
        let mut order = Vec::with_capacity(order_by.len());
        let mut order_names_items = Vec::with_capacity(order_by.len());
        for (index, item) in order_by.iter().enumerate() {
            let before = self.block().items_named;
            let expr = self.bind_order_expr(&item.expr)?;
            order_names_items.push(self.block().items_named > before);
            // An aggregate in ORDER BY alone would make one row of all; within a window function it may.
            if plain && self.block().has_own_aggregate {
                bail!(AGGREGATE_ORDER_NON_AGG_QUERY, index + 1);
            }
            order.push(SortKey { expr, descending: item.desc });
        }
        if !self.block().grouped && !self.block().aggregates.is_empty() {
            // One row has no order.
            order.clear();
        }
        Ok(Parts { filter, outputs, having, qualify, order, order_names_items })
    }

    // --- select list

    pub(crate) fn bind_output_list(
        &mut self,
        items: &[ast::SelectItem],
    ) -> Result<Vec<OutputColumn>> {
        let mut outputs = Vec::with_capacity(items.len());
        self.block().aliases = items.iter().filter_map(alias_of).collect();
        for item in items {
            match &item.kind {
                ast::SelectItemKind::Expr { expr, alias } => {
                    outputs.push(self.bind_select_item(expr, alias.as_ref(), item.span)?);
                }
                ast::SelectItemKind::Wildcard => {
                    self.expand_wildcard(None, item.span, &mut outputs)?;
                }
                ast::SelectItemKind::QualifiedWildcard(name) => {
                    self.expand_wildcard(Some(name), item.span, &mut outputs)?;
                }
            }
        }
        Ok(outputs)
    }

    pub(crate) fn bind_select_item(
        &mut self,
        expr: &ast::Expr,
        alias: Option<&ast::Ident>,
        span: ast::Span,
    ) -> Result<OutputColumn> {
        let mut own_name = None;
        let (bound, source, table) = match &expr.kind {
            ast::ExprKind::Column(name) => {
                let resolved = self.resolve(name)?;
                let source = resolved
                    .place
                    .and_then(|(table, column)| self.column_source(resolved.level, table, column));
                let scope = resolved
                    .place
                    .map(|(table, column)| (&self.blocks[resolved.level].tables[table], column));
                own_name = scope
                    .and_then(|(scope, column)| own_spelling(scope, column, self.input.registry));
                let table = scope.map(|(scope, _)| scope.alias.clone());
                (resolved.expr, source, table)
            }
            _ => (self.bind_expr(expr)?, None, None),
        };
        if let Expr::Row(items) = &bound {
            bail!(OPERAND_COLUMNS, 1.min(items.len()));
        }
        let name: Arc<str> = match alias {
            Some(alias) => Arc::from(&*alias.text),
            None => own_name.unwrap_or_else(|| self.caption(expr, span)),
        };
        if alias.is_none() {
            self.spell_item(span, &name);
        }
        let listed =
            ListedItem { name: name.clone(), aliased: alias.is_some(), table, expr: bound.clone() };
        self.block().items.push(listed);
        let making = self.making(expr, &bound);
        Ok(OutputColumn { name, expr: bound, source, making })
    }

    fn is_call_of(&self, operator: OperatorCall, call: &ast::FunctionCall) -> bool {
        let function = self.input.registry.function(&call.name.text.to_ascii_uppercase());
        call.schema.is_none()
            && function.is_some_and(|function| function.is(FunctionRole::Operator(operator)))
    }

    /// How an item of the select list is produced.
    fn making(&self, written: &ast::Expr, bound: &Expr) -> Making {
        match (&written.kind, bound) {
            (ast::ExprKind::Function(call), _) if self.is_call_of(OperatorCall::IfNull, call) => {
                Making::IfNull
            }
            (_, Expr::Column { register, .. }) => {
                let groups = self.blocks.last().map_or(&[][..], |block| &block.window_groups);
                let mut calls = groups.iter().flat_map(|group| &group.calls);
                match calls.any(|call| call.output == *register) {
                    true => Making::Kept,
                    false => Making::Typed,
                }
            }
            (_, Expr::Subquery { .. }) => Making::Subquery,
            (ast::ExprKind::Literal(ast::Literal::Integer(_)), _) => Making::Integer,
            (ast::ExprKind::Param(_), _) if written.span.of(&self.source) == b"?" => {
                Making::Placeholder
            }
            _ => Making::Computed,
        }
    }

    /// The name of an expression without an alias.
    fn caption(&self, expr: &ast::Expr, span: ast::Span) -> Arc<str> {
        if let ast::ExprKind::Function(call) = &expr.kind
            && let Some(ast::ExprKind::Literal(ast::Literal::String(name))) =
                call.args.first().map(|arg| &arg.kind)
            && self.is_call_of(OperatorCall::NameConst, call)
        {
            return Arc::from(String::from_utf8_lossy(&name.value));
        }
        let mode = self.input.bind.sql_mode;
        let options = syntax::ParseOptions {
            ansi_quotes: mode.contains(types::SqlMode::ANSI_QUOTES),
            no_backslash_escapes: mode.contains(types::SqlMode::NO_BACKSLASH_ESCAPES),
            ..syntax::ParseOptions::default()
        };
        match &expr.kind {
            ast::ExprKind::Column(name) => Arc::from(&*name.name.text),
            ast::ExprKind::Literal(ast::Literal::Null) => Arc::from("NULL"),
            ast::ExprKind::Literal(ast::Literal::String(_)) => {
                let caption = syntax::caption(expr, span, &self.source, &options);
                // A name ends at a zero byte.
                Arc::from(caption.split('\0').next().unwrap_or_default())
            }
            ast::ExprKind::Unary { op: ast::UnaryOp::Plus, expr: inner }
                if matches!(inner.kind, ast::ExprKind::Literal(_) | ast::ExprKind::Column(_)) =>
            {
                self.caption(inner, inner.span)
            }
            _ => {
                let caption = syntax::caption(expr, span, &self.source, &options);
                // Names have no characters beyond the basic plane.
                let plain = |c: char| if c > '\u{ffff}' { '?' } else { c };
                Arc::from(caption.chars().map(plain).collect::<String>())
            }
        }
    }

    fn expand_wildcard(
        &mut self,
        name: Option<&ast::ObjectName>,
        span: ast::Span,
        outputs: &mut Vec<OutputColumn>,
    ) -> Result<()> {
        let level = self.blocks.len() - 1;
        let block = &self.blocks[level];
        if block.tables.is_empty() {
            if let Some(name) = name {
                bail!(BAD_TABLE_ERROR, name.name.text);
            }
            bail!(NO_TABLES_USED);
        }
        let columns: Vec<VisibleColumn> = match name {
            None => visible_or_all(block),
            Some(name) => {
                let found = block.tables.iter().position(|table| {
                    *table.alias == *name.name.text
                        && name
                            .schema
                            .as_ref()
                            .is_none_or(|schema| table.schema.as_deref() == Some(&*schema.text))
                });
                match found {
                    Some(index) => {
                        crate::scope::visible_columns(&block.tables[index], index).collect()
                    }
                    None => bail!(BAD_TABLE_ERROR, name.name.text),
                }
            }
        };
        outputs.reserve(columns.len());
        self.spell_wildcard(span, &columns);
        for column in columns {
            let expr = match column.merged {
                Some(expr) => expr,
                None => self.scope_column(level, column.table, column.column)?,
            };
            let source = match column.parts.is_empty() {
                true => self.column_source(level, column.table, column.column),
                false => None,
            };
            let listed = ListedItem {
                name: column.name.clone(),
                aliased: false,
                table: Some(self.blocks[level].tables[column.table].alias.clone()),
                expr: expr.clone(),
            };
            self.blocks[level].items.push(listed);
            outputs.push(OutputColumn { name: column.name, expr, source, making: Making::Typed });
        }
        Ok(())
    }

    // --- GROUP BY, ORDER BY

    /// An integer literal in GROUP BY or ORDER BY counts the select list.
    pub(crate) fn ordinal(&self, expr: &ast::Expr) -> Result<Option<Expr>> {
        let ast::ExprKind::Literal(ast::Literal::Integer(number)) = &expr.kind else {
            return Ok(None);
        };
        let block = self.blocks.last().expect("inside a block");
        let item = usize::try_from(*number)
            .ok()
            .and_then(|number| block.items.get(number.checked_sub(1)?));
        match item {
            Some(item) => Ok(Some(item.expr.clone())),
            None => bail!(BAD_FIELD_ERROR, number, block.clause.name()),
        }
    }

    pub(crate) fn bind_order_expr(&mut self, expr: &ast::Expr) -> Result<Expr> {
        if let Some(bound) = self.ordinal(expr)? {
            return Ok(bound);
        }
        if let ast::ExprKind::Column(name) = &expr.kind
            && name.table.is_none()
            && let Some(bound) = self.resolve_listed(self.blocks.len() - 1, name)?
        {
            self.spell_listed(name, &bound);
            return Ok(bound);
        }
        self.bind_expr(expr)
    }

    // --- assembly

    fn assemble(
        &mut self,
        select: &ast::Select,
        from: Logical,
        mut parts: Parts,
        limit: Option<&ast::Limit>,
    ) -> Result<BoundQuery> {
        let mut plan = from;
        if let Some(predicate) = parts.filter.take() {
            plan = Logical::Filter { input: Box::new(plan), predicate };
        }
        self.resolve_grouping()?;
        let grouped = self.block().grouped || !self.block().aggregates.is_empty();
        let results: Vec<Register> =
            self.block().aggregates.iter().map(|call| call.output).collect();
        if grouped {
            plan = self.assemble_groups(plan, &mut parts);
        }
        let filtered = parts.having.is_some();
        if let Some(predicate) = parts.having.take() {
            plan = Logical::Filter { input: Box::new(plan), predicate };
        }
        let windows: Vec<WindowGroup> = std::mem::take(&mut self.block().window_groups);
        let windowed = !windows.is_empty();
        for group in windows {
            plan = Logical::Window {
                input: Box::new(plan),
                partition_by: group.partition_by,
                order_by: group.order_by,
                calls: group.calls,
            };
        }
        if let Some(predicate) = parts.qualify.take() {
            plan = Logical::Filter { input: Box::new(plan), predicate };
        }
        let volatile = parts.outputs.iter().any(|output| output.expr.is_volatile());
        let mergeable = !grouped
            && !filtered
            && !windowed
            && !volatile
            && !select.options.distinct
            && parts.order.is_empty()
            && limit.is_none();
        if select.options.distinct {
            plan = self.assemble_distinct(plan, &mut parts, &results)?;
        } else if !parts.order.is_empty() {
            plan = self.assemble_computed(plan, &mut parts);
        }
        parts.order.retain(|key| !key.expr.is_constant() || key.expr.is_volatile());
        if !parts.order.is_empty() {
            plan = Logical::Sort { input: Box::new(plan), keys: parts.order };
        }
        let count_all = select.options.calc_found_rows;
        if let Some(limit) = limit {
            plan = self.bind_limit(plan, limit, count_all)?;
        } else if count_all {
            plan = Logical::Limit { input: Box::new(plan), limit: None, offset: None, count_all };
        }
        Ok(BoundQuery { plan, outputs: parts.outputs, mergeable, block: 0 })
    }

    fn assemble_groups(&mut self, plan: Logical, parts: &mut Parts) -> Logical {
        let block = self.block();
        let keys = block.keys.clone();
        let same_grouping = std::mem::take(&mut block.same_grouping);
        let aggregates = std::mem::take(&mut block.aggregates);
        let (sets, scalar) = (std::mem::take(&mut block.sets), !block.grouped);
        let several = sets != GroupSets::One;
        let grouping = std::mem::take(&mut block.grouping);
        let mut replace = |expr: &mut Expr| replace_keys(expr, &keys, several, &same_grouping);
        parts.outputs.iter_mut().for_each(|output| replace(&mut output.expr));
        parts.having.iter_mut().for_each(&mut replace);
        parts.qualify.iter_mut().for_each(&mut replace);
        parts.order.iter_mut().for_each(|key| replace(&mut key.expr));
        for group in &mut block.window_groups {
            group.partition_by.iter_mut().for_each(&mut replace);
            group.order_by.iter_mut().for_each(|key| replace(&mut key.expr));
            for call in &mut group.calls {
                call.args.iter_mut().for_each(&mut replace);
            }
        }
        Logical::Aggregate { input: Box::new(plan), keys, aggregates, scalar, sets, grouping }
    }

    /// DISTINCT over the outputs; expressions that ORDER BY shares with them come from the same registers. `results`: of aggregates.
    fn assemble_distinct(
        &mut self,
        plan: Logical,
        parts: &mut Parts,
        results: &[Register],
    ) -> Result<Logical> {
        if self.input.bind.sql_mode.contains(types::SqlMode::ONLY_FULL_GROUP_BY) {
            self.check_distinct_order(parts, results)?;
        }
        let mut computed: Vec<(Register, Expr)> = Vec::new();
        let mut columns: Vec<(Register, DataType)> = Vec::new();
        for output in &mut parts.outputs {
            let ty = output.expr.ty();
            let register = match output.expr.as_column() {
                Some(register) => register,
                None => {
                    let register = self.new_register();
                    self.coercibilities.show(register, [&output.expr]);
                    let expr =
                        std::mem::replace(&mut output.expr, Expr::column(register, ty.clone()));
                    computed.push((register, expr));
                    register
                }
            };
            columns.push((register, ty));
        }
        for key in &mut parts.order {
            replace_computed(&mut key.expr, &computed);
        }
        let mut plan = plan;
        if !computed.is_empty() {
            plan = Logical::Project { input: Box::new(plan), columns: computed };
        }
        let listed = |register| columns.iter().any(|(column, _)| *column == register);
        let sorts_by_others = parts.order.iter().any(|key| {
            first_read(&key.expr, &self.subqueries, |register| !listed(register)).is_some()
        });
        if !sorts_by_others {
            return Ok(Logical::Distinct { input: Box::new(plan), columns });
        }
        Ok(self.distinct_groups(plan, columns, parts))
    }

    /// DISTINCT as groups, whose first rows have the other columns that ORDER BY reads.
    fn distinct_groups(
        &mut self,
        plan: Logical,
        columns: Vec<(Register, DataType)>,
        parts: &mut Parts,
    ) -> Logical {
        let groups = self.groups_of(plan, columns);
        if let Logical::Aggregate { keys, .. } = &groups {
            let replace = |expr: &mut Expr| replace_keys(expr, keys, false, &[]);
            parts.outputs.iter_mut().for_each(|output| replace(&mut output.expr));
            parts.order.iter_mut().for_each(|key| replace(&mut key.expr));
        }
        groups
    }

    /// Groups of rows whose columns are the same.
    pub(crate) fn groups_of(
        &mut self,
        plan: Logical,
        columns: Vec<(Register, DataType)>,
    ) -> Logical {
        let keys: Vec<(Register, Expr)> = columns
            .into_iter()
            .map(|(register, ty)| (self.new_register(), Expr::column(register, ty)))
            .collect();
        for (register, column) in &keys {
            self.coercibilities.show(*register, [column]);
        }
        Logical::Aggregate {
            input: Box::new(plan),
            keys,
            aggregates: Vec::new(),
            scalar: false,
            sets: GroupSets::One,
            grouping: Vec::new(),
        }
    }

    /// What sorts distinct rows is an item of the select list as a whole, or made of columns and aliases of it. `results`: of aggregates.
    ///
    /// # Errors
    /// 3065, 3066.
    fn check_distinct_order(&self, parts: &Parts, results: &[Register]) -> Result<()> {
        let items = parts.outputs.iter();
        let columns: Vec<Register> = items.filter_map(|output| output.expr.as_column()).collect();
        // Rows of groups whose keys are all listed are distinct already.
        let keys = self.blocks.last().map_or(&[][..], |block| &block.keys);
        let are_distinct = keys.iter().all(|(key, _)| columns.contains(key));
        for (index, (key, names_items)) in
            parts.order.iter().zip(&parts.order_names_items).enumerate()
        {
            if parts.outputs.iter().any(|output| output.expr == key.expr) {
                continue;
            }
            let mut expr = key.expr.clone();
            expr.rewrite(&mut |node| {
                // ANY_VALUE lifts the rule for its argument. An alias that is named looks like its item.
                let lifted = matches!(node, Expr::Function { function, .. }
                    if function.is(FunctionRole::AnyValue));
                let named = *names_items && parts.outputs.iter().any(|output| output.expr == *node);
                if lifted || named {
                    *node = Expr::literal(Value::Null, DataType::null());
                }
                lifted || named
            });
            let is_missing = |register| !columns.contains(&register) || results.contains(&register);
            let missing = first_read(&expr, &self.subqueries, is_missing);
            if let Some(name) = missing.and_then(|register| self.block_column_name(register)) {
                bail!(FIELD_IN_ORDER_NOT_SELECT, index + 1, name, "DISTINCT");
            }
            if !are_distinct && missing.is_some_and(|register| results.contains(&register)) {
                bail!(AGGREGATE_IN_ORDER_NOT_SELECT, index + 1, "DISTINCT");
            }
        }
        Ok(())
    }

    /// Computes before the sort the shown values, the sort keys and values that must be computed once a row.
    fn assemble_computed(&mut self, plan: Logical, parts: &mut Parts) -> Logical {
        let mut computed: Vec<(Register, Expr)> = Vec::new();
        for index in 0..parts.outputs.len() {
            let expr = &parts.outputs[index].expr;
            if expr.as_column().is_some() || (expr.is_constant() && !expr.is_volatile()) {
                continue;
            }
            let sorted = parts.order.iter().any(|key| key.expr.any(&mut |node| node == expr));
            if !sorted && !expr.is_volatile() {
                continue;
            }
            let register = self.new_register();
            let ty = expr.ty();
            let output = &mut parts.outputs[index];
            let expr = std::mem::replace(&mut output.expr, Expr::column(register, ty));
            computed.push((register, expr));
        }
        if computed.is_empty() {
            return plan;
        }
        for key in &mut parts.order {
            replace_computed(&mut key.expr, &computed);
        }
        Logical::Project { input: Box::new(plan), columns: computed }
    }
}

/// Replaces key expressions by key registers.
fn replace_keys(
    expr: &mut Expr,
    keys: &[(Register, Expr)],
    several_sets: bool,
    same_grouping: &[(Register, Register)],
) {
    expr.rewrite(&mut |node| {
        if let Expr::Column { register, .. } = node
            && let Some((_, first)) = same_grouping.iter().find(|(again, _)| again == register)
        {
            *register = *first;
            return true;
        }
        let Some((register, key)) = keys.iter().find(|(_, key)| key == node) else {
            return false;
        };
        let mut ty = key.ty();
        ty.nullable |= several_sets;
        *node = Expr::column(*register, ty);
        true
    });
}

fn replace_computed(expr: &mut Expr, computed: &[(Register, Expr)]) {
    expr.rewrite(&mut |node| {
        let Some((register, value)) = computed.iter().find(|(_, value)| value == node) else {
            return false;
        };
        *node = Expr::column(*register, value.ty());
        true
    });
}

/// Whether GROUP BY only makes rows distinct.
fn is_only_grouped(select: &ast::Select, block: &Block) -> bool {
    select.group_by.is_some()
        && select.having.is_none()
        && select.qualify.is_none()
        && block.sets == GroupSets::One
        && block.aggregates.is_empty()
        && block.window_groups.is_empty()
}

/// The spelling of a column of a view, which its results keep: the view's query becomes a part of the statement's own. Other columns are spelled as the statement spells them: those
/// of tables, and of rows that are kept before they are read.
fn own_spelling(scope: &ScopeTable, column: usize, registry: &Registry) -> Option<Arc<str>> {
    let ScopeSource::Columns(columns) = &scope.source else { return None };
    let column = &columns[column];
    let source = column.source.as_ref()?;
    // The tables of `information_schema` are views for the reference.
    let is_table = scope.schema.as_ref().is_some_and(|schema| {
        **schema != *"information_schema"
            && *schema == source.schema
            && registry.information_table(schema, &source.org_table).is_some()
    });
    (!source.materialized && !is_table).then(|| column.name.clone())
}
