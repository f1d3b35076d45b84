//! The statements of programs: flow control here, everything else by the session's dispatcher.

use std::sync::Arc;

use errors::{ErrorCode, Result, bail, err};
use plugin_api::ResultSink;
use syntax::Statement;
use syntax::ast::{
    BinaryOp, Block, Declaration, Expr, ExprKind, Ident, Program, ProgramStatement, SetItem, Span,
    Xa,
};
use types::{DataType, Value};

use crate::external::run_external;
use crate::frame::{
    ActiveHandler, assign_local, close_cursor, fetch_cursor, open_cursor, store_local,
};
use crate::host::ProgramHost;
use crate::load::{Code, Loaded};
use crate::running::{Origin, Running};
use crate::state::{keep_plan, kept_plan};

/// Where a program continues after a statement.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Flow {
    /// With the next one.
    Next,
    /// After the statement with this label.
    Leave(Box<str>),
    /// With the next iteration of the loop with this label.
    Iterate(Box<str>),
    /// After the block with this number: its EXIT handler has run.
    Exit(u32),
    /// After the function.
    Return,
}

/// How a loop continues after an iteration.
enum Round {
    Again,
    Done(Flow),
}

/// Runs the body of the program whose frame is the last.
///
/// # Errors
/// Errors that no handler takes.
pub(crate) fn run_body<H: ProgramHost + ?Sized>(
    host: &mut H,
    loaded: &Loaded,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    match &loaded.code {
        Code::Sql(body) => {
            let body = std::slice::from_ref(body);
            Interpreter { host, loaded, sink }.run_list(body).map(|_| ())
        }
        Code::External(code) => run_external(host, code),
    }
}

/// One run of a program.
pub(crate) struct Interpreter<'p, H: ProgramHost + ?Sized> {
    pub(crate) host: &'p mut H,
    pub(crate) loaded: &'p Loaded,
    /// Where results go.
    pub(crate) sink: &'p mut dyn ResultSink,
}

