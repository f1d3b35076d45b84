//! Compiled expressions and their evaluation, one value at a time.
//!
//! Operands that are plain registers, constants or parameters are compared without cloning; integers and truth values travel
//! unboxed where the static types allow it.

mod arithmetic;
mod compile;
mod keys;
mod predicate;
mod subquery;
mod text;

use std::sync::Arc;

use errors::{Result, bail};
use plan::CastKind;
use plugin_api::{
    BoundFunction, Coercion, NullRule, Repeats, SessionHandle, StatementResult, Statements,
};
use types::{CollationId, DataType, RunsStatements, Value};

use crate::fulltext::MatchCode;
use crate::run::Run;
use rows::convert;

pub(crate) use arithmetic::{Arithmetic, BitOperation};
pub(crate) use compile::{Compiler, comparator, unify_code};
pub(crate) use predicate::{Comparison, InSet, RowComparison};
pub(crate) use subquery::{SubqueryCode, SubqueryState};

/// A compiled expression.
pub(crate) enum Code {
    Constant(Value),
    Parameter(usize),
    Register(usize),
    /// Evaluated at first use in a statement.
    Once {
        slot: usize,
        operand: Box<Code>,
    },
    UserVariable {
        name: Arc<str>,
        ty: DataType,
    },
    AssignUserVariable {
        name: Arc<str>,
        value: Box<Code>,
        ty: DataType,
    },
    SystemVariable {
        name: Arc<str>,
        global: bool,
    },
    /// A stored function.
    Stored {
        program: u32,
        args: Box<[Code]>,
    },
    Arithmetic(Box<Arithmetic>),
    Bits(Box<BitOperation>),
    Compare(Box<Comparison>),
    CompareRows(Box<RowComparison>),
    And(Box<Truth>, Box<Truth>),
    Or(Box<Truth>, Box<Truth>),
    Xor(Box<Truth>, Box<Truth>),
    Not(Box<Truth>),
    IsNull {
        operand: Box<Code>,
        negated: bool,
    },
    IsTruth {
        operand: Box<Truth>,
        wanted: bool,
        negated: bool,
    },
    Between {
        low: Box<Comparison>,
        high: Box<Comparison>,
        negated: bool,
    },
    InList {
        comparisons: Vec<Comparison>,
        negated: bool,
    },
    InRows {
        comparisons: Vec<RowComparison>,
        negated: bool,
    },
    InSet(Box<predicate::InSetCode>),
    Like(Box<predicate::Like>),
    Case {
        branches: Vec<(Truth, Code)>,
        otherwise: Option<Box<Code>>,
    },
    FirstNotNull(Vec<Code>),
    /// An operand that the rest uses many times: it is evaluated once and kept in its own register.
    Held {
        operand: Box<Code>,
        register: usize,
        rest: Box<Code>,
    },
    Cast {
        operand: Box<Code>,
        from: DataType,
        to: DataType,
        kind: CastKind,
    },
    /// Silent change of representation, for branches of CASE and set operations.
    Unify {
        operand: Box<Code>,
        from: DataType,
        to: DataType,
    },
    Call(Box<Call>),
    /// Of a function that runs statements.
    StatementCall(Box<Call>, RunsStatements),
    Match(Box<MatchCode>),
    Subquery(Box<SubqueryCode>),
}

/// An expression used as a condition, with its type.
pub(crate) struct Truth {
    pub(crate) code: Code,
    pub(crate) ty: DataType,
}

/// A call of a scalar function.
pub(crate) struct Call {
    pub(crate) function: BoundFunction,
    pub(crate) args: Vec<(Code, DataType, Coercion)>,
}

