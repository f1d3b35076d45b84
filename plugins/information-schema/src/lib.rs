//! Tables of facts about the server: `information_schema`, parts of `performance_schema` and `mysql`, and `data_dictionary`.
//!
//! Column names and types are listed in `definitions.txt`; a table without a producer here has no rows because Squall has no such
//! objects, or does not measure them. Knows the server only through `InformationContext`.

mod accounts;
mod columns;
mod constraints;
mod dictionary;
mod drizzle;
mod duality;
mod extensions;
mod files;
mod keyring;
mod locks;
mod metrics;
mod processors;
mod roles;
mod routines;
mod row;
mod server;
mod spatial;
mod tables;
mod threads;

use std::sync::Arc;

use errors::Result;
use plugin_api::{
    InfoColumn, InfoFilter, InformationContext, InformationTable, Plugin, PluginInfo, Registrar,
    SessionTable, TableDefinition, table_definitions,
};

use row::Emit;
use types::Value;

/// The tables' shapes.
const DEFINITIONS: &str = include_str!("definitions.txt");

/// The plugin.
pub struct InformationSchema;

impl Plugin for InformationSchema {
    fn info(&self) -> PluginInfo {
        PluginInfo::new(
            "information_schema",
            "Tables of facts about schemas, the server and its connections",
        )
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        for definition in table_definitions(DEFINITIONS) {
            if definition.name == "OPTIMIZER_TRACE" {
                let rows = server::optimizer_traces;
                registrar.information_table(Arc::new(SessionTable::new(definition, rows)));
                continue;
            }
            let produce = producer(definition.schema, definition.name);
            registrar.information_table(Arc::new(FactTable { definition, produce }));
        }
    }
}

/// Produces the rows of a table.
type Producer = fn(&dyn InformationContext, &InfoFilter, &mut Emit<'_>) -> Result<()>;

struct FactTable {
    definition: TableDefinition,
    produce: Option<Producer>,
}

impl InformationTable for FactTable {
    fn schema(&self) -> &'static str {
        self.definition.schema
    }

    fn name(&self) -> &'static str {
        self.definition.name
    }

    fn columns(&self) -> &[InfoColumn] {
        &self.definition.columns
    }

    fn rows(
        &self,
        ctx: &dyn InformationContext,
        filter: &InfoFilter,
        emit: &mut dyn FnMut(&[Value]) -> Result<()>,
    ) -> Result<()> {
        let Some(produce) = self.produce else { return Ok(()) };
        let width = self.definition.columns.len();
        produce(ctx, filter, &mut |row| {
            debug_assert_eq!(row.len(), width, "{}", self.definition.name);
            emit(row)
        })
    }
}

