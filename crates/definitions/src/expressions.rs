//! Expressions of a table definition: their stored text, their types, and whether they are allowed in their place.

use std::sync::Arc;

use binder::{BoundTableExpression, Disallowed};
use catalog::ColumnDefault;
use errors::{Error, ErrorCode, Result, bail, err};
use syntax::ast;
use types::DataType;

use crate::context::Context;
use crate::draft::{Draft, DraftColumn, is_hidden};
use crate::quoting::quote;
use crate::sequences::may_come;

/// Types an expression of a table definition.
pub(crate) fn bind_over_columns(
    ctx: &dyn Context,
    columns: &[DraftColumn],
    text: &str,
) -> Result<BoundTableExpression> {
    bind_definition(ctx, None, columns, text)
}

/// Types an expression whose columns may be qualified with the name of the table, as it is written.
pub(crate) fn bind_qualified(
    ctx: &dyn Context,
    draft: &Draft,
    expr: &ast::Expr,
) -> Result<BoundTableExpression> {
    let options = unparse::PrintOptions { unqualified: false, ..stored_text() };
    let text = unparse::print_expr(expr, &options);
    bind_definition(ctx, Some((&draft.schema, &draft.name)), &draft.columns, &text)
}

fn bind_definition(
    ctx: &dyn Context,
    table: Option<(&Arc<str>, &Arc<str>)>,
    columns: &[DraftColumn],
    text: &str,
) -> Result<BoundTableExpression> {
    let typed = |draft: &DraftColumn| (draft.column.name.clone(), draft.column.ty.clone());
    let columns: Vec<(Arc<str>, DataType)> = columns.iter().map(typed).collect();
    ctx.bind(table, &columns, text)
}

/// Binds every expression of a draft: generated columns, defaults and checks.
pub fn check_expressions(ctx: &dyn Context, draft: &Draft) -> Result<()> {
    for (position, column) in draft.columns.iter().enumerate() {
        let column = &column.column;
        if let Some(generated) = &column.generated {
            let bound = bind_over_columns(ctx, &draft.columns, &generated.expression);
            let is_of_index = is_hidden(column);
            let place = if is_of_index { "functional index" } else { "generated column function" };
            let bound = bound.map_err(|error| {
                stored_function(&error, &column.name, &OF_GENERATED)
                    .unwrap_or_else(|| in_place(&error, place))
            })?;
            if let Some(disallowed) = &bound.disallowed {
                return Err(not_allowed(disallowed, &column.name, &OF_GENERATED));
            }
            for read in bound.columns {
                let other = &draft.columns[read].column;
                if other.auto_increment {
                    bail!(GENERATED_COLUMN_REF_AUTO_INC, column.name);
                }
                if other.generated.is_some() && read >= position {
                    bail!(GENERATED_COLUMN_NON_PRIOR);
                }
            }
        }
        if let ColumnDefault::Expression(text) = &column.default {
            let bound = bind_over_columns(ctx, &draft.columns, text);
            if bound.as_ref().is_err_and(|error| may_come(ctx, error)) {
                continue;
            }
            let bound = bound.map_err(|error| {
                stored_function(&error, &column.name, &OF_DEFAULT)
                    .unwrap_or_else(|| in_place(&error, "default value expression"))
            })?;
            if let Some(disallowed) = &bound.disallowed
                && !matches!(disallowed, Disallowed::Function(_))
            {
                return Err(not_allowed(disallowed, &column.name, &OF_DEFAULT));
            }
            for read in bound.columns {
                let other = &draft.columns[read].column;
                if other.auto_increment {
                    bail!(DEFAULT_VAL_GENERATED_REF_AUTO_INC, column.name);
                }
                let is_computed = other.generated.is_some()
                    || matches!(other.default, ColumnDefault::Expression(_));
                if is_computed && read >= position {
                    bail!(DEFAULT_VAL_GENERATED_NON_PRIOR, column.name);
                }
            }
        }
    }
    for (name, check) in &draft.checks {
        let shown = name.clone().unwrap_or_else(|| check.name.clone());
        let bound = bind_over_columns(ctx, &draft.columns, &check.expression).map_err(|error| {
            if error.code() == ErrorCode::BAD_FIELD_ERROR {
                let column = error.message().split('\'').nth(1).unwrap_or("").to_owned();
                return err!(CHECK_CONSTRAINT_REFERS_UNKNOWN_COLUMN, shown, column);
            }
            stored_function(&error, &shown, &OF_CHECK).unwrap_or(error)
        })?;
        if let Some(disallowed) = &bound.disallowed {
            return Err(not_allowed(disallowed, &shown, &OF_CHECK));
        }
        if bound.columns.iter().any(|read| draft.columns[*read].column.auto_increment) {
            bail!(CHECK_CONSTRAINT_REFERS_AUTO_INCREMENT_COLUMN, shown);
        }
    }
    Ok(())
}

