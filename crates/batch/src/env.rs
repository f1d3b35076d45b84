//! The environment of a pipeline's expressions, usable on any thread: constants, and functions of their arguments alone.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use errors::{Diagnostics, Error, Result};
use hashbrown::HashMap;
use plugin_api::{BoundFunction, Coercion, FunctionContext, SessionServices};
use rows::convert;
use types::{CastContext, DataType, DateTime, SqlMode, Value, ZoneRules};

use crate::column::Column;
use crate::in_set::InSet;
use crate::{Fit, Unfit};

/// Facts of the session that kernels see on every thread.
#[derive(Clone, Copy)]
pub struct Facts<'e> {
    pub(crate) sql_mode: SqlMode,
    pub(crate) time_zone: &'e dyn ZoneRules,
    pub(crate) now_micros: i64,
    pub(crate) now: DateTime,
    pub(crate) div_precision_increment: u8,
    pub(crate) max_allowed_packet: u64,
}

impl<'e> Facts<'e> {
    /// Those of a session's statement.
    pub fn of(function: &FunctionContext<'e>) -> Facts<'e> {
        Facts {
            sql_mode: function.sql_mode,
            time_zone: function.time_zone,
            now_micros: function.now_micros,
            now: function.now,
            div_precision_increment: function.div_precision_increment,
            max_allowed_packet: function.max_allowed_packet,
        }
    }
}

/// One thread's surroundings.
pub struct Env<'e> {
    pub(crate) constants: &'e [Column],
    pub(crate) services: RefCell<Services<'e>>,
    /// By the place of its first constant: a list of IN prepared for look-ups, where that is useful.
    pub(crate) sets: RefCell<HashMap<usize, Option<Rc<InSet>>>>,
}

impl<'e> Env<'e> {
    /// For a thread that works with these constants.
    pub fn new(constants: &'e [Column], facts: Facts<'e>) -> Env<'e> {
        let services = Services { facts, diagnostics: Diagnostics::new(1), session: NoSession };
        Env { constants, services: RefCell::new(services), sets: RefCell::default() }
    }
}

/// Calls functions.
pub(crate) struct Services<'e> {
    facts: Facts<'e>,
    diagnostics: Diagnostics,
    session: NoSession,
}

impl Services<'_> {
    /// The kernel's result; the row program handles an error or a warning.
    pub(crate) fn call(&mut self, function: &BoundFunction, args: &[Value]) -> Fit<Value> {
        let facts = self.facts;
        let mut ctx = FunctionContext {
            sql_mode: facts.sql_mode,
            time_zone: facts.time_zone,
            now_micros: facts.now_micros,
            now: facts.now,
            div_precision_increment: facts.div_precision_increment,
            max_allowed_packet: facts.max_allowed_packet,
            diagnostics: &mut self.diagnostics,
            session: &mut self.session,
        };
        let result = (function.kernel)(&mut ctx, args);
        match result {
            Ok(value) if self.diagnostics.is_empty() => Ok(value),
            _ => Err(Unfit),
        }
    }

    /// Converts a value; the row program handles an error or a warning.
    pub(crate) fn convert(&mut self, value: Value, conversion: &Conversion) -> Fit<Value> {
        let facts = self.facts;
        let mut ctx = CastContext {
            sql_mode: facts.sql_mode,
            diagnostics: &mut self.diagnostics,
            time_zone: facts.time_zone,
            today: facts.now.date(),
            column: "",
            row: 1,
        };
        let result = match (conversion, value) {
            (Conversion::Argument(from, coercion), value) => {
                convert::coerce_in(value, from, coercion, &mut ctx)
            }
            (Conversion::Cast(from, to), value) => types::cast(&value, from, to, &mut ctx),
            (Conversion::Local, Value::DateTime(timestamp)) => {
                Ok(Value::DateTime(convert::to_local(timestamp, facts.time_zone)))
            }
            (Conversion::Local, _) => return Err(Unfit),
        };
        match result {
            Ok(value) if self.diagnostics.is_empty() => Ok(value),
            _ => Err(Unfit),
        }
    }
}

/// A conversion of values before use.
pub enum Conversion {
    /// Values of the type in the form that a function requires.
    Argument(DataType, Coercion),
    /// Values of the first type as the second.
    Cast(DataType, DataType),
    /// Stored timestamps as local time.
    Local,
}

/// For functions of their arguments alone, which use no session.
pub struct NoSession;

impl SessionServices for NoSession {
    fn connection_id(&self) -> u64 {
        0
    }
    fn user(&self) -> String {
        String::new()
    }
    fn current_user(&self) -> String {
        String::new()
    }
    fn database(&self) -> Option<String> {
        None
    }
    fn last_insert_id(&self) -> u64 {
        0
    }
    fn set_last_insert_id(&mut self, _: u64) {}
    fn row_count(&self) -> i64 {
        0
    }
    fn found_rows(&self) -> u64 {
        0
    }
    fn user_variable(&self, _: &str) -> Option<(Value, DataType)> {
        None
    }
    fn set_user_variable(&mut self, _: &str, _: Value, _: DataType) {}
    fn system_variable(&self, _: &str) -> Option<Value> {
        None
    }
    fn random(&mut self) -> f64 {
        0.0
    }
    fn time_zone(&self, _: &str) -> Option<Arc<dyn ZoneRules>> {
        None
    }
    fn sleep(&mut self, _: Duration) -> bool {
        true
    }
    fn check_cancelled(&self) -> Result<()> {
        Ok(())
    }
    fn get_user_lock(&mut self, _: &str, _: f64) -> Result<bool> {
        Err(Error::internal("a user lock in a batch"))
    }
    fn release_user_lock(&mut self, _: &str) -> Option<bool> {
        None
    }
    fn release_all_user_locks(&mut self) -> u64 {
        0
    }
    fn user_lock_holder(&self, _: &str) -> Option<u64> {
        None
    }
    fn version(&self) -> &str {
        ""
    }
}
