//! The MySQL protocol as a listener: sockets, TLS, compression, log-in, commands, results.
//!
//! Knows sessions only through `plugin_api`: no SQL, no plans, no catalog. Each connection is a state machine
//! that a reactor thread drives; a thread that has to wait inside it hands its reactor over first.

mod buffer;
#[cfg(test)]
#[path = "../tests/canned/mod.rs"]
mod canned;
mod certificate;
mod commands;
mod connection;
#[cfg(test)]
mod fuzz_tests;
mod listener;
mod login;
mod metadata;
mod placement;
mod reactor;
mod sink;
mod tls;
mod tls_status;
mod transport;

use std::sync::Arc;

use plugin_api::{Plugin, PluginInfo, Registrar};
use sys::io_times::IoTimes;

pub use listener::MysqlProtocol;

/// The plugin that brings the listener.
struct ProtocolPlugin(Arc<IoTimes>);

impl Plugin for ProtocolPlugin {
    fn info(&self) -> PluginInfo {
        PluginInfo::new(
            "mysql_protocol",
            "The MySQL client/server protocol over TCP, TLS and UNIX sockets.",
        )
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        let protocol = MysqlProtocol { io_times: self.0.clone(), ..MysqlProtocol::default() };
        protocol.tls_status.register(registrar);
        registrar.listener(Arc::new(protocol));
    }
}

/// The plugin; `io_times` counts its calls to files.
pub fn plugin(io_times: Arc<IoTimes>) -> Box<dyn Plugin> {
    Box::new(ProtocolPlugin(io_times))
}
