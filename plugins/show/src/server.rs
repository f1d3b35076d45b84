//! SHOW statements about the server.

use syntax::ast::{Limit, VarScope};

use crate::select::{Select, literal};

/// SHOW CHARACTER SET.
pub fn character_sets() -> Select {
    Select::from("information_schema.CHARACTER_SETS")
        .items(&[
            ("CHARACTER_SET_NAME", "Charset"),
            ("DESCRIPTION", "Description"),
            ("DEFAULT_COLLATE_NAME", "Default collation"),
            ("MAXLEN", "Maxlen"),
        ])
        .ordered("1")
}

/// SHOW COLLATION.
pub fn collations() -> Select {
    Select::from("information_schema.COLLATIONS")
        .items(&[
            ("COLLATION_NAME", "Collation"),
            ("CHARACTER_SET_NAME", "Charset"),
            ("ID", "Id"),
            ("IS_DEFAULT", "Default"),
            ("IS_COMPILED", "Compiled"),
            ("SORTLEN", "Sortlen"),
            ("PAD_ATTRIBUTE", "Pad_attribute"),
        ])
        .ordered("1")
}

/// SHOW ENGINES.
pub fn engines() -> Select {
    Select::from("information_schema.ENGINES").items(&[
        ("ENGINE", "Engine"),
        ("SUPPORT", "Support"),
        ("COMMENT", "Comment"),
        ("TRANSACTIONS", "Transactions"),
        ("XA", "XA"),
        ("SAVEPOINTS", "Savepoints"),
    ])
}

/// SHOW CLUSTER STATUS: the nodes of the NDB cluster, as its management server sees them.
pub fn cluster_status() -> Select {
    Select::from("data_dictionary.NDB_NODES").items(&[
        ("NODE_ID", "Node_id"),
        ("TYPE", "Type"),
        ("STATUS", "Status"),
        ("NODE_GROUP", "Node_group"),
        ("START_PHASE", "Start_phase"),
        ("VERSION", "Version"),
        ("ADDRESS", "Address"),
    ])
}

/// SHOW ENGINE x STATUS: the engine's counters as one text, a line each.
pub fn engine_status(engine: Option<&str>) -> Select {
    /// The engine for the reference's name.
    const OWN: &str = "Squall";
    const REFERENCE: &str = "InnoDB";
    let select = Select::from("data_dictionary.ENGINE_STATUS");
    match engine {
        Some(name) => {
            let is_reference = name.eq_ignore_ascii_case(REFERENCE);
            let (shown, own) = if is_reference { (REFERENCE, OWN) } else { (name, name) };
            select.item(&literal(shown), "Type").equal("ENGINE", own)
        }
        None => select.item("ENGINE", "Type"),
    }
    .item("''", "Name")
    .item("STATUS", "Status")
}

/// SHOW PLUGINS.
pub fn plugins() -> Select {
    Select::from("information_schema.PLUGINS").items(&[
        ("PLUGIN_NAME", "Name"),
        ("PLUGIN_STATUS", "Status"),
        ("PLUGIN_TYPE", "Type"),
        ("PLUGIN_LIBRARY", "Library"),
        ("PLUGIN_LICENSE", "License"),
    ])
}

/// SHOW PRIVILEGES.
pub fn privileges() -> Select {
    Select::from("data_dictionary.PRIVILEGE_NAMES").items(&[
        ("PRIVILEGE", "Privilege"),
        ("CONTEXT", "Context"),
        ("COMMENT", "Comment"),
    ])
}

/// SHOW [FULL] PROCESSLIST.
pub fn processlist(full: bool) -> Select {
    Select::from("information_schema.PROCESSLIST")
        .items(&[
            ("ID", "Id"),
            ("USER", "User"),
            ("HOST", "Host"),
            ("DB", "db"),
            ("COMMAND", "Command"),
            ("TIME", "Time"),
            ("STATE", "State"),
            (if full { "INFO" } else { "LEFT(INFO, 100)" }, "Info"),
        ])
        .ordered("1")
}

fn scoped(range: &VarScope, session: &str, global: &str) -> String {
    let table = match range {
        VarScope::Session => session,
        VarScope::Global | VarScope::Persist | VarScope::PersistOnly | VarScope::System => global,
    };
    format!("performance_schema.{table}")
}

/// SHOW [GLOBAL] STATUS.
pub fn status(range: &VarScope) -> Select {
    named_values(&scoped(range, "session_status", "global_status"))
}