impl<H: ProgramHost + ?Sized> Interpreter<'_, H> {
    /// Runs statements one after another; an error goes to a handler if one exists.
    pub(super) fn run_list(&mut self, statements: &[ProgramStatement]) -> Result<Flow> {
        for statement in statements {
            self.host.check_running()?;
            let flow = match self.run_one(statement) {
                Ok(flow) => flow,
                Err(error) => self.handle_error(error)?,
            };
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn run_one(&mut self, statement: &ProgramStatement) -> Result<Flow> {
        if let Statement::Set(items) = &statement.statement
            && (items.len() > 1 || matches!(items[..], [SetItem::Local { .. }]))
        {
            return self.run_assignments(items, statement.span);
        }
        let Statement::Program(program) = &statement.statement else {
            let address = std::ptr::from_ref(&statement.statement) as usize;
            self.run_other(statement, Some(address))?;
            return self.handle_warnings();
        };
        match &**program {
            Program::Block(block) => self.run_block(block),
            Program::If { branches, otherwise } => {
                for (condition, body) in branches {
                    if self.is_true(condition)? {
                        return self.run_list(body);
                    }
                }
                self.run_list(otherwise.as_deref().unwrap_or_default())
            }
            Program::Case { operand, whens, otherwise } => {
                self.run_case(operand.as_ref(), whens, otherwise.as_deref())
            }
            Program::Loop { label, body } => loop {
                match self.run_round(label.as_ref(), body)? {
                    Round::Again => {}
                    Round::Done(flow) => return Ok(flow),
                }
            },
            Program::While { label, condition, body } => {
                while self.is_true(condition)? {
                    match self.run_round(label.as_ref(), body)? {
                        Round::Again => {}
                        Round::Done(flow) => return Ok(flow),
                    }
                }
                Ok(Flow::Next)
            }
            Program::Repeat { label, body, until } => loop {
                match self.run_round(label.as_ref(), body)? {
                    Round::Again if self.is_true(until)? => return Ok(Flow::Next),
                    Round::Again => {}
                    Round::Done(flow) => return Ok(flow),
                }
            },
            Program::Leave(label) => Ok(Flow::Leave(label.text.to_lowercase().into())),
            Program::Iterate(label) => Ok(Flow::Iterate(label.text.to_lowercase().into())),
            Program::Return(value) => {
                let value = self.value_to_store(value)?;
                self.host.state_mut().frame_mut()?.returned = Some(value);
                Ok(Flow::Return)
            }
            Program::Open(cursor) => self.under_scope(|own| open_cursor(own.host, *cursor)),
            Program::Close(cursor) => close_cursor(self.host, *cursor).map(|()| Flow::Next),
            Program::Fetch { cursor, into } => {
                fetch_cursor(self.host, *cursor, into).map(|()| Flow::Next)
            }
        }
    }

    /// SET of several variables: each sees the values set by those before it.
    fn run_assignments(&mut self, items: &[SetItem], span: Span) -> Result<Flow> {
        for item in items {
            if let SetItem::Local { variable, value } = item {
                self.host.begin_part();
                let (value, ty) = match &value.kind {
                    ExprKind::Default(None) => (Value::Null, DataType::null()),
                    _ => self.value_to_store(value)?,
                };
                assign_local(self.host, variable, &value, &ty)?;
                self.host.set_row_count(0);
                self.host.end_part();
            } else {
                let statement = Statement::Set(vec![item.clone()]);
                self.run_other(&ProgramStatement { statement, span }, None)?;
            }
            let flow = self.handle_warnings()?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    /// One iteration of a loop.
    fn run_round(&mut self, label: Option<&Ident>, body: &[ProgramStatement]) -> Result<Round> {
        self.host.check_running()?;
        let is_own = |name: &str| label.is_some_and(|own| *own.text.to_lowercase() == *name);
        Ok(match self.run_list(body)? {
            Flow::Next => Round::Again,
            Flow::Iterate(name) if is_own(&name) => Round::Again,
            Flow::Leave(name) if is_own(&name) => Round::Done(Flow::Next),
            other => Round::Done(other),
        })
    }

    fn run_block(&mut self, block: &Block) -> Result<Flow> {
        let frame = self.host.state_mut().frame_mut()?;
        frame.blocks += 1;
        let number = frame.blocks;
        let handlers = frame.handlers.len();
        let result = self.run_declared(block, number);
        let frame = self.host.state_mut().frame_mut()?;
        frame.handlers.truncate(handlers);
        for declaration in &block.declarations {
            if let Declaration::Cursor { slot, .. } = declaration {
                // A cursor is closed at the end of its block.
                let _ = close_cursor(self.host, *slot);
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
    fn run_declared(&mut self, block: &Block, number: u32) -> Result<Flow> {
        for declaration in &block.declarations {
            match declaration {
                Declaration::Variables { names, first_slot, default, .. } => {
                    let (value, ty) = match default {
                        Some(default) => self.value_to_store(default)?,
                        None => (Value::Null, DataType::null()),
                    };
                    for (_, slot) in names.iter().zip(*first_slot as usize..) {
                        store_local(self.host, slot, &value, &ty)?;
                    }
                }
                Declaration::Condition { .. } => {}
                Declaration::Cursor { query, slot, .. } => {
                    let cursor = self.host.state_mut().frame_mut()?.cursors.get_mut(*slot as usize);
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
                    self.host.state_mut().frame_mut()?.handlers.push(handler);
                }
            }
        }
        self.run_list(&block.body)
    }

    fn run_case(
        &mut self,
        operand: Option<&Expr>,
        whens: &[(Expr, Vec<ProgramStatement>)],
        otherwise: Option<&[ProgramStatement]>,
    ) -> Result<Flow> {
        let operand = match operand {
            Some(operand) => Some(self.value_of(operand)?),
            None => None,
        };
        for (when, body) in whens {
            let matches = match &operand {
                None => self.is_true(when)?,
                Some((value, ty)) => self.equals(value, ty, when)?,
            };
            if matches {
                return self.run_list(body);
            }
        }
        match otherwise {
            Some(body) => self.run_list(body),
            None => Err(err!(SP_CASE_NOT_FOUND)),
        }
    }

    /// Whether the operand of CASE, computed once, equals a WHEN: as a variable after the program's own.
    fn equals(&mut self, value: &Value, ty: &DataType, when: &Expr) -> Result<bool> {
        let frame = self.host.state_mut().frame_mut()?;
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
        let result = self.value_once(&comparison);
        let result = result.map(|(value, ty)| self.is_true_value(&value, &ty));
        let frame = self.host.state_mut().frame_mut()?;
        frame.types = types;
        Arc::make_mut(&mut frame.values).truncate(slot as usize);
        result
    }

    /// The value of an expression that a variable or the caller gets: in strict mode a division by zero is an error.
    fn value_to_store(&mut self, expr: &Expr) -> Result<(Value, DataType)> {
        let before = self.host.conditions().working.conditions().len();
        let value = self.value_of(expr)?;
        refuse_division_by_zero(self.host, before)?;
        Ok(value)
    }

    /// Computes the value of an expression that is part of the program, so that its plan may be kept.
    pub(super) fn value_of(&mut self, expr: &Expr) -> Result<(Value, DataType)> {
        let frame = self.host.state_mut().frame_mut()?;
        if let ExprKind::Param(slot) = expr.kind {
            let slot = slot as usize;
            if let (Some(value), Some(ty)) = (frame.values.get(slot), frame.types().get(slot)) {
                return Ok((value.clone(), ty.clone()));
            }
        }
        let values = frame.values.clone();
        self.host.move_time();
        let origin = Origin::Program;
        let running =
            Running { source: &self.loaded.source, parameters: &values, origin, kept: None };
        let address = std::ptr::from_ref(expr) as usize;
        let mut found = None;
        self.under_scope(|own| {
            let plan = match kept_plan(own.host, address)? {
                Some(plan) => plan,
                None => {
                    let plan = own.host.plan_value(expr, &running)?;
                    keep_plan(own.host, address, &plan);
                    plan
                }
            };
            found = Some(own.host.value_of_plan(&plan, &running)?);
            own.host.finish_scope()
        })?;
        found.ok_or_else(|| errors::Error::internal("an expression returned no value"))
    }

    /// Computes the value of an expression made for this one use.
    fn value_once(&mut self, expr: &Expr) -> Result<(Value, DataType)> {
        let values = self.host.state_mut().frame_mut()?.values.clone();
        let running = Running {
            source: &self.loaded.source,
            parameters: &values,
            origin: Origin::Program,
            kept: None,
        };
        let mut found = None;
        self.under_scope(|own| {
            found = Some(own.host.evaluate(expr, &running)?);
            own.host.finish_scope()
        })?;
        found.ok_or_else(|| errors::Error::internal("an expression returned no value"))
    }

    fn is_true(&mut self, expr: &Expr) -> Result<bool> {
        let (value, ty) = self.value_of(expr)?;
        Ok(self.is_true_value(&value, &ty))
    }

    fn is_true_value(&mut self, value: &Value, ty: &DataType) -> bool {
        if value.is_null() {
            return false;
        }
        let sql_mode = self.host.settings().sql_mode;
        let working = self.host.conditions().working;
        let mut ctx = types::convert::CastContext::new(sql_mode, working);
        types::convert::to_bool(value, ty, &mut ctx)
    }

    /// Runs `body` as a separate statement of the transaction, as a program's statements that read or write rows are.
    fn under_scope(&mut self, body: impl FnOnce(&mut Self) -> Result<()>) -> Result<Flow> {
        self.host.begin_scope();
        match body(self) {
            Ok(()) => Ok(Flow::Next),
            Err(error) => {
                self.host.abort_scope(&error);
                Err(error)
            }
        }
    }

    /// Runs a statement that exists outside programs too.
    fn run_other(&mut self, statement: &ProgramStatement, kept: Option<usize>) -> Result<()> {
        if self.host.function_depth() > 0 {
            check_in_function(self.host, &statement.statement)?;
        }
        let values = self.host.state_mut().frame_mut()?.values.clone();
        let source = match is_read_by_plugin(&statement.statement) {
            true => statement.span.of(&self.loaded.source),
            false => &*self.loaded.source,
        };
        let running = Running { source, parameters: &values, origin: Origin::Program, kept };
        self.host.begin_part();
        self.host.note_text(statement.span.of(&self.loaded.source));
        self.under_scope(|own| own.host.run_statement(&statement.statement, &running, own.sink))?;
        self.host.end_part();
        Ok(())
    }
}

/// Whether a plugin rewrites or runs a statement from its text: it gets that of the statement alone.
fn is_read_by_plugin(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Show(_)
            | Statement::Describe(_)
            | Statement::Help(_)
            | Statement::Replication(_)
            | Statement::Reset(_)
            | Statement::Binlog(_)
            | Statement::Clone(_)
            | Statement::ChangeStream(_)
    )
}

/// Refuses statements that a function or trigger must not run: most would end the transaction of its caller.
///
/// # Errors
/// 1336, 1422.
pub fn check_in_function<H: ProgramHost + ?Sized>(host: &H, statement: &Statement) -> Result<()> {
    if matches!(statement, Statement::Flush(_)) {
        bail!(STMT_NOT_ALLOWED_IN_SF_OR_TRG, "FLUSH");
    }
    if matches!(statement, Statement::Reset(_)) {
        bail!(STMT_NOT_ALLOWED_IN_SF_OR_TRG, "RESET");
    }
    let is_end = matches!(statement, Statement::Commit(_) | Statement::Rollback(_));
    // XA START begins one, or is refused with its own error.
    let is_xa = matches!(statement, Statement::Xa(xa) if !matches!(xa, Xa::Start { .. }));
    let ends_transaction = is_end || is_xa || host.commits_implicitly(statement);
    if ends_transaction {
        bail!(COMMIT_NOT_ALLOWED_IN_SF_OR_TRG);
    }
    Ok(())
}

/// In strict mode a warning of a division by zero is an error where the value is stored; `before`: conditions that came before.
///
/// # Errors
/// 1365.
pub fn refuse_division_by_zero<H: ProgramHost + ?Sized>(host: &mut H, before: usize) -> Result<()> {
    if !host.settings().sql_mode.is_strict() {
        return Ok(());
    }
    let working = host.conditions().working;
    let conditions = working.conditions();
    let before = if before <= conditions.len() { before } else { 0 };
    if conditions[before..].iter().any(|one| one.code == ErrorCode::DIVISION_BY_ZERO) {
        working.forget_after(before);
        bail!(DIVISION_BY_ZERO);
    }
    Ok(())
}