impl Truth {
    /// Three-valued truth.
    pub(crate) fn eval(&self, run: &mut Run<'_>) -> Result<Option<bool>> {
        match &self.code {
            Code::Compare(comparison) => comparison.eval(run),
            Code::And(left, right) => eval_and(left, right, run),
            Code::Or(left, right) => eval_or(left, right, run),
            Code::Not(operand) => Ok(operand.eval(run)?.map(|truth| !truth)),
            Code::Between { low, high, negated } => {
                predicate::eval_between(low, high, *negated, run)
            }
            Code::IsNull { operand, negated } => {
                let is_null = match operand.leaf(run) {
                    Some(value) => value.is_null(),
                    None => operand.eval(run)?.is_null(),
                };
                Ok(Some(is_null != *negated))
            }
            Code::IsTruth { operand, wanted, negated } => {
                Ok(Some((operand.eval(run)? == Some(*wanted)) != *negated))
            }
            Code::InList { comparisons, negated } => {
                predicate::eval_in_list(comparisons, *negated, run)
            }
            Code::InRows { comparisons, negated } => {
                predicate::eval_in_rows(comparisons, *negated, run)
            }
            Code::InSet(set) => set.eval(run),
            Code::Like(like) => like.eval(run),
            Code::CompareRows(comparison) => comparison.eval(run),
            code => {
                let value = code.eval(run)?;
                convert::truth(&value, &self.ty, &mut run.function)
            }
        }
    }

    /// Whether it is true: neither false nor NULL.
    #[inline]
    pub(crate) fn holds(&self, run: &mut Run<'_>) -> Result<bool> {
        Ok(self.eval(run)? == Some(true))
    }
}

