//! `JS(code, argument [AS name], ..)`: the value of the code's last statement, as text.

use std::sync::Arc;

use errors::Result;
use plugin_api::kit::{self, scalar_made};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, FunctionContext, ScalarFunction,
    Statements, TypedValue,
};
use rquickjs::context::EvalOptions;
use rquickjs::{Context, Ctx, Value as JsValue};
use types::{DataType, JsonValue, TypeKind, Value, json};

use crate::expression::{self, Expressions, without_end};
use crate::failure::{Failure, SOURCE, to_error};
use crate::guard::{self, Watch};
use crate::pool::{Isolate, Pool};
use crate::value::{Builtins, array, settle, to_js, to_sql, to_text};
use crate::{bounded, database};

const HELP: &str = "JS(code, argument [AS name], ..)\nThe value of the last statement of the JavaScript code, as text. The arguments are in \
the array arguments and, with a name, in variables.";

/// The function.
pub(crate) fn js(pool: &Arc<Pool>) -> ScalarFunction {
    let pool = pool.clone();
    scalar_made(
        "JS",
        Arity::at_least(1),
        HELP,
        Arc::new(move |context, args| bind(&pool, context, args)),
    )
    .named_arguments()
    .runs_statements()
    .one_thread()
}

/// What is known of the arguments after the code.
struct Parameters {
    types: Vec<DataType>,
    names: Vec<Option<String>>,
    /// The parameters of an expression's function, when the names allow one.
    listed: Option<Arc<str>>,
}

/// The last argument is the names of the others.
fn bind(pool: &Arc<Pool>, context: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let Some((names, args)) = args.split_last() else {
        return Err(errors::Error::internal("JS without names of its arguments"));
    };
    let names = match names.constant.as_ref().map(|names| json::parse(kit::bytes(names))) {
        Some(Ok(JsonValue::Array(names))) => names.iter().skip(1).map(name).collect(),
        Some(Ok(_) | Err(_)) | None => Vec::new(),
    };
    let types = args.iter().skip(1).map(|arg| arg.ty.clone()).collect();
    let names: Vec<Option<String>> = names;
    let listed = expression::parameters(&names);
    let parameters = Parameters { types, names, listed };
    let of_argument = |arg: &ArgInfo| {
        if matches!(arg.ty.kind, TypeKind::Enum | TypeKind::Set) {
            Coercion::Text
        } else {
            Coercion::AsIs
        }
    };
    let coercions = std::iter::once(Coercion::Text).chain(args.iter().skip(1).map(of_argument));
    let coercions = coercions.chain([Coercion::AsIs]).collect();
    let mut ty = kit::text_type(kit::UNBOUNDED_CHARACTERS, context.collation_connection);
    ty.nullable = true;
    let pool = pool.clone();
    let kernel =
        move |context: &mut FunctionContext<'_>,
              statements: &mut dyn Statements,
              args: &[Value]| call(&pool, &parameters, context, statements, args);
    Ok(BoundFunction::with_statements(ty, coercions, kernel).with_nulls())
}

fn name(name: &JsonValue) -> Option<String> {
    let JsonValue::String(name) = name else { return None };
    Some(String::from_utf8_lossy(name).into_owned())
}

fn call(
    pool: &Pool,
    parameters: &Parameters,
    context: &mut FunctionContext<'_>,
    statements: &mut dyn Statements,
    args: &[Value],
) -> Result<Value> {
    let Some((Value::Bytes(code), args)) = args.split_first() else { return Ok(Value::Null) };
    let code = String::from_utf8_lossy(code);
    let typed = guard::run(pool, None, context, statements, |isolate, watch| {
        evaluate(isolate, watch, &code, parameters, args)
    })?;
    let value = to_text(typed)?;
    let length = kit::bytes(&value).len() as u64;
    Ok(if context.fits_packet("js", length) { value } else { Value::Null })
}

fn evaluate(
    isolate: &mut Isolate,
    watch: &Arc<Watch>,
    code: &str,
    parameters: &Parameters,
    args: &[Value],
) -> Result<TypedValue> {
    if let Some(names) = &parameters.listed
        && let Some(value) = compute(isolate, watch, without_end(code), (names, parameters), args)?
    {
        return Ok(value);
    }
    run_alone(isolate, watch, code, parameters, args)
}

/// Computes an expression that changes nothing, in the global object that is kept for such; `None` for other scripts.
fn compute(
    isolate: &mut Isolate,
    watch: &Arc<Watch>,
    code: &str,
    (names, parameters): (&Arc<str>, &Parameters),
    args: &[Value],
) -> Result<Option<TypedValue>> {
    let known = isolate.expressions.as_ref().is_some_and(|kept| kept.knows(code, names));
    if !known && !expression::is_harmless(code, &parameters.names) {
        return Ok(None);
    }
    let mut kept = match isolate.expressions.take().filter(|kept| known || !kept.is_full()) {
        Some(kept) => kept,
        None => Expressions::new(new_context(isolate, watch)?),
    };
    let context = kept.context.clone();
    let computed = context.with(|ctx| {
        if !known && kept.add(&ctx, code, names).is_err() {
            // The long way says what is wrong with it.
            drop(ctx.catch());
            return Ok(None);
        }
        let arguments = (args, &parameters.types[..], &parameters.names[..]);
        let computed = kept.run(&ctx, watch, code, arguments);
        let header = expression::header_characters(names);
        computed.map_err(|failure| to_error(&ctx, failure, watch, header))
    });
    isolate.expressions = Some(kept);
    computed
}

/// Runs a script with a global object of its own.
fn run_alone(
    isolate: &mut Isolate,
    watch: &Arc<Watch>,
    code: &str,
    parameters: &Parameters,
    args: &[Value],
) -> Result<TypedValue> {
    let context = new_context(isolate, watch)?;
    context.with(|ctx| {
        let result = script(&ctx, watch, code, parameters, args);
        result.map_err(|failure| to_error(&ctx, failure, watch, 0))
    })
}

/// A fresh global object.
///
/// # Errors
/// Memory.
pub(crate) fn new_context(isolate: &Isolate, watch: &Watch) -> Result<Context> {
    let context = Context::full(&isolate.runtime).map_err(|_| watch.out_of_memory())?;
    context.with(|ctx| {
        bounded::install(&ctx).map_err(|error| to_error(&ctx, error.into(), watch, 0))
    })?;
    Ok(context)
}

fn script(
    ctx: &Ctx<'_>,
    watch: &Arc<Watch>,
    code: &str,
    parameters: &Parameters,
    args: &[Value],
) -> std::result::Result<TypedValue, Failure> {
    let builtins = Builtins::of(ctx)?;
    database::install(ctx, watch)?;
    let globals = ctx.globals();
    let given = args.iter().zip(&parameters.types);
    let values = array(ctx, given.map(|(value, ty)| to_js(ctx, &builtins, value, ty)))?;
    for (index, name) in parameters.names.iter().enumerate() {
        if let Some(name) = name {
            globals.set(name.as_str(), values.get::<JsValue<'_>>(index)?)?;
        }
    }
    globals.set("arguments", values)?;
    let value: JsValue<'_> = ctx.eval_with_options(code, options())?;
    let value = settle(ctx, value, watch)?;
    to_sql(ctx, &builtins, &value, watch)
}

/// A script in its global scope, which is not strict: `x = 1` makes a variable.
pub(crate) fn options() -> EvalOptions {
    let mut options = EvalOptions::default();
    options.strict = false;
    options.filename = Some(SOURCE.to_owned());
    options
}
