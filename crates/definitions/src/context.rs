//! The facts about the session that the building of a definition needs.

use std::sync::Arc;

use binder::BoundTableExpression;
use catalog::CatalogSnapshot;
use errors::{Diagnostics, Result};
use syntax::ast::Expr;
use types::{DataType, Value};
use variables::Settings;

use crate::engines::Engines;

/// The session's side of a definition.
pub trait Context {
    /// Decoded session variables.
    fn settings(&self) -> &Settings;

    /// The value of a session variable; NULL when it does not exist.
    fn variable(&self, name: &str) -> Value;

    /// The current schema.
    fn database(&self) -> Option<Arc<str>>;

    /// The names of engines.
    fn engines(&self) -> Engines<'_>;

    /// The present version of the catalog.
    fn catalog(&self) -> Arc<CatalogSnapshot>;

    /// When the statement began to build the definition, microseconds since 1970 UTC.
    fn now_micros(&self) -> i64;

    /// Conditions of the statement: warnings and notes are added to them.
    fn conditions(&mut self) -> &mut Diagnostics;

    /// The value and type of a constant expression of the statement.
    ///
    /// # Errors
    /// Errors of its computation.
    fn evaluate(&mut self, expr: &Expr) -> Result<(Value, DataType)>;

    /// As `evaluate`, for an expression that was parsed from `text`, which the dictionary keeps.
    ///
    /// # Errors
    /// Errors of its computation.
    fn evaluate_kept(&mut self, expr: &Expr, text: &str) -> Result<(Value, DataType)>;

    /// Types an expression of a table definition; column `i` is register `i`. Its columns may be qualified with the schema and the name
    /// of `table`.
    ///
    /// # Errors
    /// 1054 and all other errors of an expression.
    fn bind(
        &self,
        table: Option<(&Arc<str>, &Arc<str>)>,
        columns: &[(Arc<str>, DataType)],
        text: &str,
    ) -> Result<BoundTableExpression>;

    /// Whether the account has a dynamic privilege.
    fn has_dynamic(&self, privilege: &str) -> bool;

    /// The privilege REFERENCES on a table that a foreign key refers to.
    ///
    /// # Errors
    /// 1142.
    fn require_references(&self, schema: &str, table: &str) -> Result<()>;
}
