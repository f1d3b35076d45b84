//! Loading and removing plugins: each change gives a new registry, and the old one stays as it was.

use std::sync::Arc;

use errors::{ErrorCode, Result};
use plugin_api::kit::scalar;
use plugin_api::variable::{Definition, Kind};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, GlobalValue, Module, Plugin, PluginInfo, Registrar,
    Registry,
};
use types::{DataType, Value};

static LIMIT: Definition = Definition::global("greeter_limit", Kind::Bool, "ON", "Greets at all");

fn bind(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    Ok(BoundFunction::new(DataType::bigint(), Vec::new(), |_, _| Ok(Value::Int(1))))
}

/// Has a function, a variable and a counter.
struct Greeter(PluginInfo, &'static str);

impl Plugin for Greeter {
    fn info(&self) -> PluginInfo {
        self.0.clone()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.function(scalar("GREET", Arity::exactly(0), self.1, bind));
        registrar.variable(&LIMIT, &GlobalValue::default());
        registrar.status("Greetings", || "7".into());
    }
}

fn plugins() -> Vec<Box<dyn Plugin>> {
    vec![
        Box::new(Greeter(PluginInfo::new("kernel", "Always there."), "first")),
        Box::new(Greeter(PluginInfo::new("good_day", "Says hello.").on_request(), "second")),
    ]
}

fn code(result: Result<Registry>) -> Option<ErrorCode> {
    result.err().map(|error| error.code())
}

#[test]
fn a_plugin_comes_and_goes_and_old_registries_stay() {
    let before = Registry::knowing(&plugins());
    let help = |registry: &Registry| registry.function("GREET").map(|function| function.help);
    assert_eq!(help(&before), Some("first"));
    let after = before.with_loaded("Good-Day").unwrap();
    assert_eq!((help(&before), help(&after)), (Some("first"), Some("second")));
    assert_eq!((before.status_variables().len(), after.status_variables().len()), (1, 2));
    assert!(after.module("GOOD_DAY").is_some_and(|module| module.is_loaded));
    let again = after.without("good_day").unwrap();
    assert_eq!(help(&again), Some("first"));
    assert!(again.module("good_day").is_some_and(|module| !module.is_loaded));
}

#[test]
fn what_cannot_be_loaded_or_removed_is_refused() {
    let registry = Registry::knowing(&plugins());
    assert_eq!(code(registry.with_loaded("other")), Some(ErrorCode::PLUGIN_IS_NOT_LOADED));
    assert_eq!(code(registry.with_loaded("kernel")), Some(ErrorCode::UDF_EXISTS));
    assert_eq!(code(registry.without("kernel")), Some(ErrorCode::PLUGIN_DELETE_BUILTIN));
    assert_eq!(code(registry.without("good_day")), Some(ErrorCode::SP_DOES_NOT_EXIST));
}

#[test]
fn a_plugin_from_a_file_is_forgotten_when_it_is_removed() {
    let info = PluginInfo::new("guest", "From a file.").on_request();
    let module = Module::new(&Greeter(info, "third"), Some(Arc::from("guest.wasm")));
    // It may not take the place of a function that exists.
    let taken = Registry::knowing(&plugins()).with_added(module.clone());
    assert_eq!(code(taken), Some(ErrorCode::UDF_EXISTS));
    let registry = Registry::knowing(&[]);
    let with_guest = registry.with_added(module.clone()).unwrap();
    assert!(with_guest.module("guest").is_some_and(|module| module.is_loaded));
    assert_eq!(code(with_guest.with_added(module)), Some(ErrorCode::UDF_EXISTS));
    assert!(with_guest.without("guest").unwrap().module("guest").is_none());
}
