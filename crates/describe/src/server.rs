//! The server and its connections.

use std::sync::Arc;

use catalog::{
    CatalogSnapshot, LockMode, MetadataLockView, Purpose, ResourceGroup, Usage, WaitSums,
};
use errors::Result;
use plugin_api::{
    FileOperations, FileUseView, ForeignServerView, FunctionView, IoBucket, Keyring,
    MetadataLockRow, Module, Object, PlanCacheView, PluginItemView, PluginView, ProcessView,
    ResourceGroupView, ServerInformation, SessionCounts, TableWaitsRow, TablespaceView,
    TimedCounts, UserLockView,
};

use crate::information::Information;

impl ServerInformation for Information<'_> {
    fn processes(&self) -> Vec<ProcessView> {
        let own = self.account.to_string();
        let all = self.may_see_all();
        let views = self.server.processes();
        let visible = |view: &ProcessView| {
            view.account == own || all && !self.is_denied(&Object::Process(&view.user))
        };
        views.into_iter().filter(visible).collect()
    }

    fn sees_all_processes(&self) -> bool {
        self.may_see_all()
    }

    fn metadata_locks(&self) -> Vec<MetadataLockRow> {
        /// Owners from here on are prepared transactions.
        const PREPARED: u64 = 1 << 63;
        let catalog = self.catalog_view();
        let row = |lock: MetadataLockView| {
            let table = match lock.table {
                None => None,
                Some(id) => {
                    let table = catalog.table_by_id(id)?;
                    if !self.sees(&table.schema, &table.name) {
                        return None;
                    }
                    Some((table.schema.to_string(), table.name.to_string()))
                }
            };
            let connection = (lock.owner < PREPARED).then_some(lock.owner);
            let lock_type = lock_type(lock.purpose);
            Some(MetadataLockRow { connection, table, lock_type, is_waiting: lock.is_waiting })
        };
        self.server.metadata_locks().into_iter().filter_map(row).collect()
    }

    fn file_operations(&self) -> Vec<FileOperations> {
        self.server.file_operations()
    }

    fn file_uses(&self) -> Vec<FileUseView> {
        self.server.file_uses()
    }

    fn table_waits(&self) -> Vec<TableWaitsRow> {
        let counts = |sums: WaitSums| TimedCounts {
            count: sums.count,
            bytes: 0,
            nanos: sums.nanos,
            extent: sums.extent,
        };
        let catalog = self.catalog_view();
        let rows = self.server.table_waits().into_iter().filter_map(|(id, waits)| {
            let table = catalog.table_by_id(id)?;
            let row = || TableWaitsRow {
                schema: table.schema.to_string(),
                table: table.name.to_string(),
                read: counts(waits.read),
                write: counts(waits.write),
            };
            self.sees(&table.schema, &table.name).then(row)
        });
        rows.collect()
    }

    fn catalog_bytes(&self) -> u64 {
        self.server.catalog().with(CatalogSnapshot::memory_bytes) as u64
    }

    fn resident_bytes(&self) -> u64 {
        self.server.resident_bytes()
    }

    fn io_times(&self) -> Vec<IoBucket> {
        self.server.io_times()
    }

    fn plugins(&self) -> Vec<PluginView> {
        let item =
            |(slot, name): &(&'static str, String)| PluginItemView { slot, name: name.clone() };
        let view = |module: &Module| PluginView {
            info: module.info.clone(),
            library: module.library.clone(),
            is_loaded: module.is_loaded,
            items: module.items().iter().map(item).collect(),
        };
        self.server.registry().modules().iter().map(view).collect()
    }

    fn keyring(&self) -> Option<Arc<dyn Keyring>> {
        self.server.registry().keyring().cloned()
    }

    fn observers(&self) -> Vec<(&'static str, &'static str)> {
        let registry = self.server.registry();
        let observers = registry.observers().iter();
        let events = observers
            .flat_map(|observer| observer.events().names().map(|event| (observer.name(), event)));
        events.collect()
    }

    fn functions(&self) -> Vec<FunctionView> {
        let registry = self.server.registry();
        registry.functions().map(|(name, help)| FunctionView { name, help }).collect()
    }

    fn session_counts(&self) -> Vec<SessionCounts> {
        let visible: Vec<u64> = self.processes().iter().map(|process| process.id).collect();
        let mut counts = self.server.session_counts();
        counts.retain(|session| visible.contains(&session.id));
        counts
    }

    fn resource_groups(&self) -> Vec<ResourceGroupView> {
        let sees_all = self.privileges.has_dynamic("RESOURCE_GROUP_ADMIN");
        let may_use = self.privileges.has_dynamic("RESOURCE_GROUP_USER");
        let groups = definitions::resource_groups(&self.server.catalog().snapshot());
        let usable = |group: &Arc<ResourceGroup>| sees_all || may_use && !group.is_system;
        let view = |group: Arc<ResourceGroup>| ResourceGroupView {
            name: group.name.clone(),
            is_system: group.is_system,
            is_enabled: group.is_enabled,
            processors: group.processors.clone(),
            priority: group.priority,
        };
        groups.into_iter().filter(usable).map(view).collect()
    }

    fn made_reference_systems(&self) -> Vec<Arc<types::geometry::ReferenceSystem>> {
        self.server.catalog().snapshot().reference_systems().values().cloned().collect()
    }

    fn foreign_servers(&self) -> Vec<ForeignServerView> {
        let snapshot = self.server.catalog().snapshot();
        let view = |known: &Arc<catalog::ForeignServer>| ForeignServerView {
            texts: [&known.name, &known.host, &known.database, &known.user, &known.password]
                .map(Arc::clone),
            port: known.port,
            rest: [&known.socket, &known.wrapper, &known.owner].map(Arc::clone),
        };
        snapshot.servers().map(view).collect()
    }

    fn tablespaces(&self) -> Vec<TablespaceView> {
        let snapshot = self.server.catalog().snapshot();
        let view = |known: &Arc<catalog::Tablespace>| TablespaceView {
            name: known.name.clone(),
            file: known.file.clone(),
            autoextend_bytes: known.autoextend_bytes,
            is_encrypted: known.is_encrypted,
        };
        snapshot.tablespaces().iter().map(view).collect()
    }

    fn user_locks(&self) -> Vec<UserLockView> {
        self.server.user_locks()
    }

    fn plan_cache(&self) -> Vec<PlanCacheView> {
        self.server.plan_cache()
    }

    fn database(&self) -> Option<String> {
        self.database.as_ref().map(|name| name.to_string())
    }

    fn started_micros(&self) -> i64 {
        self.server.started_micros()
    }

    fn now_micros(&self) -> i64 {
        self.server.now_micros()
    }

    fn check_cancelled(&self) -> Result<()> {
        self.connection.check_cancelled()
    }
}

/// The reference's word for a metadata lock.
fn lock_type(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Use(Usage::Read) => "SHARED_READ",
        Purpose::Use(Usage::Write) => "SHARED_WRITE",
        Purpose::Lock(LockMode::Intent) => "INTENTION_EXCLUSIVE",
        Purpose::Lock(LockMode::Definition) => "SHARED_UPGRADABLE",
        Purpose::Lock(LockMode::NoWrite) => "SHARED_READ_ONLY",
        Purpose::Lock(LockMode::Exclusive) => "EXCLUSIVE",
    }
}
