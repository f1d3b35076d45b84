//! The catalog: the current snapshot, and how changes reach it and the dictionary table together.
//!
//! Lock order: `sharing`, `writer`, then the engine's locks. Readers take no lock.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use engine_api::{
    CancelToken, ColumnDef, CommitHandle, Direction, Engine, EngineError, IndexDef, IndexId,
    KeyPart, KeyRange, RowBatch, RowLock, ScanSpec, TableDef, TableId, Transaction, TxnOptions,
    WaitPolicy,
};
use errors::{Result, err};
use sys::sync::Mutex;
use sys::sync::atomic::{AtomicU64, Ordering};
use types::key::encode_part;
use types::record::RecordLayout;
use types::{DataType, TypeKind, Value};

use crate::event::{read_event, write_event};
use crate::fields::damaged;
use crate::foreign_server::{read_server, write_server};
use crate::reference_system::{read_system, write_system};
use crate::resource_group::{read_group, write_group};
use crate::routine::{RoutineKind, read_routine, write_routine};
use crate::tablespace::{read_tablespace, write_tablespace};
use crate::trigger::{read_trigger, write_trigger};
use crate::{
    AccountRules, CatalogSnapshot, CatalogVersion, Edit, PendingDefinitions, Table, View,
    account_codec, codec,
};

/// Kinds of dictionary rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Schema = 1,
    Table = 2,
    View = 3,
    Account = 4,
    Variable = 5,
    Counter = 6,
    Routine = 7,
    Trigger = 8,
    Event = 9,
    Plugin = 10,
    ResourceGroup = 11,
    Tablespace = 12,
    Server = 13,
    ReferenceSystem = 14,
}

impl Kind {
    fn from_number(number: u64) -> Option<Kind> {
        [
            Kind::Schema,
            Kind::Table,
            Kind::View,
            Kind::Account,
            Kind::Variable,
            Kind::Counter,
            Kind::Routine,
            Kind::Trigger,
            Kind::Event,
            Kind::Plugin,
            Kind::ResourceGroup,
            Kind::Tablespace,
            Kind::Server,
            Kind::ReferenceSystem,
        ]
        .into_iter()
        .find(|kind| *kind as u64 == number)
    }
}

/// The counter of ids.
const ID_COUNTER: u64 = 1;
/// The number of ids that a process reserves at a time.
const ID_BLOCK: u64 = 1000;

/// State of the writer beyond the snapshot: which row holds which named object.
#[derive(Default)]
struct Writer {
    rows: HashMap<(Kind, String), u64>,
    /// The version that the next change builds on: the current one, or one whose commit is on its way to the log.
    newest: Arc<CatalogSnapshot>,
    /// Ids from `next_id` up to here are reserved in the dictionary.
    reserved: u64,
}

/// The server's catalog.
pub struct Catalog {
    current: ArcSwap<CatalogSnapshot>,
    engine: Arc<dyn Engine>,
    writer: Mutex<Writer>,
    /// See `Catalog::sharing`.
    pub(crate) sharing: Mutex<()>,
    next_id: AtomicU64,
    /// Versions of transactions with definitions of their own so far.
    private_versions: AtomicU64,
}

/// The first version of a transaction with definitions of its own: above all published ones.
const FIRST_PRIVATE: u64 = 1 << 63;

impl Catalog {
    /// Loads the dictionary of `engine`, creating it when it does not exist.
    ///
    /// # Errors
    /// I/O, a damaged dictionary.
    pub fn open(engine: Arc<dyn Engine>) -> Result<Catalog> {
        let cancel = CancelToken::new();
        let mut txn = engine.new_transaction();
        start(txn.as_mut(), &cancel)?;
        let writer = Writer::default();
        let mut catalog = Catalog {
            current: ArcSwap::new(writer.newest.clone()),
            engine: engine.clone(),
            writer: Mutex::new(writer),
            sharing: Mutex::new(()),
            next_id: AtomicU64::new(TableId::FIRST_USER.0),
            private_versions: AtomicU64::new(FIRST_PRIVATE),
        };
        let word = |error: EngineError| error.into_error(&cancel);
        if engine.has_table(TableId::DICTIONARY) {
            catalog.load(txn.as_mut(), &cancel)?;
            txn.rollback().map_err(word)?;
        } else {
            txn.create_table(&dictionary_definition()).map_err(word)?;
            txn.commit().map_err(word)?.wait().map_err(word)?;
        }
        Ok(catalog)
    }

