//! An instance of a module: calls in slices of fuel, and checked access to its memory.
//!
//! Every pointer and length from the module is checked against its memory as it is at that time.

use errors::Result as ServerResult;
use wasmi::{Func, Instance, Memory, ResumableCall, Store, Val};

use crate::code::{ABI_VERSION, State};
use crate::failure::Failure;
use crate::limits::SLICE;

/// The buffer that stands for NULL.
pub(crate) const NULL_BUFFER: i64 = -1;

/// See the module's documentation.
pub(crate) struct Guest {
    store: Store<State>,
    instance: Instance,
    memory: Option<Memory>,
    alloc: Option<Func>,
    free: Option<Func>,
    was_null: Option<Func>,
}

/// The fuel that is left for one call, and the check whether the statement was cancelled.
pub(crate) struct Budget<'c> {
    pub(crate) fuel: u64,
    pub(crate) check: &'c mut dyn FnMut() -> ServerResult<()>,
}

impl Budget<'_> {
    /// The fuel of the next slice, which needs `required` at least.
    fn slice(&mut self, required: u64) -> Result<u64, Failure> {
        let slice = SLICE.max(required).min(self.fuel);
        if slice == 0 || slice < required {
            return Err(Failure::guest("it ran more instructions than wasm_fuel allows"));
        }
        debug_assert!(slice <= self.fuel, "a slice is part of what is left");
        self.fuel -= slice;
        Ok(slice)
    }
}

impl Guest {
    /// A new instance; checks the version of its interface.
    pub(crate) fn new(store: Store<State>, instance: Instance) -> Result<Guest, Failure> {
        let memory = instance.get_memory(&store, "memory");
        let function = |name| instance.get_func(&store, name);
        let (alloc, free) = (function("squall_alloc"), function("squall_free"));
        let (was_null, version) = (function("squall_was_null"), function("squall_abi_version"));
        let mut guest = Guest { memory, alloc, free, was_null, store, instance };
        let mut unchecked = || Ok(());
        let mut budget = Budget { fuel: SLICE, check: &mut unchecked };
        match version {
            Some(version) => {
                let version = guest.call_i32(version, &[], &mut budget, "squall_abi_version")?;
                if version != ABI_VERSION {
                    let what = format!("its interface has version {version}, not {ABI_VERSION}");
                    return Err(Failure::Guest(what));
                }
            }
            None if guest.alloc.is_some() => {
                return Err(Failure::guest("it exports squall_alloc but not squall_abi_version"));
            }
            None => {}
        }
        Ok(guest)
    }

    /// An exported function.
    pub(crate) fn function(&self, name: &str) -> Result<Func, Failure> {
        let found = self.instance.get_func(&self.store, name);
        found.ok_or_else(|| Failure::Guest(format!("it does not export a function {name}")))
    }