/// The tables whose rows are produced here, with their producers. Tables of objects that do not exist yet have none.
#[rustfmt::skip]
const PRODUCERS: &[(&str, &str, Producer)] = &[
    ("information_schema", "CHARACTER_SETS", server::character_sets),
    ("information_schema", "COLLATIONS", server::collations),
    ("information_schema", "COLLATION_CHARACTER_SET_APPLICABILITY", server::collation_character_sets),
    ("information_schema", "INNODB_FT_DEFAULT_STOPWORD", server::stopwords),
    ("information_schema", "ENGINES", server::engines),
    ("information_schema", "PLUGINS", server::plugins),
    ("information_schema", "KEYWORDS", server::keywords),
    ("performance_schema", "processlist", server::performance_processlist),
    ("information_schema", "PROCESSLIST", server::processlist),
    ("information_schema", "SCHEMATA", tables::schemata),
    ("information_schema", "RESOURCE_GROUPS", processors::resource_groups),
    ("information_schema", "TABLES", tables::tables),
    ("information_schema", "VIEWS", tables::views),
    ("information_schema", "VIEW_TABLE_USAGE", tables::view_tables),
    ("information_schema", "VIEW_ROUTINE_USAGE", tables::view_routines),
    ("information_schema", "JSON_DUALITY_VIEWS", duality::views),
    ("information_schema", "JSON_DUALITY_VIEW_TABLES", duality::tables),
    ("information_schema", "JSON_DUALITY_VIEW_COLUMNS", duality::columns),
    ("information_schema", "JSON_DUALITY_VIEW_LINKS", duality::links),
    ("information_schema", "PARTITIONS", tables::partitions),
    ("information_schema", "ROUTINES", routines::routines),
    ("information_schema", "LIBRARIES", routines::libraries),
    ("information_schema", "ROUTINE_LIBRARIES", routines::routine_libraries),
    ("information_schema", "EVENTS", routines::events),
    ("information_schema", "PARAMETERS", routines::parameters),
    ("information_schema", "TRIGGERS", routines::triggers),
    ("information_schema", "COLUMNS", columns::columns),
    ("information_schema", "COLUMN_STATISTICS", columns::histograms),
    ("information_schema", "STATISTICS", columns::statistics),
    ("information_schema", "TABLE_CONSTRAINTS", constraints::table_constraints),
    ("information_schema", "SCHEMATA_EXTENSIONS", extensions::schemata),
    ("information_schema", "TABLES_EXTENSIONS", extensions::tables),
    ("information_schema", "COLUMNS_EXTENSIONS", extensions::columns),
    ("information_schema", "ST_GEOMETRY_COLUMNS", spatial::columns),
    ("information_schema", "ST_SPATIAL_REFERENCE_SYSTEMS", spatial::reference_systems),
    ("information_schema", "TABLE_CONSTRAINTS_EXTENSIONS", extensions::table_constraints),
    ("information_schema", "KEY_COLUMN_USAGE", constraints::key_column_usage),
    ("information_schema", "REFERENTIAL_CONSTRAINTS", constraints::referential),
    ("information_schema", "CHECK_CONSTRAINTS", constraints::checks),
    ("information_schema", "USER_PRIVILEGES", accounts::user_privileges),
    ("information_schema", "SCHEMA_PRIVILEGES", accounts::schema_privileges),
    ("information_schema", "TABLE_PRIVILEGES", accounts::table_privileges),
    ("information_schema", "COLUMN_PRIVILEGES", accounts::column_privileges),
    ("mysql", "user", accounts::user),
    ("mysql", "tables_priv", accounts::tables_priv),
    ("mysql", "columns_priv", accounts::columns_priv),
    ("information_schema", "APPLICABLE_ROLES", roles::applicable),
    ("information_schema", "ADMINISTRABLE_ROLE_AUTHORIZATIONS", roles::administrable),
    ("information_schema", "ENABLED_ROLES", roles::enabled),
    ("information_schema", "ROLE_TABLE_GRANTS", roles::table_grants),
    ("information_schema", "ROLE_COLUMN_GRANTS", roles::column_grants),
    ("information_schema", "ROLE_ROUTINE_GRANTS", roles::routine_grants),
    ("information_schema", "USER_ATTRIBUTES", accounts::user_attributes),
    ("mysql", "procs_priv", accounts::procs_priv),
    ("mysql", "password_history", accounts::password_history),
    ("mysql", "role_edges", accounts::role_edges),
    ("mysql", "proxies_priv", accounts::proxies_priv),
    ("mysql", "default_roles", accounts::default_roles),
    ("mysql", "global_grants", accounts::global_grants),
    ("mysql", "db", accounts::db),
    ("mysql", "component", server::mysql_component),
    ("mysql", "plugin", server::mysql_plugin),
    ("mysql", "servers", server::mysql_servers),
    ("mysql", "innodb_table_stats", tables::table_sizes),
    ("mysql", "innodb_index_stats", tables::index_sizes),
    ("performance_schema", "global_variables", server::global_variables),
    ("performance_schema", "session_variables", server::session_variables),
    ("performance_schema", "global_status", server::global_status),
    ("performance_schema", "session_status", server::session_status),
    ("performance_schema", "status_by_thread", server::status_by_thread),
    ("performance_schema", "persisted_variables", server::persisted_variables),
    ("performance_schema", "session_connect_attrs", server::connect_attributes),
    ("performance_schema", "session_account_connect_attrs", server::account_attributes),
    ("performance_schema", "keyring_keys", keyring::keys),
    ("performance_schema", "keyring_component_status", keyring::status),
    ("performance_schema", "data_locks", locks::data_locks),
    ("performance_schema", "data_lock_waits", locks::data_lock_waits),
    ("information_schema", "INNODB_TRX", locks::transactions),
    ("information_schema", "INNODB_METRICS", metrics::metrics),
    ("performance_schema", "variables_info", server::variables_info),
    ("performance_schema", "variables_metadata", server::variables_metadata),
    ("data_dictionary", "GLOBAL_VARIABLES", dictionary::global_variables),
    ("data_dictionary", "SESSION_VARIABLES", dictionary::session_variables),
    ("data_dictionary", "MODULES", dictionary::modules),
    ("data_dictionary", "EVENT_OBSERVERS", dictionary::event_observers),
    ("data_dictionary", "PLUGINS", dictionary::plugins),
    ("data_dictionary", "FUNCTIONS", dictionary::functions),
    ("data_dictionary", "PLAN_CACHE", dictionary::plan_cache),
    ("data_dictionary", "ENGINE_STATISTICS", dictionary::engine_statistics),
    ("data_dictionary", "ENGINE_STATUS", dictionary::engine_status),
    ("data_dictionary", "MEMORY_BY_OWNER", dictionary::memory_by_owner),
    ("data_dictionary", "CONDITIONS", dictionary::conditions),
    ("data_dictionary", "GRANTS", dictionary::grants),
    ("data_dictionary", "CREATE_STATEMENTS", dictionary::create_statements),
    ("data_dictionary", "CREATE_SCHEMA_STATEMENTS", dictionary::create_schema_statements),
    ("data_dictionary", "RECOVERY_PROGRESS", dictionary::recovery_progress),
    ("data_dictionary", "DAMAGED_PAGES", dictionary::damaged_pages),
    ("data_dictionary", "BACKUP_PROGRESS", dictionary::backup_progress),
    ("data_dictionary", "DDL_PROGRESS", dictionary::ddl_progress),
    ("data_dictionary", "INDEX_BUILDS", dictionary::index_builds),
    ("data_dictionary", "IO_HISTOGRAM", dictionary::io_histogram),
    ("data_dictionary", "IO_STATS", files::io_stats),
    ("information_schema", "FILES", files::files),
    ("information_schema", "INNODB_TABLESPACES", files::tablespaces),
    ("data_dictionary", "CPU_TOPOLOGY", processors::cpu_topology),
    ("data_dictionary", "LOCK_STATS", threads::locks),
    ("data_dictionary", "THREAD_STATES", threads::states),
    ("data_dictionary", "THREAD_STACKS", threads::stacks),
    ("data_dictionary", "PRIVILEGE_NAMES", dictionary::privilege_names),
    ("data_dictionary", "INNODB_CONFIGURATION", drizzle::configuration),
    ("data_dictionary", "INNODB_STATUS", drizzle::status),
    ("data_dictionary", "ERRORS", drizzle::errors),
    ("data_dictionary", "SCHEMAS", drizzle::schemas),
    ("data_dictionary", "TABLES", drizzle::tables),
    ("data_dictionary", "COLUMNS", drizzle::columns),
    ("data_dictionary", "INDEXES", drizzle::indexes),
    ("data_dictionary", "INDEX_PARTS", drizzle::index_parts),
    ("data_dictionary", "FOREIGN_KEYS", drizzle::foreign_keys),
    ("data_dictionary", "SESSIONS", drizzle::sessions),
    ("data_dictionary", "GLOBAL_STATUS", drizzle::global_status),
    ("data_dictionary", "SESSION_STATUS", drizzle::session_status),
    ("data_dictionary", "GLOBAL_STATEMENTS", drizzle::global_statements),
    ("data_dictionary", "SESSION_STATEMENTS", drizzle::session_statements),
];

/// The producer of a table.
fn producer(schema: &str, name: &str) -> Option<Producer> {
    let mut known = PRODUCERS.iter();
    known.find(|table| (table.0, table.1) == (schema, name)).map(|table| table.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_producer_has_a_definition_and_every_definition_columns() {
        let names: Vec<_> =
            table_definitions(DEFINITIONS).iter().map(|d| (d.schema, d.name)).collect();
        assert!(names.contains(&("information_schema", "TABLES")));
        assert!(names.contains(&("data_dictionary", "PLAN_CACHE")));
        assert!(
            table_definitions(DEFINITIONS).iter().all(|definition| !definition.columns.is_empty())
        );
        let produced = names.iter().filter(|(schema, name)| producer(schema, name).is_some());
        assert_eq!(produced.count(), PRODUCERS.len(), "a table is defined twice");
        for (schema, name, _) in PRODUCERS {
            assert!(names.contains(&(*schema, *name)), "{schema}.{name}");
            let entries = PRODUCERS.iter().filter(|known| (known.0, known.1) == (*schema, *name));
            assert_eq!(entries.count(), 1, "{schema}.{name}");
        }
    }
}
