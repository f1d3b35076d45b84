//! SQL over HTTP on port 8086: version 0.3 of Drizzle's JSON server, the `/1.0` interface, and the web console's files.
//!
//! The only user of an asynchronous runtime: it reads and writes sockets on its own threads, and statements run on a bounded number
//! of blocking threads beside them. It sees the server through `plugin_api::SessionFactory` alone. docs/json-server.md describes the calls.

mod account;
mod assets;
mod call;
mod gateway;
mod json;
mod listener;
mod reply;
mod routes;
mod running;
mod sink;
mod tokens;

use std::sync::Arc;

use plugin_api::{Plugin, PluginInfo, Registrar};

pub use gateway::Settings;
pub use listener::JsonServer;

/// The plugin that brings the listener.
struct JsonServerPlugin;

impl Plugin for JsonServerPlugin {
    fn info(&self) -> PluginInfo {
        PluginInfo {
            name: "json_server",
            description: "SQL, documents and tables as JSON over HTTP, and the web console.",
        }
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.listener(Arc::new(JsonServer::default()));
    }
}

/// The plugin.
pub fn plugin() -> Box<dyn Plugin> {
    Box::new(JsonServerPlugin)
}
