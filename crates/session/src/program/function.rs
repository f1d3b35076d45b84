//! Calls of stored functions.

use ::accounts::PrivilegeChecks;
use std::sync::Arc;

use catalog::{PrivilegeSet, Routine};
use errors::{Diagnostics, Error, Result, bail, err};
use plugin_api::{ColumnMeta, LocalFile, OkInfo, ResultSink, RowSource, SessionState};
use types::{DataType, Value};

use super::frame::Frame;
use super::load::Loaded;
use crate::session::Session;

impl Session {
    /// A function ready to run, for an account that may.
    pub(super) fn callable(&mut self, routine: &Arc<Routine>) -> Result<Arc<Loaded>> {
        let Routine { schema, kind, name, .. } = &**routine;
        self.require_on_routine(schema, *kind, name, PrivilegeSet::EXECUTE)?;
        self.loaded_routine(routine)
    }

    /// Calls a function with values of some types.
    pub(super) fn call_function(
        &mut self,
        loaded: &Arc<Loaded>,
        routine: &Routine,
        caption: &str,
        args: Vec<Value>,
        types: &[DataType],
    ) -> Result<Value> {
        if self.frames.iter().any(|frame| frame.loaded.is_routine(routine)) {
            bail!(SP_NO_RECURSION);
        }
        self.check_depth()?;
        self.working = Diagnostics::new(self.settings.max_error_count);
        self.diagnostics = Diagnostics::default();
        let mut frame = Frame::new(loaded.clone());
        let given = args.iter().zip(types);
        for (slot, (parameter, (value, ty))) in routine.parameters.iter().zip(given).enumerate() {
            frame.set(slot, self.convert_variable(&parameter.name, value, ty, &parameter.ty)?);
        }
        let outside = self.enter(loaded)?;
        self.frames.push(frame);
        let result = self.run_body(loaded, &mut FunctionSink { word: "function" });
        let returned = self.frames.pop().and_then(|frame| frame.returned);
        let result = result.and_then(|()| {
            let (value, ty) = returned.ok_or_else(|| err!(SP_NORETURNEND, routine.name))?;
            match &routine.returns {
                Some((_, to)) => self.convert_variable(caption, &value, &ty, to),
                None => Err(Error::internal("a function without a type")),
            }
        });
        self.leave(outside);
        result
    }
}

/// Functions return values, not result sets, and triggers nothing.
pub(super) struct FunctionSink {
    /// What runs.
    pub(super) word: &'static str,
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
