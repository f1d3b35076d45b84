//! Facts about the server and a connection for the crate that describes them.

use std::sync::Arc;

use catalog::{AccountName, Catalog, EffectivePrivileges, Event, MetadataLockView, TableWaits};
use describe::{Connections, ServerFacts};
use engine_api::{Engine, TableId};
use observation::file_calls;
use plugin_api::{
    FileOperations, FileUseView, IoBucket, Object, PlanCacheView, ProcessView, Registry,
    SessionCounts, UserLockView,
};
use programs::EventHost;
use sys::sync::atomic::Ordering;
use types::ZoneRules;
use variables::Globals;

use crate::server::Server;
use crate::status::NAMES;

impl ServerFacts for Server {
    fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    fn registry(&self) -> Arc<Registry> {
        Server::registry(self)
    }

    fn globals(&self) -> &Globals {
        &self.globals
    }

    fn default_engine(&self) -> &str {
        self.default_engine.name()
    }

    fn shown_name<'e>(&self, engine: &'e dyn Engine) -> &'e str {
        Server::shown_name(self, engine)
    }

    fn zone(&self, name: &str) -> Option<Arc<dyn ZoneRules>> {
        Server::zone(self, name)
    }

    fn now_micros(&self) -> i64 {
        Server::now_micros(self)
    }

    fn started_micros(&self) -> i64 {
        self.started_micros
    }

    fn is_denied(
        &self,
        account: &AccountName,
        privileges: &EffectivePrivileges,
        object: &Object<'_>,
    ) -> bool {
        Server::is_denied(self, account, privileges, object)
    }

    fn processes(&self) -> Vec<ProcessView> {
        self.sessions.views(Server::now_micros(self))
    }

    fn session_counts(&self) -> Vec<SessionCounts> {
        self.sessions.counts()
    }

    fn user_locks(&self) -> Vec<UserLockView> {
        self.user_locks.held()
    }

    fn account_of(&self, connection: u64) -> Option<String> {
        self.sessions.get(connection).map(|session| session.activity.lock().account.clone())
    }

    fn connections(&self) -> Connections {
        Connections {
            open: self.sessions.count() as u64,
            running: self.sessions.running(),
            most: self.sessions.most(),
        }
    }

    fn traffic(&self) -> (u64, u64) {
        self.sessions.traffic()
    }

    fn session_counters(&self) -> Vec<(&'static str, u64)> {
        NAMES.iter().copied().zip(self.sessions.sums()).collect()
    }

    fn server_counters(&self) -> Vec<(&'static str, u64)> {
        let (limit, used, refused) = self.memory.state();
        let (counted, past_of_one, past) = self.memory.counted().state();
        let mut counters = self.counters.all();
        counters.extend([
            ("Count_hit_query_past_connection_memory_status_limit", past_of_one),
            ("Count_hit_query_past_global_connection_memory_status_limit", past),
            ("Global_connection_memory", counted as u64),
            ("Statement_memory_limit_bytes", limit as u64),
            ("Statement_memory_used_bytes", used as u64),
            ("Statement_memory_refusals", refused),
        ]);
        counters
    }

    fn prepared_statements(&self) -> u64 {
        self.prepared_count.load(Ordering::Relaxed)
    }

    fn plan_cache(&self) -> Vec<PlanCacheView> {
        self.plan_cache.view()
    }

    fn io_times(&self) -> Vec<IoBucket> {
        file_calls::buckets(&self.io_times)
    }

    fn metadata_locks(&self) -> Vec<MetadataLockView> {
        self.metadata_locks.views()
    }

    fn file_operations(&self) -> Vec<FileOperations> {
        file_calls::operations(&self.io_times)
    }

    fn file_uses(&self) -> Vec<FileUseView> {
        file_calls::uses(&self.io_times)
    }

    fn table_waits(&self) -> Vec<(TableId, TableWaits)> {
        self.metadata_locks.waits()
    }

    fn data_space(&self) -> (u64, u64) {
        let directory = self.globals.text("datadir");
        sys::files::space(std::path::Path::new(&directory)).unwrap_or_default()
    }

    fn resident_bytes(&self) -> u64 {
        sys::process::resident_bytes()
    }

    fn event_zone(&self, event: &Event) -> Arc<dyn ZoneRules> {
        EventHost::event_zone(self, event)
    }
}