    /// Reads the current version without keeping it: no shared write.
    pub fn with<T>(&self, look: impl FnOnce(&CatalogSnapshot) -> T) -> T {
        look(&self.current.load())
    }

    /// The current version, to keep.
    pub fn snapshot(&self) -> Arc<CatalogSnapshot> {
        self.current.load_full()
    }

    /// Whether `version` is still the current one.
    pub fn is_current(&self, version: CatalogVersion) -> bool {
        self.current.load().version == version
    }

    /// Whether plans of the definitions of this version (`CatalogSnapshot::definitions`) are still good.
    pub fn has_definitions(&self, version: CatalogVersion) -> bool {
        self.current.load().definitions == version
    }

    /// The engine that holds the dictionary: the default engine.
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    /// Allocates an id for a table, never used before.
    ///
    /// # Errors
    /// I/O.
    pub fn new_table_id(&self) -> Result<TableId> {
        let mut writer = self.writer.lock();
        self.draw_id(&mut writer).map(TableId)
    }

    /// A version that is never published.
    pub(crate) fn private_version(&self) -> CatalogVersion {
        CatalogVersion(self.private_versions.fetch_add(1, Ordering::Relaxed))
    }

    /// Like `commit`, the definitions that the transaction `txn` has changed.
    ///
    /// # Errors
    /// Likewise; 1412 when another session has changed a table that they replace.
    pub fn commit_pending(
        &self,
        txn: &mut dyn Transaction,
        pending: &PendingDefinitions,
        cancel: &CancelToken,
    ) -> Result<CommitHandle> {
        self.commit_edits(txn, |newest| pending.edits_on(newest).map(Cow::Owned), cancel)
    }

    /// Writes the changes in `txn`, commits it and makes them the current version. On an error `txn` is rolled back.
    ///
    /// # Errors
    /// Errors of the edits about names, engine errors.
    pub fn commit(
        &self,
        txn: &mut dyn Transaction,
        edits: &[Edit],
        cancel: &CancelToken,
    ) -> Result<CommitHandle> {
        self.commit_edits(txn, |_| Ok(Cow::Borrowed(edits)), cancel)
    }

