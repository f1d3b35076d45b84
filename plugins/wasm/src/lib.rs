//! WebAssembly: `LANGUAGE WASM` routines, and plugins that are `.wasm` files.
//!
//! A module is untrusted: it sees its arguments and its own memory, has limits of instructions, memory and depth, and imports nothing but
//! what `wasm_grants` names. `docs/format/wasm.md` is the interface between server and module. Must not know SQL beyond values and types.

mod aggregate;
mod code;
mod describe;
mod failure;
mod guest;
mod limits;
mod loader;
mod program;
mod signature;
mod source;
mod values;

use std::sync::Arc;

use plugin_api::{Plugin, PluginInfo, Registrar};

use limits::Limits;

/// The plugin.
#[derive(Debug, Default)]
pub struct Wasm;

impl Plugin for Wasm {
    fn info(&self) -> PluginInfo {
        PluginInfo::new(
            "wasm",
            "Routines in WebAssembly (LANGUAGE WASM), and plugins from .wasm files.",
        )
        .on_request()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        let limits = Limits::declared(registrar);
        registrar.loader(Arc::new(loader::WasmLoader::new(limits.clone())));
        registrar.language(Arc::new(program::WasmLanguage::new(limits)));
    }
}

#[cfg(test)]
mod tests;
