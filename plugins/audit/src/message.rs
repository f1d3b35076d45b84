//! `audit_api_message_emit`: a function by which an application puts messages of its own into the audit log.

use std::sync::Arc;

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{scalar_made, text_type};
use plugin_api::{
    ArgInfo, Arity, BoundFunction, Coercion, FunctionContext, Plugin, PluginInfo, Registrar,
};
use types::{CollationId, DataType, TypeKind, Value};

use crate::Current;

/// The function, as its messages name it.
const NAME: &str = "audit_api_message_emit_udf";
/// Component, producer and message come before the pairs.
const FIRST: usize = 3;
/// What it gives.
const DONE: &str = "OK";

/// The plugin, a component of the reference.
pub struct MessageEmit(pub(crate) Current);

impl Plugin for MessageEmit {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("audit_api_message_emit", "Messages of applications in the audit log.")
            .on_request()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        let current = self.0.clone();
        registrar.function(
            scalar_made(
                "AUDIT_API_MESSAGE_EMIT_UDF",
                // The function counts them itself: the message is its own.
                Arity::at_least(0),
                "AUDIT_API_MESSAGE_EMIT_UDF(component, producer, message, [key, value] ..)\nPuts a message into the audit log, with values by their names; OK.",
                Arc::new(move |_, args| bind(args, &current)),
            )
            .volatile(),
        );
    }
}

fn refuse(reason: impl std::fmt::Display) -> Error {
    Error::with(ErrorCode::CANT_INITIALIZE_UDF, &[&NAME, &reason])
}

fn is_text(ty: &DataType) -> bool {
    ty.is_text() || ty.is_binary()
}

/// The types are checked before any row: positions in messages count within the pairs as the reference's do.
fn check(args: &[ArgInfo]) -> Result<()> {
    if args.len() < FIRST || !(args.len() - FIRST).is_multiple_of(2) {
        return Err(refuse("Invalid argument count."));
    }
    for (at, arg) in args[..FIRST].iter().enumerate() {
        if arg.ty.kind == TypeKind::Null {
            return Err(refuse(format_args!("Argument cannot be NULL [{at}].")));
        }
        if !is_text(&arg.ty) {
            return Err(refuse(format_args!("Invalid argument type [{at}].")));
        }
    }
    for pair in args[FIRST..].chunks(2) {
        if pair[0].ty.kind == TypeKind::Null {
            return Err(refuse("Argument cannot be NULL [0]."));
        }
        if !is_text(&pair[0].ty) {
            return Err(refuse("Invalid argument type [0]."));
        }
        let ty = &pair[1].ty;
        if !is_text(ty) && !ty.is_integer() && ty.kind != TypeKind::Null {
            return Err(refuse("Invalid argument type [1]."));
        }
    }
    Ok(())
}

fn bind(args: &[ArgInfo], current: &Current) -> Result<BoundFunction> {
    check(args)?;
    let types: Vec<DataType> = args.iter().map(|arg| arg.ty.clone()).collect();
    let coercions = types.iter().map(|ty| match is_text(ty) {
        true => Coercion::Text,
        false => Coercion::AsIs,
    });
    let coercions = coercions.collect();
    let current = current.clone();
    let ty = text_type(DONE.len() as u64, CollationId::UTF8MB4_0900_AI_CI).with_nullable(true);
    let kernel = move |ctx: &mut FunctionContext<'_>, args: &[Value]| {
        if let Some(at) = args[..FIRST].iter().position(Value::is_null) {
            return Err(refuse(format_args!("Argument cannot be NULL [{at}].")));
        }
        let json = |value: &Value| match value {
            Value::Null => serde_json::Value::Null,
            Value::Int(number) => (*number).into(),
            Value::UInt(number) => (*number).into(),
            value => plugin_api::variable::as_text(value).into(),
        };
        let pairs = args[FIRST..].chunks(2);
        let pairs = pairs.map(|pair| (plugin_api::variable::as_text(&pair[0]), json(&pair[1])));
        if let Some(log) = current.log() {
            log.message([&args[0], &args[1], &args[2]].map(json), pairs.collect(), &*ctx.session);
        }
        Ok(Value::text(DONE))
    };
    Ok(BoundFunction::new(ty, coercions, kernel).with_nulls())
}
