//! The plugin's system variables.

use plugin_api::Registrar;
use plugin_api::variable::{Definition, GlobalValue, Kind, uint};

/// The global values, as SET leaves them.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// `json_server_port`.
    pub port: GlobalValue,
    /// `json_server_bind_address`.
    pub bind_address: GlobalValue,
    /// `json_server_schema`.
    pub schema: GlobalValue,
    /// `json_server_table`.
    pub table: GlobalValue,
    /// `json_server_allow_drop_table`.
    pub allow_drop_table: GlobalValue,
    /// `json_server_max_threads`.
    pub max_threads: GlobalValue,
    /// `json_server_allowed_origins`.
    pub allowed_origins: GlobalValue,
}

/// The setting of the port.
pub(crate) const PORT_NAME: &str = "json_server_port";
/// The setting of the address.
pub(crate) const BIND_ADDRESS_NAME: &str = "json_server_bind_address";

const PORT: Definition = Definition::fixed(
    PORT_NAME,
    uint(0, 65535),
    "8086",
    "TCP port of the JSON server; 0 picks one.",
)
.rebound();
const BIND_ADDRESS: Definition = Definition::fixed(
    BIND_ADDRESS_NAME,
    Kind::Text,
    "127.0.0.1",
    "IP address that the JSON server listens on.",
)
.rebound();
const SCHEMA: Definition = Definition::global(
    "json_server_schema",
    Kind::Text,
    "test",
    "Schema of calls of version 0.3 that name none.",
);
const TABLE: Definition = Definition::global(
    "json_server_table",
    Kind::Text,
    "",
    "Table of calls of version 0.3 that name none.",
);
const ALLOW_DROP_TABLE: Definition = Definition::global(
    "json_server_allow_drop_table",
    Kind::Bool,
    "OFF",
    "Whether a DELETE of version 0.3 without _id drops the table.",
);
const MAX_THREADS: Definition = Definition::fixed(
    "json_server_max_threads",
    uint(1, 1024),
    "32",
    "Requests of the JSON server that run at one time.",
);

const ALLOWED_ORIGINS: Definition = Definition::global(
    "json_server_allowed_origins",
    Kind::Text,
    "",
    "Origins of web pages that may use the JSON server besides its own console, with commas between them.",
);

impl Settings {
    /// Declares the variables.
    pub fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.variable(&PORT, &self.port);
        registrar.variable(&BIND_ADDRESS, &self.bind_address);
        registrar.variable(&SCHEMA, &self.schema);
        registrar.variable(&TABLE, &self.table);
        registrar.variable(&ALLOW_DROP_TABLE, &self.allow_drop_table);
        registrar.variable(&MAX_THREADS, &self.max_threads);
        registrar.variable(&ALLOWED_ORIGINS, &self.allowed_origins);
    }
}
