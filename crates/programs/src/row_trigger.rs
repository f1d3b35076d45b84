//! Triggers that run for a row.

use std::sync::Arc;

use catalog::PrivilegeSet;
use errors::Result;
use types::{TypeKind, Value, ZoneRules};

use crate::frame::Frame;
use crate::function::{FunctionSink, begin_conditions};
use crate::host::ProgramHost;
use crate::load::{Loaded, Made};
use crate::run::run_body;

/// Runs a trigger for a row; the values that a BEFORE trigger leaves in `new` are written.
///
/// # Errors
/// Errors of its body; 1142.
pub fn fire_trigger<H: ProgramHost + ?Sized>(
    host: &mut H,
    loaded: &Arc<Loaded>,
    old: &[Value],
    new: &mut [Value],
) -> Result<()> {
    host.state().check_depth()?;
    let mut frame = Frame::new(loaded.clone());
    for named in &loaded.row {
        let row = if named.is_new { &*new } else { old };
        let value = row.get(named.position).cloned().unwrap_or(Value::Null);
        let zone = &*host.settings().time_zone;
        frame.set(named.slot, read_timestamp(value, named.ty.kind, zone));
    }
    begin_conditions(host);
    let outside = host.enter(loaded)?;
    host.state_mut().frames.push(frame);
    let allowed = match &loaded.made {
        Made::Trigger(trigger, _) => {
            host.require_on_table(&trigger.schema, &trigger.table, PrivilegeSet::TRIGGER)
        }
        Made::Routine(_) => Ok(()),
    };
    let result =
        allowed.and_then(|()| run_body(host, loaded, &mut FunctionSink { word: "trigger" }));
    let frame = host.state_mut().frames.pop();
    host.leave(outside);
    result?;
    let values = frame.map(|frame| frame.values).unwrap_or_default();
    for named in loaded.row.iter().filter(|named| named.assigned) {
        if let (Some(value), Some(place)) = (values.get(named.slot), new.get_mut(named.position)) {
            *place = match named.ty.kind {
                TypeKind::Timestamp => {
                    let variable = &loaded.variables[named.slot];
                    host.convert(&variable.name, value, &variable.ty, &named.ty)?
                }
                _ => value.clone(),
            };
        }
    }
    Ok(())
}

/// A TIMESTAMP, which is stored as UTC, as programs read it.
fn read_timestamp(value: Value, kind: TypeKind, zone: &dyn ZoneRules) -> Value {
    match (kind, value) {
        (TypeKind::Timestamp, Value::DateTime(time)) => {
            Value::DateTime(match time.to_unix_micros().filter(|_| !time.is_zero()) {
                Some(micros) => zone.utc_to_local(micros),
                None => time,
            })
        }
        (_, value) => value,
    }
}
