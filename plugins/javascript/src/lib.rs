//! JavaScript in SQL: the function `JS(code, argument [AS name], ..)`, and functions and procedures with LANGUAGE JAVASCRIPT.
//!
//! Scripts run in QuickJS, inside the thread of their statement. They reach nothing of the host but `db.query`: no files, no network, no
//! modules of the system. Memory, stack and time are limited (`settings`), KILL stops them (`guard`), and a fresh global object for each call
//! of `JS()` keeps what one call changes from the next (`function`).

mod bounded;
mod database;
mod expression;
mod failure;
mod function;
mod guard;
mod language;
mod pool;
mod settings;
#[cfg(test)]
mod tests;
mod value;

use std::sync::Arc;

use plugin_api::{Plugin, PluginInfo, Registrar};

use crate::language::JavaScript as Language;
use crate::pool::Pool;

/// The plugin.
#[derive(Debug, Default)]
pub struct JavaScript {
    pool: Arc<Pool>,
}

impl Plugin for JavaScript {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("js", "JavaScript: JS(code, ..), and routines with LANGUAGE JAVASCRIPT.")
            .on_request()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        self.pool.settings.declare(registrar);
        registrar.function(function::js(&self.pool));
        registrar.language(Arc::new(Language::new(&self.pool)));
        let pool = self.pool.clone();
        registrar.status("Js_isolates", move || pool.counts().isolates.to_string());
        let pool = self.pool.clone();
        registrar.status("Js_isolates_in_use", move || pool.counts().in_use.to_string());
    }
}
