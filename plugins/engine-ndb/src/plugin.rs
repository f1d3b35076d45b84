//! The plugin: the engine and its settings.

use plugin_api::variable::{Definition, Kind};
use plugin_api::{Plugin, PluginInfo, Registrar};
use sys::sync::Arc;

use crate::engine::NdbEngine;
use crate::nodes::NodeTable;

static CONNECTSTRING: Definition = Definition::fixed(
    "ndb_connectstring",
    Kind::Text,
    "",
    "Addresses of the management servers of a MySQL Cluster: HOST:PORT,HOST:PORT",
);
static SHIM: Definition = Definition::fixed(
    "ndb_shim",
    Kind::Text,
    "libsquall_ndb.so",
    "Path of the library that `cargo xtask ndb-shim` builds",
);
static DATABASE: Definition = Definition::fixed(
    "ndb_database",
    Kind::Text,
    "squall",
    "The database of the cluster in which this server keeps its tables; servers with the same one have the same tables",
);

/// The plugin.
#[derive(Debug, Default)]
pub struct NdbPlugin;

impl Plugin for NdbPlugin {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("ndb", "Tables in the data nodes of a MySQL Cluster.").on_request()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        let engine = Arc::new(NdbEngine::new());
        let settings = &engine.0.links.settings;
        registrar.variable(&CONNECTSTRING, &settings.connectstring);
        registrar.variable(&SHIM, &settings.shim);
        registrar.variable(&DATABASE, &settings.database);
        registrar.information_table(Arc::new(NodeTable::new(engine.0.clone())));
        crate::ndbinfo::register(&engine.0, registrar);
        crate::cluster::register(&engine.0, registrar);
        registrar.engine(engine);
    }
}
