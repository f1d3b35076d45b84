//! Transactions, accounts, information and administration.

use super::{CreateFlags, Expr, Ident, Limit, ObjectName, Statement, SystemVar, VarScope};

/// `START TRANSACTION`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct StartTransaction {
    pub consistent_snapshot: bool,
    pub read_only: Option<bool>,
}

/// Options of COMMIT and ROLLBACK; `None` where nothing was written (`completion_type` decides).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Completion {
    pub chain: Option<bool>,
    pub release: Option<bool>,
}

/// One table of LOCK TABLES.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct LockTable {
    pub name: ObjectName,
    pub alias: Option<Ident>,
    pub mode: LockTableMode,
}

/// How LOCK TABLES locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LockTableMode {
    Read,
    ReadLocal,
    Write,
}

/// `XA ...`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Xa {
    Start { xid: Xid, join: bool, resume: bool },
    End { xid: Xid, suspend: bool, for_migrate: bool },
    Prepare(Xid),
    Commit { xid: Xid, one_phase: bool },
    Rollback(Xid),
    Recover { convert_xid: bool },
}

/// `gtrid [, bqual [, format]]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct Xid {
    pub gtrid: Box<[u8]>,
    pub bqual: Box<[u8]>,
    /// 1 when not given.
    pub format: u64,
}

/// `SET [scope] TRANSACTION ...`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct SetTransaction {
    /// None: the next transaction only.
    pub scope: Option<VarScope>,
    pub isolation: Option<Isolation>,
    pub read_only: Option<bool>,
}

/// Isolation levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Isolation {
    ReadUncommitted,
    ReadCommitted,
    RepeatableRead,
    Serializable,
}

/// The source of a prepared statement's text.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum PrepareSource {
    Text(Box<[u8]>),
    UserVar(Ident),
    /// MariaDB: any expression.
    Expr(Box<Expr>),
}

/// An account or role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct UserName {
    pub user: Box<str>,
    /// None: not written (means `%`).
    pub host: Option<Box<str>>,
    /// `CURRENT_USER`, `USER()`: then all other fields are empty.
    pub current: bool,
}

/// `SET PASSWORD [FOR user] = 'x' [REPLACE 'y'] [RETAIN CURRENT PASSWORD]`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct SetPassword {
    pub user: Option<UserName>,
    /// None: `TO RANDOM`.
    pub password: Option<Box<str>>,
    pub replace: Option<Box<str>>,
    pub retain_current: bool,
}

/// A choice of roles.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum RoleChoice {
    Default,
    None,
    All,
    AllExcept(Vec<UserName>),
    Roles(Vec<UserName>),
}

/// `CREATE USER`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct CreateUser {
    pub flags: CreateFlags,
    pub users: Vec<UserSpec>,
    /// `DEFAULT ROLE`.
    pub default_roles: Vec<UserName>,
    pub options: AccountOptions,
}

/// `ALTER USER`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct AlterUser {
    pub if_exists: bool,
    pub users: Vec<UserSpec>,
    /// `user DEFAULT ROLE ..`: then only one user and no options.
    pub default_role: Option<RoleChoice>,
    pub options: AccountOptions,
}

/// An account with how it logs in.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct UserSpec {
    pub user: UserName,
    /// First, second and third factor.
    pub auth: Vec<AuthOption>,
    /// `DISCARD OLD PASSWORD`.
    pub discard_old_password: bool,
    /// `ADD|MODIFY|DROP n FACTOR` and registration, in order.
    pub factors: Vec<FactorAction>,
}

/// `IDENTIFIED ...`.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct AuthOption {
    /// `WITH plugin`.
    pub plugin: Option<Ident>,
    /// `BY 'password'`.
    pub password: Option<Box<str>>,
    /// `BY RANDOM PASSWORD`.
    pub random: bool,
    /// `AS 'hash'`.
    pub hash: Option<Box<[u8]>>,
    /// `INITIAL AUTHENTICATION ...`.
    pub initial: Option<Box<AuthOption>>,
    /// `REPLACE 'current'`.
    pub replace: Option<Box<str>>,
    /// `RETAIN CURRENT PASSWORD`.
    pub retain_current: bool,
}

/// Multi-factor actions of ALTER USER.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum FactorAction {
    Add(u64, AuthOption),
    Modify(u64, AuthOption),
    Drop(u64),
    InitiateRegistration(u64),
    FinishRegistration { factor: u64, response: Box<str> },
    Unregister(u64),
}

