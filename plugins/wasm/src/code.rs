//! A module: checked, translated, with its idle instances.

use sys::sync::Mutex;
use wasmi::{
    Caller, CompilationMode, Config, EnforcedLimits, Engine, Extern, ExternType, FuncType, Linker,
    Module, Store, StoreLimits, StoreLimitsBuilder,
};

use crate::failure::Failure;
use crate::guest::Guest;
use crate::limits::{Limits, SLICE, STACK_BYTES_MAX, TABLE_ELEMENTS_MAX, TABLES_MAX};

/// The version of the interface that this server speaks.
pub(crate) const ABI_VERSION: i32 = 1;
/// Instances that a module keeps for the next call.
const IDLE_MAX: usize = 8;
/// Bytes of memory of an instance that is kept: memory never shrinks, so that one large call would hold its memory for ever.
const IDLE_BYTES_MAX: usize = 4 << 20;
/// Lines that a call may log.
const LINES_MAX: usize = 16;
/// Bytes of such a line.
const LINE_BYTES_MAX: usize = 256;

/// What an instance's store holds for the host.
pub(crate) struct State {
    limits: StoreLimits,
    /// Lines that the module logged.
    pub(crate) log: Vec<String>,
}

/// See the module's documentation.
pub(crate) struct Code {
    module: Module,
    linker: Linker<State>,
    pub(crate) limits: Limits,
    idle: Mutex<Vec<Guest>>,
}

impl Code {
    /// Translates a module and makes its first instance, so that errors show now.
    pub(crate) fn new(bytes: &[u8], limits: &Limits) -> Result<Code, Failure> {
        let engine = Engine::new(&config(limits));
        let module = Module::new(&engine, bytes).map_err(|error| Failure::trap(&error))?;
        check_imports(&module, limits)?;
        let mut linker = Linker::new(&engine);
        if limits.grants_log() {
            let defined = linker.func_wrap("squall", "log", log);
            defined.map_err(|error| Failure::guest(error.to_string()))?;
        }
        let code = Code { module, linker, limits: limits.clone(), idle: Mutex::default() };
        let guest = code.instance()?;
        code.put_back(guest);
        Ok(code)
    }

    /// The type of an exported function.
    pub(crate) fn function(&self, name: &str) -> Option<FuncType> {
        match self.module.get_export(name)? {
            ExternType::Func(ty) => Some(ty),
            ExternType::Global(_) | ExternType::Memory(_) | ExternType::Table(_) => None,
        }
    }

    /// The exported functions that are not part of the interface or of a language's runtime.
    pub(crate) fn functions(&self) -> Vec<String> {
        let exports = self.module.exports();
        let names = exports.filter(|export| matches!(export.ty(), ExternType::Func(_)));
        names.map(|export| export.name().to_owned()).filter(|name| !is_reserved(name)).collect()
    }

    /// An instance that no call uses.
    pub(crate) fn take(&self) -> Result<Guest, Failure> {
        let idle = self.idle.lock().pop();
        idle.map_or_else(|| self.instance(), Ok)
    }

    /// Keeps an instance after a call that succeeded. One that failed is dropped: its memory may be in any state.
    pub(crate) fn put_back(&self, guest: Guest) {
        if guest.memory_bytes() > IDLE_BYTES_MAX {
            return;
        }
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX {
            idle.push(guest);
        }
        debug_assert!(idle.len() <= IDLE_MAX);
    }

    fn instance(&self) -> Result<Guest, Failure> {
        let limits = StoreLimitsBuilder::new()
            .memory_size(self.limits.memory_bytes())
            .table_elements(TABLE_ELEMENTS_MAX)
            .tables(TABLES_MAX)
            .memories(1)
            .instances(1)
            .build();
        let mut store = Store::new(self.module.engine(), State { limits, log: Vec::new() });
        store.limiter(|state| &mut state.limits);
        // A start function cannot be interrupted, so it gets what a call may run between two checks.
        store.set_fuel(SLICE.min(self.limits.fuel())).map_err(|error| Failure::trap(&error))?;
        let instance = self.linker.instantiate_and_start(&mut store, &self.module);
        let instance = instance.map_err(|error| Failure::trap(&error))?;
        Guest::new(store, instance)
    }
}

/// Refuses imports that nobody granted.
fn check_imports(module: &Module, limits: &Limits) -> Result<(), Failure> {
    let is_granted = |import: &wasmi::ImportType<'_>| {
        limits.grants_log() && import.module() == "squall" && import.name() == "log"
    };
    match module.imports().find(|import| !is_granted(import)) {
        None => Ok(()),
        Some(import) => {
            let (module, name) = (import.module(), import.name());
            Err(Failure::Guest(format!(
                "it imports {module}.{name}, which wasm_grants does not name"
            )))
        }
    }
}

/// Names that `functions` leaves out.
fn is_reserved(name: &str) -> bool {
    const RUNTIME: [&str; 2] = ["_start", "_initialize"];
    name.starts_with("squall_") || name.starts_with("__") || RUNTIME.contains(&name)
}

fn config(limits: &Limits) -> Config {
    let mut config = Config::default();
    config
        .consume_fuel(true)
        .compilation_mode(CompilationMode::Eager)
        .enforced_limits(EnforcedLimits::strict())
        .ignore_custom_sections(true)
        .wasm_multi_memory(false)
        .wasm_memory64(false)
        .set_min_stack_height(1024)
        .set_max_stack_height(STACK_BYTES_MAX)
        .set_max_recursion_depth(limits.depth());
    config
}

/// `squall.log(pointer, length)`: a line that becomes a note of the statement.
fn log(mut caller: Caller<'_, State>, pointer: u32, length: u32) -> Result<(), wasmi::Error> {
    let outside = || wasmi::Error::new("squall.log: a text outside of the memory");
    let memory = caller.get_export("memory").and_then(Extern::into_memory).ok_or_else(outside)?;
    let (from, length) = (pointer as usize, length as usize);
    let until = from.checked_add(length.min(LINE_BYTES_MAX)).ok_or_else(outside)?;
    let bytes = memory.data(&caller).get(from..until).ok_or_else(outside)?;
    let line = String::from_utf8_lossy(bytes).into_owned();
    let log = &mut caller.data_mut().log;
    if log.len() < LINES_MAX {
        log.push(line);
    }
    Ok(())
}
