//! CREATE, ALTER and DROP VIEW.

use std::sync::Arc;

use catalog::{Edit, PrivilegeSet, Relation, View};
use errors::{ErrorCode, Result, bail, err};
use plugin_api::{ColumnMeta, OkInfo, ResultSink};
use syntax::Statement;
use syntax::ast::{
    self, CheckOption, CreateView, DropObjects, SqlSecurity, TableFactor, ViewAlgorithm,
};

use super::check_table_name;
use crate::session::Session;
use crate::statement::Running;

impl Session {
    /// CREATE VIEW and ALTER VIEW.
    pub(crate) fn create_view(
        &mut self,
        create: &CreateView,
        alter: bool,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let (schema, name) = self.qualify(&create.name)?;
        check_table_name(&name)?;
        self.require_on_table(&schema, &name, PrivilegeSet::CREATE_VIEW)?;
        self.check_writable()?;
        let present = self.view().relation(&schema, &name);
        let exists = match present {
            Some(Relation::View(_)) => true,
            Some(Relation::Table(_)) => {
                if alter || create.flags.or_replace {
                    bail!(WRONG_OBJECT, schema, name, "VIEW");
                }
                bail!(TABLE_EXISTS_ERROR, name);
            }
            None => false,
        };
        if exists && create.flags.if_not_exists {
            self.working.note(ErrorCode::TABLE_EXISTS_ERROR, &[&name]);
            return self.send_ok(sink, OkInfo::default());
        }
        if exists && !alter && !create.flags.or_replace {
            bail!(TABLE_EXISTS_ERROR, name);
        }
        if alter && !exists {
            bail!(NO_SUCH_TABLE, schema, name);
        }
        let view = self.build_view(create, &schema, &name, running)?;
        let edit = if exists {
            Edit::ReplaceView { schema, name, new: Arc::new(view) }
        } else {
            Edit::CreateView(Arc::new(view))
        };
        let commit = self.commit_definitions(&[edit])?;
        self.services.row_count = 0;
        self.send_ok(sink, OkInfo { commit: Some(commit), ..OkInfo::default() })
    }

    fn build_view(
        &mut self,
        create: &CreateView,
        schema: &Arc<str>,
        name: &Arc<str>,
        running: &Running<'_>,
    ) -> Result<View> {
        let statement = Statement::Query(Box::new(create.query.clone()));
        let planned = self.plan_statement(&statement, running.source, None)?;
        if planned.tables.iter().any(|table| table.temporary) {
            let table = planned.tables.iter().find(|table| table.temporary);
            bail!(VIEW_SELECT_TMPTABLE, table.map_or("", |table| &table.name));
        }
        if !planned.parameters.is_empty() {
            bail!(VIEW_SELECT_VARIABLE);
        }
        self.lock_plan(&planned)?;
        let count = planned.program.columns().len();
        let columns: Vec<Arc<str>> = if create.columns.is_empty() {
            planned.program.columns().iter().map(|meta| meta.name.clone()).collect()
        } else {
            create.columns.iter().map(|name| Arc::from(&*name.text)).collect()
        };
        if columns.len() != count {
            bail!(VIEW_WRONG_LIST);
        }
        for (position, column) in columns.iter().enumerate() {
            if columns[..position].iter().any(|other| catalog::same_name(other, column)) {
                bail!(DUP_FIELDNAME, column);
            }
        }
        let definer = match &create.definer {
            Some(user) if !user.current => {
                let host = user.host.as_deref().unwrap_or("%");
                format!("{}@{host}", user.user)
            }
            _ => self.account.to_string(),
        };
        if definer != self.account.to_string() {
            self.require_dynamic("SET_ANY_DEFINER")?;
        }
        let span = match create.query_span.of(running.source) {
            [] => create.query.span,
            _ => create.query_span,
        };
        let definition =
            self.understood_query(&create.query, span, running.source, planned.program.columns())?;
        Ok(View {
            schema: schema.clone(),
            name: name.clone(),
            definition: definition.into(),
            columns: if create.columns.is_empty() { Vec::new() } else { columns },
            definer: definer.into(),
            invoker: create.security == Some(SqlSecurity::Invoker),
            algorithm: Arc::from(match create.algorithm {
                ViewAlgorithm::Undefined => "UNDEFINED",
                ViewAlgorithm::Merge => "MERGE",
                ViewAlgorithm::Temptable => "TEMPTABLE",
            }),
            check_option: Arc::from(match create.check_option {
                None => "NONE",
                Some(CheckOption::Cascaded) => "CASCADED",
                Some(CheckOption::Local) => "LOCAL",
            }),
            charset_client: self.session_text("character_set_client").into(),
            collation_connection: self.settings.collation_connection.name.into(),
        })
    }

