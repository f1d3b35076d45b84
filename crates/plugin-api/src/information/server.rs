//! The server and its connections, as information tables see them.

use std::collections::BTreeSet;
use std::sync::Arc;

use engine_api::Progress;
use errors::Result;
use stdx::Extent;
use types::geometry::ReferenceSystem;

use crate::PluginInfo;
use crate::cost::SessionCounts;
use crate::keyring::Keyring;

/// Facts about the server as a whole and its connections.
pub trait ServerInformation {
    /// Connections.
    fn processes(&self) -> Vec<ProcessView>;
    /// Whether the asking account may see what all connections and threads do (the privilege PROCESS).
    fn sees_all_processes(&self) -> bool {
        false
    }
    /// The resource groups that the account may use or change, in the order in which they were created.
    fn resource_groups(&self) -> Vec<ResourceGroupView> {
        Vec::new()
    }
    /// General tablespaces, in the order in which they were made.
    fn tablespaces(&self) -> Vec<TablespaceView> {
        Vec::new()
    }
    /// Spatial reference systems that users made, by number.
    fn made_reference_systems(&self) -> Vec<Arc<ReferenceSystem>> {
        Vec::new()
    }
    /// Servers that CREATE SERVER described, in the order of their names.
    fn foreign_servers(&self) -> Vec<ForeignServerView> {
        Vec::new()
    }
    /// Metadata locks on the tables that the account sees.
    fn metadata_locks(&self) -> Vec<MetadataLockRow> {
        Vec::new()
    }
    /// The server's operations on files by class of file.
    fn file_operations(&self) -> Vec<FileOperations> {
        Vec::new()
    }
    /// The files that were opened and are still there.
    fn file_uses(&self) -> Vec<FileUseView> {
        Vec::new()
    }
    /// Waits for metadata locks of the tables that the account sees, those that were waited for.
    fn table_waits(&self) -> Vec<TableWaitsRow> {
        Vec::new()
    }
    /// What the sessions of these connections have counted.
    fn session_counts(&self) -> Vec<SessionCounts> {
        Vec::new()
    }
    /// Locks of GET_LOCK() that are held.
    fn user_locks(&self) -> Vec<UserLockView> {
        Vec::new()
    }
    /// Approximate bytes of memory for unused definitions.
    fn catalog_bytes(&self) -> u64 {
        0
    }
    /// Bytes of memory of the whole process.
    fn resident_bytes(&self) -> u64;
    /// The server's calls to files by their duration.
    fn io_times(&self) -> Vec<IoBucket> {
        Vec::new()
    }
    /// The known plugins with their registrations, loaded or not.
    fn plugins(&self) -> Vec<PluginView>;
    /// Where the keys of encryption at rest are.
    fn keyring(&self) -> Option<Arc<dyn Keyring>> {
        None
    }
    /// Observers with the events that they want now.
    fn observers(&self) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }
    /// Functions.
    fn functions(&self) -> Vec<FunctionView>;
    /// Plans that the cache holds.
    fn plan_cache(&self) -> Vec<PlanCacheView>;
    /// The session's current schema.
    fn database(&self) -> Option<String>;
    /// Server start, microseconds since 1970 UTC.
    fn started_micros(&self) -> i64;
    /// Now, microseconds since 1970 UTC.
    fn now_micros(&self) -> i64;
    /// Error when the statement was cancelled.
    ///
    /// # Errors
    /// 1317.
    fn check_cancelled(&self) -> Result<()>;
}

/// A connection, as information tables see it.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessView {
    /// Connection id.
    pub id: u64,
    /// User.
    pub user: String,
    /// Host and port, or `localhost`.
    pub host: String,
    /// Current schema.
    pub database: Option<String>,
    /// `Sleep`, `Query`, `Execute`, ...
    pub command: &'static str,
    /// Seconds in the state.
    pub seconds: u64,
    /// When the state began, microseconds since 1970 UTC.
    pub since_micros: i64,
    /// The current step as a `Stage` names it, and when it began, microseconds since 1970 UTC.
    pub stage: (&'static str, i64),
    /// The current step of its work, or empty.
    pub state: &'static str,
    /// Text of the running statement.
    pub info: Option<String>,
    /// How far a long statement is.
    pub progress: Option<Progress>,
    /// `user@host` of the account that it logged in as.
    pub account: String,
    /// Attributes that the client sent: names and values.
    pub attributes: Arc<[(String, String)]>,
    /// Version and cipher of the connection's encryption.
    pub tls: Option<(String, String)>,
    /// Slot (`sys::waits`) of the thread that runs its statement, while one does.
    pub thread: Option<u32>,
    /// The copy of a table's rows that it makes.
    pub copying: Option<CopyProgress>,
    /// Its resource group; `None` for the default one.
    pub resource_group: Option<Arc<str>>,
}