/// Options of accounts; absent ones are None.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct AccountOptions {
    pub require: Option<Require>,
    /// `MAX_QUERIES_PER_HOUR n` and similar: word and number.
    pub limits: Vec<(Ident, u64)>,
    pub password: Vec<PasswordOption>,
    /// `ACCOUNT LOCK` is true.
    pub lock: Option<bool>,
    pub comment: Option<Box<str>>,
    pub attribute: Option<Box<str>>,
}

/// `REQUIRE`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Require {
    None,
    Ssl,
    X509,
    /// `SUBJECT`, `ISSUER`, `CIPHER`.
    Specified {
        subject: Option<Box<str>>,
        issuer: Option<Box<str>>,
        cipher: Option<Box<str>>,
    },
}

/// Password options; a None inside is `DEFAULT`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum PasswordOption {
    Expire,
    ExpireDefault,
    ExpireNever,
    ExpireInterval(u64),
    History(Option<u64>),
    ReuseInterval(Option<u64>),
    /// `REQUIRE CURRENT [OPTIONAL|DEFAULT]`: true, false, None.
    RequireCurrent(Option<bool>),
    FailedLoginAttempts(u64),
    /// None is `UNBOUNDED`.
    LockTime(Option<u64>),
}

/// `GRANT`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Grant {
    Privileges {
        privileges: Privileges,
        target: GrantTarget,
        users: Vec<UserSpec>,
        /// `WITH GRANT OPTION`.
        grant_option: bool,
        as_user: Option<UserName>,
        with_role: Option<RoleChoice>,
        /// Old `REQUIRE`/`WITH MAX_..` clauses (MariaDB).
        options: AccountOptions,
    },
    Roles {
        roles: Vec<UserName>,
        users: Vec<UserName>,
        admin_option: bool,
    },
    Proxy {
        proxied: UserName,
        users: Vec<UserSpec>,
        grant_option: bool,
    },
}

/// `REVOKE`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Revoke {
    pub if_exists: bool,
    pub ignore_unknown_user: bool,
    pub what: RevokeKind,
    pub users: Vec<UserName>,
}

/// The privileges or roles to revoke.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum RevokeKind {
    Privileges {
        privileges: Privileges,
        target: GrantTarget,
    },
    /// `ALL PRIVILEGES, GRANT OPTION`.
    Everything,
    Roles {
        roles: Vec<UserName>,
        admin_option: bool,
    },
    Proxy(UserName),
}

/// A list of privileges.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Privileges {
    All,
    List(Vec<Privilege>),
}

/// One privilege: its words in upper case joined by one blank (`CREATE TEMPORARY TABLES`), or a
/// dynamic privilege as written.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Privilege {
    pub name: Box<str>,
    /// Not a keyword: a dynamic privilege, or a role.
    pub dynamic: bool,
    pub columns: Vec<Ident>,
}

/// The objects on which privileges are granted.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum GrantTarget {
    /// `*.*`.
    Global,
    /// `db.*`.
    Schema(Ident),
    /// `*`.
    CurrentSchema,
    /// `[TABLE] [db.]t`.
    Table(ObjectName),
    Function(ObjectName),
    Procedure(ObjectName),
    Library(ObjectName),
}

/// `SHOW ...`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Show {
    pub kind: ShowKind,
    pub filter: Option<ShowFilter>,
}

/// `LIKE 'x'` or `WHERE expr`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum ShowFilter {
    Like(Box<[u8]>),
    Where(Box<Expr>),
}