/// SHOW [GLOBAL] VARIABLES.
pub fn variables(range: &VarScope) -> Select {
    named_values(&scoped(range, "session_variables", "global_variables"))
}

fn named_values(table: &str) -> Select {
    Select::from(table)
        .item("VARIABLE_NAME", "Variable_name")
        .item("VARIABLE_VALUE", "Value")
        .ordered("1")
}

/// SHOW WARNINGS and SHOW ERRORS.
pub fn conditions(errors_only: bool, limit: Option<&Limit>) -> Select {
    let select = Select::from("data_dictionary.CONDITIONS").items(&[
        ("LEVEL", "Level"),
        ("CODE", "Code"),
        ("MESSAGE", "Message"),
    ]);
    let select = if errors_only { select.equal("LEVEL", "Error") } else { select };
    select.limited(limit)
}

/// SHOW COUNT(*) WARNINGS and ERRORS.
pub fn condition_count(variable: &str) -> Select {
    Select::default().item(&format!("@@session.{variable}"), &format!("@@session.{variable}"))
}

/// SHOW GRANTS of the session's account.
pub fn own_grants(account: &str) -> Select {
    Select::from("data_dictionary.GRANTS").item("GRANT_STATEMENT", &format!("Grants for {account}"))
}

/// SHOW PROFILES.
pub fn profiles() -> Select {
    let columns = [("QUERY_ID", "Query_ID"), ("DURATION", "Duration"), ("QUERY", "Query")];
    Select::from("data_dictionary.STATEMENT_PROFILES").items(&columns).ordered("QUERY_ID")
}

/// Columns of SHOW PROFILE with the word that asks for them.
const PROFILE_COLUMNS: &[(&str, &str, &str)] = &[
    ("CPU", "CPU_USER", "CPU_user"),
    ("CPU", "CPU_SYSTEM", "CPU_system"),
    ("CONTEXT SWITCHES", "CONTEXT_VOLUNTARY", "Context_voluntary"),
    ("CONTEXT SWITCHES", "CONTEXT_INVOLUNTARY", "Context_involuntary"),
    ("BLOCK IO", "BLOCK_OPS_IN", "Block_ops_in"),
    ("BLOCK IO", "BLOCK_OPS_OUT", "Block_ops_out"),
    ("IPC", "MESSAGES_SENT", "Messages_sent"),
    ("IPC", "MESSAGES_RECEIVED", "Messages_received"),
    ("PAGE FAULTS", "PAGE_FAULTS_MAJOR", "Page_faults_major"),
    ("PAGE FAULTS", "PAGE_FAULTS_MINOR", "Page_faults_minor"),
    ("SWAPS", "SWAPS", "Swaps"),
    ("SOURCE", "SOURCE_FUNCTION", "Source_function"),
    ("SOURCE", "SOURCE_FILE", "Source_file"),
    ("SOURCE", "SOURCE_LINE", "Source_line"),
];

/// SHOW PROFILE, of the last statement unless it names one.
pub fn profile(types: &[Box<str>], query: Option<u64>, limit: Option<&Limit>) -> Select {
    const STEPS: &str = "data_dictionary.STATEMENT_PROFILE_STEPS";
    let is_wanted = |kind: &str| types.iter().any(|word| &**word == kind || &**word == "ALL");
    let number = match query {
        Some(number) => number.to_string(),
        None => "(SELECT MAX(QUERY_ID) FROM data_dictionary.STATEMENT_PROFILES)".to_owned(),
    };
    let first = [("STATE", "Status"), ("DURATION", "Duration")];
    let wanted = PROFILE_COLUMNS.iter().filter(|(kind, ..)| is_wanted(kind));
    let select = Select::from(STEPS).items(&first);
    wanted
        .fold(select, |select, (_, column, caption)| select.item(column, caption))
        .only(format!("QUERY_ID = {number}"))
        .ordered("SEQ")
        .limited(limit)
}

/// SHOW BINARY LOG STATUS: empty without a binary log.
pub fn binary_log_status() -> Select {
    Select::from("data_dictionary.BINARY_LOG_STATUS").items(&[
        ("LOG_NAME", "File"),
        ("POSITION", "Position"),
        ("''", "Binlog_Do_DB"),
        ("''", "Binlog_Ignore_DB"),
        ("EXECUTED_GTID_SET", "Executed_Gtid_Set"),
    ])
}

/// SHOW BINARY LOGS.
pub fn binary_logs() -> Select {
    Select::from("data_dictionary.BINARY_LOGS").items(&[
        ("LOG_NAME", "Log_name"),
        ("FILE_SIZE", "File_size"),
        ("ENCRYPTED", "Encrypted"),
    ])
}

