//! The syntax tree: a statement as written, before any name is resolved.
//!
//! Plain owned data. Nothing here knows catalogs, types of columns or sessions. Identifiers keep the
//! case they were written in; spans are byte offsets into the statement text handed to the parser.
//! Two trees compare equal when they mean the same: spans and quoting take no part in `==`.

mod admin;
mod ddl;
mod dml;
mod expr;
mod program;
mod query;

pub use admin::*;
pub use ddl::*;
pub use dml::*;
pub use expr::*;
pub use program::*;
pub use query::*;

/// A half-open byte range of the statement text.
///
/// All spans are equal to each other: position is not meaning. Compare `start` and `end` where
/// position matters.
#[derive(Clone, Copy, Debug, Default, Eq)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl PartialEq for Span {
    fn eq(&self, _: &Span) -> bool {
        true
    }
}

impl Span {
    /// The span of `start..end`.
    pub fn new(start: usize, end: usize) -> Span {
        Span { start: start as u32, end: end as u32 }
    }

    /// The span as an index range.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The bytes of `source` that this span covers (empty when out of range).
    pub fn of(self, source: &[u8]) -> &[u8] {
        source.get(self.range()).unwrap_or_default()
    }
}

/// An identifier as written, without its quotes.
#[derive(Clone, Debug, Default, Eq)]
pub struct Ident {
    /// The name, quotes removed, case preserved.
    pub text: Box<str>,
    /// Was it written in quotes?
    pub quoted: bool,
    /// Where.
    pub span: Span,
}

impl PartialEq for Ident {
    fn eq(&self, other: &Ident) -> bool {
        self.text == other.text
    }
}

impl Ident {
    /// An identifier that does not come from a statement text.
    pub fn new(text: &str) -> Ident {
        Ident { text: text.into(), quoted: false, span: Span::default() }
    }

    /// Is it `name`, case ignored (ASCII)?
    pub fn is(&self, name: &str) -> bool {
        self.text.eq_ignore_ascii_case(name)
    }
}

/// `[schema.]name`, of tables, views, routines, events, triggers, sequences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectName {
    /// The schema, where one was written.
    pub schema: Option<Ident>,
    /// The name.
    pub name: Ident,
}

impl ObjectName {
    /// From the first to the last byte.
    pub fn span(&self) -> Span {
        let start = self.schema.as_ref().map_or(self.name.span.start, |s| s.span.start);
        Span { start, end: self.name.span.end }
    }
}

/// `IF EXISTS` / `IF NOT EXISTS` / `OR REPLACE` of DDL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreateFlags {
    /// `OR REPLACE`.
    pub or_replace: bool,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
}

