//! Queries of the server's own that read a table's columns: for histograms and checksums.

use std::sync::Arc;

use catalog::{Column, Table};
use errors::Result;
use exec::RowSink;
use programs::{Origin, Running, parse_error};
use statements::planned::Planned;
use types::{DataType, DateTime, TypeKind, Value, temporal::MICROS_PER_SECOND};
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

/// The expression whose values [`kept_value`] makes values of the column.
pub(crate) fn selected(column: &Column) -> String {
    let name = match &column.generated {
        Some(generated) if generated.hidden => format!("({})", generated.expression),
        _ => quote_ident(&column.name),
    };
    match column.ty.kind {
        TypeKind::Enum | TypeKind::Set | TypeKind::Bit => format!("CAST({name} AS UNSIGNED)"),
        // In UTC, independent of the session's time zone.
        TypeKind::Timestamp => format!("UNIX_TIMESTAMP({name})"),
        _ => name,
    }
}

/// A value of the query as the column's own.
pub(crate) fn kept_value(value: Value, column: &DataType) -> Value {
    if column.kind != TypeKind::Timestamp {
        return value;
    }
    let micros = match &value {
        Value::Int(seconds) => seconds.checked_mul(MICROS_PER_SECOND),
        Value::Decimal(seconds) => {
            Some((seconds.to_f64() * MICROS_PER_SECOND as f64).round() as i64)
        }
        _ => None,
    };
    micros.and_then(DateTime::from_unix_micros).map_or(value, Value::DateTime)
}