/// SHOW BINLOG EVENTS: of the first file when none is named.
pub fn binlog_events(log: Option<&str>, from: Option<u64>, limit: Option<&Limit>) -> Select {
    let first = "(SELECT MIN(LOG_NAME) FROM data_dictionary.BINARY_LOGS)";
    let file = log.map_or_else(|| first.to_owned(), literal);
    let from = from.map_or_else(String::new, |from| format!(" AND POS >= {from}"));
    Select::from("data_dictionary.BINARY_LOG_EVENTS")
        .items(&[
            ("LOG_NAME", "Log_name"),
            ("POS", "Pos"),
            ("EVENT_TYPE", "Event_type"),
            ("SERVER_ID", "Server_id"),
            ("END_LOG_POS", "End_log_pos"),
            ("INFO", "Info"),
        ])
        .only(format!("LOG_NAME = {file}{from}"))
        .limited(limit)
}

/// SHOW REPLICAS.
pub fn replicas() -> Select {
    Select::from("data_dictionary.BINARY_LOG_READERS").items(&[
        ("SERVER_ID", "Server_Id"),
        ("HOST", "Host"),
        ("PORT", "Port"),
        ("SOURCE_ID", "Source_Id"),
        ("REPLICA_UUID", "Replica_UUID"),
    ])
}

/// SHOW CHANGE STREAMS.
pub fn change_streams() -> Select {
    Select::from("data_dictionary.CHANGE_STREAMS").items(&[
        ("STREAM_NAME", "Stream_name"),
        ("SCOPE", "Scope"),
        ("STATE", "State"),
        ("CONFIRMED_GTID_SET", "Confirmed_gtid_set"),
        ("LOG_NAME", "Log_name"),
        ("LAG_BYTES", "Lag_bytes"),
        ("LAG_SECONDS", "Lag_seconds"),
        ("CONNECTION_ID", "Connection_id"),
    ])
}

/// SHOW CREATE CHANGE STREAM.
pub fn create_change_stream(name: &str) -> Select {
    Select::from("data_dictionary.CHANGE_STREAMS")
        .item("STREAM_NAME", "Stream")
        .item("CREATE_STATEMENT", "Create Stream")
        .only(format!("STREAM_NAME = {}", literal(name)))
}

/// SHOW REPLICA STATUS: what the plugin tells that follows other servers, or nothing.
pub fn replica_status(channel: Option<&str>, is_known: bool) -> Select {
    const COLUMNS: &str = "Replica_IO_State Source_Host Source_User Source_Port Connect_Retry \
        Source_Log_File Read_Source_Log_Pos Relay_Log_File Relay_Log_Pos Relay_Source_Log_File \
        Replica_IO_Running Replica_SQL_Running Replicate_Do_DB Replicate_Ignore_DB \
        Replicate_Do_Table Replicate_Ignore_Table Replicate_Wild_Do_Table \
        Replicate_Wild_Ignore_Table Last_Errno Last_Error Skip_Counter Exec_Source_Log_Pos \
        Relay_Log_Space Until_Condition Until_Log_File Until_Log_Pos Source_SSL_Allowed \
        Source_SSL_CA_File Source_SSL_CA_Path Source_SSL_Cert Source_SSL_Cipher Source_SSL_Key \
        Seconds_Behind_Source Source_SSL_Verify_Server_Cert Last_IO_Errno Last_IO_Error \
        Last_SQL_Errno Last_SQL_Error Replicate_Ignore_Server_Ids Source_Server_Id Source_UUID \
        Source_Info_File SQL_Delay SQL_Remaining_Delay Replica_SQL_Running_State \
        Source_Retry_Count Source_Bind Last_IO_Error_Timestamp Last_SQL_Error_Timestamp \
        Source_SSL_Crl Source_SSL_Crlpath Retrieved_Gtid_Set Executed_Gtid_Set Auto_Position \
        Replicate_Rewrite_DB Channel_Name Source_TLS_Version Source_public_key_path \
        Get_Source_public_key Network_Namespace";
    let columns = COLUMNS.split_whitespace();
    if !is_known {
        let columns: Vec<_> = columns.map(|name| (name, "''")).collect();
        return Select::empty(&columns);
    }
    let table = Select::from("data_dictionary.REPLICA_STATUS");
    let select = columns.fold(table, |select, name| select.item(name, name));
    match channel {
        Some(channel) => select.only(format!("Channel_Name = {}", literal(channel))),
        None => select,
    }
}
