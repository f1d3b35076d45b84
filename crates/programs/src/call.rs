//! CALL: arguments in, the program run as its definer or its caller, results out.

use std::sync::Arc;

use catalog::{PrivilegeSet, Routine, RoutineKind, RoutineParameter};
use errors::{Result, bail};
use plugin_api::{ColumnMeta, OkInfo, ResultSink, ValueRow};
use syntax::ast::{Call, ExprKind};

use crate::frame::{Frame, ProgramSink, store_local};
use crate::host::ProgramHost;
use crate::load::{Loaded, Made, loaded};
use crate::run::{refuse_division_by_zero, run_body};
use crate::running::{Origin, Running};
use crate::system_routine::find_procedure;

/// CALL.
///
/// # Errors
/// 1305, 1318, 1370, 1414, 1456; errors of the body.
pub fn run_call<H: ProgramHost + ?Sized>(
    host: &mut H,
    call: &Call,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let (schema, name) = host.qualify(&call.name)?;
    host.require_on_routine(&schema, RoutineKind::Procedure, &name, PrivilegeSet::EXECUTE)?;
    let routine = find_procedure(host, &schema, &name)?;
    let loaded = loaded(host, Made::Routine(routine.clone()))?;
    let (wanted, given) = (routine.parameters.len(), call.args.len());
    if wanted != given {
        let shown = format!("{schema}.{}", routine.name);
        bail!(SP_WRONG_NO_OF_ARGS, "PROCEDURE", shown, wanted, given);
    }
    check_recursion(host, &routine)?;
    let frame = new_frame(host, &loaded, &routine, call, running)?;
    host.finish_scope()?;
    let conditions = host.conditions();
    *conditions.last = std::mem::take(conditions.working);
    let outside = host.enter(&loaded)?;
    host.state_mut().frames.push(frame);
    sink.followed_by(plugin_api::Next::Result);
    let mut inner = ProgramSink { inner: sink, affected_rows: 0 };
    let result = run_body(host, &loaded, &mut inner);
    let affected_rows = inner.affected_rows;
    let frame = host.state_mut().frames.pop();
    host.leave(outside);
    result?;
    if let Some(frame) = frame {
        hand_out(host, &routine, &frame, call, running, sink)?;
    }
    let conditions = host.conditions();
    *conditions.working = std::mem::take(conditions.last);
    host.send_ok(sink, OkInfo { affected_rows, ..OkInfo::default() })
}

/// Limits the recursion of a routine, and the depth of nested calls.
fn check_recursion<H: ProgramHost + ?Sized>(host: &H, routine: &Routine) -> Result<()> {
    let own = host.state().frames.iter().filter(|frame| frame.loaded.is_routine(routine));
    let limit = host.recursion_max();
    if own.count() as u64 > limit {
        bail!(SP_RECURSION_LIMIT, limit, routine.name);
    }
    host.state().check_depth()
}

/// The frame of a call, its parameters filled.
fn new_frame<H: ProgramHost + ?Sized>(
    host: &mut H,
    loaded: &Arc<Loaded>,
    routine: &Routine,
    call: &Call,
    running: &Running<'_>,
) -> Result<Frame> {
    let mut frame = Frame::new(loaded.clone());
    for (slot, (parameter, arg)) in routine.parameters.iter().zip(&call.args).enumerate() {
        let is_variable = matches!(arg.kind, ExprKind::UserVar(_) | ExprKind::Param(_));
        if &*parameter.mode != "IN" && !is_variable {
            let shown = format!("{}.{}", routine.schema, routine.name);
            bail!(SP_NOT_VAR_ARG, slot + 1, shown);
        }
        if &*parameter.mode == "OUT" {
            continue;
        }
        let before = host.conditions().working.conditions().len();
        let (value, ty) = host.evaluate(arg, running)?;
        refuse_division_by_zero(host, before)?;
        let value = host.convert(&parameter.name, &value, &ty, &parameter.ty)?;
        frame.set(slot, value);
    }
    Ok(frame)
}

/// Returns OUT and INOUT parameters to the caller: to its variables, or to the client that sent the parameters of a prepared statement.
fn hand_out<H: ProgramHost + ?Sized>(
    host: &mut H,
    routine: &Routine,
    frame: &Frame,
    call: &Call,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let (mut places, mut columns, mut row) = (Vec::new(), Vec::new(), Vec::new());
    let parameters = routine.parameters.iter().zip(&call.args).zip(frame.values.iter());
    for ((parameter, arg), value) in parameters {
        if &*parameter.mode == "IN" {
            continue;
        }
        match &arg.kind {
            ExprKind::UserVar(name) => {
                host.set_user_variable(&name.text, value.clone(), parameter.ty.clone());
            }
            ExprKind::Param(slot) if running.origin == Origin::Program => {
                store_local(host, *slot as usize, value, &parameter.ty)?;
            }
            ExprKind::Param(slot) => {
                places.push(*slot as usize);
                columns.push(out_column(routine, parameter));
                row.push(value.clone());
            }
            // `new_frame` accepts nothing else.
            _ => {}
        }
    }
    if places.is_empty() {
        return Ok(());
    }
    let state = host.state_info();
    sink.out_parameters(&places, &columns, &ValueRow(&row), &state)
}

/// The description of an OUT parameter's value: a column of its procedure.
fn out_column(routine: &Routine, parameter: &RoutineParameter) -> ColumnMeta {
    ColumnMeta {
        schema: routine.schema.clone(),
        table: routine.name.clone(),
        org_table: routine.name.clone(),
        org_name: parameter.name.clone(),
        ..ColumnMeta::computed(&parameter.name, parameter.ty.clone())
    }
}
