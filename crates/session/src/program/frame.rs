//! What a running program holds: its variables, open cursors, and the handlers in force.

use std::sync::Arc;

use errors::{Condition, ErrorCode, Result, bail, err};
use plugin_api::{ForwardingSink, OkInfo, ResultSink, SessionState};
use syntax::Statement;
use syntax::ast::{ConditionValue, HandlerKind, LocalVariable};
use types::convert::{CastContext, StoreMode, store};
use types::{DataType, Value};

use super::load::Loaded;
use crate::session::Session;
use crate::statement::{Origin, Running};

/// A handler that is in force.
#[derive(Clone)]
pub(super) struct ActiveHandler {
    /// The block that declared it.
    pub(super) block: u32,
    pub(super) action: HandlerKind,
    pub(super) conditions: Arc<[ConditionValue]>,
    /// What it does.
    pub(super) body: Arc<syntax::ast::ProgramStatement>,
}

/// A cursor: what it reads, and when it is open its rows.
#[derive(Default)]
pub(super) struct Cursor {
    pub(super) query: Option<Arc<Statement>>,
    rows: Option<Rows>,
}

struct Rows {
    rows: std::vec::IntoIter<Vec<Value>>,
    types: Vec<DataType>,
}

/// One running program.
pub(crate) struct Frame {
    pub(super) loaded: Arc<Loaded>,
    /// Values of the variables by number; those behind them are of the statement at hand.
    pub(super) values: Arc<Vec<Value>>,
    pub(super) types: Arc<[DataType]>,
    pub(super) cursors: Vec<Cursor>,
    pub(super) handlers: Vec<ActiveHandler>,
    /// What the handlers that run were called for, the latest last.
    pub(crate) handled: Vec<Vec<Condition>>,
    /// Blocks entered so far.
    pub(super) blocks: u32,
    /// What RETURN said.
    pub(super) returned: Option<(Value, DataType)>,
}

impl Frame {
    pub(super) fn new(loaded: Arc<Loaded>) -> Frame {
        Frame {
            values: Arc::new(vec![Value::Null; loaded.variables.len()]),
            types: loaded.types.clone(),
            cursors: (0..loaded.cursors).map(|_| Cursor::default()).collect(),
            handlers: Vec::new(),
            handled: Vec::new(),
            blocks: 0,
            returned: None,
            loaded,
        }
    }

    /// The types of `values`, as one object that tells them from others.
    pub(super) fn types_shared(&self) -> &Arc<[DataType]> {
        &self.types
    }

    /// The types of `values`.
    pub(crate) fn types(&self) -> &[DataType] {
        &self.types
    }

    pub(super) fn set(&mut self, slot: usize, value: Value) {
        if let Some(place) = Arc::make_mut(&mut self.values).get_mut(slot) {
            *place = value;
        }
    }
}

impl Session {
    /// The program that runs.
    pub(crate) fn frame(&mut self) -> Result<&mut Frame> {
        self.frames.last_mut().ok_or_else(|| errors::Error::internal("no stored program runs"))
    }

    /// Stores a value in a variable of the running program.
    pub(crate) fn assign_local(
        &mut self,
        variable: &LocalVariable,
        value: &Value,
        from: &DataType,
    ) -> Result<()> {
        self.store_local(variable.slot as usize, value, from)
    }

    pub(super) fn store_local(
        &mut self,
        slot: usize,
        value: &Value,
        from: &DataType,
    ) -> Result<()> {
        let loaded = self.frame()?.loaded.clone();
        let variable = loaded
            .variables
            .get(slot)
            .ok_or_else(|| errors::Error::internal("a variable without a place"))?;
        let stored = self.convert_variable(&variable.name, value, from, &variable.ty)?;
        self.frame()?.set(slot, stored);
        Ok(())
    }

