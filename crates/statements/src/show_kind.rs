//! Which counter counts a SHOW.

use syntax::ast::{EngineInfo, ShowKind};

use crate::status::Counter;

/// The Com_ counter of a SHOW; `None` for those that only this server has.
pub(crate) fn counter_of_show(kind: &ShowKind) -> Option<Counter> {
    Some(match kind {
        ShowKind::BinaryLogs => Counter::SHOW_BINLOGS,
        ShowKind::BinaryLogStatus => Counter::SHOW_BINARY_LOG_STATUS,
        ShowKind::BinlogEvents { relay: true, .. } => Counter::SHOW_RELAYLOG_EVENTS,
        ShowKind::BinlogEvents { .. } => Counter::SHOW_BINLOG_EVENTS,
        ShowKind::CharacterSet => Counter::SHOW_CHARSETS,
        ShowKind::Collation => Counter::SHOW_COLLATIONS,
        ShowKind::Columns { .. } => Counter::SHOW_FIELDS,
        ShowKind::CreateDatabase { .. } => Counter::SHOW_CREATE_DB,
        ShowKind::CreateTable(_) | ShowKind::CreateView(_) => Counter::SHOW_CREATE_TABLE,
        ShowKind::CreateProcedure(_) => Counter::SHOW_CREATE_PROC,
        ShowKind::CreateFunction(_) => Counter::SHOW_CREATE_FUNC,
        ShowKind::CreateLibrary(_) => Counter::SHOW_CREATE_LIBRARY,
        ShowKind::CreateTrigger(_) => Counter::SHOW_CREATE_TRIGGER,
        ShowKind::CreateEvent(_) => Counter::SHOW_CREATE_EVENT,
        ShowKind::CreateUser(_) => Counter::SHOW_CREATE_USER,
        ShowKind::Databases => Counter::SHOW_DATABASES,
        ShowKind::Engine { what: EngineInfo::Status, .. } => Counter::SHOW_ENGINE_STATUS,
        ShowKind::Engine { what: EngineInfo::Mutex, .. } => Counter::SHOW_ENGINE_MUTEX,
        ShowKind::Engine { what: EngineInfo::Logs, .. } => Counter::SHOW_ENGINE_LOGS,
        ShowKind::Engines => Counter::SHOW_STORAGE_ENGINES,
        // They are SELECTs of a variable.
        ShowKind::ErrorCount | ShowKind::WarningCount => Counter::SELECT,
        ShowKind::Errors(_) => Counter::SHOW_ERRORS,
        ShowKind::Events(_) => Counter::SHOW_EVENTS,
        ShowKind::FunctionCode(_) => Counter::SHOW_FUNCTION_CODE,
        ShowKind::FunctionStatus => Counter::SHOW_FUNCTION_STATUS,
        ShowKind::Grants { .. } => Counter::SHOW_GRANTS,
        ShowKind::Index { .. } => Counter::SHOW_KEYS,
        ShowKind::LibraryStatus => Counter::SHOW_LIBRARY_STATUS,
        ShowKind::OpenTables(_) => Counter::SHOW_OPEN_TABLES,
        ShowKind::ParseTree(_) => Counter::SHOW_PARSE_TREE,
        ShowKind::Plugins => Counter::SHOW_PLUGINS,
        ShowKind::Privileges => Counter::SHOW_PRIVILEGES,
        ShowKind::ProcedureCode(_) => Counter::SHOW_PROCEDURE_CODE,
        ShowKind::ProcedureStatus => Counter::SHOW_PROCEDURE_STATUS,
        ShowKind::Processlist { .. } => Counter::SHOW_PROCESSLIST,
        ShowKind::Profile { .. } => Counter::SHOW_PROFILE,
        ShowKind::Profiles => Counter::SHOW_PROFILES,
        ShowKind::ReplicaStatus { .. } => Counter::SHOW_REPLICA_STATUS,
        ShowKind::Replicas => Counter::SHOW_REPLICAS,
        ShowKind::Status(_) => Counter::SHOW_STATUS,
        ShowKind::TableStatus(_) => Counter::SHOW_TABLE_STATUS,
        ShowKind::Tables { .. } => Counter::SHOW_TABLES,
        ShowKind::Triggers { .. } => Counter::SHOW_TRIGGERS,
        ShowKind::Variables(_) => Counter::SHOW_VARIABLES,
        ShowKind::Warnings(_) => Counter::SHOW_WARNINGS,
        ShowKind::ClusterStatus
        | ShowKind::CreateSequence(_)
        | ShowKind::ChangeStreams
        | ShowKind::CreateChangeStream(_) => return None,
    })
}