/// One statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// Nothing but blanks and comments.
    Empty,
    // --- data
    /// `SELECT`, `VALUES`, `TABLE`, `WITH ... SELECT`, set operations.
    Query(Box<Query>),
    /// `INSERT` and `REPLACE`.
    Insert(Box<Insert>),
    /// `UPDATE`.
    Update(Box<Update>),
    /// `DELETE`.
    Delete(Box<Delete>),
    /// `LOAD DATA` and `LOAD XML`.
    LoadData(Box<LoadData>),
    /// `DO expr, ...`.
    Do(Vec<SelectItem>),
    /// `HANDLER`.
    Handler(Box<Handler>),
    /// `CALL`.
    Call(Box<Call>),
    /// `IMPORT TABLE FROM 'file', ...`.
    ImportTable(Vec<Box<str>>),
    // --- definitions
    /// `CREATE DATABASE`.
    CreateDatabase(Box<CreateDatabase>),
    /// `ALTER DATABASE`.
    AlterDatabase(Box<AlterDatabase>),
    /// `DROP DATABASE`.
    DropDatabase(Box<DropDatabase>),
    /// `CREATE TABLE`.
    CreateTable(Box<CreateTable>),
    /// `ALTER TABLE`.
    AlterTable(Box<AlterTable>),
    /// `DROP TABLE`.
    DropTable(Box<DropTable>),
    /// `RENAME TABLE a TO b, ...`.
    RenameTable(Box<RenameTable>),
    /// `TRUNCATE [TABLE] t`.
    TruncateTable(ObjectName),
    /// `CREATE INDEX`.
    CreateIndex(Box<CreateIndex>),
    /// `DROP INDEX`.
    DropIndex(Box<DropIndex>),
    /// `CREATE VIEW`.
    CreateView(Box<CreateView>),
    /// `ALTER VIEW`.
    AlterView(Box<CreateView>),
    /// `DROP VIEW`.
    DropView(Box<DropObjects>),
    /// `CREATE SEQUENCE`.
    CreateSequence(Box<CreateSequence>),
    /// `ALTER SEQUENCE`.
    AlterSequence(Box<AlterSequence>),
    /// `DROP SEQUENCE`.
    DropSequence(Box<DropObjects>),
    /// `CREATE PROCEDURE`, `CREATE FUNCTION`.
    CreateRoutine(Box<CreateRoutine>),
    /// `CREATE [AGGREGATE] FUNCTION ... SONAME`.
    CreateLoadableFunction(Box<CreateLoadableFunction>),
    /// `ALTER PROCEDURE`, `ALTER FUNCTION`.
    AlterRoutine(Box<AlterRoutine>),
    /// `DROP PROCEDURE`, `DROP FUNCTION`.
    DropRoutine(Box<DropRoutine>),
    /// `CREATE TRIGGER`.
    CreateTrigger(Box<CreateTrigger>),
    /// `DROP TRIGGER`.
    DropTrigger(Box<DropObject>),
    /// `CREATE EVENT`.
    CreateEvent(Box<CreateEvent>),
    /// `ALTER EVENT`.
    AlterEvent(Box<AlterEvent>),
    /// `DROP EVENT`.
    DropEvent(Box<DropObject>),
    /// `CREATE LIBRARY`.
    CreateLibrary(Box<CreateLibrary>),
    /// `ALTER LIBRARY name COMMENT '..'`.
    AlterLibrary(Box<AlterLibrary>),
    /// `DROP LIBRARY`.
    DropLibrary(Box<DropObject>),
    /// `CREATE SERVER` / `ALTER SERVER`.
    Server(Box<ServerDef>),
    /// `DROP SERVER`.
    DropServer {
        /// `IF EXISTS`.
        if_exists: bool,
        /// The server.
        name: Ident,
    },
    /// `CREATE`/`ALTER`/`DROP [UNDO] TABLESPACE`.
    Tablespace(Box<Tablespace>),
    /// `CREATE`/`ALTER`/`DROP LOGFILE GROUP`.
    LogfileGroup(Box<Tablespace>),
    /// `CREATE SPATIAL REFERENCE SYSTEM`.
    CreateSpatialReferenceSystem(Box<CreateSpatialReferenceSystem>),
    /// `DROP SPATIAL REFERENCE SYSTEM`.
    DropSpatialReferenceSystem {
        /// `IF EXISTS`.
        if_exists: bool,
        /// Its number.
        srid: u64,
    },
    /// `CREATE`/`ALTER`/`DROP RESOURCE GROUP`.
    ResourceGroup(Box<ResourceGroup>),
    // --- transactions
    /// `START TRANSACTION`, `BEGIN [WORK]`.
    StartTransaction(StartTransaction),
    /// `COMMIT`.
    Commit(Completion),
    /// `ROLLBACK` of the whole transaction.
    Rollback(Completion),
    /// `SAVEPOINT name`.
    Savepoint(Ident),
    /// `ROLLBACK TO [SAVEPOINT] name`.
    RollbackTo(Ident),
    /// `RELEASE SAVEPOINT name`.
    ReleaseSavepoint(Ident),
    /// `LOCK TABLES`.
    LockTables(Vec<LockTable>),
    /// `UNLOCK TABLES`.
    UnlockTables,
    /// `LOCK INSTANCE FOR BACKUP`.
    LockInstance,
    /// `UNLOCK INSTANCE`.
    UnlockInstance,
    /// `XA ...`.
    Xa(Xa),
    /// `SET [scope] TRANSACTION ...`.
    SetTransaction(SetTransaction),
    // --- prepared statements
    /// `PREPARE name FROM ...`.
    Prepare {
        /// Its name.
        name: Ident,
        /// Its text.
        source: PrepareSource,
    },
    /// `EXECUTE name [USING @a, ...]`.
    Execute {
        /// Its name.
        name: Ident,
        /// User variables.
        using: Vec<Ident>,
    },
    /// `EXECUTE 'text'|@var [WITH CONCURRENT|..]` and MariaDB's `EXECUTE IMMEDIATE`.
    ExecuteText {
        /// Its text.
        source: PrepareSource,
        /// Arguments.
        using: Vec<Expr>,
        /// `CONCURRENT`: run concurrently with this session.
        concurrent: bool,
        /// `NO RETURN`: results are discarded.
        no_return: bool,
        /// `WAIT`.
        wait: bool,
    },
    /// `DEALLOCATE|DROP PREPARE name`.
    Deallocate(Ident),
    // --- session
    /// `SET a = b, ...` in all forms, `NAMES` and `CHARACTER SET` included.
    Set(Vec<SetItem>),
    /// `SET PASSWORD`.
    SetPassword(Box<SetPassword>),
    /// `SET ROLE`.
    SetRole(RoleChoice),
    /// `SET DEFAULT ROLE`.
    SetDefaultRole {
        /// Which.
        roles: RoleChoice,
        /// The accounts.
        users: Vec<UserName>,
    },
    /// `SET RESOURCE GROUP g [FOR thread, ...]`.
    SetResourceGroup {
        /// The group.
        name: Ident,
        /// Thread ids.
        threads: Vec<u64>,
    },
    /// `USE db`.
    Use(Ident),
    /// `HELP 'x'`.
    Help(Box<str>),
    /// `KILL [CONNECTION|QUERY] id`.
    Kill {
        /// Only the statement.
        query: bool,
        /// The connection.
        id: Box<Expr>,
    },
    // --- accounts
    /// `CREATE USER`.
    CreateUser(Box<CreateUser>),
    /// `ALTER USER`.
    AlterUser(Box<AlterUser>),
    /// `DROP USER`.
    DropUser {
        /// `IF EXISTS`.
        if_exists: bool,
        /// Which.
        users: Vec<UserName>,
    },
    /// `RENAME USER a TO b, ...`.
    RenameUser(Vec<(UserName, UserName)>),
    /// `CREATE ROLE`.
    CreateRole {
        /// `IF NOT EXISTS`, `OR REPLACE`.
        flags: CreateFlags,
        /// Which.
        roles: Vec<UserName>,
    },
    /// `DROP ROLE`.
    DropRole {
        /// `IF EXISTS`.
        if_exists: bool,
        /// Which.
        roles: Vec<UserName>,
    },
    /// `GRANT` of privileges, roles or proxy.
    Grant(Box<Grant>),
    /// `REVOKE`.
    Revoke(Box<Revoke>),
    // --- information
    /// `SHOW`.
    Show(Box<Show>),
    /// `DESCRIBE t [column]`.
    Describe(Box<Describe>),
    /// `EXPLAIN statement`.
    Explain(Box<Explain>),
    /// `PROFILE statement`, `PROFILE FOR CONNECTION`.
    Profile(Box<Profile>),
    /// `GET DIAGNOSTICS`.
    GetDiagnostics(Box<GetDiagnostics>),
    /// `SIGNAL`, `RESIGNAL`.
    Signal(Box<Signal>),
    // --- administration
    /// `CHECK`/`ANALYZE`/`OPTIMIZE`/`REPAIR`/`CHECKSUM TABLE`.
    TableMaintenance(Box<TableMaintenance>),
    /// `FLUSH`.
    Flush(Box<Flush>),
    /// `RESET`.
    Reset(Vec<ResetItem>),
    /// `RESET PERSIST [[IF EXISTS] name]`.
    ResetPersist {
        /// `IF EXISTS`.
        if_exists: bool,
        /// Which; all when absent.
        name: Option<Box<SystemVar>>,
    },
    /// `PURGE BINARY LOGS`.
    PurgeBinaryLogs {
        /// `TO 'file'`, otherwise `BEFORE expr`.
        to: Option<Box<str>>,
        /// `BEFORE expr`.
        before: Option<Box<Expr>>,
    },
    /// `BINLOG 'base64'`.
    Binlog(Box<str>),
    /// `CACHE INDEX`, `LOAD INDEX INTO CACHE`.
    KeyCache(Box<KeyCache>),
    /// `INSTALL`/`UNINSTALL PLUGIN`/`COMPONENT`.
    Plugin(Box<PluginStatement>),
    /// `CLONE`.
    Clone(Box<CloneStatement>),
    /// `BACKUP DATABASE TO 'directory'`, `BACKUP DATABASE TO STREAM [PLAIN]`.
    Backup {
        /// The destination; `None`: the client gets it as rows.
        directory: Option<Box<str>>,
        /// Without the encryption of the data directory.
        is_plain: bool,
    },
    /// `SHUTDOWN`.
    Shutdown,
    /// `RESTART`.
    Restart,
    /// `ALTER INSTANCE ...`.
    AlterInstance(AlterInstance),
    /// `ALTER CLUSTER ...`: changes the NDB cluster; the words after these two.
    AlterCluster(Box<str>),
    /// Replication control.
    Replication(Box<Replication>),
    /// `CREATE`, `ALTER` and `DROP CHANGE STREAM`.
    ChangeStream(Box<ChangeStream>),
    // --- stored programs
    /// Compound and flow-control statements; only inside stored programs.
    Program(Box<Program>),
}
