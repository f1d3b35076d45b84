//! `query_attributes`: functions that read what a client sends with a statement.

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{self, scalar, text_type};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, Plugin, PluginInfo, Registrar,
};
use types::{CollationId, DataType, TypeKind, Value};

/// The plugin, a component of the reference.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueryAttributes;

/// The function, as its messages name it.
const NAME: &str = "mysql_query_attribute_string";
/// Characters of a value that the result has at most.
const LENGTH_MAX: u64 = 65_535;

impl Plugin for QueryAttributes {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("query_attributes", "Attributes that a client sends with a statement.")
            .on_request()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.function(
            scalar(
                "MYSQL_QUERY_ATTRIBUTE_STRING",
                // The function counts them itself: the message is its own.
                Arity::at_least(0),
                "MYSQL_QUERY_ATTRIBUTE_STRING(name)\nThe attribute of this name that the client sent with the statement, as text; NULL when there is none.",
                bind,
            )
            .stable(),
        );
    }
}

fn refuse(reason: &str) -> Error {
    let reason = format!("{NAME}() {reason}");
    Error::with(ErrorCode::CANT_INITIALIZE_UDF, &[&NAME, &reason])
}

fn bind(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let [name] = args else { return Err(refuse("expects 1 argument")) };
    if !is_text(&name.ty) {
        return Err(refuse("expects a string argument"));
    }
    let ty = text_type(LENGTH_MAX, CollationId::UTF8MB4_0900_AI_CI).with_nullable(true);
    Ok(BoundFunction::new(ty, vec![Coercion::Text], |ctx, args| {
        let name = kit::text(&args[0]);
        let value = ctx.session.query_attribute(&name).unwrap_or(Value::Null);
        Ok(if value.is_null() {
            value
        } else {
            Value::text(&plugin_api::variable::as_text(&value))
        })
    }))
}

fn is_text(ty: &DataType) -> bool {
    ty.is_text() || ty.is_binary() || ty.kind == TypeKind::Null
}