    /// A query in the reference's spelling, with schemas before its tables and its `*` written out. `span`: where it stands in
    /// the statement.
    pub(crate) fn understood_query(
        &self,
        query: &ast::Query,
        span: ast::Span,
        source: &[u8],
        columns: &[ColumnMeta],
    ) -> Result<String> {
        let current = self.services.database.as_deref();
        let text = qualify_tables(query, span.of(source).to_vec(), span.start, current);
        self.canonical_query(&text, columns)
    }

    /// The stored text of a view's query: the reference's spelling, its `*` written out.
    fn canonical_query(&self, text: &str, columns: &[ColumnMeta]) -> Result<String> {
        let parsed = syntax::parse_one(text, &self.parse_options())
            .map_err(|error| crate::statement::parse_error(&error))?;
        let Statement::Query(mut query) = parsed.0 else {
            return Err(errors::Error::internal("the query of a view is none"));
        };
        if let ast::SetExpr::Select(select) = &mut query.body {
            write_out_wildcard(select, columns);
            name_items(select, columns);
        }
        let mut names = ItemNames { source: text.as_bytes(), options: self.parse_options() };
        names.query(&mut query);
        let options = syntax::PrintOptions { canonical: true, ..syntax::PrintOptions::default() };
        Ok(syntax::print_query(&query, &options))
    }

    /// DROP VIEW.
    pub(crate) fn drop_views(
        &mut self,
        drop: &DropObjects,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        self.check_writable()?;
        let mut edits = Vec::new();
        let mut missing = Vec::new();
        for name in &drop.names {
            let (schema, name) = self.qualify(name)?;
            self.require_on_table(&schema, &name, PrivilegeSet::DROP)?;
            let relation =
                self.server.catalog.with(|snapshot| snapshot.relation(&schema, &name).cloned());
            match relation {
                Some(Relation::View(_)) => edits.push(Edit::DropView { schema, name }),
                Some(Relation::Table(_)) => return Err(err!(WRONG_OBJECT, schema, name, "VIEW")),
                None => missing.push(format!("{schema}.{name}")),
            }
        }
        if !missing.is_empty() {
            if !drop.if_exists {
                bail!(BAD_TABLE_ERROR, missing.join(","));
            }
            self.working.note(ErrorCode::BAD_TABLE_ERROR, &[&missing.join(",")]);
        }
        let commit = if edits.is_empty() { None } else { Some(self.commit_definitions(&edits)?) };
        self.services.row_count = 0;
        self.send_ok(sink, OkInfo { commit, ..OkInfo::default() })
    }
}

