//! The schema `sys`: views that sum up what `performance_schema` and `information_schema` tell, and the functions that format their values.
//!
//! The views are SQL (the `.sql` files here, but `procedures.sql`, which has the procedures); the kernel expands them with the rights of the account that names them. The plugin keeps no state.

mod functions;
mod procedures;
mod queries;
mod views;

use plugin_api::{Plugin, PluginInfo, Registrar};

/// The plugin.
#[derive(Clone, Copy, Debug, Default)]
pub struct SysSchema;

impl Plugin for SysSchema {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("sys_schema", "Views and functions of the schema sys")
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        views::all().into_iter().for_each(|view| registrar.system_view(view));
        procedures::all().into_iter().for_each(|one| registrar.system_procedure(one));
        let functions = functions::FUNCTIONS.iter().chain(queries::FUNCTIONS);
        functions.for_each(|function| registrar.function(function.clone()));
    }
}