    /// `edits_on`: the changes to be made on the newest version.
    fn commit_edits<'e>(
        &self,
        txn: &mut dyn Transaction,
        edits_on: impl FnOnce(&CatalogSnapshot) -> Result<Cow<'e, [Edit]>>,
        cancel: &CancelToken,
    ) -> Result<CommitHandle> {
        let mut writer = self.writer.lock();
        let edits = match edits_on(&writer.newest) {
            Ok(edits) => edits,
            Err(error) => {
                // The first error is the one to report.
                let _ = txn.rollback();
                return Err(error);
            }
        };
        let mut next = CatalogSnapshot::clone(&writer.newest);
        next.version = CatalogVersion(next.version.0 + 1);
        if !edits.iter().all(Edit::is_of_account) {
            next.definitions = next.version;
        }
        debug_assert!(next.definitions <= next.version);
        let mut rows = Rows { writer: &mut writer, ids: HashMap::new(), txn: &mut *txn, cancel };
        let outcome = edits.iter().try_for_each(|edit| {
            next.apply(edit)?;
            self.write_edit(&mut rows, edit, &next)
        });
        let ids = rows.ids;
        let word = |error: EngineError| error.into_error(cancel);
        let handle = match outcome.and_then(|()| txn.commit().map_err(word)) {
            Ok(handle) => handle,
            Err(error) => {
                // The first error is the one to report.
                let _ = txn.rollback();
                return Err(error);
            }
        };
        for (key, id) in ids {
            match id {
                Some(id) => writer.rows.insert(key, id),
                None => writer.rows.remove(&key),
            };
        }
        let next = Arc::new(next);
        writer.newest = next.clone();
        // A change that only adds tables lets others continue and share a flush of the log. Changes of existing objects are published one after
        // another: they depend on the current version.
        let adds = edits.iter().all(|edit| matches!(edit, Edit::CreateTable(_)));
        let others = if adds {
            drop(writer);
            None
        } else {
            Some(writer)
        };
        // The new version is published when the log has it: before that, snapshots of others do not see the objects that it describes.
        if !handle.is_durable() {
            sys::blocking::blocking(|| handle.wait()).map_err(word)?;
        }
        self.publish(&next);
        drop(others);
        Ok(CommitHandle::Durable)
    }

    /// Makes a version the current one, unless one that builds on it is.
    fn publish(&self, next: &Arc<CatalogSnapshot>) {
        self.current.rcu(|current| match current.version < next.version {
            true => next.clone(),
            false => current.clone(),
        });
    }

    /// Commits changes that affect only the dictionary.
    ///
    /// # Errors
    /// As `commit`.
    pub fn commit_alone(&self, edits: &[Edit], cancel: &CancelToken) -> Result<CommitHandle> {
        let mut txn = self.engine.new_transaction();
        start(txn.as_mut(), cancel)?;
        self.commit(txn.as_mut(), edits, cancel)
    }

    /// What system variables say about all accounts at the start, before anybody uses the catalog. Later an edit changes it.
    pub fn set_account_rules(&self, rules: AccountRules) {
        let mut writer = self.writer.lock();
        let mut next = CatalogSnapshot::clone(&writer.newest);
        Arc::make_mut(&mut next.accounts).set_rules(rules);
        let next = Arc::new(next);
        writer.newest = next.clone();
        self.current.store(next);
    }

    /// Whether an account has restrictions.
    pub fn has_restrictions(&self) -> bool {
        self.with(|snapshot| snapshot.accounts.iter().any(|one| !one.restrictions.is_empty()))
    }

    /// Waits until every transaction that committed earlier is visible to snapshots taken from now on. An engine may acknowledge
    /// a commit to the session before its log has it; a statement that locked a table to read all of it must not miss such rows.
    ///
    /// # Errors
    /// I/O.
    pub fn wait_for_earlier_commits(&self, cancel: &CancelToken) -> Result<()> {
        let word = |error: EngineError| error.into_error(cancel);
        let handle = {
            let mut writer = self.writer.lock();
            let mut txn = self.engine.new_transaction();
            start(txn.as_mut(), cancel)?;
            let reserved = writer.reserved.max(self.next_id.load(Ordering::Relaxed));
            write_counter_row(&mut writer, txn.as_mut(), reserved, cancel)?;
            txn.commit().map_err(word)?
        };
        handle.wait().map_err(word)
    }

    /// Writes the rows of one edit.
    fn write_edit(&self, rows: &mut Rows, edit: &Edit, after: &CatalogSnapshot) -> Result<()> {
        match edit {
            Edit::CreateSchema { name, .. } | Edit::AlterSchema { name, .. } => {
                let schema = after.schema(name).ok_or_else(|| err!(BAD_DB_ERROR, name))?;
                rows.put(self, Kind::Schema, name.to_string(), &codec::write_schema(schema))
            }
            Edit::DropSchema(name) => rows.drop(Kind::Schema, name.to_string()),
            Edit::CreateTable(table) => rows.insert_table(table),
            Edit::ReplaceTable { old, new } if *old == new.id => {
                rows.update_table(*old, &codec::write_table(new))
            }
            Edit::ReplaceTable { old, new } => {
                rows.delete_table(*old)?;
                rows.insert_table(new)
            }
            Edit::RenewTable(_) => Ok(()),
            Edit::PutHistograms { table, .. } => match after.encoded_table(*table) {
                Some(bytes) => rows.update_table(*table, bytes),
                None => Ok(()),
            },
            Edit::DropTable(id) => rows.delete_table(*id),
            Edit::CreateView(view) => self.put_view(rows, view),
            Edit::ReplaceView { schema, name, new } => {
                rows.drop(Kind::View, relation_key(schema, name))?;
                self.put_view(rows, new)
            }
            Edit::DropView { schema, name } => rows.drop(Kind::View, relation_key(schema, name)),
            Edit::PutRoutine(routine) => {
                let name = routine_name(&routine.schema, routine.kind, &routine.name);
                rows.put(self, Kind::Routine, name, &write_routine(routine))
            }
            Edit::DropRoutine { schema, kind, name } => {
                rows.drop(Kind::Routine, routine_name(schema, *kind, name))
            }
            Edit::PutTrigger(trigger) => {
                let name = trigger_name(&trigger.schema, &trigger.name);
                rows.put(self, Kind::Trigger, name, &write_trigger(trigger))
            }
            Edit::DropTrigger { schema, name } => {
                rows.drop(Kind::Trigger, trigger_name(schema, name))
            }
            Edit::PutEvent { event, .. } => {
                let name = trigger_name(&event.schema, &event.name);
                rows.put(self, Kind::Event, name, &write_event(event))
            }
            Edit::DropEvent { schema, name, .. } => {
                rows.drop(Kind::Event, trigger_name(schema, name))
            }
            Edit::PutAccount(account) => {
                let bytes = account_codec::write_account(account);
                rows.put(self, Kind::Account, account_key(&account.name), &bytes)
            }
            Edit::DropAccount(name) => rows.drop(Kind::Account, account_key(name)),
            Edit::PutAccountRules(_) => Ok(()),
            Edit::PutVariable { name, kept } => {
                let bytes = codec::write_variable(name, kept);
                rows.put(self, Kind::Variable, name.to_string(), &bytes)
            }
            Edit::DropVariable(name) => rows.drop(Kind::Variable, name.to_string()),
            Edit::PutPlugin { name, choice } => {
                let bytes = codec::write_plugin(name, choice);
                rows.put(self, Kind::Plugin, name.to_string(), &bytes)
            }
            Edit::DropPlugin(name) => rows.drop(Kind::Plugin, name.to_string()),
            Edit::PutResourceGroup(group) => {
                rows.put(self, Kind::ResourceGroup, group.name.to_lowercase(), &write_group(group))
            }
            Edit::DropResourceGroup(name) => rows.drop(Kind::ResourceGroup, name.to_lowercase()),
            Edit::PutTablespace(tablespace) => {
                let name = tablespace.name.to_string();
                rows.put(self, Kind::Tablespace, name, &write_tablespace(tablespace))
            }
            Edit::DropTablespace(name) => rows.drop(Kind::Tablespace, name.to_string()),
            Edit::PutServer(server) => {
                rows.put(self, Kind::Server, server.name.to_lowercase(), &write_server(server))
            }
            Edit::DropServer(name) => rows.drop(Kind::Server, name.to_lowercase()),
            Edit::PutReferenceSystem(system) => {
                let number = system.srid.to_string();
                rows.put(self, Kind::ReferenceSystem, number, &write_system(system))
            }
            Edit::DropReferenceSystem(srid) => rows.drop(Kind::ReferenceSystem, srid.to_string()),
        }
    }

    fn put_view(&self, rows: &mut Rows, view: &View) -> Result<()> {
        let name = relation_key(&view.schema, &view.name);
        rows.put(self, Kind::View, name, &codec::write_view(view))
    }

    /// Allocates an id, reserving a block in a separate transaction when the last one is used up.
    fn draw_id(&self, writer: &mut Writer) -> Result<u64> {
        let id = self.next_id.load(Ordering::Relaxed);
        if id >= writer.reserved {
            let cancel = CancelToken::new();
            let mut txn = self.engine.new_transaction();
            start(txn.as_mut(), &cancel)?;
            let reserved = id + ID_BLOCK;
            write_counter_row(writer, txn.as_mut(), reserved, &cancel)?;
            txn.commit().map_err(|error| error.into_error(&cancel))?;
            writer.reserved = reserved;
        }
        self.next_id.store(id + 1, Ordering::Relaxed);
        Ok(id)
    }

    /// Reads all rows into the first snapshot: schemas first, then the objects in them (rows come in order of kind).
    fn load(&mut self, txn: &mut dyn Transaction, cancel: &CancelToken) -> Result<()> {
        let mut snapshot = CatalogSnapshot::default();
        let writer = Writer::default();
        let mut loaded = Loaded { writer, next_id: TableId::FIRST_USER.0 };
        read_rows(txn, cancel, |kind, id, bytes| loaded.row(&mut snapshot, kind, id, bytes))?;
        self.next_id.store(loaded.next_id, Ordering::Relaxed);
        snapshot.version = CatalogVersion(1);
        snapshot.definitions = snapshot.version;
        let snapshot = Arc::new(snapshot);
        self.writer = Mutex::new(Writer { newest: snapshot.clone(), ..loaded.writer });
        self.current.store(snapshot);
        Ok(())
    }
}