/// Puts the columns in the place of a select list's only `*`, so that columns added later do not show.
fn write_out_wildcard(select: &mut ast::Select, columns: &[ColumnMeta]) {
    let is_wildcard = |item: &ast::SelectItem| match item.kind {
        ast::SelectItemKind::Wildcard | ast::SelectItemKind::QualifiedWildcard(_) => true,
        ast::SelectItemKind::Expr { .. } => false,
    };
    let wildcards = select.items.iter().filter(|item| is_wildcard(item)).count();
    let Some(at) = select.items.iter().position(is_wildcard) else { return };
    let Some(count) = (columns.len() + 1).checked_sub(select.items.len()) else { return };
    let Some(meant) = columns.get(at..at + count) else { return };
    if wildcards > 1 || meant.iter().any(|meta| meta.table.is_empty() || meta.org_name.is_empty()) {
        return;
    }
    let items = meant.iter().map(|meta| ast::SelectItem {
        kind: ast::SelectItemKind::Expr {
            expr: ast::Expr {
                kind: ast::ExprKind::Column(Box::new(ast::ColumnName {
                    schema: None,
                    table: Some(ast::Ident::new(&meta.table)),
                    name: ast::Ident::new(&meta.name),
                })),
                span: ast::Span::default(),
            },
            alias: Some(ast::Ident::new(&meta.name)),
        },
        span: ast::Span::default(),
    });
    select.items.splice(at..=at, items.collect::<Vec<_>>());
}

/// Gives the items of a select list the names of the columns that they are.
fn name_items(select: &mut ast::Select, columns: &[ColumnMeta]) {
    if select.items.len() != columns.len() {
        return;
    }
    for (item, column) in select.items.iter_mut().zip(columns) {
        if let ast::SelectItemKind::Expr { alias: alias @ None, .. } = &mut item.kind {
            *alias = Some(ast::Ident::new(&column.name));
        }
    }
}

/// Gives the items of all select lists that name columns of something the names that they have by their text: once the query is
/// spelled anew, another text would stand there.
struct ItemNames<'a> {
    source: &'a [u8],
    options: syntax::ParseOptions<'a>,
}

impl ItemNames<'_> {
    fn query(&mut self, query: &mut ast::Query) {
        for cte in query.with.iter_mut().flat_map(|with| &mut with.ctes) {
            self.query(&mut cte.query);
        }
        self.body(&mut query.body);
    }

    fn body(&mut self, body: &mut ast::SetExpr) {
        match body {
            ast::SetExpr::Select(select) => self.select(select),
            ast::SetExpr::SetOp(operation) => {
                self.body(&mut operation.first);
                operation.rest.iter_mut().for_each(|term| self.body(&mut term.right));
            }
            ast::SetExpr::Query(query) => self.query(query),
            ast::SetExpr::Values(_) | ast::SetExpr::Table(_) => {}
        }
    }

    fn select(&mut self, select: &mut ast::Select) {
        for item in &mut select.items {
            let name = syntax::caption(item, self.source, &self.options);
            if let ast::SelectItemKind::Expr { alias: alias @ None, .. } = &mut item.kind {
                *alias = Some(ast::Ident::new(&name));
            }
        }
        select.from.iter_mut().for_each(|factor| self.factor(factor));
    }

    fn factor(&mut self, factor: &mut TableFactor) {
        match factor {
            TableFactor::Derived(derived) => self.query(&mut derived.query),
            TableFactor::Join(join) => {
                self.factor(&mut join.left);
                self.factor(&mut join.right);
            }
            TableFactor::List(list) => list.iter_mut().for_each(|factor| self.factor(factor)),
            TableFactor::Table(_) | TableFactor::JsonTable(_) => {}
        }
    }
}

/// The text of a view's query with a schema before every table that has none. `start`: where the text begins in the statement.
fn qualify_tables(query: &ast::Query, text: Vec<u8>, start: u32, schema: Option<&str>) -> String {
    let mut text = text;
    if let Some(schema) = schema {
        let mut places = Vec::new();
        collect_query(query, &mut Vec::new(), &mut places);
        places.sort_unstable();
        places.dedup();
        let prefix = format!("`{}`.", schema.replace('`', "``"));
        for place in places.into_iter().rev() {
            let at = place.saturating_sub(start) as usize;
            if at <= text.len() {
                text.splice(at..at, prefix.bytes());
            }
        }
    }
    String::from_utf8_lossy(&text).trim().trim_end_matches(';').to_owned()
}

