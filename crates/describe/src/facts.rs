//! Facts about the server and the connection that descriptions need.

use observation::process::SessionShared;
use std::sync::Arc;

use catalog::{AccountName, Catalog, EffectivePrivileges, Event, MetadataLockView, TableWaits};
use engine_api::{Engine, TableId};
use errors::Result;
use plugin_api::{
    FileOperations, FileUseView, IoBucket, Object, PlanCacheView, ProcessView, Registry,
    SessionCounts, UserLockView,
};
use types::ZoneRules;
use variables::Globals;

/// The number of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// Open now.
    pub open: u64,
    /// The number of connections that run a statement.
    pub running: u64,
    /// The maximum number that were open at once.
    pub most: u64,
}

/// The server's side.
pub trait ServerFacts {
    /// The catalog.
    fn catalog(&self) -> &Catalog;
    /// Everything plugged in at present.
    fn registry(&self) -> Arc<Registry>;
    /// Global variables.
    fn globals(&self) -> &Globals;
    /// Name of the engine of tables.
    fn default_engine(&self) -> &str;
    /// An engine's name as clients see it.
    fn shown_name<'e>(&self, engine: &'e dyn Engine) -> &'e str;
    /// Rules of a time zone.
    fn zone(&self, name: &str) -> Option<Arc<dyn ZoneRules>>;
    /// Microseconds since 1970 UTC.
    fn now_micros(&self) -> i64;
    /// When the server started, microseconds since 1970 UTC.
    fn started_micros(&self) -> i64;
    /// Whether a plugin denies an object to an account.
    fn is_denied(
        &self,
        account: &AccountName,
        privileges: &EffectivePrivileges,
        object: &Object<'_>,
    ) -> bool;
    /// Connections in order of id.
    fn processes(&self) -> Vec<ProcessView>;
    /// What their sessions have counted.
    fn session_counts(&self) -> Vec<SessionCounts>;
    /// Locks of GET_LOCK() that are held.
    fn user_locks(&self) -> Vec<UserLockView>;
    /// The account (`user@host`) of a connection.
    fn account_of(&self, connection: u64) -> Option<String>;
    /// The number of connections.
    fn connections(&self) -> Connections;
    /// Bytes received and sent over the open connections.
    fn traffic(&self) -> (u64, u64);
    /// Sums of the counters that sessions have.
    fn session_counters(&self) -> Vec<(&'static str, u64)>;
    /// Counters of the server as a whole.
    fn server_counters(&self) -> Vec<(&'static str, u64)>;
    /// The number of prepared statements.
    fn prepared_statements(&self) -> u64;
    /// Entries of the plan cache.
    fn plan_cache(&self) -> Vec<PlanCacheView>;
    /// All metadata locks.
    fn metadata_locks(&self) -> Vec<MetadataLockView>;
    /// Operations on files by class of file.
    fn file_operations(&self) -> Vec<FileOperations>;
    /// The files that were opened and are still there.
    fn file_uses(&self) -> Vec<FileUseView>;
    /// Waits for metadata locks by table.
    fn table_waits(&self) -> Vec<(TableId, TableWaits)>;
    /// Counts of file operations by duration.
    fn io_times(&self) -> Vec<IoBucket>;
    /// Bytes of memory of the whole process.
    fn resident_bytes(&self) -> u64;
    /// Bytes of the data directory's file system: free ones, and all; 0 when the system does not say.
    fn data_space(&self) -> (u64, u64);
    /// Rules of the time zone that an event is scheduled in.
    fn event_zone(&self, event: &Event) -> Arc<dyn ZoneRules>;
}

/// The connection's side.
pub trait ConnectionFacts {
    /// Its number.
    fn id(&self) -> u64;
    /// Its counters.
    fn counters(&self) -> Vec<(&'static str, u64)>;
    /// Bytes received and sent.
    fn traffic(&self) -> (u64, u64);
    /// Returns an error when its statement was cancelled.
    ///
    /// # Errors
    /// 1317.
    fn check_cancelled(&self) -> Result<()>;
}

/// Stands where a session would: what the server reads for itself.
#[derive(Debug)]
pub struct NoConnection;

impl ConnectionFacts for NoConnection {
    fn id(&self) -> u64 {
        0
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    fn traffic(&self) -> (u64, u64) {
        (0, 0)
    }

    fn check_cancelled(&self) -> Result<()> {
        Ok(())
    }
}

impl ConnectionFacts for SessionShared {
    fn id(&self) -> u64 {
        self.id
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.counts().counters
    }

    fn traffic(&self) -> (u64, u64) {
        self.traffic.counts()
    }

    fn check_cancelled(&self) -> Result<()> {
        self.cancel.check()
    }
}
