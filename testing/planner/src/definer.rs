//! The services that CREATE TABLE needs to make a fixture's table.

use std::sync::Arc;

use binder::{BindInput, Binder, BoundTableExpression};
use catalog::CatalogSnapshot;
use definitions::{Context, Engines};
use errors::{Diagnostics, Error, Result};
use plan::UnaryOp;
use syntax::Statement;
use syntax::ast::{Expr, SelectItemKind};
use types::{DataType, Value};
use variables::Settings;

use crate::fixture::{ENGINE, Fixture, NoVariables, Reader};

pub(crate) struct Definer<'a> {
    pub(crate) fixture: &'a mut Fixture,
    pub(crate) source: &'a str,
}

impl Definer<'_> {
    fn bound(
        &self,
        table: Option<(&Arc<str>, &Arc<str>)>,
        columns: &[(Arc<str>, DataType)],
        expr: &Expr,
        source: &str,
    ) -> Result<BoundTableExpression> {
        let bind = self.fixture.bind_context();
        let input = BindInput {
            catalog: &Reader(&self.fixture.snapshot),
            registry: &self.fixture.registry,
            bind: &bind,
            variables: &NoVariables,
            parameter_types: None,
        };
        Binder::new(input).bind_table_expression(table, columns, expr, source.as_bytes())
    }

    /// Nothing runs here: constants are literals, with a sign or without.
    fn constant(&self, expr: &Expr, source: &str) -> Result<(Value, DataType)> {
        let bound = self.bound(None, &[], expr, source)?.expr;
        match bound {
            plan::Expr::Literal { value, ty } => Ok((value, ty)),
            plan::Expr::Unary { op: UnaryOp::Negate, operand, ty } => match *operand {
                plan::Expr::Literal { value: Value::Int(number), .. } => {
                    Ok((Value::Int(-number), ty))
                }
                _ => Err(Error::not_supported("a constant that is not a number")),
            },
            _ => Err(Error::not_supported("a constant that must be computed")),
        }
    }
}

impl Context for Definer<'_> {
    fn settings(&self) -> &Settings {
        &self.fixture.settings
    }

    fn variable(&self, name: &str) -> Value {
        let globals = &self.fixture.globals;
        globals.definitions.find(name).map_or(Value::Null, |id| globals.get(id))
    }

    fn database(&self) -> Option<Arc<str>> {
        None
    }

    fn engines(&self) -> Engines<'_> {
        Engines { default: ENGINE, temporary: ENGINE, registry: &self.fixture.registry }
    }

    fn has_dynamic(&self, _: &str) -> bool {
        true
    }

    fn catalog(&self) -> Arc<CatalogSnapshot> {
        self.fixture.snapshot.clone()
    }

    fn now_micros(&self) -> i64 {
        0
    }

    fn conditions(&mut self) -> &mut Diagnostics {
        &mut self.fixture.conditions
    }

    fn evaluate(&mut self, expr: &Expr) -> Result<(Value, DataType)> {
        self.constant(expr, self.source)
    }

    fn evaluate_kept(&mut self, expr: &Expr, text: &str) -> Result<(Value, DataType)> {
        self.constant(expr, text)
    }

    fn bind(
        &self,
        table: Option<(&Arc<str>, &Arc<str>)>,
        columns: &[(Arc<str>, DataType)],
        text: &str,
    ) -> Result<BoundTableExpression> {
        let sql = format!("DO {text}");
        let parsed = syntax::parse_one(&sql, &syntax::ParseOptions::default());
        let item = match parsed {
            Ok((Statement::Do(items), _)) => items.into_iter().next().map(|item| item.kind),
            _ => None,
        };
        let Some(SelectItemKind::Expr { expr, .. }) = item else {
            return Err(Error::internal("an expression of a table was not read back"));
        };
        self.bound(table, columns, &expr, &sql)
    }

    fn require_references(&self, _: &str, _: &str) -> Result<()> {
        Ok(())
    }
}
