//! The function EXECUTE.

use errors::Result;
use plugin_api::kit::{self, scalar};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, FunctionContext, ScalarFunction,
    Statements,
};
use types::Value;

use crate::PRIVILEGE;
use crate::discard::run_in_transaction;

pub(crate) const EXECUTE: ScalarFunction = scalar(
    "EXECUTE",
    Arity::exactly(1),
    "EXECUTE(text) [WAIT]\nRuns the statements of text in a session of its own, in one transaction, and returns 1; NULL for NULL and ''.",
    bind,
)
.runs_statements();

fn bind(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = kit::integer_type(1, true);
    Ok(BoundFunction::with_statements(ty, vec![Coercion::Text], run))
}

fn run(
    _: &mut FunctionContext<'_>,
    statements: &mut dyn Statements,
    args: &[Value],
) -> Result<Value> {
    statements.require_privilege(PRIVILEGE)?;
    let text = kit::text(&args[0]);
    if text.is_empty() {
        return Ok(Value::Null);
    }
    let mut session = statements.open_session()?;
    run_in_transaction(&mut *session, &text)?;
    Ok(Value::Int(1))
}
