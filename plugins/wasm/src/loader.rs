//! `INSTALL PLUGIN x SONAME 'x.wasm'`: a module that describes its functions becomes a plugin.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use errors::Result;
use plugin_api::kit::scalar_made;
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, MadeBinding, Plugin, PluginInfo, PluginLoader,
    Registrar,
};
use sys::sync::Mutex;
use types::Value;

use crate::aggregate::Aggregate;
use crate::code::Code;
use crate::describe::{Described, Description, Kind};
use crate::failure::Failure;
use crate::guest::Budget;
use crate::limits::{Limits, SLICE};
use crate::signature::{Form, Signature};
use crate::values::call;

/// Bytes of a description.
const DESCRIPTION_BYTES_MAX: u64 = 64 << 10;

/// Reads `.wasm` files.
pub(crate) struct WasmLoader {
    limits: Limits,
    names: Names,
}

/// Texts that live as long as the server, as names of functions do: a plan may outlive its plugin. Each text is kept once, however often
/// its plugin is installed.
#[derive(Default)]
struct Names(Mutex<HashSet<&'static str>>);

impl Names {
    fn keep(&self, text: String) -> &'static str {
        let mut known = self.0.lock();
        match known.get(text.as_str()) {
            Some(kept) => kept,
            None => {
                let kept: &'static str = Box::leak(text.into_boxed_str());
                known.insert(kept);
                kept
            }
        }
    }

    /// The name in SQL, and the help.
    fn of(&self, described: &Described, what: &str) -> (&'static str, &'static str) {
        let name = self.keep(described.name.to_ascii_uppercase());
        (name, self.keep(format!("{}: {what}.", described.name)))
    }
}

impl WasmLoader {
    pub(crate) fn new(limits: Limits) -> WasmLoader {
        WasmLoader { limits, names: Names::default() }
    }
}

impl PluginLoader for WasmLoader {
    fn suffix(&self) -> &'static str {
        "wasm"
    }

    fn load(&self, name: &str, contents: &[u8]) -> Result<Box<dyn Plugin>> {
        let plugin = ModulePlugin::new(name, contents, self);
        Ok(Box::new(plugin.map_err(|failure| failure.of_definition(name))?))
    }
}

/// A function of a module, matched with its description.
struct Function {
    /// Upper case.
    name: &'static str,
    help: &'static str,
    described: Described,
    signature: Signature,
}

/// A plugin from a file.
struct ModulePlugin {
    info: PluginInfo,
    code: Arc<Code>,
    functions: Vec<Arc<Function>>,
    aggregates: Vec<Arc<Aggregate>>,
}

/// The text that the module returns from `squall_describe`.
fn describe(code: &Code) -> Result<Description, Failure> {
    let mut guest = code.take()?;
    let mut unchecked = || Ok(());
    let mut budget = Budget { fuel: SLICE, check: &mut unchecked };
    let buffer = guest.call_i64(&mut budget, "squall_describe")?;
    let bytes = guest.take_buffer(buffer, DESCRIPTION_BYTES_MAX, &mut budget)?;
    code.put_back(guest);
    let text = String::from_utf8(bytes.unwrap_or_default());
    let text = text.map_err(|_| Failure::guest("squall_describe returns no text in UTF-8"))?;
    Description::parse(&text)
}

impl ModulePlugin {
    fn new(name: &str, contents: &[u8], loader: &WasmLoader) -> Result<ModulePlugin, Failure> {
        if !contents.starts_with(b"\0asm") {
            return Err(Failure::guest("the file is not a WebAssembly module"));
        }
        let code = Code::new(contents, &loader.limits)?;
        let description = describe(&code)?;
        let takes_nulls = code.function("squall_takes_nulls").is_some();
        let mut functions = Vec::new();
        for described in &description.functions {
            let Some(function) = code.function(&described.name) else {
                let what = format!("it describes {} and does not export it", described.name);
                return Err(Failure::Guest(what));
            };
            let parameters = described.parameter_types();
            let returns = [described.returns.data_type()];
            let signature = Signature::new(&function, takes_nulls, &parameters, &returns)?;
            check_result(described, &signature)?;
            let (own, help) =
                loader.names.of(described, &format!("a function of the plugin {name}"));
            let described = described.clone();
            functions.push(Arc::new(Function { name: own, help, described, signature }));
        }
        let mut aggregates = Vec::new();
        for described in description.aggregates {
            let what = format!("an aggregate of the plugin {name}");
            let (own, help) = loader.names.of(&described, &what);
            aggregates.push(Arc::new(Aggregate::new(own, help, described, &code)?));
        }
        let info = PluginInfo {
            version: Cow::Owned(description.version),
            author: Cow::Owned(description.author),
            licence: Cow::Owned(description.licence),
            description: Cow::Owned(description.description),
            name: Cow::Owned(name.to_owned()),
            ..PluginInfo::new("", "").on_request()
        };
        Ok(ModulePlugin { info, code: Arc::new(code), functions, aggregates })
    }
}

impl Plugin for ModulePlugin {
    fn info(&self) -> PluginInfo {
        self.info.clone()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        for function in &self.functions {
            let arity = Arity::exactly(function.described.parameters.len());
            let (code, own) = (self.code.clone(), function.clone());
            let binding: MadeBinding = Arc::new(move |_: &BindContext, _: &[ArgInfo]| {
                Ok(bound(code.clone(), own.clone()))
            });
            let declared = scalar_made(function.name, arity, function.help, binding);
            registrar.function(match function.described.deterministic {
                true => declared,
                false => declared.volatile(),
            });
        }
        for aggregate in &self.aggregates {
            registrar.aggregate(aggregate.declared(&self.code));
        }
    }
}

/// A result that is described as an integer is one.
pub(crate) fn check_result(described: &Described, signature: &Signature) -> Result<(), Failure> {
    if described.returns == Kind::Int && signature.results[0].form == Form::F64 {
        let what = format!("{} is described as int and returns f64", described.name);
        return Err(Failure::Guest(what));
    }
    Ok(())
}

/// A call of a function, whatever its arguments are: they are converted to the types that it declares.
fn bound(code: Arc<Code>, function: Arc<Function>) -> BoundFunction {
    let coercions = function.described.coercions();
    let ty = function.described.returns.data_type();
    let bound = BoundFunction::new(ty, coercions, move |ctx, args| {
        let results = call(&code, &function.described.name, &function.signature, args, ctx);
        let results = results.map_err(|failure| failure.of_call(&function.described.name))?;
        let result = results.into_iter().next().flatten();
        Ok(result.map_or(Value::Null, |typed| typed.value))
    });
    bound.with_nulls()
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn a_name_is_kept_once() {
        let names = Names::default();
        let first = names.keep("F".to_owned());
        assert!(std::ptr::eq(first, names.keep("F".to_owned())));
        assert_eq!((names.keep("G".to_owned()), names.0.lock().len()), ("G", 2));
    }
}
