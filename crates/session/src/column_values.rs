//! Queries of the server's own that read a table's columns: for histograms and checksums.

use std::sync::Arc;

use catalog::Table;
use errors::Result;
use exec::RowSink;
use programs::{Origin, Running, parse_error};
use statements::planned::Planned;
use unparse::quote_ident;

use crate::session::Session;

/// Plans `SELECT values FROM table rest`.
pub(crate) fn plan_columns(
    session: &mut Session,
    table: &Table,
    values: &str,
    rest: &str,
) -> Result<Arc<Planned>> {
    let from = format!("{}.{}", quote_ident(&table.schema), quote_ident(&table.name));
    let sql = format!("SELECT {values} FROM {from} {rest}");
    let statement = syntax::parse_one(&sql, &syntax::ParseOptions::default())
        .map_err(|error| parse_error(&error))?
        .0;
    let running =
        Running { source: sql.as_bytes(), parameters: &[], origin: Origin::Text, kept: None };
    session.plan_and_lock(&statement, &running)
}

/// Runs what [`plan_columns`] planned, whatever limit the session has.
pub(crate) fn read_columns(
    session: &mut Session,
    planned: &Planned,
    sink: &mut dyn RowSink,
) -> Result<()> {
    let limit = session.settings.sql_select_limit.take();
    let ran = session.run_program(planned, &[], sink);
    session.settings.sql_select_limit = limit;
    ran.map(drop)
}
