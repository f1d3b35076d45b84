//! What `explicit_defaults_for_timestamp = OFF` implies of TIMESTAMP columns: they are NOT NULL, the first one of a table begins and changes with the present
//! time, and the others begin with zero.

use catalog::{Column, ColumnDefault};
use errors::{Result, bail};
use types::{DateTime, SqlMode, TypeKind, Value};

use crate::context::Context;
use crate::draft::Draft;

/// Whether properties of TIMESTAMP columns are implied.
pub(crate) fn are_implied(ctx: &dyn Context) -> bool {
    variables::as_u64(&ctx.variable("explicit_defaults_for_timestamp")) == 0
}

fn lacks_default(column: &Column) -> bool {
    column.ty.kind == TypeKind::Timestamp
        && !column.ty.nullable
        && !column.is_computed()
        && column.default == ColumnDefault::None
}

/// Gives TIMESTAMP columns without a default the implied one.
///
/// # Errors
/// 1067 where the SQL mode refuses zero.
pub(crate) fn imply_defaults(ctx: &dyn Context, draft: &mut Draft) -> Result<()> {
    if !are_implied(ctx) {
        return Ok(());
    }
    let is_timestamp =
        |column: &Column| column.ty.kind == TypeKind::Timestamp && !column.history.is_time();
    let mut columns = draft.columns.iter_mut().map(|column| &mut column.column);
    let first = columns.find(|column| is_timestamp(column));
    if let Some(first) = first
        && lacks_default(first)
        && first.on_update_now.is_none()
    {
        first.default = ColumnDefault::Now(first.ty.decimals);
        first.on_update_now = Some(first.ty.decimals);
    }
    let mode = ctx.settings().sql_mode;
    let refuses_zero = mode.is_strict() && mode.contains(SqlMode::NO_ZERO_DATE);
    let columns = draft.columns.iter_mut().map(|column| &mut column.column);
    for column in columns.filter(|column| lacks_default(column)) {
        if refuses_zero {
            bail!(INVALID_DEFAULT, column.name);
        }
        column.default = ColumnDefault::Constant(Value::DateTime(DateTime::ZERO));
    }
    Ok(())
}
