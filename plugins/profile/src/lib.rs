//! Where the time of statements goes: PROFILE shows the measurements of one statement.

mod folded;
mod statement;
mod svg;

use std::sync::Arc;

use plugin_api::{Plugin, PluginInfo, Registrar};

/// The plugin.
#[derive(Debug)]
pub struct Profile;

impl Plugin for Profile {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("profile", "Where the time of statements goes: PROFILE, flame graphs.")
            .by_default()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.profile_printer(Arc::new(statement::Printer));
    }
}
