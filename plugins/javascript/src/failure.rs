//! Errors: what QuickJS and scripts report, as errors of SQL with line and column.

use errors::{Error, err};
use rquickjs::{Ctx, Object, Value};

use crate::guard::Watch;

/// The language as messages name it.
pub(crate) const LANGUAGE: &str = "JavaScript";
/// The name of a script's text in its own traces.
pub(crate) const SOURCE: &str = "javascript";

/// Why a run failed.
pub(crate) enum Failure {
    /// QuickJS says it; the exception waits in the context.
    Script(rquickjs::Error),
    /// We say it.
    Sql(Error),
}

impl From<rquickjs::Error> for Failure {
    fn from(error: rquickjs::Error) -> Failure {
        Failure::Script(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Sql(error)
    }
}

/// Error 6000 with this text.
pub(crate) fn script_error(text: &str) -> Error {
    err!(LANGUAGE_COMPONENT_ERROR, LANGUAGE, text)
}

/// The failure as an error of SQL. `header`: characters that precede the user's text in its first line.
pub(crate) fn to_error(ctx: &Ctx<'_>, failure: Failure, watch: &Watch, header: usize) -> Error {
    let error = match failure {
        Failure::Sql(error) => error,
        Failure::Script(rquickjs::Error::Exception) => thrown(ctx, ctx.catch(), watch, header),
        Failure::Script(rquickjs::Error::Allocation) => watch.out_of_memory(),
        Failure::Script(other) => script_error(&other.to_string()),
    };
    // Whatever the script made of it: this is why it ended.
    watch.stopped().unwrap_or(error)
}

/// The error that a thrown value stands for. Reading it may run the script's code, under the same limits.
fn thrown(ctx: &Ctx<'_>, value: Value<'_>, watch: &Watch, header: usize) -> Error {
    let Some(object) = value.as_object() else {
        // Memory for an exception was lacking as well.
        if value.is_null() && watch.stopped().is_none() {
            return watch.out_of_memory();
        }
        return script_error(&format!("uncaught {}", text_of(ctx, &value)));
    };
    let message = text_property(ctx, object, "message");
    if let (Some(error), Some(message)) = (watch.statement_error(), &message)
        && number_property(ctx, object, "errno") == Some(i32::from(error.code().0))
        && error.message() == message
    {
        return error;
    }
    let name = text_property(ctx, object, "name").unwrap_or_else(|| "Error".into());
    if name == "InternalError" && message.as_deref() == Some("out of memory") {
        return watch.out_of_memory();
    }
    let place = text_property(ctx, object, "stack").and_then(|stack| place_in(&stack, header));
    let place =
        place.map_or_else(String::new, |(line, column)| format!(" (line {line}, column {column})"));
    script_error(&format!("{name}: {}{place}", message.unwrap_or_default()))
}

/// The line and column where a trace begins.
fn place_in(stack: &str, header: usize) -> Option<(usize, usize)> {
    let before = format!("{SOURCE}:");
    stack.split(&before).skip(1).find_map(|rest| {
        let end = rest.find(|c: char| c != ':' && !c.is_ascii_digit()).unwrap_or(rest.len());
        let (line, column) = rest[..end].split_once(':')?;
        let (line, column): (usize, usize) = (line.parse().ok()?, column.parse().ok()?);
        let before = if line == 1 { header } else { 0 };
        Some((line, column.saturating_sub(before).max(1)))
    })
}

fn text_property(ctx: &Ctx<'_>, object: &Object<'_>, name: &str) -> Option<String> {
    let text = object.get::<_, String>(name).ok();
    forget_exception(ctx);
    text
}

fn number_property(ctx: &Ctx<'_>, object: &Object<'_>, name: &str) -> Option<i32> {
    let number = object.get::<_, i32>(name).ok();
    forget_exception(ctx);
    number
}

fn forget_exception(ctx: &Ctx<'_>) {
    if ctx.has_exception() {
        drop(ctx.catch());
    }
}

/// A thrown value that is no object.
fn text_of(ctx: &Ctx<'_>, value: &Value<'_>) -> String {
    let text = match value.as_string() {
        Some(string) => string.to_string().ok(),
        None => value.get::<rquickjs::Coerced<String>>().ok().map(|text| text.0),
    };
    forget_exception(ctx);
    text.unwrap_or_else(|| value.type_name().to_owned())
}