    /// The lines logged since the last time.
    pub(crate) fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.store.data_mut().log)
    }

    /// Calls a function. Between slices of fuel it checks whether the statement was cancelled.
    pub(crate) fn call(
        &mut self,
        function: Func,
        inputs: &[Val],
        outputs: &mut [Val],
        budget: &mut Budget<'_>,
    ) -> Result<(), Failure> {
        let trap = |error: wasmi::Error| Failure::trap(&error);
        self.store.set_fuel(budget.slice(0)?).map_err(trap)?;
        let call = function.call_resumable(&mut self.store, inputs, outputs).map_err(trap)?;
        let result = match call {
            ResumableCall::Finished => Ok(()),
            // It takes longer: another thread may serve the connections of this one.
            call => sys::blocking::blocking(|| self.resume(call, outputs, budget)),
        };
        budget.fuel += self.store.get_fuel().map_err(trap)?;
        result
    }

    fn resume(
        &mut self,
        mut call: ResumableCall,
        outputs: &mut [Val],
        budget: &mut Budget<'_>,
    ) -> Result<(), Failure> {
        let trap = |error: wasmi::Error| Failure::trap(&error);
        loop {
            call = match call {
                ResumableCall::Finished => return Ok(()),
                ResumableCall::HostTrap(trapped) => {
                    return Err(Failure::trap(trapped.host_error()));
                }
                ResumableCall::OutOfFuel(stopped) => {
                    (budget.check)()?;
                    let left = self.store.get_fuel().map_err(trap)?;
                    let required = stopped.required_fuel().saturating_sub(left);
                    let fuel = left + budget.slice(required)?;
                    self.store.set_fuel(fuel).map_err(trap)?;
                    stopped.resume(&mut self.store, outputs).map_err(trap)?
                }
            };
        }
    }

    /// Calls a function of the interface that returns an `i32`.
    pub(crate) fn call_i32(
        &mut self,
        function: Func,
        inputs: &[Val],
        budget: &mut Budget<'_>,
        name: &str,
    ) -> Result<i32, Failure> {
        let mut outputs = [Val::I32(0)];
        self.check_type(function, inputs, &outputs, name)?;
        self.call(function, inputs, &mut outputs, budget)?;
        outputs[0].i32().ok_or_else(|| Failure::Guest(format!("{name} does not return an i32")))
    }

    /// Calls an exported function without parameters that returns an `i64`.
    pub(crate) fn call_i64(&mut self, budget: &mut Budget<'_>, name: &str) -> Result<i64, Failure> {
        let mut outputs = [Val::I64(0)];
        let function = self.function(name)?;
        self.check_type(function, &[], &outputs, name)?;
        self.call(function, &[], &mut outputs, budget)?;
        outputs[0].i64().ok_or_else(|| Failure::Guest(format!("{name} does not return an i64")))
    }

    /// The interpreter checks the types of calls, but its messages do not name the function.
    fn check_type(
        &self,
        function: Func,
        inputs: &[Val],
        outputs: &[Val],
        name: &str,
    ) -> Result<(), Failure> {
        let ty = function.ty(&self.store);
        let is_same = ty.params().iter().copied().eq(inputs.iter().map(Val::ty))
            && ty.results().iter().copied().eq(outputs.iter().map(Val::ty));
        match is_same {
            true => Ok(()),
            false => Err(Failure::Guest(format!(
                "{name} has another type than docs/format/wasm.md says"
            ))),
        }
    }

    /// Copies bytes into memory that the module allocates.
    pub(crate) fn put(&mut self, bytes: &[u8], budget: &mut Budget<'_>) -> Result<u32, Failure> {
        let Some(alloc) = self.alloc else {
            return Err(Failure::guest("it does not export squall_alloc, which texts need"));
        };
        let Ok(length) = i32::try_from(bytes.len()) else {
            return Err(Failure::guest("an argument is longer than 2 GiB"));
        };
        let pointer = self.call_i32(alloc, &[Val::I32(length)], budget, "squall_alloc")? as u32;
        let from = pointer as usize;
        let memory = self.memory()?;
        let place = from
            .checked_add(bytes.len())
            .and_then(|until| memory.data_mut(&mut self.store).get_mut(from..until));
        let Some(place) = place else {
            return Err(Failure::guest("squall_alloc returned memory that it does not have"));
        };
        debug_assert_eq!(place.len(), bytes.len());
        place.copy_from_slice(bytes);
        Ok(pointer)
    }

    /// Gives memory of `put`, or of a result, back to the module.
    pub(crate) fn free(
        &mut self,
        pointer: u32,
        length: u32,
        budget: &mut Budget<'_>,
    ) -> Result<(), Failure> {
        let Some(free) = self.free else { return Ok(()) };
        let inputs = [Val::I32(pointer as i32), Val::I32(length as i32)];
        self.check_type(free, &inputs, &[], "squall_free")?;
        self.call(free, &inputs, &mut [], budget)
    }

    /// Whether the result of the last call is NULL, where its own form cannot say so.
    pub(crate) fn was_null(&mut self, budget: &mut Budget<'_>) -> Result<bool, Failure> {
        let Some(was_null) = self.was_null else { return Ok(false) };
        Ok(self.call_i32(was_null, &[], budget, "squall_was_null")? != 0)
    }

    /// Copies the bytes of a buffer that the module returned, at most `bytes_max`, and gives its memory back; `None` for NULL.
    pub(crate) fn take_buffer(
        &mut self,
        buffer: i64,
        bytes_max: u64,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Vec<u8>>, Failure> {
        if buffer == NULL_BUFFER {
            return Ok(None);
        }
        let (pointer, length) = ((buffer as u64 >> 32) as u32, buffer as u32);
        if u64::from(length) > bytes_max {
            return Err(Failure::guest("its result is longer than max_allowed_packet"));
        }
        let (from, memory) = (pointer as usize, self.memory()?);
        let bytes = from
            .checked_add(length as usize)
            .and_then(|until| memory.data(&self.store).get(from..until));
        let Some(bytes) = bytes.map(<[u8]>::to_vec) else {
            return Err(Failure::guest("its result is outside of its memory"));
        };
        self.free(pointer, length, budget)?;
        Ok(Some(bytes))
    }

    /// Bytes of its memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory.map_or(0, |memory| memory.data_size(&self.store))
    }

    fn memory(&self) -> Result<Memory, Failure> {
        self.memory.ok_or_else(|| Failure::guest("it does not export its memory"))
    }
}
