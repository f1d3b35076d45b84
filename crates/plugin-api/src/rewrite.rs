//! The slot for statements that are views on information tables: SHOW and its kin are rewritten to a SELECT.

use errors::Result;
use types::SqlMode;

use crate::information::InformationContext;

/// The facts that a rewriter may read.
#[derive(Clone, Debug)]
pub struct RewriteContext {
    /// Current schema.
    pub database: Option<String>,
    /// SQL mode, for parsing.
    pub sql_mode: SqlMode,
    /// Account of the session, as `user@host`.
    pub current_user: String,
}

/// Turns a statement into another.
pub trait StatementRewriter: Send + Sync {
    /// The SELECT that answers `sql`, or `None` when the statement is not this rewriter's.
    ///
    /// # Errors
    /// 1046 when a schema is needed and none is selected; 1049, 1146 when the object shown does not exist; 1235.
    fn rewrite(
        &self,
        sql: &str,
        ctx: &RewriteContext,
        facts: &dyn InformationContext,
    ) -> Result<Option<String>>;
}
