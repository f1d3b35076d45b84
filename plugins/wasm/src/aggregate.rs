//! Aggregates of a plugin. The groups that a session has of a call are in one instance of the module, so that `wasm_memory_limit` bounds them
//! together: the module begins a group, adds rows to it, tells its result and ends it.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use errors::Result;
use plugin_api::kit::aggregate_made;
use plugin_api::{
    Accumulator, AggregateFunction, ArgInfo, Arity, BindContext, BoundAggregate, FunctionContext,
};
use sys::sync::Mutex;
use types::Value;
use wasmi::{FuncType, Val, ValType};

use crate::code::Code;
use crate::describe::Described;
use crate::failure::Failure;
use crate::guest::{Budget, Guest};
use crate::limits::SLICE;
use crate::loader::check_result;
use crate::signature::Signature;
use crate::values::Callee;

/// An aggregate of a module, matched with its description.
pub(crate) struct Aggregate {
    /// Upper case.
    name: &'static str,
    help: &'static str,
    described: Described,
    begin: String,
    add: (String, Signature),
    result: (String, Signature),
    end: String,
}

impl Aggregate {
    pub(crate) fn new(
        name: &'static str,
        help: &'static str,
        described: Described,
        code: &Code,
    ) -> Result<Aggregate, Failure> {
        let export = |part: &str| -> Result<(String, FuncType), Failure> {
            let export = format!("{}_{part}", described.name);
            match code.function(&export) {
                Some(ty) => Ok((export, ty)),
                None => Err(Failure::Guest(format!(
                    "it describes the aggregate {} and does not export {export}",
                    described.name
                ))),
            }
        };
        // The rest of a function's type after the group.
        let of_group = |export: &str, ty: &FuncType| match ty.params() {
            [ValType::I32, rest @ ..] => {
                Ok(FuncType::new(rest.iter().copied(), ty.results().iter().copied()))
            }
            _ => Err(Failure::Guest(format!("the first parameter of {export} is not an i32"))),
        };
        let (begin, begin_type) = export("begin")?;
        let (end, end_type) = export("end")?;
        if begin_type != FuncType::new([], [ValType::I32]) {
            return Err(Failure::Guest(format!("{begin} is not a function () -> i32")));
        }
        if end_type != FuncType::new([ValType::I32], []) {
            return Err(Failure::Guest(format!("{end} is not a function (i32) -> ()")));
        }
        let takes_nulls = code.function("squall_takes_nulls").is_some();
        let (add, ty) = export("add")?;
        let parameters = described.parameter_types();
        let add_signature = Signature::new(&of_group(&add, &ty)?, takes_nulls, &parameters, &[])?;
        let (result, ty) = export("result")?;
        let returns = [described.returns.data_type()];
        let result_signature = Signature::new(&of_group(&result, &ty)?, false, &[], &returns)?;
        check_result(&described, &result_signature)?;
        let (add, result) = ((add, add_signature), (result, result_signature));
        Ok(Aggregate { name, help, described, begin, add, result, end })
    }

    /// The aggregate for the registry.
    pub(crate) fn declared(self: &Arc<Self>, code: &Arc<Code>) -> AggregateFunction {
        let arity = Arity::exactly(self.described.parameters.len());
        let (aggregate, code) = (self.clone(), code.clone());
        let bind = move |_: &BindContext, _: &[ArgInfo]| Ok(bound(&aggregate, &code));
        aggregate_made(self.name, arity, self.help, Arc::new(bind))
    }
}

/// A call in a plan.
fn bound(aggregate: &Arc<Aggregate>, code: &Arc<Code>) -> BoundAggregate {
    let call = Arc::new(Call {
        aggregate: aggregate.clone(),
        code: code.clone(),
        groups: Mutex::default(),
    });
    BoundAggregate {
        ty: aggregate.described.returns.data_type(),
        coercions: aggregate.described.coercions(),
        skip_nulls: !aggregate.add.1.takes_nulls,
        accumulator: Arc::new(move || {
            Box::new(Group { call: call.clone(), groups: None, state: None })
        }),
    }
}

