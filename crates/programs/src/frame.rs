//! State of a running program: its variables, open cursors, and the handlers in force.

use std::sync::Arc;

use errors::{Condition, ErrorCode, Result, bail, err};
use plugin_api::{ForwardingSink, OkInfo, ResultSink, SessionState};
use syntax::Statement;
use syntax::ast::{ConditionValue, HandlerKind, LocalVariable};
use types::{DataType, Value};

use crate::host::ProgramHost;
use crate::load::Loaded;
use crate::running::{Origin, Running};

/// A handler that is in force.
#[derive(Clone)]
pub(crate) struct ActiveHandler {
    /// The block that declared it.
    pub(crate) block: u32,
    pub(crate) action: HandlerKind,
    pub(crate) conditions: Arc<[ConditionValue]>,
    /// Its statement.
    pub(crate) body: Arc<syntax::ast::ProgramStatement>,
}

/// A cursor: its query, and its rows while it is open.
#[derive(Default)]
pub(crate) struct Cursor {
    pub(crate) query: Option<Arc<Statement>>,
    rows: Option<Rows>,
}

struct Rows {
    rows: std::vec::IntoIter<Vec<Value>>,
    types: Vec<DataType>,
}

/// One running program.
pub struct Frame {
    pub(crate) loaded: Arc<Loaded>,
    /// Values of the variables by number; those after them belong to the current statement.
    pub(crate) values: Arc<Vec<Value>>,
    pub(crate) types: Arc<[DataType]>,
    pub(crate) cursors: Vec<Cursor>,
    pub(crate) handlers: Vec<ActiveHandler>,
    /// The conditions that the running handlers were called for, the latest last.
    pub handled: Vec<Vec<Condition>>,
    /// Blocks entered so far.
    pub(crate) blocks: u32,
    /// The value of RETURN.
    pub(crate) returned: Option<(Value, DataType)>,
}

impl Frame {
    pub(crate) fn new(loaded: Arc<Loaded>) -> Frame {
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

    /// The types of `values`, as one shared object whose address identifies them.
    pub(crate) fn types_shared(&self) -> &Arc<[DataType]> {
        &self.types
    }

    /// The types of the program's variables.
    pub fn types(&self) -> &[DataType] {
        &self.types
    }

    pub(crate) fn set(&mut self, slot: usize, value: Value) {
        if let Some(place) = Arc::make_mut(&mut self.values).get_mut(slot) {
            *place = value;
        }
    }
}

/// Stores a value in a variable of the running program.
///
/// # Errors
/// It does not fit.
pub fn assign_local<H: ProgramHost + ?Sized>(
    host: &mut H,
    variable: &LocalVariable,
    value: &Value,
    from: &DataType,
) -> Result<()> {
    store_local(host, variable.slot as usize, value, from)
}

/// As `assign_local`, by the variable's number.
pub(crate) fn store_local<H: ProgramHost + ?Sized>(
    host: &mut H,
    slot: usize,
    value: &Value,
    from: &DataType,
) -> Result<()> {
    let loaded = host.state_mut().frame_mut()?.loaded.clone();
    let variable = loaded
        .variables
        .get(slot)
        .ok_or_else(|| errors::Error::internal("a variable without a slot"))?;
    let stored = host.convert(&variable.name, value, from, &variable.ty)?;
    host.state_mut().frame_mut()?.set(slot, stored);
    Ok(())
}

/// OPEN.
pub(crate) fn open_cursor<H: ProgramHost + ?Sized>(host: &mut H, slot: u32) -> Result<()> {
    let frame = host.state_mut().frame_mut()?;
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
    let plan = host.plan_query(&query, &running)?;
    let (rows, types) = host.rows_of_plan(&plan, &values)?;
    host.finish_scope()?;
    if let Some(cursor) = host.state_mut().frame_mut()?.cursors.get_mut(slot as usize) {
        cursor.rows = Some(Rows { rows: rows.into_iter(), types });
    }
    Ok(())
}

/// CLOSE.
pub(crate) fn close_cursor<H: ProgramHost + ?Sized>(host: &mut H, slot: u32) -> Result<()> {
    let cursor = host.state_mut().frame_mut()?.cursors.get_mut(slot as usize);
    match cursor.and_then(|cursor| cursor.rows.take()) {
        Some(_) => Ok(()),
        None => Err(err!(SP_CURSOR_NOT_OPEN)),
    }
}

/// FETCH.
pub(crate) fn fetch_cursor<H: ProgramHost + ?Sized>(
    host: &mut H,
    slot: u32,
    into: &[LocalVariable],
) -> Result<()> {
    let cursor = host.state_mut().frame_mut()?.cursors.get_mut(slot as usize);
    let rows = cursor.and_then(|cursor| cursor.rows.as_mut());
    let rows = rows.ok_or_else(|| err!(SP_CURSOR_NOT_OPEN))?;
    if rows.types.len() != into.len() {
        bail!(SP_WRONG_NO_OF_FETCH_ARGS);
    }
    let row = rows.rows.next().ok_or_else(|| err!(SP_FETCH_NO_DATA))?;
    let types = rows.types.clone();
    for ((variable, value), ty) in into.iter().zip(&row).zip(&types) {
        assign_local(host, variable, value, ty).map_err(|error| {
            if error.code() == ErrorCode::DATA_TOO_LONG {
                return err!(DATA_TRUNCATED, variable.name.text, 1);
            }
            error
        })?;
    }
    Ok(())
}

/// Results of a program's statements: rows go to the client, a plain OK does not.
pub(crate) struct ProgramSink<'a> {
    pub(crate) inner: &'a mut dyn ResultSink,
    pub(crate) affected_rows: u64,
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