/// The kind of a SHOW.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum ShowKind {
    BinaryLogs,
    BinaryLogStatus,
    BinlogEvents {
        log: Option<Box<str>>,
        from: Option<u64>,
        limit: Option<Limit>,
        relay: bool,
        channel: Option<Box<str>>,
    },
    CharacterSet,
    /// `SHOW CLUSTER STATUS`: the nodes of the NDB cluster.
    ClusterStatus,
    Collation,
    Columns {
        full: bool,
        extended: bool,
        table: ObjectName,
    },
    CreateDatabase {
        if_not_exists: bool,
        name: Ident,
    },
    CreateTable(ObjectName),
    CreateView(ObjectName),
    CreateProcedure(ObjectName),
    CreateFunction(ObjectName),
    CreateLibrary(ObjectName),
    CreateTrigger(ObjectName),
    CreateEvent(ObjectName),
    CreateSequence(ObjectName),
    CreateUser(UserName),
    Databases,
    Engine {
        name: Option<Ident>,
        what: EngineInfo,
    },
    Engines,
    /// `SHOW COUNT(*) ERRORS`.
    ErrorCount,
    Errors(Option<Limit>),
    Events(Option<Ident>),
    FunctionCode(ObjectName),
    FunctionStatus,
    Grants {
        user: Option<UserName>,
        using: Vec<UserName>,
    },
    Index {
        extended: bool,
        table: ObjectName,
    },
    LibraryStatus,
    OpenTables(Option<Ident>),
    ParseTree(Box<Statement>),
    Plugins,
    Privileges,
    ProcedureCode(ObjectName),
    ProcedureStatus,
    Processlist {
        full: bool,
    },
    Profile {
        types: Vec<Box<str>>,
        query: Option<u64>,
        limit: Option<Limit>,
    },
    Profiles,
    ReplicaStatus {
        channel: Option<Box<str>>,
    },
    ChangeStreams,
    CreateChangeStream(Ident),
    Replicas,
    Status(VarScope),
    TableStatus(Option<Ident>),
    Tables {
        full: bool,
        extended: bool,
        schema: Option<Ident>,
    },
    Triggers {
        full: bool,
        schema: Option<Ident>,
    },
    Variables(VarScope),
    /// `SHOW COUNT(*) WARNINGS`.
    WarningCount,
    Warnings(Option<Limit>),
}

/// The kind of a SHOW ENGINE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum EngineInfo {
    Status,
    Mutex,
    Logs,
}

/// `DESCRIBE t [column|'pattern']`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Describe {
    pub table: ObjectName,
    pub column: Option<Box<str>>,
}

/// `EXPLAIN ...`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Explain {
    pub analyze: bool,
    /// `FORMAT = word`, as written.
    pub format: Option<Ident>,
    /// MariaDB's and old `EXTENDED`/`PARTITIONS`.
    pub extended: bool,
    /// `INTO @var`.
    pub into: Option<Ident>,
    /// `FOR SCHEMA name`.
    pub schema: Option<Ident>,
    pub target: ExplainTarget,
}

/// `PROFILE [FORMAT = word] ...`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Profile {
    pub format: Option<Ident>,
    pub target: ProfileTarget,
}

/// What is profiled.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum ProfileTarget {
    Statement(Box<Statement>),
    /// `FOR CONNECTION id [SECONDS n]`.
    Connection {
        id: u64,
        seconds: Option<u64>,
    },
}

/// The statement to explain.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum ExplainTarget {
    Statement(Box<Statement>),
    Connection(u64),
}

/// `CHECK|ANALYZE|OPTIMIZE|REPAIR|CHECKSUM TABLE`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct TableMaintenance {
    pub kind: MaintenanceKind,
    /// `NO_WRITE_TO_BINLOG`, `LOCAL`.
    pub no_binlog: bool,
    pub tables: Vec<ObjectName>,
    /// `FOR UPGRADE`, `QUICK`, `FAST`, `MEDIUM`, `EXTENDED`, `CHANGED`, `USE_FRM`: upper case.
    pub options: Vec<Box<str>>,
    pub histogram: Option<Histogram>,
}

/// Which maintenance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum MaintenanceKind {
    Check,
    Analyze,
    Optimize,
    Repair,
    Checksum,
}

/// The histogram clause of ANALYZE TABLE.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Histogram {
    Update {
        columns: Vec<Ident>,
        buckets: Option<u64>,
        /// `AUTO UPDATE` is true.
        auto_update: Option<bool>,
        data: Option<Box<str>>,
    },
    Drop {
        columns: Vec<Ident>,
    },
}

/// `FLUSH`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Flush {
    pub no_binlog: bool,
    pub items: Vec<FlushItem>,
}

/// The objects to flush.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum FlushItem {
    BinaryLogs,
    EngineLogs,
    ErrorLogs,
    GeneralLogs,
    Logs,
    Privileges,
    OptimizerCosts,
    RelayLogs { channel: Option<Box<str>> },
    SlowLogs,
    Status,
    UserResources,
    Tables { tables: Vec<ObjectName>, mode: FlushTablesMode },
}

/// Options of FLUSH TABLES beyond closing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FlushTablesMode {
    #[default]
    Close,
    WithReadLock,
    ForExport,
}

/// The targets of RESET.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum ResetItem {
    BinaryLogsAndGtids { to: Option<u64> },
    Replica { all: bool, channel: Option<Box<str>> },
}

