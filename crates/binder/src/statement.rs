//! The statements that have a plan.

use errors::{Error, Result, bail};
use plan::{ExplainFormat, Expr, LogicalQuery, LogicalStatement};
use syntax::Statement;
use syntax::ast;

use crate::binder::Binder;
use crate::scope::Clause;

impl Binder<'_> {
    pub(crate) fn bind_statement(&mut self, statement: &Statement) -> Result<LogicalStatement> {
        match statement {
            Statement::Query(query) => {
                self.is_query = true;
                self.bind_top_query(query).map(LogicalStatement::Query)
            }
            Statement::Insert(insert) => {
                self.bind_insert(insert).map(|insert| LogicalStatement::Insert(Box::new(insert)))
            }
            Statement::Update(update) => {
                self.bind_update(update).map(|write| LogicalStatement::Update(Box::new(write)))
            }
            Statement::Delete(delete) => {
                self.bind_delete(delete).map(|write| LogicalStatement::Delete(Box::new(write)))
            }
            Statement::Do(items) => self.bind_do(items),
            Statement::Explain(explain) => self.bind_explain(explain),
            _ => Err(Error::internal("the statement has no plan")),
        }
    }

    /// Binds an expression that belongs to no table: values of SET, KILL, LIMIT of SHOW.
    ///
    /// # Errors
    /// As `bind`.
    pub fn bind_scalar(mut self, expr: &ast::Expr, source: &[u8]) -> Result<crate::Bound> {
        self.source = std::borrow::Cow::Owned(source.to_vec());
        self.push_block();
        let expr = self.bind_expr(expr)?;
        self.blocks.pop();
        Ok(self.finish(LogicalStatement::Do(vec![expr])))
    }

    fn bind_top_query(&mut self, query: &ast::Query) -> Result<LogicalQuery> {
        let bound = self.bind_query(query)?;
        Ok(LogicalQuery { root: bound.plan, outputs: bound.outputs })
    }

    fn bind_do(&mut self, items: &[ast::SelectItem]) -> Result<LogicalStatement> {
        let mut exprs: Vec<Expr> = Vec::with_capacity(items.len());
        for item in items {
            match &item.kind {
                ast::SelectItemKind::Expr { expr, .. } => exprs.push(self.bind_done(expr, item)?),
                ast::SelectItemKind::Wildcard | ast::SelectItemKind::QualifiedWildcard(_) => {
                    bail!(NO_TABLES_USED)
                }
            }
        }
        Ok(LogicalStatement::Do(exprs))
    }

    /// An expression of DO: with aggregates or windows it is a query of one row.
    fn bind_done(&mut self, expr: &ast::Expr, item: &ast::SelectItem) -> Result<Expr> {
        self.push_block();
        self.block().clause = Clause::FieldList;
        self.block().allow_windows = true;
        let bound = self.bind_expr(expr);
        let Some(block) = self.blocks.pop() else { return bound };
        if bound.is_err() || block.aggregates.is_empty() && block.window_groups.is_empty() {
            return bound;
        }
        let select = ast::Select { items: vec![item.clone()], ..ast::Select::default() };
        self.bind_scalar_subquery(&ast::Query {
            with: None,
            body: ast::SetExpr::Select(Box::new(select)),
            order_by: Vec::new(),
            limit: None,
            locking: Vec::new(),
            into: None,
            span: item.span,
        })
    }

    fn bind_explain(&mut self, explain: &ast::Explain) -> Result<LogicalStatement> {
        let format = match explain.format.as_ref().map(|name| name.text.to_ascii_uppercase()) {
            None if explain.analyze => ExplainFormat::Tree,
            None => ExplainFormat::Traditional,
            Some(name) => match name.as_str() {
                "TRADITIONAL" => ExplainFormat::Traditional,
                "JSON" => ExplainFormat::Json,
                "TREE" => ExplainFormat::Tree,
                _ => bail!(UNKNOWN_EXPLAIN_FORMAT, name),
            },
        };
        match &explain.target {
            ast::ExplainTarget::Statement(statement) => Ok(LogicalStatement::Explain {
                statement: Box::new(self.bind_statement(statement)?),
                format,
                analyze: explain.analyze,
            }),
            ast::ExplainTarget::Connection(_) => {
                Err(Error::not_supported("EXPLAIN FOR CONNECTION"))
            }
        }
    }
}