fn eval_and(left: &Truth, right: &Truth, run: &mut Run<'_>) -> Result<Option<bool>> {
    let left = left.eval(run)?;
    if left == Some(false) {
        return Ok(Some(false));
    }
    Ok(match (left, right.eval(run)?) {
        (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    })
}

fn eval_or(left: &Truth, right: &Truth, run: &mut Run<'_>) -> Result<Option<bool>> {
    let left = left.eval(run)?;
    if left == Some(true) {
        return Ok(Some(true));
    }
    Ok(match (left, right.eval(run)?) {
        (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        _ => None,
    })
}

pub(crate) fn truth_value(truth: Option<bool>) -> Value {
    truth.map_or(Value::Null, Value::bool)
}

impl Code {
    /// The register that it reads and nothing else.
    pub(crate) fn as_register(&self) -> Option<usize> {
        match self {
            Code::Register(register) => Some(*register),
            _ => None,
        }
    }

    /// The value in place, when it needs no computation.
    #[inline]
    pub(crate) fn leaf<'a>(&'a self, run: &'a Run<'_>) -> Option<&'a Value> {
        match self {
            Code::Register(register) => run.regs.get(*register),
            Code::Constant(value) => Some(value),
            Code::Parameter(index) => run.env.parameters.get(*index),
            Code::Once { slot, .. } => run.memo.once[*slot].as_ref(),
            _ => None,
        }
    }

    /// The value.
    pub(crate) fn eval(&self, run: &mut Run<'_>) -> Result<Value> {
        match self {
            Code::Constant(value) => Ok(value.clone()),
            Code::Parameter(index) => {
                Ok(run.env.parameters.get(*index).cloned().unwrap_or(Value::Null))
            }
            Code::Register(register) => Ok(run.regs[*register].clone()),
            Code::Once { slot, operand } => {
                if let Some(value) = &run.memo.once[*slot] {
                    return Ok(value.clone());
                }
                let value = operand.eval(run)?;
                run.memo.once[*slot] = Some(value.clone());
                Ok(value)
            }
            Code::UserVariable { name, ty } => {
                let Some((value, from)) = run.function.session.user_variable(name) else {
                    return Ok(Value::Null);
                };
                convert::unify(value, &from, ty, &mut run.function)
            }
            Code::AssignUserVariable { name, value, ty } => {
                let value = value.eval(run)?;
                run.function.session.set_user_variable(name, value.clone(), ty.clone());
                Ok(value)
            }
            Code::SystemVariable { name, global } => {
                let name = if *global { format!("global.{name}") } else { name.to_string() };
                Ok(run.function.session.system_variable(&name).unwrap_or(Value::Null))
            }
            Code::Stored { program, args } => {
                let args = args.iter().map(|arg| arg.eval(run)).collect::<Result<Vec<_>>>()?;
                run.call(*program, args)
            }
            Code::Arithmetic(operation) => operation.eval(run),
            Code::Bits(operation) => operation.eval(run),
            Code::And(left, right) => Ok(truth_value(eval_and(left, right, run)?)),
            Code::Or(left, right) => Ok(truth_value(eval_or(left, right, run)?)),
            Code::Xor(left, right) => {
                let (left, right) = (left.eval(run)?, right.eval(run)?);
                Ok(truth_value(left.zip(right).map(|(left, right)| left != right)))
            }
            Code::Not(operand) => Ok(truth_value(operand.eval(run)?.map(|truth| !truth))),
            Code::Compare(comparison) => Ok(truth_value(comparison.eval(run)?)),
            Code::CompareRows(comparison) => Ok(truth_value(comparison.eval(run)?)),
            Code::IsNull { operand, negated } => {
                Ok(Value::bool(operand.eval(run)?.is_null() != *negated))
            }
            Code::IsTruth { operand, wanted, negated } => {
                Ok(Value::bool((operand.eval(run)? == Some(*wanted)) != *negated))
            }
            Code::Between { low, high, negated } => {
                Ok(truth_value(predicate::eval_between(low, high, *negated, run)?))
            }
            Code::InList { comparisons, negated } => {
                Ok(truth_value(predicate::eval_in_list(comparisons, *negated, run)?))
            }
            Code::InRows { comparisons, negated } => {
                Ok(truth_value(predicate::eval_in_rows(comparisons, *negated, run)?))
            }
            Code::InSet(set) => Ok(truth_value(set.eval(run)?)),
            Code::Like(like) => Ok(truth_value(like.eval(run)?)),
            Code::Case { branches, otherwise } => {
                for (condition, value) in branches {
                    if condition.holds(run)? {
                        return value.eval(run);
                    }
                }
                otherwise.as_ref().map_or(Ok(Value::Null), |value| value.eval(run))
            }
            Code::FirstNotNull(parts) => {
                for part in parts {
                    let value = part.eval(run)?;
                    if !value.is_null() {
                        return Ok(value);
                    }
                }
                Ok(Value::Null)
            }
            Code::Held { operand, register, rest } => {
                let value = operand.eval(run)?;
                run.set(*register, value);
                rest.eval(run)
            }
            Code::Cast { operand, from, to, kind } => {
                let value = operand.eval(run)?;
                convert::cast(value, from, to, *kind, &mut run.function)
            }
            Code::Unify { operand, from, to } => {
                let value = operand.eval(run)?;
                convert::unify(value, from, to, &mut run.function)
            }
            Code::Call(call) => call.eval(run),
            Code::StatementCall(call, statements) => call.eval_with_statements(*statements, run),
            Code::Match(code) => code.eval(run),
            Code::Subquery(subquery) => subquery.eval(run),
        }
    }

    /// The values of a row constructor, or of a row subquery; a plain expression is a row of one.
    pub(crate) fn eval_into(&self, run: &mut Run<'_>, register: usize) -> Result<()> {
        let value = self.eval(run)?;
        run.set(register, value);
        Ok(())
    }
}

/// The session for a function in a view: it runs no statements.
struct NoStatements;

impl Statements for NoStatements {
    fn run(&mut self, _: &str, _: &[Value]) -> Result<StatementResult> {
        bail!(VIEW_SELECT_CLAUSE, "function that runs statements")
    }

    fn open_session(&mut self) -> Result<Box<dyn SessionHandle>> {
        bail!(VIEW_SELECT_CLAUSE, "function that runs statements")
    }

