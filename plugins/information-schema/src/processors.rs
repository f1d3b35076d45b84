//! The machine's processors: `data_dictionary.CPU_TOPOLOGY`.

use errors::Result;
use plugin_api::{InfoFilter, InformationContext};
use sys::topology::Topology;
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
