//! The session's facts for the building of a definition.

use std::sync::Arc;

use ::accounts::PrivilegeChecks;
use binder::{BindInput, Binder, BoundTableExpression, OnlySequences};
use catalog::{CatalogSnapshot, PrivilegeSet};
use definitions::{Context, Engines};
use errors::{Diagnostics, Error, Result};
use syntax::Statement;
use syntax::ast::{Expr, SelectItemKind};
use types::{DataType, Value};
use variables::Settings;

use crate::server::Server;
use crate::session::Session;
use programs::{Origin, Running, parse_error};

/// The session whose statement makes a definition.
pub(crate) struct Definer<'a> {
    session: &'a mut Session,
    running: &'a Running<'a>,
}

impl<'a> Definer<'a> {
    pub(crate) fn new(session: &'a mut Session, running: &'a Running<'a>) -> Definer<'a> {
        Definer { session, running }
    }
}

/// The names of engines that this server has.
pub(crate) fn engines(server: &Server) -> Engines<'_> {
    Engines {
        default: server.default_engine.name(),
        temporary: server.temporary_engine.name(),
        registry: &server.engines,
    }
}

impl Context for Definer<'_> {
    fn settings(&self) -> &Settings {
        &self.session.settings
    }

    fn variable(&self, name: &str) -> Value {
        self.session.value(name)
    }

    fn database(&self) -> Option<Arc<str>> {
        self.session.services.database.clone()
    }

    fn engines(&self) -> Engines<'_> {
        engines(&self.session.server)
    }

    fn catalog(&self) -> Arc<CatalogSnapshot> {
        self.session.snapshot()
    }

    fn now_micros(&self) -> i64 {
        self.session.server.now_micros()
    }

    fn conditions(&mut self) -> &mut Diagnostics {
        &mut self.session.working
    }

    fn evaluate(&mut self, expr: &Expr) -> Result<(Value, DataType)> {
        self.session.evaluate(expr, self.running)
    }

    fn evaluate_kept(&mut self, expr: &Expr, text: &str) -> Result<(Value, DataType)> {
        let source = text.as_bytes();
        let running = Running { source, parameters: &[], origin: Origin::Text, kept: None };
        self.session.evaluate(expr, &running)
    }

    fn bind(
        &self,
        table: Option<(&Arc<str>, &Arc<str>)>,
        columns: &[(Arc<str>, DataType)],
        text: &str,
    ) -> Result<BoundTableExpression> {
        let sql = format!("DO {text}");
        let parsed = syntax::parse_one(&sql, &syntax::ParseOptions::default())
            .map_err(|error| parse_error(&error))?;
        let item = match parsed.0 {
            Statement::Do(items) => items.into_iter().next().map(|item| item.kind),
            _ => None,
        };
        let Some(SelectItemKind::Expr { expr, .. }) = item else {
            return Err(Error::internal("a stored expression of a table cannot be parsed"));
        };
        let view = self.session.view();
        let bind = self.session.planner().bind_context();
        let input = BindInput {
            catalog: &OnlySequences(&view),
            registry: &self.session.server.registry(),
            bind: &bind,
            variables: &self.session.services,
            parameter_types: None,
        };
        Binder::new(input).bind_table_expression(table, columns, &expr, sql.as_bytes())
    }

    fn has_dynamic(&self, privilege: &str) -> bool {
        self.session.privileges.has_dynamic(privilege)
    }

    fn require_references(&self, schema: &str, table: &str) -> Result<()> {
        self.session.require_on_table(schema, table, PrivilegeSet::REFERENCES)
    }
}