/// Errors of an expression with a forbidden part: for a function with a name, for a variable, for all else.
type NotAllowed = (ErrorCode, ErrorCode, ErrorCode);

const OF_GENERATED: NotAllowed = (
    ErrorCode::GENERATED_COLUMN_NAMED_FUNCTION_IS_NOT_ALLOWED,
    ErrorCode::DEFAULT_VAL_GENERATED_VARIABLES,
    ErrorCode::GENERATED_COLUMN_FUNCTION_IS_NOT_ALLOWED,
);
const OF_DEFAULT: NotAllowed = (
    ErrorCode::DEFAULT_VAL_GENERATED_NAMED_FUNCTION_IS_NOT_ALLOWED,
    ErrorCode::DEFAULT_VAL_GENERATED_VARIABLES,
    ErrorCode::DEFAULT_VAL_GENERATED_FUNCTION_IS_NOT_ALLOWED,
);
const OF_CHECK: NotAllowed = (
    ErrorCode::CHECK_CONSTRAINT_NAMED_FUNCTION_IS_NOT_ALLOWED,
    ErrorCode::CHECK_CONSTRAINT_VARIABLES,
    ErrorCode::CHECK_CONSTRAINT_FUNCTION_IS_NOT_ALLOWED,
);

fn not_allowed(disallowed: &Disallowed, shown: &str, errors: &NotAllowed) -> Error {
    match disallowed {
        Disallowed::Function(function) | Disallowed::AnyCall(function) => {
            Error::with(errors.0, &[&shown, &function.name.to_lowercase()])
        }
        Disallowed::Variable => Error::with(errors.1, &[&shown]),
        Disallowed::Other => Error::with(errors.2, &[&shown]),
    }
}

/// The error about a function that only a stored one could be (1305): a definition cannot call it.
fn stored_function(error: &Error, shown: &str, errors: &NotAllowed) -> Option<Error> {
    if error.code() != ErrorCode::SP_DOES_NOT_EXIST {
        return None;
    }
    let function = error.message().split(' ').nth(1)?.rsplit('.').next()?.to_owned();
    Some(Error::with(errors.0, &[&shown, &quote(&function)]))
}

/// The stored text of an expression: the reference's spelling, independent of the session's modes. Regardless of the table that its columns
/// are qualified with, they are those of the defined table.
pub(crate) fn expression_text(expr: &ast::Expr) -> Arc<str> {
    unparse::print_expr(expr, &stored_text()).into()
}

/// The text of a default: its sequences have their schemas.
pub(crate) fn default_text(ctx: &dyn Context, expr: &ast::Expr) -> Arc<str> {
    let schema = ctx.database();
    let options = unparse::PrintOptions { sequence_schema: schema.as_deref(), ..stored_text() };
    unparse::print_expr(expr, &options).into()
}

fn stored_text() -> unparse::PrintOptions<'static> {
    unparse::PrintOptions {
        canonical: true,
        introducer: Some("utf8mb4"),
        cast_charset: Some("utf8mb4"),
        no_backslash_escapes: false,
        unqualified: true,
        sequence_schema: None,
    }
}

/// Error 1054 names the clause where the column was searched.
pub(crate) fn in_place(error: &Error, place: &str) -> Error {
    let mut message = error.message().to_owned();
    if error.code() == ErrorCode::BAD_FIELD_ERROR {
        for general in ["where clause", "field list"] {
            message = message.replace(general, place);
        }
    }
    Error::with_sqlstate(error.code(), error.sqlstate(), message)
}
