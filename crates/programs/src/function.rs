//! Calls of stored functions.

use std::sync::Arc;

use catalog::{PrivilegeSet, Routine};
use errors::{Diagnostics, Error, Result, bail, err};
use plugin_api::{ColumnMeta, LocalFile, OkInfo, ResultSink, RowSource, SessionState};
use types::{DataType, Value};

use crate::frame::Frame;
use crate::host::ProgramHost;
use crate::load::{Loaded, Made, loaded};
use crate::run::run_body;

/// Loads a function ready to run, if the account may run it.
///
/// # Errors
/// 1370; errors in its text.
pub fn callable<H: ProgramHost + ?Sized>(
    host: &mut H,
    routine: &Arc<Routine>,
) -> Result<Arc<Loaded>> {
    let Routine { schema, kind, name, .. } = &**routine;
    host.require_on_routine(schema, *kind, name, PrivilegeSet::EXECUTE)?;
    loaded(host, Made::Routine(routine.clone()))
}

/// Calls a function with values of some types. `caption`: the name that errors about its value use.
///
/// # Errors
/// Errors of its body; its value does not fit.
pub fn call_function<H: ProgramHost + ?Sized>(
    host: &mut H,
    loaded: &Arc<Loaded>,
    caption: &str,
    args: Vec<Value>,
    types: &[DataType],
) -> Result<Value> {
    let Made::Routine(routine) = &loaded.made else {
        return Err(Error::internal("a trigger that is called"));
    };
    if host.state().frames.iter().any(|frame| frame.loaded.is_routine(routine)) {
        bail!(SP_NO_RECURSION);
    }
    host.state().check_depth()?;
    begin_conditions(host);
    let mut frame = Frame::new(loaded.clone());
    let given = args.iter().zip(types);
    for (slot, (parameter, (value, ty))) in routine.parameters.iter().zip(given).enumerate() {
        frame.set(slot, host.convert(&parameter.name, value, ty, &parameter.ty)?);
    }
    let outside = host.enter(loaded)?;
    host.state_mut().frames.push(frame);
    let result = run_body(host, loaded, &mut FunctionSink { word: "function" });
    let returned = host.state_mut().frames.pop().and_then(|frame| frame.returned);
    let result = result.and_then(|()| {
        let (value, ty) = returned.ok_or_else(|| err!(SP_NORETURNEND, routine.name))?;
        match &routine.returns {
            Some((_, to)) => host.convert(caption, &value, &ty, to),
            None => Err(Error::internal("a function without a type")),
        }
    });
    host.leave(outside);
    result
}

/// Functions and triggers begin without conditions.
pub(crate) fn begin_conditions<H: ProgramHost + ?Sized>(host: &mut H) {
    let count_max = host.settings().max_error_count;
    let conditions = host.conditions();
    *conditions.working = Diagnostics::new(count_max);
    *conditions.last = Diagnostics::default();
}

/// Refuses result sets: functions return values, triggers nothing.
pub(crate) struct FunctionSink {
    /// The kind of program that runs.
    pub(crate) word: &'static str,
}

impl ResultSink for FunctionSink {
    fn columns(&mut self, _: &[ColumnMeta]) -> Result<()> {
        Err(err!(SP_NO_RETSET, self.word))
    }

    fn row(&mut self, _: &dyn RowSource) -> Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &SessionState) -> Result<()> {
        Ok(())
    }

    fn ok(&mut self, _: &OkInfo) -> Result<()> {
        Ok(())
    }

    fn error(&mut self, _: &Error) -> Result<()> {
        Ok(())
    }

    fn local_file(&mut self, _: &str) -> Result<Box<dyn LocalFile + '_>> {
        bail!(NOT_ALLOWED_COMMAND);
    }
}
