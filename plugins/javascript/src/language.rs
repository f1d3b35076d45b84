//! LANGUAGE JAVASCRIPT: functions and procedures whose text is the body of a JavaScript function.
//!
//! A program's global object, with its compiled text, stays in an isolate between the calls of its session, as long as the isolate is not
//! needed for something else.

use std::sync::Arc;

use errors::{Result, err};
use plugin_api::{
    CompiledProgram, ParameterMode, ProgramCall, ProgramLanguage, ProgramOutcome, ProgramText,
    TypedValue,
};
use rquickjs::function::{Args, Function};
use rquickjs::{Array, Context, Ctx, Module, Value as JsValue};
use types::{DataType, Value};

use crate::database;
use crate::failure::{Failure, LANGUAGE, to_error};
use crate::function::{new_context, options};
use crate::guard::{self, Watch};
use crate::pool::{Isolate, Pool, ProgramId};
use crate::value::{Builtins, settle, to_js, to_sql};

/// The compiled function, among the program's global variables.
const FUNCTION: &str = "$program$";
/// The parameter in which a function leaves the values of the others.
const LEFT: &str = "$left$";

/// The language.
#[derive(Debug)]
pub(crate) struct JavaScript {
    pool: Arc<Pool>,
}

impl JavaScript {
    pub(crate) fn new(pool: &Arc<Pool>) -> JavaScript {
        JavaScript { pool: pool.clone() }
    }
}

impl ProgramLanguage for JavaScript {
    fn name(&self) -> &str {
        "JAVASCRIPT"
    }

    fn compile(&self, text: &ProgramText<'_>) -> Result<Box<dyn CompiledProgram>> {
        let program = Program::new(&self.pool, text)?;
        guard::run_alone(&self.pool, |isolate, watch| program.prepare(isolate, watch).map(|_| ()))?;
        Ok(Box::new(program))
    }

    fn check_library(&self, _name: &str, source: &str) -> Result<()> {
        guard::run_alone(&self.pool, |isolate, watch| {
            let context = new_context(isolate, watch)?;
            context.with(|ctx| {
                let declared = Module::declare(ctx.clone(), crate::failure::SOURCE, source);
                declared.map(|_| ()).map_err(|error| to_error(&ctx, error.into(), watch, 0))
            })
        })
    }
}

/// A library as a module.
struct Library {
    name: String,
    source: String,
}

struct Parameter {
    mode: ParameterMode,
    ty: DataType,
}

/// A program of one session.
struct Program {
    id: ProgramId,
    pool: Arc<Pool>,
    parameters: Vec<Parameter>,
    returns: bool,
    /// An expression whose value takes the libraries and returns the function.
    source: String,
    /// Characters before the user's text in the first line of `source`.
    header: usize,
    libraries: Vec<Library>,
}