/// Starts of table names without schema; names of common table expressions in scope are none.
fn collect_query(query: &ast::Query, ctes: &mut Vec<String>, places: &mut Vec<u32>) {
    let depth = ctes.len();
    if let Some(with) = &query.with {
        for cte in &with.ctes {
            if with.recursive {
                ctes.push(cte.name.text.to_lowercase());
            }
            collect_query(&cte.query, ctes, places);
            if !with.recursive {
                ctes.push(cte.name.text.to_lowercase());
            }
        }
    }
    collect_set(&query.body, ctes, places);
    ctes.truncate(depth);
}

fn collect_set(body: &ast::SetExpr, ctes: &mut Vec<String>, places: &mut Vec<u32>) {
    match body {
        ast::SetExpr::Select(select) => {
            for factor in &select.from {
                collect_factor(factor, ctes, places);
            }
            let exprs = select
                .items
                .iter()
                .filter_map(|item| match &item.kind {
                    ast::SelectItemKind::Expr { expr, .. } => Some(expr),
                    ast::SelectItemKind::Wildcard | ast::SelectItemKind::QualifiedWildcard(_) => {
                        None
                    }
                })
                .chain(&select.filter)
                .chain(&select.having);
            for expr in exprs {
                collect_expr(expr, ctes, places);
            }
        }
        ast::SetExpr::Values(_) => {}
        ast::SetExpr::Table(name) => collect_name(name, ctes, places),
        ast::SetExpr::SetOp(operation) => {
            collect_set(&operation.first, ctes, places);
            for term in &operation.rest {
                collect_set(&term.right, ctes, places);
            }
        }
        ast::SetExpr::Query(query) => collect_query(query, ctes, places),
    }
}

fn collect_factor(factor: &TableFactor, ctes: &mut Vec<String>, places: &mut Vec<u32>) {
    match factor {
        TableFactor::Table(table) => collect_name(&table.name, ctes, places),
        TableFactor::Derived(derived) => collect_query(&derived.query, ctes, places),
        TableFactor::JsonTable(_) => {}
        TableFactor::Join(join) => {
            collect_factor(&join.left, ctes, places);
            collect_factor(&join.right, ctes, places);
            if let ast::JoinCondition::On(expr) = &join.condition {
                collect_expr(expr, ctes, places);
            }
        }
        TableFactor::List(factors) => {
            for factor in factors {
                collect_factor(factor, ctes, places);
            }
        }
    }
}

fn collect_name(name: &ast::ObjectName, ctes: &[String], places: &mut Vec<u32>) {
    let is_cte = ctes.contains(&name.name.text.to_lowercase());
    if name.schema.is_none() && !is_cte {
        places.push(name.name.span.start);
    }
}

/// Subqueries of an expression, through the operators that usually hold them.
fn collect_expr(expr: &ast::Expr, ctes: &mut Vec<String>, places: &mut Vec<u32>) {
    use ast::ExprKind;
    match &expr.kind {
        ExprKind::Subquery(query) | ExprKind::Exists(query) => collect_query(query, ctes, places),
        ExprKind::InSubquery { expr, query, .. } => {
            collect_expr(expr, ctes, places);
            collect_query(query, ctes, places);
        }
        ExprKind::Quantified { left, query, .. } => {
            collect_expr(left, ctes, places);
            collect_query(query, ctes, places);
        }
        ExprKind::And(items) | ExprKind::Or(items) | ExprKind::Row(items) => {
            for item in items {
                collect_expr(item, ctes, places);
            }
        }
        ExprKind::Binary { left, right, .. } | ExprKind::Xor(left, right) => {
            collect_expr(left, ctes, places);
            collect_expr(right, ctes, places);
        }
        ExprKind::Not(inner) => collect_expr(inner, ctes, places),
        ExprKind::Function(call) => {
            for arg in &call.args {
                collect_expr(arg, ctes, places);
            }
        }
        ExprKind::Case(case) => {
            let branches = case.whens.iter().flat_map(|(when, then)| [when, then]);
            for part in branches.chain(&case.operand).chain(&case.otherwise) {
                collect_expr(part, ctes, places);
            }
        }
        _ => {}
    }
}