/// `CACHE INDEX`, `LOAD INDEX INTO CACHE`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct KeyCache {
    pub load: bool,
    pub tables: Vec<KeyCacheTable>,
    /// `IN cache`; None is `DEFAULT`.
    pub cache: Option<Ident>,
}

/// One table of [`KeyCache`].
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct KeyCacheTable {
    pub name: ObjectName,
    pub partitions: Option<super::PartitionNames>,
    pub indexes: Vec<Ident>,
    pub ignore_leaves: bool,
}

/// `INSTALL|UNINSTALL PLUGIN|COMPONENT`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum PluginStatement {
    InstallPlugin { name: Ident, soname: Option<Box<str>>, if_not_exists: bool },
    UninstallPlugin { name: Ident, if_exists: bool },
    InstallComponent { urns: Vec<Box<str>>, set: Vec<(Option<VarScope>, SystemVar, Expr)> },
    UninstallComponent { urns: Vec<Box<str>> },
}

/// `CLONE`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum CloneStatement {
    Local {
        directory: Box<str>,
    },
    Instance {
        user: Box<str>,
        host: Box<str>,
        port: u64,
        password: Box<str>,
        directory: Option<Box<str>>,
        require_ssl: Option<bool>,
    },
}

/// `ALTER INSTANCE`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum AlterInstance {
    RotateInnodbMasterKey,
    RotateBinlogMasterKey,
    ReloadTls { channel: Option<Ident>, no_rollback_on_error: bool },
    EnableRedoLog,
    DisableRedoLog,
    ReloadKeyring,
}

/// Replication control.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Replication {
    /// `CHANGE REPLICATION SOURCE TO`, `CHANGE MASTER TO`.
    ChangeSource {
        options: Vec<(Ident, ReplicationValue)>,
        channel: Option<Box<str>>,
    },
    ChangeFilter {
        rules: Vec<(Ident, Vec<Box<str>>)>,
        channel: Option<Box<str>>,
    },
    Start {
        /// `IO_THREAD`, `SQL_THREAD`.
        threads: Vec<Ident>,
        until: Vec<(Ident, ReplicationValue)>,
        /// `USER`, `PASSWORD`, `DEFAULT_AUTH`, `PLUGIN_DIR`.
        connection: Vec<(Ident, Box<str>)>,
        channel: Option<Box<str>>,
    },
    Stop {
        threads: Vec<Ident>,
        channel: Option<Box<str>>,
    },
    StartGroup {
        options: Vec<(Ident, Box<str>)>,
    },
    StopGroup,
    /// `SWITCH OVER TO 'host'`: a replica becomes the primary, and this server its replica.
    SwitchOver(Box<SwitchOver>),
}

/// `SWITCH OVER TO 'host'[:port] USER 'user' IDENTIFIED BY 'password' [TIMEOUT seconds] [REQUIRE [NO] SSL]`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct SwitchOver {
    pub host: Box<str>,
    pub port: Option<u64>,
    pub user: Box<str>,
    pub password: Box<str>,
    pub timeout: Option<u64>,
    pub require_ssl: Option<bool>,
}

/// Statements about change streams: readers of the binary log whose place the server keeps.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum ChangeStream {
    Create {
        if_not_exists: bool,
        name: Ident,
        scope: StreamScope,
        start: StreamStart,
        /// `WITH (retention_bytes = .., ..)`.
        options: Vec<(Ident, ReplicationValue)>,
    },
    Alter {
        name: Ident,
        action: StreamAction,
    },
    Drop {
        if_exists: bool,
        name: Ident,
    },
}

/// The tables of a change stream.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum StreamScope {
    All,
    Schema(Ident),
    Tables(Vec<ObjectName>),
}

/// Where a change stream begins.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum StreamStart {
    /// Nothing is said: where the log is.
    Unsaid,
    /// A moment by its name, which the log knows.
    Moment(Ident),
    /// With the rows that are there.
    Snapshot,
    /// After these transactions.
    Gtid(Box<str>),
}

/// What `ALTER CHANGE STREAM` changes.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum StreamAction {
    /// `WITH (..)`.
    Options(Vec<(Ident, ReplicationValue)>),
    /// `FROM ..`: it begins anew there.
    Start(StreamStart),
    /// `CONFIRM GTID '..'`: its reader has these transactions.
    Confirm(Box<str>),
}

/// Values of replication options.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum ReplicationValue {
    Text(Box<str>),
    Number(Box<str>),
    Word(Ident),
    List(Vec<u64>),
    Account(UserName),
    Null,
}
