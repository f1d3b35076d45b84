//! Stored functions: what a statement calls is run before it, as a part of it.

use errors::{Diagnostics, Error, Result, bail, err};
use exec::{Outcome, RowSink};
use plugin_api::{
    ColumnMeta, LocalFile, OkInfo, ResultSink, RowSource, SessionServices, SessionState,
};
use types::Value;

use super::frame::Frame;
use crate::planned::Planned;
use crate::session::Session;
use crate::statement::{Origin, Running};

/// A place to come back to when the statement fails; no user can write its name.
const BEFORE: &str = "\0statement";

impl Session {
    /// Makes the calls of a plan, then runs it.
    pub(crate) fn run_after_calls(
        &mut self,
        planned: &Planned,
        parameters: &[Value],
        rows: &mut dyn RowSink,
    ) -> Result<Outcome> {
        let is_outermost = self.function_depth == 0 && self.transactions.explicit;
        if is_outermost {
            self.transactions.savepoint(BEFORE);
        }
        let result = self.make_calls(planned, parameters).and_then(|values| {
            let before: Vec<Option<_>> = planned
                .stored_calls
                .iter()
                .zip(values)
                .map(|(call, value)| {
                    let old = self.services.user_variables.remove(&*call.variable);
                    let ty = call.routine.returns.as_ref().map(|(_, ty)| ty.clone());
                    let ty = ty.unwrap_or_else(types::DataType::null);
                    self.services.set_user_variable(&call.variable, value, ty);
                    old
                })
                .collect();
            let outcome = self.run_alone(planned, parameters, rows);
            for (call, old) in planned.stored_calls.iter().zip(before) {
                self.services.user_variables.remove(&*call.variable);
                if let Some(old) = old {
                    self.services.user_variables.insert((*call.variable).into(), old);
                }
            }
            outcome
        });
        if is_outermost {
            if result.is_err() {
                // The statement's own error is the one to report.
                let _ = self.transactions.rollback_to(BEFORE);
            }
            let _ = self.transactions.release(BEFORE);
        }
        result
    }

    fn make_calls(&mut self, planned: &Planned, parameters: &[Value]) -> Result<Vec<Value>> {
        let kept = self.working.clone();
        let diagnostics = self.diagnostics.clone();
        let (row_count, found_rows) = (self.services.row_count, self.services.found_rows);
        let (id, id_set) = (self.services.last_insert_id, self.services.last_insert_id_set);
        let keeps = self.keeps_diagnostics;
        self.function_depth += 1;
        let calls = planned.stored_calls.iter();
        let values = calls.map(|call| self.call_function(call, parameters)).collect();
        self.function_depth -= 1;
        let said = std::mem::replace(&mut self.working, kept);
        self.working.append(said);
        self.diagnostics = diagnostics;
        self.keeps_diagnostics = keeps;
        (self.services.row_count, self.services.found_rows) = (row_count, found_rows);
        (self.services.last_insert_id, self.services.last_insert_id_set) = (id, id_set);
        values
    }

    fn call_function(&mut self, call: &binder::StoredCall, parameters: &[Value]) -> Result<Value> {
        let routine = &call.routine;
        self.require_on_routine(routine, catalog::PrivilegeSet::EXECUTE, "execute")?;
        let loaded = self.loaded_routine(routine)?;
        let runs = self.frames.iter().any(|frame| frame.loaded.is_routine(routine));
        if runs {
            bail!(SP_NO_RECURSION);
        }
        self.check_depth()?;
        let mut frame = Frame::new(loaded.clone());
        let origin = if parameters.is_empty() { Origin::Text } else { Origin::Prepared };
        let running = Running { source: b"", parameters, origin, kept: None };
        for (slot, (parameter, arg)) in routine.parameters.iter().zip(&call.args).enumerate() {
            let (value, ty) = self.evaluate(arg, &running)?;
            let value = self.convert_variable(&parameter.name, &value, &ty, &parameter.ty)?;
            frame.set(slot, value);
        }
        self.working = Diagnostics::new(self.settings.max_error_count);
        self.diagnostics = Diagnostics::default();
        let outside = self.enter(&loaded)?;
        self.frames.push(frame);
        let result = self.run_body(&loaded, &mut FunctionSink { word: "function" });
        let returned = self.frames.pop().and_then(|frame| frame.returned);
        let result = result.and_then(|()| {
            let (value, ty) = returned.ok_or_else(|| err!(SP_NORETURNEND, routine.name))?;
            match &routine.returns {
                Some((_, to)) => self.convert_variable(&call.caption, &value, &ty, to),
                None => Err(Error::internal("a function without a type")),
            }
        });
        self.leave(outside);
        let warnings = std::mem::take(&mut self.diagnostics);
        self.working.append(warnings);
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
