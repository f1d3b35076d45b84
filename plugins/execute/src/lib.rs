//! SQL text made at run time: the function EXECUTE, and EXECUTE of a text WITH NO RETURN and CONCURRENT.
//!
//! Knows no session but through `plugin_api`; what a text may do is the account's own right.

mod discard;
mod function;
mod statement;

use std::sync::Arc;

use plugin_api::{Plugin, PluginInfo, Registrar};

/// The dynamic privilege that both forms need.
const PRIVILEGE: &str = "EXECUTE_DYNAMIC";

/// The function, the statement and their privilege.
#[derive(Debug)]
pub struct Execute;

impl Plugin for Execute {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("execute", "EXECUTE(text): runs statements that are made at run time.")
            .by_default()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.privilege(PRIVILEGE);
        registrar.function(function::EXECUTE);
        registrar.text_runner("EXECUTE text", Arc::new(statement::Runner));
    }
}
