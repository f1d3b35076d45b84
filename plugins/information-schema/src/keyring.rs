//! `performance_schema.keyring_keys` and `keyring_component_status`: no rows without a keyring, and never a key.

use errors::Result;
use plugin_api::{InfoFilter, InformationContext};
use types::Value;

use crate::row::Emit;

/// `keyring_keys`: the names of the keys.
pub fn keys(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    let Some(keyring) = ctx.keyring() else { return Ok(()) };
    for id in sys::blocking::blocking(|| keyring.ids())? {
        emit(&[Value::text(&id), Value::text(""), Value::text("")])?;
    }
    Ok(())
}

/// `keyring_component_status`: what the keyring is and whether it can be used.
pub fn status(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    let Some(keyring) = ctx.keyring() else { return Ok(()) };
    for (name, value) in sys::blocking::blocking(|| keyring.status()) {
        emit(&[Value::text(name), Value::text(&value)])?;
    }
    Ok(())
}