/// The dictionary's rows while a transaction changes them.
struct Rows<'a> {
    writer: &'a mut Writer,
    /// The rows of the named objects that the transaction inserted or deleted, for the writer to remember after the commit.
    ids: HashMap<(Kind, String), Option<u64>>,
    txn: &'a mut dyn Transaction,
    cancel: &'a CancelToken,
}

impl Rows<'_> {
    fn id_of(&self, key: &(Kind, String)) -> Option<u64> {
        let changed = self.ids.get(key).copied();
        changed.unwrap_or_else(|| self.writer.rows.get(key).copied())
    }

    /// Writes a named object over the one of this name, or in a new row.
    fn put(&mut self, catalog: &Catalog, kind: Kind, name: String, bytes: &[u8]) -> Result<()> {
        let key = (kind, name);
        if let Some(id) = self.id_of(&key) {
            return update_row(self.txn, kind, id, bytes, self.cancel);
        }
        let id = catalog.draw_id(self.writer)?;
        self.ids.insert(key, Some(id));
        insert_row(self.txn, kind, id, bytes, self.cancel)
    }

    /// Deletes the row of a named object, if it exists.
    fn drop(&mut self, kind: Kind, name: String) -> Result<()> {
        let key = (kind, name);
        let Some(id) = self.id_of(&key) else { return Ok(()) };
        self.ids.insert(key, None);
        delete_row(self.txn, kind, id, self.cancel)
    }

    fn insert_table(&mut self, table: &Table) -> Result<()> {
        insert_row(self.txn, Kind::Table, table.id.0, &codec::write_table(table), self.cancel)
    }

    fn update_table(&mut self, id: TableId, bytes: &[u8]) -> Result<()> {
        update_row(self.txn, Kind::Table, id.0, bytes, self.cancel)
    }

    fn delete_table(&mut self, id: TableId) -> Result<()> {
        delete_row(self.txn, Kind::Table, id.0, self.cancel)
    }
}

