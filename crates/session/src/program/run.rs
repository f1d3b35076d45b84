//! The statements of programs: flow control here, everything else by the session's dispatcher.

use std::sync::Arc;

use errors::{Result, bail, err};
use plugin_api::ResultSink;
use syntax::Statement;
use syntax::ast::{
    BinaryOp, Block, Declaration, Expr, ExprKind, Ident, Program, ProgramStatement, SetItem, Span,
    Xa,
};
use types::{DataType, Value};

use super::frame::ActiveHandler;
use super::load::Loaded;
use crate::session::Session;
use crate::statement::{Origin, Running};

/// Where a program goes on after a statement.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Flow {
    /// With the next one.
    Next,
    /// Behind the statement with this label.
    Leave(Box<str>),
    /// With the next round of the loop with this label.
    Iterate(Box<str>),
    /// Behind the block with this number: its EXIT handler has run.
    Exit(u32),
    /// Behind the function.
    Return,
}

/// What a loop does after a round.
enum Round {
    Again,
    Done(Flow),
}

impl Session {
    /// Runs the body of the program whose frame is the last.
    pub(super) fn run_body(&mut self, loaded: &Loaded, sink: &mut dyn ResultSink) -> Result<()> {
        self.run_list(std::slice::from_ref(&loaded.body), loaded, sink).map(|_| ())
    }