/// A server that CREATE SERVER described.
#[derive(Clone, Debug)]
pub struct ForeignServerView {
    /// Its texts: name, host, database, user, password.
    pub texts: [Arc<str>; 5],
    /// Its port; 0 for none.
    pub port: u32,
    /// Socket, wrapper, owner.
    pub rest: [Arc<str>; 3],
}

/// A general tablespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablespaceView {
    /// Name.
    pub name: Arc<str>,
    /// The file that was declared.
    pub file: Arc<str>,
    /// AUTOEXTEND_SIZE.
    pub autoextend_bytes: u64,
    /// ENCRYPTION='Y'.
    pub is_encrypted: bool,
}

/// A resource group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceGroupView {
    /// Name.
    pub name: Arc<str>,
    /// For threads of the server.
    pub is_system: bool,
    /// Sessions may be put into it.
    pub is_enabled: bool,
    /// By the kernel's numbers; none for all.
    pub processors: BTreeSet<u32>,
    /// Steps of niceness.
    pub priority: i32,
}

/// How far an ALTER TABLE is that copies rows beside others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyProgress {
    /// Schema and name of the table.
    pub table: String,
    /// Rows copied at first, of about so many.
    pub rows_copied: u64,
    /// See `rows_copied`.
    pub rows_total: u64,
    /// Rounds since then, in which rows were copied again that others had changed.
    pub rounds: u64,
    /// Those rows, all rounds together.
    pub rows_again: u64,
}

/// A metadata lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetadataLockRow {
    /// The connection; `None` for a prepared transaction.
    pub connection: Option<u64>,
    /// Schema and name of the table; `None` for all tables.
    pub table: Option<(String, String)>,
    /// MySQL's word for the kind of lock.
    pub lock_type: &'static str,
    /// Whether its session still waits for others.
    pub is_waiting: bool,
}

/// Number, bytes and time of some calls or waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimedCounts {
    /// How many.
    pub count: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// The time of all.
    pub nanos: u64,
    /// The shortest and the longest one, nanoseconds.
    pub extent: Extent,
}

/// A file and the calls to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileUseView {
    /// Its whole path.
    pub path: String,
    /// What it is for: `pages`, `redo log`, ...
    pub class: &'static str,
    /// How often it is open now.
    pub open_count: u64,
    /// Reads.
    pub read: TimedCounts,
    /// Writes.
    pub write: TimedCounts,
    /// Syncs.
    pub sync: TimedCounts,
}

/// Waits for metadata locks of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableWaitsRow {
    /// The table's schema.
    pub schema: String,
    /// Its name.
    pub table: String,
    /// Of sessions that wanted to read it, or to keep others from writing it.
    pub read: TimedCounts,
    /// Of sessions that wanted to write it, or to keep others from using it.
    pub write: TimedCounts,
}

/// Operations of one kind on the files of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileOperations {
    /// What the files are for: `pages`, `redo log`, ...
    pub class: &'static str,
    /// `read`, `write` or `sync`.
    pub operation: &'static str,
    /// Requests to the device.
    pub requests: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Writes of whole blocks of 4 kB at a multiple of 4 kB.
    pub aligned: u64,
    /// Time of all calls.
    pub total_micros: u64,
    /// Half of the calls took at most this.
    pub p50_micros: u64,
    /// As above for 95 of 100.
    pub p95_micros: u64,
    /// As above for 99 of 100.
    pub p99_micros: u64,
    /// The shortest and the longest call, microseconds.
    pub extent: Extent,
}

/// A lock of GET_LOCK().
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UserLockView {
    /// Its name.
    pub name: String,
    /// The session that holds it.
    pub session: u64,
}

/// The number of calls of one kind to the operating system's files by duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoBucket {
    /// Name of the call.
    pub call: &'static str,
    /// They took less than this, a power of two, and no less than half of it.
    pub below_micros: u64,
    /// How many.
    pub count: u64,
    /// Their time in all.
    pub total_micros: u64,
}

/// A plugin that the server knows.
#[derive(Clone, Debug)]
pub struct PluginView {
    /// Name, version and so on.
    pub info: Arc<PluginInfo>,
    /// The file that it was loaded from; `None` for one that is compiled in.
    pub library: Option<Arc<str>>,
    /// Whether it is loaded.
    pub is_loaded: bool,
    /// The plugin's registrations.
    pub items: Vec<PluginItemView>,
}

/// A plugin's registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginItemView {
    /// `STORAGE ENGINE`, `AUTHENTICATION` and so on.
    pub slot: &'static str,
    /// Its name in the slot.
    pub name: String,
}

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FunctionView {
    /// Name.
    pub name: &'static str,
    /// Help text.
    pub help: &'static str,
}

/// An entry of the plan cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanCacheView {
    /// Current schema of the statement; empty for none.
    pub schema: String,
    /// Normalised text.
    pub text: String,
    /// How often the plan was used.
    pub hits: u64,
    /// Bytes of memory.
    pub bytes: u64,
    /// Time of all executions.
    pub nanoseconds: u64,
}
