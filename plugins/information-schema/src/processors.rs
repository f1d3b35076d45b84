//! The machine's processors, `data_dictionary.CPU_TOPOLOGY`, and who uses them, `RESOURCE_GROUPS`.

use errors::Result;
use plugin_api::{InfoFilter, InformationContext};
use sys::affinity;
use sys::topology::{Topology, list_text};
use types::Value;

use crate::row::{Emit, optional_number, yes_no};

/// `CPU_TOPOLOGY`: a row for each hardware thread that is plugged in, by the kernel's number. NULL is what the kernel does not tell; of one that
/// is off it tells little.
pub fn cpu_topology(_: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    for one in &Topology::read().processors {
        let if_online = |number: u64| optional_number(one.is_online.then_some(number));
        emit(&[
            Value::UInt(one.number.into()),
            yes_no(one.is_online),
            yes_no(one.is_usable),
            optional_number(one.node.map(u64::from)),
            optional_number(one.package.map(u64::from)),
            if_online(one.core().into()),
            if_online(one.siblings.len() as u64),
            optional_number(one.cache_bytes(1)),
            optional_number(one.cache_bytes(2)),
            optional_number(one.cache_bytes(3)),
        ])?;
    }
    Ok(())
}

/// `RESOURCE_GROUPS`: those that the account may use or change.
pub fn resource_groups(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let all = affinity::of_process();
    for group in ctx.resource_groups() {
        let processors = if group.processors.is_empty() { &all } else { &group.processors };
        emit(&[
            Value::text(&group.name),
            Value::text(if group.is_system { "SYSTEM" } else { "USER" }),
            Value::Int(group.is_enabled.into()),
            Value::text(&list_text(processors)),
            Value::Int(group.priority.into()),
        ])?;
    }
    Ok(())
}