    /// Runs statements one after another; what fails goes to a handler when there is one.
    pub(super) fn run_list(
        &mut self,
        statements: &[ProgramStatement],
        loaded: &Loaded,
        sink: &mut dyn ResultSink,
    ) -> Result<Flow> {
        for statement in statements {
            self.shared.cancel.check()?;
            let flow = match self.run_one(statement, loaded, sink) {
                Ok(flow) => flow,
                Err(error) => self.handle_error(error, loaded, sink)?,
            };
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn run_one(
        &mut self,
        statement: &ProgramStatement,
        loaded: &Loaded,
        sink: &mut dyn ResultSink,
    ) -> Result<Flow> {
        if let Statement::Set(items) = &statement.statement
            && (items.len() > 1 || matches!(items[..], [SetItem::Local { .. }]))
        {
            return self.run_assignments(items, statement.span, loaded, sink);
        }
        let Statement::Program(program) = &statement.statement else {
            let address = std::ptr::from_ref(&statement.statement) as usize;
            self.run_other(statement, Some(address), loaded, sink)?;
            return self.handle_warnings(loaded, sink);
        };
        match &**program {
            Program::Block(block) => self.run_block(block, loaded, sink),
            Program::If { branches, otherwise } => {
                for (condition, body) in branches {
                    if self.is_true(condition, loaded)? {
                        return self.run_list(body, loaded, sink);
                    }
                }
                self.run_list(otherwise.as_deref().unwrap_or_default(), loaded, sink)
            }
            Program::Case { operand, whens, otherwise } => {
                self.run_case(operand.as_ref(), whens, otherwise.as_deref(), loaded, sink)
            }
            Program::Loop { label, body } => loop {
                match self.run_round(label.as_ref(), body, loaded, sink)? {
                    Round::Again => {}
                    Round::Done(flow) => return Ok(flow),
                }
            },
            Program::While { label, condition, body } => {
                while self.is_true(condition, loaded)? {
                    match self.run_round(label.as_ref(), body, loaded, sink)? {
                        Round::Again => {}
                        Round::Done(flow) => return Ok(flow),
                    }
                }
                Ok(Flow::Next)
            }
            Program::Repeat { label, body, until } => loop {
                match self.run_round(label.as_ref(), body, loaded, sink)? {
                    Round::Again if self.is_true(until, loaded)? => return Ok(Flow::Next),
                    Round::Again => {}
                    Round::Done(flow) => return Ok(flow),
                }
            },
            Program::Leave(label) => Ok(Flow::Leave(label.text.to_lowercase().into())),
            Program::Iterate(label) => Ok(Flow::Iterate(label.text.to_lowercase().into())),
            Program::Return(value) => {
                let value = self.value_of(value, loaded)?;
                self.frame()?.returned = Some(value);
                Ok(Flow::Return)
            }
            Program::Open(cursor) => self.under_scope(|s| s.open_cursor_of(*cursor)),
            Program::Close(cursor) => self.close_cursor_of(*cursor).map(|()| Flow::Next),
            Program::Fetch { cursor, into } => {
                self.fetch_cursor(*cursor, into).map(|()| Flow::Next)
            }
        }
    }

    /// SET of several: each sees what those before it have set.
    fn run_assignments(
        &mut self,
        items: &[SetItem],
        span: Span,
        loaded: &Loaded,
        sink: &mut dyn ResultSink,
    ) -> Result<Flow> {
        for item in items {
            if let SetItem::Local { variable, value } = item {
                self.begin_part();
                let (value, ty) = match &value.kind {
                    ExprKind::Default(None) => (Value::Null, DataType::null()),
                    _ => self.value_of(value, loaded)?,
                };
                self.assign_local(variable, &value, &ty)?;
                self.services.row_count = 0;
                self.end_part();
            } else {
                let statement = Statement::Set(vec![item.clone()]);
                self.run_other(&ProgramStatement { statement, span }, None, loaded, sink)?;
            }
            let flow = self.handle_warnings(loaded, sink)?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    /// One round of a loop.
    fn run_round(
        &mut self,
        label: Option<&Ident>,
        body: &[ProgramStatement],
        loaded: &Loaded,
        sink: &mut dyn ResultSink,
    ) -> Result<Round> {
        self.shared.cancel.check()?;
        let is_own = |name: &str| label.is_some_and(|own| *own.text.to_lowercase() == *name);
        Ok(match self.run_list(body, loaded, sink)? {
            Flow::Next => Round::Again,
            Flow::Iterate(name) if is_own(&name) => Round::Again,
            Flow::Leave(name) if is_own(&name) => Round::Done(Flow::Next),
            other => Round::Done(other),
        })
    }

    fn run_block(
        &mut self,
        block: &Block,
        loaded: &Loaded,
        sink: &mut dyn ResultSink,
    ) -> Result<Flow> {
        let frame = self.frame()?;
        frame.blocks += 1;
        let number = frame.blocks;
        let handlers = frame.handlers.len();
        let result = self.run_declared(block, number, loaded, sink);
        let frame = self.frame()?;
        frame.handlers.truncate(handlers);
        for declaration in &block.declarations {
            if let Declaration::Cursor { slot, .. } = declaration {
                // A cursor is closed at the end of its block.
                let _ = self.close_cursor_of(*slot);
            }
        }
        let label = block.label.as_ref().map(|label| label.text.to_lowercase());
        Ok(match result? {
            Flow::Exit(exited) if exited == number => Flow::Next,
            Flow::Leave(name) if label.as_deref() == Some(&*name) => Flow::Next,
            other => other,
        })
    }

    /// The declarations of a block, then its statements.
    fn run_declared(
        &mut self,
        block: &Block,
        number: u32,
        loaded: &Loaded,
        sink: &mut dyn ResultSink,
    ) -> Result<Flow> {
        for declaration in &block.declarations {
            match declaration {
                Declaration::Variables { names, first_slot, default, .. } => {
                    let (value, ty) = match default {
                        Some(default) => self.value_of(default, loaded)?,
                        None => (Value::Null, DataType::null()),
                    };
                    for (_, slot) in names.iter().zip(*first_slot as usize..) {
                        self.store_local(slot, &value, &ty)?;
                    }
                }
                Declaration::Condition { .. } => {}
                Declaration::Cursor { query, slot, .. } => {
                    let cursor = self.frame()?.cursors.get_mut(*slot as usize);
                    if let Some(cursor) = cursor
                        && cursor.query.is_none()
                    {
                        cursor.query = Some(query.clone());
                    }
                }
                Declaration::Handler { action, conditions, body } => {
                    let handler = ActiveHandler {
                        block: number,
                        action: *action,
                        conditions: conditions.clone().into(),
                        body: body.clone(),
                    };
                    self.frame()?.handlers.push(handler);
                }
            }
        }
        self.run_list(&block.body, loaded, sink)
    }

    fn run_case(
        &mut self,
        operand: Option<&Expr>,
        whens: &[(Expr, Vec<ProgramStatement>)],
        otherwise: Option<&[ProgramStatement]>,
        loaded: &Loaded,
        sink: &mut dyn ResultSink,
    ) -> Result<Flow> {
        let operand = match operand {
            Some(operand) => Some(self.value_of(operand, loaded)?),
            None => None,
        };
        for (when, body) in whens {
            let matches = match &operand {
                None => self.is_true(when, loaded)?,
                Some((value, ty)) => self.equals(value, ty, when, loaded)?,
            };
            if matches {
                return self.run_list(body, loaded, sink);
            }
        }
        match otherwise {
            Some(body) => self.run_list(body, loaded, sink),
            None => Err(err!(SP_CASE_NOT_FOUND)),
        }
    }

    /// Whether the operand of CASE, computed once, equals a WHEN: as a variable behind the program's own.
    fn equals(
        &mut self,
        value: &Value,
        ty: &DataType,
        when: &Expr,
        loaded: &Loaded,
    ) -> Result<bool> {
        let frame = self.frame()?;
        let (values, types) = (frame.values.clone(), frame.types.clone());
        let slot = values.len() as u32;
        Arc::make_mut(&mut frame.values).push(value.clone());
        frame.types = types.iter().cloned().chain([ty.clone()]).collect();
        let operand = Expr { kind: ExprKind::Param(slot), span: Span::default() };
        let comparison = Expr {
            kind: ExprKind::Binary {
                op: BinaryOp::Eq,
                left: Box::new(operand),
                right: Box::new(when.clone()),
            },
            span: when.span,
        };
        let result = self.value_once(&comparison, loaded);
        let result = result.map(|(value, ty)| self.is_true_value(&value, &ty));
        let frame = self.frame()?;
        frame.types = types;
        Arc::make_mut(&mut frame.values).truncate(slot as usize);
        result
    }

    /// The value of an expression that stands in the program, so that its plan may be kept.
    pub(super) fn value_of(&mut self, expr: &Expr, loaded: &Loaded) -> Result<(Value, DataType)> {
        let frame = self.frame()?;
        if let ExprKind::Param(slot) = expr.kind {
            let slot = slot as usize;
            if let (Some(value), Some(ty)) = (frame.values.get(slot), frame.types().get(slot)) {
                return Ok((value.clone(), ty.clone()));
            }
        }
        let values = frame.values.clone();
        self.move_time();
        let origin = Origin::Program;
        let running = Running { source: &loaded.source, parameters: &values, origin, kept: None };
        let address = std::ptr::from_ref(expr) as usize;
        let mut found = None;
        self.under_scope(|session| {
            let planned = match session.kept_plan(address)? {
                Some(planned) => planned,
                None => {
                    let planned = session.plan_expression(expr, &running)?;
                    session.keep_plan(address, &planned);
                    planned
                }
            };
            found = Some(session.value_of_plan(&planned, &running)?);
            session.finish_transaction_scope()?;
            Ok(())
        })?;
        found.ok_or_else(|| errors::Error::internal("an expression gave no value"))
    }

    /// The value of an expression made for the moment.
    fn value_once(&mut self, expr: &Expr, loaded: &Loaded) -> Result<(Value, DataType)> {
        let values = self.frame()?.values.clone();
        let running = Running {
            source: &loaded.source,
            parameters: &values,
            origin: Origin::Program,
            kept: None,
        };
        let mut found = None;
        self.under_scope(|session| {
            found = Some(session.evaluate(expr, &running)?);
            session.finish_transaction_scope()?;
            Ok(())
        })?;
        found.ok_or_else(|| errors::Error::internal("an expression gave no value"))
    }

    fn is_true(&mut self, expr: &Expr, loaded: &Loaded) -> Result<bool> {
        let (value, ty) = self.value_of(expr, loaded)?;
        Ok(self.is_true_value(&value, &ty))
    }

    fn is_true_value(&mut self, value: &Value, ty: &DataType) -> bool {
        if value.is_null() {
            return false;
        }
        let mut ctx = types::convert::CastContext::new(self.settings.sql_mode, &mut self.working);
        types::convert::to_bool(value, ty, &mut ctx)
    }

    /// What reads or writes rows within a program is a statement of its own.
    fn under_scope(&mut self, body: impl FnOnce(&mut Session) -> Result<()>) -> Result<Flow> {
        self.transactions.begin_scope(&self.settings);
        match body(self) {
            Ok(()) => Ok(Flow::Next),
            Err(error) => {
                self.abort_transaction_scope(&error);
                Err(error)
            }
        }
    }

    /// A statement that is not only of programs.
    fn run_other(
        &mut self,
        statement: &ProgramStatement,
        kept: Option<usize>,
        loaded: &Loaded,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        if self.transactions.function_depth > 0
            && matches!(statement.statement, Statement::Flush(_))
        {
            bail!(STMT_NOT_ALLOWED_IN_SF_OR_TRG, "FLUSH");
        }
        if self.transactions.function_depth > 0 && ends_transaction(&statement.statement) {
            bail!(COMMIT_NOT_ALLOWED_IN_SF_OR_TRG);
        }
        let values = self.frame()?.values.clone();
        // What is rewritten from its text gets only its own.
        let source = match &statement.statement {
            Statement::Show(_) | Statement::Describe(_) | Statement::Help(_) => {
                statement.span.of(&loaded.source)
            }
            _ => &*loaded.source,
        };
        let running = Running { source, parameters: &values, origin: Origin::Program, kept };
        self.begin_part();
        self.under_scope(|session| session.run_statement(&statement.statement, &running, sink))?;
        self.end_part();
        Ok(())
    }

    /// Before a statement of a program.
    fn begin_part(&mut self) {
        self.move_time();
        let mut working = errors::Diagnostics::new(self.settings.max_error_count);
        working.set_notes_enabled(self.settings.sql_notes);
        self.working = working;
        self.services.warning_count = self.diagnostics.warning_count();
        self.services.error_count = self.diagnostics.error_count();
        self.services.statement_number += 1;
        self.services.last_insert_id_set = false;
    }

    /// The statements of a procedure have each its own time; a function and a trigger have that of the statement they are part of.
    fn move_time(&mut self) {
        if self.transactions.function_depth == 0 {
            self.started_micros = self.server.now_micros();
        }
    }

    /// After a statement of a program that succeeded.
    fn end_part(&mut self) {
        if !self.keeps_diagnostics {
            self.diagnostics = std::mem::take(&mut self.working);
        }
        self.keeps_diagnostics = false;
    }
}

/// Statements that a function must not run, because they would end the transaction of its caller.
fn ends_transaction(statement: &Statement) -> bool {
    crate::statement_kind::commits_implicitly(statement)
        || match statement {
            Statement::Commit(_) | Statement::Rollback(_) => true,
            // It begins one, or is refused in its own words.
            Statement::Xa(xa) => !matches!(xa, Xa::Start { .. }),
            _ => false,
        }
}
