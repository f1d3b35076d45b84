//! Logs of statements: the general log and the slow query log in the reference's formats, and `logging_query`, which writes JSON lines or CSV.
//!
//! Knows statements only as observers see them: passwords are gone from their texts.

mod entry;
mod file;
mod format;
mod logging_query;
mod sampling;
mod server_logs;
mod tables;
mod verbosity;

use std::sync::Arc;

use plugin_api::variable::Definition;
use plugin_api::{GlobalValue, Plugin, PluginInfo, Registrar};

pub use logging_query::LoggingQuery;

use file::Files;
use server_logs::{LogVariables, ServerLogs};
use tables::LogTable;

/// The general log and the slow query log.
#[derive(Debug)]
pub struct QueryLogs;

impl Plugin for QueryLogs {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("query_logs", "The general log and the slow query log.")
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        let variables = LogVariables::default();
        // Read by their names where files are written.
        let rotation: [GlobalValue; 3] = Default::default();
        let declared: [(&'static Definition, _); 15] = [
            (&server_logs::GENERAL_LOG, &variables.general),
            (&server_logs::GENERAL_LOG_FILE, &variables.general_file),
            (&server_logs::SLOW_QUERY_LOG, &variables.slow),
            (&server_logs::SLOW_QUERY_LOG_FILE, &variables.slow_file),
            (&server_logs::LOG_OUTPUT, &variables.output),
            (&server_logs::LOG_QUERIES_NOT_USING_INDEXES, &variables.without_index),
            (&server_logs::LOG_SLOW_ADMIN_STATEMENTS, &variables.admin),
            (&server_logs::LOG_SLOW_EXTRA, &variables.extra),
            (&server_logs::LOG_SLOW_VERBOSITY, &variables.verbosity),
            (&server_logs::QUERY_LOG_FORMAT, &variables.format),
            (&server_logs::LOG_SLOW_RATE_LIMIT, &variables.rate_limit),
            (&server_logs::LOG_SLOW_RATE_TYPE, &variables.rate_type),
            (&server_logs::LOG_ROTATE_SIZE, &rotation[0]),
            (&server_logs::LOG_ROTATE_INTERVAL, &rotation[1]),
            (&server_logs::LOG_ROTATE_KEEP, &rotation[2]),
        ];
        for (definition, value) in declared {
            registrar.variable(definition, value);
        }
        let general_table = Arc::new(LogTable::general());
        let slow_table = Arc::new(LogTable::slow());
        registrar.information_table(general_table.clone());
        registrar.information_table(slow_table.clone());
        let mut files = Files::default();
        let logs = Arc::new(ServerLogs::new(variables, &mut files, general_table, slow_table));
        let counted = logs.clone();
        registrar.status("Query_log_entries_lost", move || counted.lost().to_string());
        registrar.observer(logs.clone());
        registrar.log_sink(logs);
        registrar.job(Arc::new(files));
    }
}