struct Call {
    aggregate: Arc<Aggregate>,
    code: Arc<Code>,
    /// The instance of each session that has groups now: sessions share plans.
    groups: Mutex<HashMap<u64, Weak<Groups>>>,
}

/// An instance while groups are in it.
struct Groups {
    code: Arc<Code>,
    /// None after a failure: its memory may be in any state.
    guest: Mutex<Option<Guest>>,
}

impl Call {
    /// The instance for one more group of a session.
    fn groups(&self, session: u64) -> Result<Arc<Groups>, Failure> {
        let mut all = self.groups.lock();
        if let Some(groups) = all.get(&session).and_then(Weak::upgrade)
            && groups.guest.lock().is_some()
        {
            return Ok(groups);
        }
        let guest = Mutex::new(Some(self.code.take()?));
        let groups = Arc::new(Groups { code: self.code.clone(), guest });
        all.retain(|_, groups| groups.strong_count() > 0);
        all.insert(session, Arc::downgrade(&groups));
        Ok(groups)
    }
}

impl Groups {
    /// Works with the instance, which is dropped when that fails.
    fn with<T>(&self, work: impl FnOnce(&mut Guest) -> Result<T, Failure>) -> Result<T, Failure> {
        let mut held = self.guest.lock();
        let Some(guest) = held.as_mut() else {
            return Err(Failure::guest("a call for another group failed"));
        };
        let result = work(guest);
        if result.is_err() {
            *held = None;
        }
        result
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        if let Some(guest) = self.guest.lock().take() {
            self.code.put_back(guest);
        }
    }
}

/// A group.
struct Group {
    call: Arc<Call>,
    /// Its instance; not before it is needed.
    groups: Option<Arc<Groups>>,
    /// The name that the module gave it when it began.
    state: Option<i32>,
}

impl Group {
    /// Calls a function of the group.
    fn run(
        &mut self,
        context: &mut FunctionContext<'_>,
        (export, signature): &(String, Signature),
        arguments: &[Value],
    ) -> Result<Value, Failure> {
        let fuel = self.call.code.limits.fuel();
        let groups = match &self.groups {
            Some(groups) => groups,
            None => self.groups.insert(self.call.groups(context.session.connection_id())?),
        };
        let state = match self.state {
            Some(state) => state,
            None => {
                let begin = &self.call.aggregate.begin;
                let session = &*context.session;
                let mut check = || session.check_cancelled();
                let mut budget = Budget { fuel, check: &mut check };
                let begun = groups.with(|guest| {
                    let function = guest.function(begin)?;
                    guest.call_i32(function, &[], &mut budget, begin)
                });
                *self.state.insert(begun?)
            }
        };
        let callee = Callee { export, signature, state: Some(state) };
        let results = groups.with(|guest| callee.call(guest, fuel, arguments, context))?;
        Ok(results.into_iter().next().flatten().map_or(Value::Null, |typed| typed.value))
    }
}

impl Accumulator for Group {
    fn update(&mut self, context: &mut FunctionContext<'_>, arguments: &[Value]) -> Result<()> {
        let aggregate = self.call.aggregate.clone();
        let added = self.run(context, &aggregate.add, arguments);
        added.map(drop).map_err(|failure| failure.of_call(&aggregate.described.name))
    }

    fn result(&mut self, context: &mut FunctionContext<'_>) -> Result<Value> {
        let aggregate = self.call.aggregate.clone();
        let result = self.run(context, &aggregate.result, &[]);
        result.map_err(|failure| failure.of_call(&aggregate.described.name))
    }

    fn reset(&mut self) {
        let (Some(groups), Some(state)) = (&self.groups, self.state.take()) else { return };
        let end = &self.call.aggregate.end;
        let mut unchecked = || Ok(());
        let mut budget = Budget { fuel: SLICE, check: &mut unchecked };
        // A group that does not end takes its instance with it: the next call begins in another one.
        let ended = groups.with(|guest| {
            let function = guest.function(end)?;
            guest.call(function, &[Val::I32(state)], &mut [], &mut budget)
        });
        drop(ended);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.reset();
    }
}