struct Loaded {
    writer: Writer,
    next_id: u64,
}

impl Loaded {
    fn row(
        &mut self,
        snapshot: &mut CatalogSnapshot,
        kind: Kind,
        id: u64,
        bytes: &[u8],
    ) -> Result<()> {
        let name = match kind {
            Kind::Schema => {
                let schema = codec::read_schema(bytes)?;
                let (name, options) = (schema.name.clone(), schema.options);
                snapshot.apply(&Edit::CreateSchema { name, options })?;
                let name = schema.name;
                name.to_string()
            }
            Kind::Table => return snapshot.load_table(bytes),
            Kind::View => {
                let view = codec::read_view(bytes)?;
                let name = relation_key(&view.schema, &view.name);
                snapshot.apply(&Edit::CreateView(Arc::new(view)))?;
                name
            }
            Kind::Account => {
                let account = account_codec::read_account(bytes)?;
                let name = account_key(&account.name);
                snapshot.apply(&Edit::PutAccount(account))?;
                name
            }
            Kind::Variable => {
                let (name, kept) = codec::read_variable(bytes)?;
                snapshot.apply(&Edit::PutVariable { name: name.clone(), kept })?;
                name.to_string()
            }
            Kind::Plugin => {
                let (name, choice) = codec::read_plugin(bytes)?;
                snapshot.apply(&Edit::PutPlugin { name: name.clone(), choice })?;
                name.to_string()
            }
            Kind::ResourceGroup => {
                let group = Arc::new(read_group(bytes)?);
                let name = group.name.to_lowercase();
                snapshot.apply(&Edit::PutResourceGroup(group))?;
                name
            }
            Kind::Tablespace => {
                let tablespace = Arc::new(read_tablespace(bytes)?);
                let name = tablespace.name.to_string();
                snapshot.apply(&Edit::PutTablespace(tablespace))?;
                name
            }
            Kind::Server => {
                let server = Arc::new(read_server(bytes)?);
                let name = server.name.to_lowercase();
                snapshot.apply(&Edit::PutServer(server))?;
                name
            }
            Kind::ReferenceSystem => {
                let system = Arc::new(read_system(bytes)?);
                let number = system.srid.to_string();
                snapshot.apply(&Edit::PutReferenceSystem(system))?;
                number
            }
            Kind::Routine => {
                let routine = read_routine(bytes)?;
                let name = routine_name(&routine.schema, routine.kind, &routine.name);
                snapshot.apply(&Edit::PutRoutine(Arc::new(routine)))?;
                name
            }
            Kind::Trigger => {
                let trigger = read_trigger(bytes)?;
                let name = trigger_name(&trigger.schema, &trigger.name);
                snapshot.apply(&Edit::PutTrigger(Arc::new(trigger)))?;
                name
            }
            Kind::Event => {
                let event = Arc::new(read_event(bytes)?);
                let name = trigger_name(&event.schema, &event.name);
                snapshot.apply(&Edit::PutEvent { event, over: None })?;
                name
            }
            Kind::Counter => {
                self.next_id = codec::read_counter(bytes)?;
                self.writer.reserved = self.next_id;
                String::new()
            }
        };
        self.writer.rows.insert((kind, name), id);
        Ok(())
    }
}

