//! Digests, encryption, compression, random bytes, UUIDs.
//!
//! The algorithms come from libraries; this crate prepares their input as the reference does.

mod cipher;
mod compress;
mod digest;
mod identifier;
mod statement;

use plugin_api::{Plugin, PluginInfo, Registrar, ScalarFunction};

/// The family.
#[derive(Clone, Copy, Debug, Default)]
pub struct CryptoFunctions;

impl Plugin for CryptoFunctions {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("functions_crypto", "Digests, encryption, compression and identifiers.")
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        for function in functions() {
            registrar.function(function);
        }
    }
}

/// All functions of the family.
fn functions() -> impl Iterator<Item = ScalarFunction> {
    let families: [&[ScalarFunction]; 5] = [
        digest::FUNCTIONS,
        cipher::FUNCTIONS,
        compress::FUNCTIONS,
        identifier::FUNCTIONS,
        statement::FUNCTIONS,
    ];
    families.into_iter().flat_map(|family| family.to_vec())
}