impl Program {
    fn new(pool: &Arc<Pool>, text: &ProgramText<'_>) -> Result<Program> {
        let names: Vec<&str> = text.parameters.iter().map(|parameter| parameter.name).collect();
        let aliases: Vec<&str> = text.libraries.iter().map(|library| library.alias).collect();
        names.iter().chain(&aliases).try_for_each(|name| check_name(name))?;
        if let Some(other) = text.libraries.iter().find(|used| used.language != "JAVASCRIPT") {
            let text = format!("library {} is written in {}", other.name, other.language);
            return Err(err!(LANGUAGE_COMPONENT_ERROR, LANGUAGE, text));
        }
        let listed = names.iter().map(|name| format!("{name},")).collect::<String>();
        let header = format!(
            "(function({}){{\"use strict\";return function({listed}{LEFT}){{try{{",
            aliases.join(",")
        );
        let kept = names.iter().enumerate();
        let kept = kept.map(|(at, name)| format!("{LEFT}[{at}]={name};")).collect::<String>();
        let source = format!("{header}{}\n}}finally{{{kept}}}}}}})", text.source);
        let own = |parameter: &plugin_api::ProgramParameter<'_>| Parameter {
            mode: parameter.mode,
            ty: parameter.ty.clone(),
        };
        let module = |library: &plugin_api::ProgramLibrary<'_>| Library {
            name: format!("{}.{}", library.schema, library.name),
            source: library.source.to_owned(),
        };
        Ok(Program {
            id: pool.new_program(),
            pool: pool.clone(),
            parameters: text.parameters.iter().map(own).collect(),
            returns: text.returns.is_some(),
            header: header.chars().count(),
            source,
            libraries: text.libraries.iter().map(module).collect(),
        })
    }

    /// The context of the program; makes it where the isolate has none.
    fn prepare(&self, isolate: &mut Isolate, watch: &Arc<Watch>) -> Result<Context> {
        if let Some((_, context)) = isolate.kept.as_ref().filter(|(id, _)| *id == self.id) {
            return Ok(context.clone());
        }
        isolate.kept = None;
        let context = new_context(isolate, watch)?;
        context.with(|ctx| {
            let result = self.load(&ctx, watch);
            result.map_err(|failure| to_error(&ctx, failure, watch, self.header))
        })?;
        isolate.kept = Some((self.id, context.clone()));
        Ok(context)
    }

    fn load(&self, ctx: &Ctx<'_>, watch: &Watch) -> std::result::Result<(), Failure> {
        let outer: Function<'_> = ctx.eval_with_options(self.source.as_str(), options())?;
        let mut modules = Args::new(ctx.clone(), self.libraries.len());
        for library in &self.libraries {
            let module =
                Module::declare(ctx.clone(), library.name.as_str(), library.source.as_str())?;
            let (module, evaluated) = module.eval()?;
            settle(ctx, evaluated.into_value(), watch)?;
            modules.push_arg(module.namespace()?)?;
        }
        let function: Function<'_> = outer.call_arg(modules)?;
        Ok(ctx.globals().set(FUNCTION, function)?)
    }

    fn call(
        &self,
        ctx: &Ctx<'_>,
        watch: &Arc<Watch>,
        arguments: &[Value],
    ) -> std::result::Result<ProgramOutcome, Failure> {
        let builtins = Builtins::of(ctx)?;
        database::install(ctx, watch)?;
        let function: Function<'_> = ctx.globals().get(FUNCTION)?;
        let left = Array::new(ctx.clone())?;
        let mut args = Args::new(ctx.clone(), arguments.len() + 1);
        for (value, parameter) in arguments.iter().zip(&self.parameters) {
            args.push_arg(to_js(ctx, &builtins, value, &parameter.ty)?)?;
        }
        args.push_arg(left.clone())?;
        let value: JsValue<'_> = function.call_arg(args)?;
        let value = settle(ctx, value, watch)?;
        let returned = match self.returns {
            true => Some(to_sql(ctx, &builtins, &value, watch)?),
            false => None,
        };
        let mut out: Vec<(usize, TypedValue)> = Vec::new();
        for (position, parameter) in self.parameters.iter().enumerate() {
            if parameter.mode != ParameterMode::In {
                let value: JsValue<'_> = left.get(position)?;
                out.push((position, to_sql(ctx, &builtins, &value, watch)?));
            }
        }
        Ok(ProgramOutcome { returned, out })
    }
}

/// Whether a parameter or a library can have this name in a script.
fn check_name(name: &str) -> Result<()> {
    let mut characters = name.chars();
    let begins = characters.next().is_some_and(|c| c.is_alphabetic() || c == '_' || c == '$');
    if begins && characters.all(|c| c.is_alphanumeric() || c == '_' || c == '$') {
        return Ok(());
    }
    let text = format!("'{name}' is no name of a variable");
    Err(err!(LANGUAGE_COMPONENT_ERROR, LANGUAGE, text))
}

impl CompiledProgram for Program {
    fn invoke(&self, call: ProgramCall<'_>) -> Result<ProgramOutcome> {
        let ProgramCall { arguments, context, statements } = call;
        guard::run(&self.pool, Some(self.id), &context, statements, |isolate, watch| {
            let prepared = self.prepare(isolate, watch)?;
            prepared.with(|ctx| {
                let result = self.call(&ctx, watch, arguments);
                result.map_err(|failure| to_error(&ctx, failure, watch, self.header))
            })
        })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.pool.forget(self.id);
    }
}