fn relation_key(schema: &str, name: &str) -> String {
    format!("{schema}\0{name}")
}

fn routine_name(schema: &str, kind: RoutineKind, name: &str) -> String {
    format!("{schema}\0{}\0{}", kind.as_str(), name.to_lowercase())
}

fn trigger_name(schema: &str, name: &str) -> String {
    format!("{schema}\0{}", name.to_lowercase())
}

fn account_key(name: &crate::AccountName) -> String {
    format!("{}\0{}", name.user, name.host)
}

fn start(txn: &mut dyn Transaction, cancel: &CancelToken) -> Result<()> {
    let options = TxnOptions {
        isolation: engine_api::IsolationLevel::ReadCommitted,
        read_only: false,
        may_be_prepared: false,
        lock_wait_timeout: Duration::from_secs(60),
        cancel: cancel.clone(),
    };
    txn.start(&options).map_err(|error| error.into_error(cancel))
}

/// The dictionary as its engine sees it.
fn dictionary_definition() -> TableDef {
    let columns = dictionary_layout()
        .into_iter()
        .zip(["kind", "id", "data"])
        .map(|(ty, name)| ColumnDef { name: name.to_owned(), ty, instant_default: None })
        .collect();
    let part = |column| KeyPart { column, prefix_length: None, descending: false, elements: None };
    TableDef {
        id: TableId::DICTIONARY,
        name: "data_dictionary.objects".to_owned(),
        columns,
        indexes: vec![IndexDef {
            id: IndexId::CLUSTERED,
            name: "PRIMARY".to_owned(),
            unique: true,
            parts: vec![part(0), part(1)],
        }],
    }
}

fn dictionary_layout() -> [DataType; 3] {
    let unsigned = |kind, length| DataType {
        unsigned: true,
        ..DataType::new(kind, length, 0).with_nullable(false)
    };
    [
        unsigned(TypeKind::TinyInt, 3),
        unsigned(TypeKind::BigInt, 20),
        DataType::new(TypeKind::LongBlob, u32::MAX, 0).with_nullable(false),
    ]
}

