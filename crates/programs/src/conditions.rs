//! Conditions within programs: which handler takes one, and which handlers are in force while it runs.

use errors::{Condition, Error, ErrorCode, Level, Result};
use syntax::ast::{ConditionValue, HandlerKind};

use crate::frame::ActiveHandler;
use crate::host::ProgramHost;
use crate::run::{Flow, Interpreter};

/// How specifically a handler names a condition; the most specific one of a block is taken.
fn exactness(value: &ConditionValue, condition: &Condition) -> Option<u32> {
    let class = &condition.sqlstate[..2];
    let is_error = condition.level == Level::Error;
    let (matches, exact) = match value {
        ConditionValue::ErrorCode(code) => (u64::from(condition.code.0) == *code, 4),
        ConditionValue::SqlState(state) => (state.as_bytes() == condition.sqlstate, 3),
        ConditionValue::NotFound => (class == b"02", 2),
        ConditionValue::SqlWarning => (class == b"01" || !is_error, 1),
        ConditionValue::SqlException => (is_error && !matches!(class, b"00" | b"01" | b"02"), 1),
        // Names were resolved when the program was parsed.
        ConditionValue::Name(_) => (false, 0),
    };
    matches.then_some(exact)
}

/// Whether an error ends a program regardless of its handlers.
fn is_fatal(error: &Error) -> bool {
    matches!(
        error.code(),
        ErrorCode::QUERY_INTERRUPTED
            | ErrorCode::QUERY_TIMEOUT
            | ErrorCode::STATEMENT_TIMEOUT
            | ErrorCode::SERVER_SHUTDOWN
            | ErrorCode::OUT_OF_RESOURCES
            | ErrorCode::CONNECTION_MEMORY_LIMIT
            | ErrorCode::GLOBAL_CONNECTION_MEMORY_LIMIT
    )
}

impl<H: ProgramHost + ?Sized> Interpreter<'_, H> {
    /// The position of the handler for a condition: of the innermost block that has one.
    fn handler_for(&self, condition: &Condition) -> Option<usize> {
        let handlers = &self.host.state().frame()?.handlers;
        let mut best: Option<(u32, u32, usize)> = None;
        for (at, handler) in handlers.iter().enumerate() {
            let exact = handler.conditions.iter().filter_map(|value| exactness(value, condition));
            let Some(exact) = exact.max() else { continue };
            if best.is_none_or(|(block, known, _)| (handler.block, exact) > (block, known)) {
                best = Some((handler.block, exact, at));
            }
        }
        best.map(|(_, _, at)| at)
    }

    /// After a statement failed: runs the handler for its error, or returns the error.
    pub(super) fn handle_error(&mut self, error: Error) -> Result<Flow> {
        let condition = Condition {
            level: Level::Error,
            code: error.code(),
            sqlstate: error.sqlstate(),
            message: error.message().to_owned(),
            // Handlers are chosen by number and state.
            items: None,
        };
        if is_fatal(&error) || self.host.is_connection_killed() {
            return Err(error);
        }
        let Some(at) = self.handler_for(&condition) else { return Err(error) };
        self.host.set_row_count(-1);
        let conditions = self.host.conditions();
        *conditions.keeps = false;
        conditions.working.push_error(Level::Error, &error);
        *conditions.last = std::mem::take(conditions.working);
        self.run_handler(at, &condition)
    }

    /// After a statement succeeded: runs the handler for the last of its warnings that has one.
    pub(super) fn handle_warnings(&mut self) -> Result<Flow> {
        let frame = self.host.state().frame();
        let no_handlers = frame.is_none_or(|frame| frame.handlers.is_empty());
        if no_handlers || self.host.conditions().last.is_empty() {
            return Ok(Flow::Next);
        }
        let conditions = self.host.conditions().last.conditions().to_vec();
        let warnings = conditions.iter().rev().filter(|condition| condition.level != Level::Error);
        let mut handler = None;
        for condition in warnings {
            handler = self.handler_for(condition).map(|at| (at, condition));
            if handler.is_some() {
                break;
            }
        }
        match handler {
            Some((at, condition)) => self.run_handler(at, condition),
            None => Ok(Flow::Next),
        }
    }

    /// Runs a handler. While it runs, the handlers of its own block and of inner blocks are not in force.
    fn run_handler(&mut self, at: usize, condition: &Condition) -> Result<Flow> {
        let mut conditions = self.host.conditions().last.conditions().to_vec();
        if conditions.is_empty() {
            // `max_error_count` may be 0.
            conditions.push(condition.clone());
        }
        let frame = self.host.state_mut().frame_mut()?;
        let Some(handler) = frame.handlers.get(at).cloned() else { return Ok(Flow::Next) };
        let first = frame.handlers.iter().position(|other| other.block == handler.block);
        let suspended: Vec<ActiveHandler> = frame.handlers.split_off(first.unwrap_or(at));
        frame.handled.push(conditions);
        let result = self.run_list(std::slice::from_ref(&handler.body));
        let frame = self.host.state_mut().frame_mut()?;
        let handled = frame.handled.pop().unwrap_or_default();
        frame.handlers.extend(suspended);
        let flow = result?;
        // What it handled is over; what its last statement said, or RESIGNAL, stays.
        let last = self.host.conditions().last;
        if last.conditions() == handled {
            last.clear();
        }
        Ok(match (flow, handler.action) {
            (Flow::Next, HandlerKind::Continue) => Flow::Next,
            (Flow::Next, HandlerKind::Exit | HandlerKind::Undo) => Flow::Exit(handler.block),
            (other, _) => other,
        })
    }
}