    /// Makes of a value what a variable holds.
    pub(super) fn convert_variable(
        &mut self,
        name: &str,
        value: &Value,
        from: &DataType,
        to: &DataType,
    ) -> Result<Value> {
        let sql_mode = self.settings.sql_mode;
        let mode = if sql_mode.is_strict() { StoreMode::Strict } else { StoreMode::Lenient };
        let now = self.services.fixed_now_micros.unwrap_or(self.started_micros);
        let today = self.local_clock.read(now, &*self.settings.time_zone).date();
        let mut ctx = CastContext {
            sql_mode,
            diagnostics: &mut self.working,
            time_zone: &*self.settings.time_zone,
            today,
            column: name,
            row: 1,
        };
        store(value, from, to, &mut ctx, mode)
    }

    /// OPEN.
    pub(super) fn open_cursor_of(&mut self, slot: u32) -> Result<()> {
        let frame = self.frame()?;
        let (loaded, values) = (frame.loaded.clone(), frame.values.clone());
        let cursor = frame.cursors.get_mut(slot as usize);
        let cursor = cursor.ok_or_else(|| err!(SP_CURSOR_NOT_OPEN))?;
        if cursor.rows.is_some() {
            bail!(SP_CURSOR_ALREADY_OPEN);
        }
        let query = cursor.query.clone().ok_or_else(|| err!(SP_CURSOR_NOT_OPEN))?;
        let running = Running {
            source: &loaded.source,
            parameters: &values,
            origin: Origin::Program,
            kept: None,
        };
        let planned = self.plan_and_lock(&query, &running)?;
        // The session's limit is for results.
        let limit = self.settings.sql_select_limit.take();
        let rows = self.run_collecting(&planned, &values);
        self.settings.sql_select_limit = limit;
        let rows = rows?;
        let types = planned.program.columns().iter().map(|column| column.ty.clone()).collect();
        self.finish_transaction_scope()?;
        let cursor = self.frame()?.cursors.get_mut(slot as usize);
        if let Some(cursor) = cursor {
            cursor.rows = Some(Rows { rows: rows.into_iter(), types });
        }
        Ok(())
    }

    /// CLOSE.
    pub(super) fn close_cursor_of(&mut self, slot: u32) -> Result<()> {
        let cursor = self.frame()?.cursors.get_mut(slot as usize);
        match cursor.and_then(|cursor| cursor.rows.take()) {
            Some(_) => Ok(()),
            None => Err(err!(SP_CURSOR_NOT_OPEN)),
        }
    }

    /// FETCH.
    pub(super) fn fetch_cursor(&mut self, slot: u32, into: &[LocalVariable]) -> Result<()> {
        let cursor = self.frame()?.cursors.get_mut(slot as usize);
        let rows = cursor.and_then(|cursor| cursor.rows.as_mut());
        let rows = rows.ok_or_else(|| err!(SP_CURSOR_NOT_OPEN))?;
        if rows.types.len() != into.len() {
            bail!(SP_WRONG_NO_OF_FETCH_ARGS);
        }
        let row = rows.rows.next().ok_or_else(|| err!(SP_FETCH_NO_DATA))?;
        let types = rows.types.clone();
        for ((variable, value), ty) in into.iter().zip(&row).zip(&types) {
            self.assign_local(variable, value, ty).map_err(|error| {
                if error.code() == ErrorCode::DATA_TOO_LONG {
                    return err!(DATA_TRUNCATED, variable.name.text, 1);
                }
                error
            })?;
        }
        Ok(())
    }
}

/// Results of a program's statements: rows go to the client, what only says OK stays inside.
pub(super) struct ProgramSink<'a> {
    pub(super) inner: &'a mut dyn ResultSink,
    pub(super) affected_rows: u64,
}

impl ForwardingSink for ProgramSink<'_> {
    fn target(&mut self) -> &mut dyn ResultSink {
        self.inner
    }

    fn end(&mut self, state: &SessionState) -> Result<()> {
        self.affected_rows = 0;
        self.inner.end(state)
    }

    fn ok(&mut self, ok: &OkInfo) -> Result<()> {
        self.affected_rows = ok.affected_rows;
        Ok(())
    }
}