fn encode(kind: Kind, id: u64, bytes: &[u8]) -> Vec<u8> {
    let values = [Value::UInt(kind as u64), Value::UInt(id), Value::Bytes(bytes.into())];
    let mut record = Vec::with_capacity(bytes.len() + 32);
    let written = RecordLayout::new(&dictionary_layout()).encode(&values, &mut record);
    written.expect("the values are of the dictionary's own types");
    record
}

/// The clustered key of a row, which is its locator.
fn locator(kind: Kind, id: u64) -> Vec<u8> {
    let [kind_type, id_type, _] = dictionary_layout();
    let mut key = Vec::new();
    encode_part(&Value::UInt(kind as u64), &kind_type, None, false, &mut key);
    encode_part(&Value::UInt(id), &id_type, None, false, &mut key);
    key
}

fn insert_row(
    txn: &mut dyn Transaction,
    kind: Kind,
    id: u64,
    bytes: &[u8],
    cancel: &CancelToken,
) -> Result<()> {
    let inserted = txn.insert(TableId::DICTIONARY, &encode(kind, id, bytes));
    inserted.map_err(|error| error.into_error(cancel))
}

fn update_row(
    txn: &mut dyn Transaction,
    kind: Kind,
    id: u64,
    bytes: &[u8],
    cancel: &CancelToken,
) -> Result<()> {
    let record = encode(kind, id, bytes);
    let updated = txn.update(TableId::DICTIONARY, &locator(kind, id), &record);
    updated.map_err(|error| error.into_error(cancel))
}

fn delete_row(txn: &mut dyn Transaction, kind: Kind, id: u64, cancel: &CancelToken) -> Result<()> {
    let deleted = txn.delete(TableId::DICTIONARY, &locator(kind, id));
    deleted.map_err(|error| error.into_error(cancel))
}

/// Writes the counter of ids. The row is remembered at once: if its transaction fails, the server cannot continue.
fn write_counter_row(
    writer: &mut Writer,
    txn: &mut dyn Transaction,
    value: u64,
    cancel: &CancelToken,
) -> Result<()> {
    let bytes = codec::write_counter(value);
    let counter = (Kind::Counter, String::new());
    if writer.rows.contains_key(&counter) {
        return update_row(txn, Kind::Counter, ID_COUNTER, &bytes, cancel);
    }
    insert_row(txn, Kind::Counter, ID_COUNTER, &bytes, cancel)?;
    writer.rows.insert(counter, ID_COUNTER);
    Ok(())
}

/// Rows read at a time.
const FETCH_ROWS: usize = 256;

fn read_rows(
    txn: &mut dyn Transaction,
    cancel: &CancelToken,
    mut take: impl FnMut(Kind, u64, &[u8]) -> Result<()>,
) -> Result<()> {
    let word = |error: EngineError| error.into_error(cancel);
    let cursor = txn
        .open_cursor(&ScanSpec {
            table: TableId::DICTIONARY,
            index: IndexId::CLUSTERED,
            range: KeyRange::ALL,
            direction: Direction::Forward,
            lock: RowLock::None,
            wait: WaitPolicy::Wait,
        })
        .map_err(word)?;
    let layout = RecordLayout::new(&dictionary_layout());
    let mut batch = RowBatch::new();
    loop {
        batch.clear();
        if txn.fetch(cursor, FETCH_ROWS, &mut batch).map_err(word)? == 0 {
            break;
        }
        for row in batch.iter() {
            let column = |index| layout.value(row.record, index, None).ok_or_else(damaged);
            let (Value::UInt(kind), Value::UInt(id), Value::Bytes(bytes)) =
                (column(0)?, column(1)?, column(2)?)
            else {
                return Err(damaged());
            };
            take(Kind::from_number(kind).ok_or_else(damaged)?, id, &bytes)?;
        }
    }
    txn.close_cursor(cursor);
    Ok(())
}