    fn require_privilege(&self, _: &str) -> Result<()> {
        bail!(VIEW_SELECT_CLAUSE, "function that runs statements")
    }
}

/// Arguments that fit without allocation.
const ARGS_INLINE: usize = 4;

impl Call {
    /// Evaluates the last argument as many times as the first one gives.
    fn repeat(&self, run: &mut Run<'_>) -> Result<Value> {
        let Some(((body, ..), others)) = self.args.split_last() else { return Ok(Value::Null) };
        let mut values = Vec::with_capacity(self.args.len());
        for other in others {
            values.push(self.arg(other, run)?.unwrap_or(Value::Null));
        }
        let read = || match self.function.repeats {
            Repeats::Measured(reading) => reading(),
            Repeats::Plain | Repeats::No => None,
        };
        let before = read();
        if let Some(Value::Int(count)) = values.first() {
            for _ in 0..*count {
                run.env.cancel.check()?;
                body.eval(run)?;
            }
        }
        let used = read().zip(before).map(|(after, before)| after.saturating_sub(before));
        values.push(used.map_or(Value::Null, Value::UInt));
        (self.function.kernel)(&mut run.function, &values)
    }

    fn eval(&self, run: &mut Run<'_>) -> Result<Value> {
        if !matches!(self.function.repeats, Repeats::No) {
            return self.repeat(run);
        }
        if self.args.len() > ARGS_INLINE {
            let mut values = Vec::with_capacity(self.args.len());
            for arg in &self.args {
                match self.arg(arg, run)? {
                    Some(value) => values.push(value),
                    None => return Ok(Value::Null),
                }
            }
            return (self.function.kernel)(&mut run.function, &values);
        }
        let propagates = self.function.nulls == NullRule::Propagate;
        let mut values = [const { Value::Null }; ARGS_INLINE];
        for (place, arg) in values.iter_mut().zip(&self.args) {
            // In place: a value that was just built piece by piece is expensive to move.
            match arg {
                (code, _, Coercion::AsIs) => match code.leaf(run) {
                    Some(value) => place.clone_from(value),
                    None => *place = code.eval(run)?,
                },
                (code, ty, coercion) => {
                    *place = convert::coerce(code.eval(run)?, ty, coercion, &mut run.function)?;
                }
            }
            if propagates && place.is_null() {
                return Ok(Value::Null);
            }
        }
        (self.function.kernel)(&mut run.function, &values[..self.args.len()])
    }

    fn eval_with_statements(&self, statements: RunsStatements, run: &mut Run<'_>) -> Result<Value> {
        let mut values = Vec::with_capacity(self.args.len());
        for arg in &self.args {
            match self.arg(arg, run)? {
                Some(value) => values.push(value),
                None => return Ok(Value::Null),
            }
        }
        match &self.function.statements {
            Some(kernel) if statements == RunsStatements::Refused => {
                kernel(&mut run.function, &mut NoStatements, &values)
            }
            Some(kernel) => run.call_with_statements(kernel, &values),
            None => (self.function.kernel)(&mut run.function, &values),
        }
    }

    /// A coerced argument; `None` when it is NULL and the function propagates that.
    fn arg(
        &self,
        (code, ty, coercion): &(Code, DataType, Coercion),
        run: &mut Run<'_>,
    ) -> Result<Option<Value>> {
        let value = code.eval(run)?;
        let value = match coercion {
            Coercion::AsIs => value,
            coercion => convert::coerce(value, ty, coercion, &mut run.function)?,
        };
        if value.is_null() && self.function.nulls == NullRule::Propagate {
            return Ok(None);
        }
        Ok(Some(value))
    }
}

/// The collation for two texts of these types, where the plan does not give one.
pub(crate) fn common_collation(left: &DataType, right: &DataType) -> CollationId {
    if left.is_binary() || right.is_binary() {
        CollationId::BINARY
    } else if left.is_text() {
        left.collation
    } else {
        right.collation
    }
}
