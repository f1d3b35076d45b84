//! SQL over HTTP on port 8086: version 0.3 of Drizzle's JSON server, the `/1.0` interface, the web console's files, and the calls and
//! console pages of other plugins.
//!
//! The only user of an asynchronous runtime: it reads and writes sockets on its own threads, and statements run on a bounded number
//! of blocking threads beside them, or, when they are short, where their request was read (`quick`). It sees the server through `plugin_api::SessionFactory` alone. docs/json-server.md describes the calls.

mod account;
mod arrow;
mod assets;
mod call;
mod change_readers;
mod changes;
mod documents;
mod failures;
mod filter;
mod finish;
mod gateway;
mod held;
mod idle;
mod lines;
mod listener;
mod live;
mod mounted;
mod outlet;
mod pipe;
mod quick;
mod quick_room;
mod reply;
mod route;
mod routes;
mod running;
mod settings;
mod sink;
mod statement;
mod tables;
mod tokens;

use std::sync::Arc;

use plugin_api::{Plugin, PluginInfo, Registrar};

// SQL values as JSON: the same as in events.
use ::changes::json;
use listener::JsonServer;
use settings::Settings;

/// The plugin that brings the listener.
#[derive(Debug, Default)]
struct JsonServerPlugin {
    settings: Settings,
}

impl Plugin for JsonServerPlugin {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("json_server", "SQL as JSON over HTTP, and the web console.").on_request()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        self.settings.register(registrar);
        registrar.listener(Arc::new(JsonServer { settings: self.settings.clone() }));
    }
}

/// The plugin.
pub fn plugin() -> Box<dyn Plugin> {
    Box::<JsonServerPlugin>::default()
}
