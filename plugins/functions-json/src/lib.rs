//! JSON functions. Documents are read in their binary form; functions that change one work on a tree of it.

mod argument;
mod contains;
mod create;
mod etag;
mod merge;
mod modify;
mod read;
mod schema;
mod schema_parts;
mod search;
mod table;
mod value;

use plugin_api::{Plugin, PluginInfo, Registrar, ScalarFunction};

/// The family.
#[derive(Clone, Copy, Debug, Default)]
pub struct JsonFunctions;

impl Plugin for JsonFunctions {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("functions_json", "JSON functions.")
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        for function in functions() {
            registrar.function(function);
        }
    }
}

/// All functions of the family.
fn functions() -> impl Iterator<Item = ScalarFunction> {
    let families: [&[ScalarFunction]; 9] = [
        create::FUNCTIONS,
        etag::FUNCTIONS,
        read::FUNCTIONS,
        modify::FUNCTIONS,
        merge::FUNCTIONS,
        contains::FUNCTIONS,
        search::FUNCTIONS,
        schema::FUNCTIONS,
        table::FUNCTIONS,
    ];
    let functions = families.into_iter().flat_map(|family| family.to_vec());
    functions.map(ScalarFunction::truths_are_numbers)
}
