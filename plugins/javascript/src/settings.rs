//! The plugin's variables.

use std::time::Duration;

use plugin_api::variable::Definition;
use plugin_api::{GlobalValue, Registrar, variable};

static MEMORY_LIMIT: Definition = Definition::global(
    "js_memory_limit",
    variable::uint(1 << 20, 1 << 32),
    "67108864",
    "Bytes that one run of JavaScript may use",
);
static STACK_LIMIT: Definition = Definition::global(
    "js_stack_limit",
    variable::uint(32 << 10, 512 << 10),
    "262144",
    "Bytes of stack that one run of JavaScript may use",
);
static TIMEOUT: Definition = Definition::global(
    "js_timeout",
    variable::uint(1, 3_600_000),
    "10000",
    "Milliseconds that one run of JavaScript may take, the statements that it runs left out",
);
static MAX_ISOLATES: Definition = Definition::global(
    "js_max_isolates",
    variable::uint(1, 1024),
    "32",
    "Number of JavaScript engines: so many runs at once; others wait for at most js_timeout",
);

/// Where the global values are.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    memory: GlobalValue,
    stack: GlobalValue,
    time: GlobalValue,
    isolates: GlobalValue,
}

/// The limits of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub memory_bytes: usize,
    pub stack_bytes: usize,
    pub time: Duration,
    pub isolates_max: usize,
}

impl Settings {
    pub(crate) fn declare(&self, registrar: &mut Registrar<'_>) {
        registrar.variable(&MEMORY_LIMIT, &self.memory);
        registrar.variable(&STACK_LIMIT, &self.stack);
        registrar.variable(&TIMEOUT, &self.time);
        registrar.variable(&MAX_ISOLATES, &self.isolates);
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits {
            memory_bytes: number(&self.memory, &MEMORY_LIMIT) as usize,
            stack_bytes: number(&self.stack, &STACK_LIMIT) as usize,
            time: Duration::from_millis(number(&self.time, &TIMEOUT)),
            isolates_max: number(&self.isolates, &MAX_ISOLATES) as usize,
        }
    }

    /// Shorter limits than the defaults.
    #[cfg(test)]
    pub(crate) fn set(&self, memory_bytes: u64, milliseconds: u64, isolates: u64) {
        self.memory.store(types::Value::UInt(memory_bytes));
        self.time.store(types::Value::UInt(milliseconds));
        self.isolates.store(types::Value::UInt(isolates));
    }
}

/// The value, or the default as long as no server has stored one (0 is none of the values).
fn number(value: &GlobalValue, definition: &Definition) -> u64 {
    match value.number() {
        0 => definition.default.parse().unwrap_or(1),
        number => number,
    }
}
