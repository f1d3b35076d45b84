//! Conditions within programs: which handler takes one, and what is in force while it runs.

use errors::{Condition, Error, ErrorCode, Level, Result};
use plugin_api::ResultSink;
use syntax::ast::{ConditionValue, HandlerKind};

use super::frame::ActiveHandler;
use super::load::Loaded;
use super::run::Flow;
use crate::session::Session;

/// How exactly a handler names a condition; the exactest of a block is taken.
fn exactness(value: &ConditionValue, condition: &Condition) -> Option<u32> {
    let class = &condition.sqlstate[..2];
    let is_error = condition.level == Level::Error;
    let (matches, exact) = match value {
        ConditionValue::ErrorCode(code) => (u64::from(condition.code.0) == *code, 4),
        ConditionValue::SqlState(state) => (state.as_bytes() == condition.sqlstate, 3),
        ConditionValue::NotFound => (class == b"02", 2),
        ConditionValue::SqlWarning => (class == b"01" || !is_error, 1),
        ConditionValue::SqlException => (is_error && !matches!(class, b"00" | b"01" | b"02"), 1),
        // Names were read as what they stand for.
        ConditionValue::Name(_) => (false, 0),
    };
    matches.then_some(exact)
}

/// What ends a program whatever it says.
fn is_fatal(error: &Error) -> bool {
    matches!(
        error.code(),
        ErrorCode::QUERY_INTERRUPTED
            | ErrorCode::QUERY_TIMEOUT
            | ErrorCode::SERVER_SHUTDOWN
            | ErrorCode::OUT_OF_RESOURCES
    )
}

impl Session {
    /// The position of the handler for a condition: of the innermost block that has one.
    fn handler_for(&mut self, condition: &Condition) -> Option<usize> {
        let handlers = &self.frames.last()?.handlers;
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

    /// A statement failed: runs the handler for it, or passes the error on.
    pub(super) fn handle_error(
        &mut self,
        error: Error,
        loaded: &Loaded,
        sink: &mut dyn ResultSink,
    ) -> Result<Flow> {
        let condition = Condition {
            level: Level::Error,
            code: error.code(),
            sqlstate: error.sqlstate(),
            message: error.message().to_owned(),
        };
        if is_fatal(&error) || self.shared.cancel.is_connection_killed() {
            return Err(error);
        }
        let Some(at) = self.handler_for(&condition) else { return Err(error) };
        self.services.row_count = -1;
        self.keeps_diagnostics = false;
        self.working.push_error(Level::Error, &error);
        self.diagnostics = std::mem::take(&mut self.working);
        self.run_handler(at, loaded, sink)
    }

    /// A statement succeeded: runs the handler for the last of its warnings that has one.
    pub(super) fn handle_warnings(
        &mut self,
        loaded: &Loaded,
        sink: &mut dyn ResultSink,
    ) -> Result<Flow> {
        let no_handlers = self.frames.last().is_none_or(|frame| frame.handlers.is_empty());
        if no_handlers || self.diagnostics.is_empty() {
            return Ok(Flow::Next);
        }
        let conditions = self.diagnostics.conditions().to_vec();
        let warnings = conditions.iter().rev().filter(|condition| condition.level != Level::Error);
        let mut handler = None;
        for condition in warnings {
            handler = self.handler_for(condition);
            if handler.is_some() {
                break;
            }
        }
        match handler {
            Some(at) => self.run_handler(at, loaded, sink),
            None => Ok(Flow::Next),
        }
    }

    /// Runs a handler: those of its own block and of blocks within are not in force meanwhile.
    fn run_handler(
        &mut self,
        at: usize,
        loaded: &Loaded,
        sink: &mut dyn ResultSink,
    ) -> Result<Flow> {
        let conditions = self.diagnostics.conditions().to_vec();
        let frame = self.frame()?;
        let Some(handler) = frame.handlers.get(at).cloned() else { return Ok(Flow::Next) };
        let first = frame.handlers.iter().position(|other| other.block == handler.block);
        let suspended: Vec<ActiveHandler> = frame.handlers.split_off(first.unwrap_or(at));
        frame.handled.push(conditions);
        let result = self.run_list(std::slice::from_ref(&handler.body), loaded, sink);
        let frame = self.frame()?;
        frame.handled.pop();
        frame.handlers.extend(suspended);
        let flow = result?;
        self.diagnostics.clear();
        Ok(match (flow, handler.action) {
            (Flow::Next, HandlerKind::Continue) => Flow::Next,
            (Flow::Next, HandlerKind::Exit | HandlerKind::Undo) => Flow::Exit(handler.block),
            (other, _) => other,
        })
    }
}
