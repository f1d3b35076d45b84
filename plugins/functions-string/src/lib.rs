//! String functions: building, cutting, searching and converting text, regular expressions, properties of character sets, XML.
//!
//! Text arrives in UTF-8; a binary string counts bytes where a text counts characters.

mod build;
mod convert;
mod cut;
mod encode;
mod facts;
#[cfg(test)]
mod fuzz;
mod regexp;
mod search;
mod sets;
mod text;
mod xml;

use plugin_api::{Plugin, PluginInfo, Registrar, ScalarFunction};

/// The family.
#[derive(Clone, Copy, Debug, Default)]
pub struct StringFunctions;

impl Plugin for StringFunctions {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("functions_string", "String functions.")
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
        build::FUNCTIONS,
        convert::FUNCTIONS,
        cut::FUNCTIONS,
        encode::FUNCTIONS,
        facts::FUNCTIONS,
        regexp::FUNCTIONS,
        search::FUNCTIONS,
        sets::FUNCTIONS,
        xml::FUNCTIONS,
    ];
    families.into_iter().flat_map(|family| family.to_vec())
}
