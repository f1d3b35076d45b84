//! The object `db` of scripts: `db.query(sql, ..parameters)` runs a statement in the transaction and with the privileges of the caller.

use std::sync::Arc;

use errors::Error;
use plugin_api::StatementResult;
use rquickjs::function::{Function, Rest};
use rquickjs::{Ctx, Exception, Object, Result, Value as JsValue};

use crate::failure::{Failure, LANGUAGE};
use crate::guard::Watch;
use crate::value::{Builtins, array, to_js, to_sql};

/// Gives a script its `db`.
pub(crate) fn install<'js>(ctx: &Ctx<'js>, watch: &Arc<Watch>) -> Result<()> {
    let watch = watch.clone();
    let query = move |ctx: Ctx<'js>, sql: String, parameters: Rest<JsValue<'js>>| {
        query(&ctx, sql, &parameters.0, &watch).map_err(|failure| match failure {
            Failure::Script(error) => error,
            Failure::Sql(error) => throw(&ctx, &error),
        })
    };
    let db = Object::new(ctx.clone())?;
    db.set("query", Function::new(ctx.clone(), query)?.with_name("query")?)?;
    ctx.globals().set("db", db)
}

fn query<'js>(
    ctx: &Ctx<'js>,
    sql: String,
    parameters: &[JsValue<'js>],
    watch: &Watch,
) -> std::result::Result<JsValue<'js>, Failure> {
    let builtins = Builtins::of(ctx)?;
    let parameters = parameters.iter().map(|value| Ok(to_sql(ctx, &builtins, value, watch)?.value));
    let parameters = parameters.collect::<std::result::Result<Vec<_>, Failure>>()?;
    let result = watch.run(sql, parameters)?;
    if result.columns.is_empty() {
        let changed = Object::new(ctx.clone())?;
        changed.set("affectedRows", result.affected_rows as f64)?;
        changed.set("lastInsertId", result.last_insert_id as f64)?;
        return Ok(changed.into_value());
    }
    Ok(rows(ctx, &builtins, &result)?)
}

/// An array of an object for each row, with the names of the columns as property `columns`.
fn rows<'js>(
    ctx: &Ctx<'js>,
    builtins: &Builtins<'js>,
    result: &StatementResult,
) -> Result<JsValue<'js>> {
    let rows = result.rows.iter().map(|row| {
        let object = Object::new(ctx.clone())?;
        for (column, value) in result.columns.iter().zip(row) {
            object.set(&*column.name, to_js(ctx, builtins, value, &column.ty)?)?;
        }
        Ok(object.into_value())
    });
    let rows = array(ctx, rows)?;
    let names = result.columns.iter().map(|column| {
        rquickjs::String::from_str(ctx.clone(), &column.name).map(rquickjs::String::into_value)
    });
    rows.as_object().set("columns", array(ctx, names)?)?;
    Ok(rows.into_value())
}

/// Throws an error of SQL: an Error with `errno` and `sqlState`.
fn throw(ctx: &Ctx<'_>, error: &Error) -> rquickjs::Error {
    // It is said again when nobody catches it.
    let own = format!("{LANGUAGE}> ");
    let message = error.message().strip_prefix(&own).unwrap_or(error.message());
    let exception = match Exception::from_message(ctx.clone(), message) {
        Ok(exception) => exception,
        Err(failed) => return failed,
    };
    let described = exception.as_object().set("errno", i32::from(error.code().0)).and_then(|()| {
        let state = String::from_utf8_lossy(&error.sqlstate()).into_owned();
        exception.as_object().set("sqlState", state)
    });
    match described {
        Ok(()) => exception.throw(),
        Err(failed) => failed,
    }
}
