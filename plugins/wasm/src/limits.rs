//! What a module may use: the variables of the plugin, and their values for one module.

use plugin_api::variable::{Definition, Kind, uint};
use plugin_api::{GlobalValue, Registrar};

/// Instructions of one call, in the interpreter's unit: about one for each.
const FUEL: Definition = Definition::global(
    "wasm_fuel",
    uint(1000, u64::MAX >> 1),
    "1000000000",
    "Instructions that one call of a WebAssembly function may run",
);
const MEMORY: Definition = Definition::global(
    "wasm_memory_limit",
    uint(65_536, 4 << 30),
    "67108864",
    "Bytes of memory that one instance of a WebAssembly module may have",
);
const DEPTH: Definition = Definition::global(
    "wasm_call_depth",
    uint(16, 100_000),
    "1000",
    "Functions of a WebAssembly module that may be active within each other",
);
const GRANTS: Definition = Definition::global(
    "wasm_grants",
    Kind::Set(&["log"]),
    "",
    "Functions of the server that WebAssembly modules may import",
);

/// Elements of one table.
pub(crate) const TABLE_ELEMENTS_MAX: usize = 100_000;
/// Tables of a module.
pub(crate) const TABLES_MAX: usize = 8;
/// Bytes of values on the interpreter's stack.
pub(crate) const STACK_BYTES_MAX: usize = 1 << 20;
/// Instructions between two checks whether the statement was cancelled: some milliseconds.
pub(crate) const SLICE: u64 = 1_000_000;

/// Where the plugin reads its variables.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    fuel: GlobalValue,
    memory: GlobalValue,
    depth: GlobalValue,
    grants: GlobalValue,
}

impl Limits {
    /// Declares the variables.
    pub(crate) fn declared(registrar: &mut Registrar<'_>) -> Limits {
        let limits = Limits::default();
        registrar.variable(&FUEL, &limits.fuel);
        registrar.variable(&MEMORY, &limits.memory);
        registrar.variable(&DEPTH, &limits.depth);
        registrar.variable(&GRANTS, &limits.grants);
        limits
    }

    /// With these values.
    #[cfg(test)]
    pub(crate) fn of(fuel: u64, memory: u64, depth: u64, grants: &str) -> Limits {
        let limits = Limits::default();
        limits.fuel.store(types::Value::UInt(fuel));
        limits.memory.store(types::Value::UInt(memory));
        limits.depth.store(types::Value::UInt(depth));
        limits.grants.store(types::Value::text(grants));
        limits
    }

    pub(crate) fn fuel(&self) -> u64 {
        self.fuel.number()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        usize::try_from(self.memory.number()).unwrap_or(usize::MAX)
    }

    pub(crate) fn depth(&self) -> usize {
        usize::try_from(self.depth.number()).unwrap_or(usize::MAX)
    }

    /// Whether modules may import `squall.log`.
    pub(crate) fn grants_log(&self) -> bool {
        self.grants.text().split(',').any(|word| word == "log")
    }
}
