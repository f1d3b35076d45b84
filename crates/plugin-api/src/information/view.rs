//! The slots for views and procedures that come with the server.

use std::sync::Arc;

/// A view of a system schema: a name for a query over information tables and other such views, read with the rights of the account that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemView {
    /// A schema whose tables the server computes.
    pub schema: &'static str,
    /// Name; case matters.
    pub name: Arc<str>,
    /// The SELECT, with all names of tables qualified.
    pub query: Arc<str>,
}

/// A procedure of a system schema, which runs with the rights of the account that calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemProcedure {
    /// A schema whose tables the server computes.
    pub schema: &'static str,
    /// Name.
    pub name: &'static str,
    /// Its CREATE PROCEDURE, with all names of tables qualified.
    pub text: &'static str,
}
