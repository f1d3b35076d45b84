//! The connection to the cluster with the definitions that were looked up through it. After the cluster was lost, a new link takes its place.

use std::collections::HashMap;
use std::sync::Weak;
use std::time::Duration;

use engine_api::{EngineError, EngineResult, TableDef, TableId};
use errors::Error;
use plugin_api::GlobalValue;
use sys::blocking::blocking;
use sys::clock;
use sys::sync::atomic::{AtomicBool, Ordering};
use sys::sync::{Arc, Mutex, RwLock};
use tracing::{info, warn};

use crate::definition;
use crate::error::{DUPLICATE, LOCKED, NO_ROW, NdbError, outdated};
use crate::kept::{Followed, Kept, check_followed};
use crate::shim::{
    Connection, Hold, Kind, LIBRARY, NdbTable, NdbTransaction, Node, Operation, ScanRange, Shim,
};
use crate::table::Table;

/// Tries to read a definition that changes at that moment.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(5);
/// The longest wait for a data node, seconds.
const CONNECT_SECONDS: i32 = 4;
/// After a failed try to connect, others fail at once for so long.
const CONNECT_PAUSE: Duration = Duration::from_secs(1);
/// Who only looks tries to connect after so long.
const LOOK_PAUSE: Duration = Duration::from_secs(3);
/// The NDB database of all tables.
const DATABASE: &str = "squall";
/// Definitions: table id and part, eight and two bytes -> the part.
const DEFINITIONS: &str = "definitions";
/// Stamps and names of shared tables, and their names alone: see `shared`.
const STAMPS: &str = "stamps";
const NAMES: &str = "names";
/// A schema and a name, 64 characters each, and what separates them.
const NAME_BYTES: u32 = 2 * 64 * 4 + 1;
/// Counters: table id and kind, eight and one byte -> the next value, sixteen bytes.
const COUNTERS: &str = "counters";
const DEFINITION_KEY_BYTES: u32 = 16;
const DEFINITION_PART_BYTES: usize = 16_000;

/// The settings of the plugin.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    pub(crate) connectstring: GlobalValue,
    pub(crate) shim: GlobalValue,
    pub(crate) database: GlobalValue,
}

/// A link.
pub(crate) struct Link {
    pub(crate) connection: Arc<Connection>,
    pub(crate) definitions: Arc<NdbTable>,
    pub(crate) counters: Arc<NdbTable>,
    pub(crate) stamps: Arc<NdbTable>,
    pub(crate) names: Arc<NdbTable>,
    followed: Arc<Followed>,
    tables: RwLock<HashMap<TableId, Arc<Table>>>,
    is_lost: AtomicBool,
}

/// The key of a part of a definition.
pub(crate) fn definition_key(table: TableId, part: u16) -> Vec<u8> {
    [table.0.to_be_bytes().as_slice(), &part.to_be_bytes()].concat()
}

/// The parts of a definition as they are stored.
pub(crate) fn definition_parts(def: &TableDef) -> Vec<Vec<u8>> {
    definition::encode(def).chunks(DEFINITION_PART_BYTES).map(<[u8]>::to_vec).collect()
}

fn open_or_create(
    connection: &Arc<Connection>,
    name: &str,
    key_bytes: u32,
    row_bytes: u32,
) -> Result<Arc<NdbTable>, NdbError> {
    patiently(|| match NdbTable::open(connection, name) {
        Err(error) if error.is_no_table() => {
            match connection.create_table(name, key_bytes, row_bytes) {
                // Another server was faster.
                Err(error) if !error.is_existing() => Err(error),
                Ok(()) | Err(_) => NdbTable::open(connection, name),
            }
        }
        other => other,
    })
}

/// Tries again after temporary errors: the cluster changes one definition at a time.
pub(crate) fn patiently<T>(work: impl Fn() -> Result<T, NdbError>) -> Result<T, NdbError> {
    const TRIES: u32 = 250;
    const PAUSE: Duration = Duration::from_millis(20);
    let mut tries = 0;
    loop {
        match work() {
            Err(error) if error.is_temporary() && !error.is_full() && tries < TRIES => {
                tries += 1;
                sys::threads::sleep(PAUSE);
            }
            other => return other,
        }
    }
}

impl Link {
    fn open(shim: Shim, settings: &Settings, followed: &Arc<Followed>) -> Result<Link, NdbError> {
        let database = settings.database.text();
        let database = if database.is_empty() { DATABASE } else { &database };
        let address = settings.connectstring.text();
        let connection = Connection::open(shim, &address, database, CONNECT_SECONDS)?;
        let open = |name, key, row| open_or_create(&connection, name, key, row);
        let key = DEFINITION_KEY_BYTES;
        let definitions = open(DEFINITIONS, key, DEFINITION_PART_BYTES as u32)?;
        let counters = open(COUNTERS, key, key)?;
        let stamps = open(STAMPS, key, NAME_BYTES + 8)?;
        let names = open(NAMES, NAME_BYTES, 8)?;
        info!(
            node = connection.own_node(),
            data_nodes = connection.ready_nodes(),
            client = shim.client_version(),
            "connected to the NDB cluster at {address}"
        );
        let (tables, is_lost) = (RwLock::default(), AtomicBool::new(false));
        let followed = followed.clone();
        Ok(Link { connection, definitions, counters, stamps, names, followed, tables, is_lost })
    }

    /// Whether the cluster is gone to it. One that another has replaced serves the transactions that began with it.
    pub(crate) fn is_lost(&self) -> bool {
        // Pairs with the store in `drop_link`.
        self.is_lost.load(Ordering::Acquire)
    }

    /// The committed table, looked up at its first use.
    ///
    /// # Errors
    /// `UnknownTable`; 1412 for a shared table that is not as this server's catalog has it, or is gone.
    pub(crate) fn table(&self, id: TableId) -> EngineResult<Arc<Table>> {
        if id.is_shared() {
            return self.shared_table(id);
        }
        if let Some(table) = self.known(id) {
            return Ok(table);
        }
        let found = blocking(|| self.stored(id)).map_err(NdbError::into_engine)?;
        let stored = found.ok_or(EngineError::UnknownTable)?;
        let def = definition::decode(&stored).ok_or_else(|| {
            Error::internal(format!("the definition of NDB table {} is damaged", id.0))
        })?;
        let table = Arc::new(blocking(|| Table::open(&self.connection, def, 0))?);
        self.tables.write().insert(id, table.clone());
        Ok(table)
    }

    /// A table as it was looked up before.
    pub(crate) fn known(&self, id: TableId) -> Option<Arc<Table>> {
        self.tables.read().get(&id).cloned()
    }

    /// A table as this server's catalog follows it.
    fn shared_table(&self, id: TableId) -> EngineResult<Arc<Table>> {
        let followed = self.followed.stamp(id);
        if let Some(table) = self.known(id).filter(|table| Some(table.stamp) == followed) {
            return Ok(table);
        }
        // Another server may have dropped it a moment ago.
        let kept = blocking(|| self.kept(id))?.ok_or_else(outdated)?;
        check_followed(followed, kept.stamp)?;
        let table = Arc::new(blocking(|| Table::open(&self.connection, kept.def, kept.stamp))?);
        self.tables.write().insert(id, table.clone());
        Ok(table)
    }

    /// The committed definition.
    fn stored(&self, id: TableId) -> Result<Option<Vec<u8>>, NdbError> {
        let (low, high) = (definition_key(id, 0), definition_key(TableId(id.0 + 1), 0));
        let mut stored = Vec::new();
        let take = |_: &[u8], part: &[u8]| stored.extend_from_slice(part);
        self.scan_rows(&self.definitions, &low, Some(&high), take)?;
        Ok((!stored.is_empty()).then_some(stored))
    }

    /// The table has another definition, or none.
    fn forget(&self, id: TableId) {
        self.tables.write().remove(&id);
    }

    pub(crate) fn remember(&self, table: &Arc<Table>) {
        self.tables.write().insert(table.id(), table.clone());
    }

    pub(crate) fn known_tables(&self) -> usize {
        self.tables.read().len()
    }

    /// Drops a table of the cluster; one that is not there is no error.
    pub(crate) fn drop_part(&self, name: &str) {
        match blocking(|| patiently(|| self.connection.drop_table(name))) {
            Err(error) if !error.is_no_table() => {
                warn!(
                    table = name,
                    code = error.code,
                    "a table of the NDB cluster is left over: {}",
                    error.text
                );
            }
            Ok(()) | Err(_) => {}
        }
    }

    /// Changes one small row by itself: `change` gets the old one.
    pub(crate) fn change_row<T>(
        &self,
        table: &Arc<NdbTable>,
        key: &[u8],
        mut change: impl FnMut(Option<&[u8]>) -> (Option<Vec<u8>>, T),
    ) -> Result<T, NdbError> {
        const TRIES: u32 = 200;
        const PAUSE: Duration = Duration::from_millis(10);
        let mut tries = 0;
        loop {
            let outcome = self.try_change_row(table, key, &mut change);
            match outcome {
                Ok(Some(result)) => return Ok(result),
                Ok(None) => {}
                Err(error) if error.is_temporary() && tries < TRIES => {}
                Err(error) => return Err(error),
            }
            tries += 1;
            sys::threads::sleep(PAUSE);
        }
    }

    /// `None`: somebody else has it locked.
    fn try_change_row<T>(
        &self,
        table: &Arc<NdbTable>,
        key: &[u8],
        change: &mut impl FnMut(Option<&[u8]>) -> (Option<Vec<u8>>, T),
    ) -> Result<Option<T>, NdbError> {
        let mut transaction = NdbTransaction::begin(&self.connection, Some((&**table, key)))?;
        let mut read = [Operation::read(table, key, Hold::Exclusive)];
        transaction.execute(&mut read)?;
        let old = match read[0].code {
            0 => Some(read[0].row.as_slice()),
            NO_ROW => None,
            _ => return Ok(None),
        };
        let (new, result) = change(old);
        if let Some(new) = new {
            let kind = if old.is_some() { Kind::Update } else { Kind::Insert };
            let mut write = [Operation::new(kind, table, key, &new)];
            transaction.execute(&mut write)?;
            if matches!(write[0].code, DUPLICATE | LOCKED | NO_ROW) {
                return Ok(None);
            }
        }
        transaction.commit()?;
        Ok(Some(result))
    }
}

#[derive(Default)]
struct State {
    shim: Option<Shim>,
    link: Option<Arc<Link>>,
    /// When a try failed, and how.
    failed: Option<(Duration, EngineError)>,
}

/// The way to the cluster: one link at a time.
pub(crate) struct Links {
    pub(crate) settings: Settings,
    pub(crate) followed: Arc<Followed>,
    state: Mutex<State>,
    current: RwLock<Option<Arc<Link>>>,
    /// Links that others have replaced and that transactions still use.
    retired: Mutex<Vec<Weak<Link>>>,
}

impl Links {
    pub(crate) fn new() -> Links {
        Links {
            settings: Settings::default(),
            followed: Arc::default(),
            state: Mutex::new(State::default()),
            current: RwLock::new(None),
            retired: Mutex::default(),
        }
    }

    fn shim(&self, state: &mut State) -> EngineResult<Shim> {
        if let Some(shim) = state.shim {
            return Ok(shim);
        }
        let path = self.settings.shim.text();
        let shim = Shim::load(if path.is_empty() { LIBRARY } else { &path })?;
        state.shim = Some(shim);
        Ok(shim)
    }

    /// The link, made if there is none.
    ///
    /// # Errors
    /// 1296, 1297: no library, no cluster.
    pub(crate) fn get(&self) -> EngineResult<Arc<Link>> {
        if let Some(link) = &*self.current.read() {
            return Ok(link.clone());
        }
        blocking(|| self.connect())
    }

    fn connect(&self) -> EngineResult<Arc<Link>> {
        let mut state = self.state.lock();
        if let Some(link) = &state.link {
            return Ok(link.clone());
        }
        if let Some((at, error)) = &state.failed
            && clock::monotonic().saturating_sub(*at) < CONNECT_PAUSE
        {
            return Err(error.clone());
        }
        if self.settings.connectstring.text().is_empty() {
            return Err(Error::not_supported("NDB tables without --ndb-connectstring").into());
        }
        let opened = self.shim(&mut state).and_then(|shim| {
            Link::open(shim, &self.settings, &self.followed).map_err(NdbError::into_engine)
        });
        match opened {
            Ok(link) => {
                let link = Arc::new(link);
                state.failed = None;
                state.link = Some(link.clone());
                *self.current.write() = Some(link.clone());
                Ok(link)
            }
            Err(error) => {
                state.failed = Some((clock::monotonic(), error.clone()));
                Err(error)
            }
        }
    }

    /// The link, for somebody who asks again and again: after a failed try to connect he leaves the next one to others for some time.
    ///
    /// # Errors
    /// As `get`.
    pub(crate) fn look(&self) -> EngineResult<Arc<Link>> {
        if let Some(link) = self.present() {
            return Ok(link);
        }
        if let Some((at, error)) = &self.state.lock().failed
            && clock::monotonic().saturating_sub(*at) < LOOK_PAUSE
        {
            return Err(error.clone());
        }
        self.get()
    }

    /// The link, if there is one.
    pub(crate) fn present(&self) -> Option<Arc<Link>> {
        self.current.read().clone()
    }

    /// The cluster is lost to this link: the next one who needs it connects anew.
    pub(crate) fn drop_link(&self, link: &Arc<Link>) {
        // Pairs with the load in `is_lost`.
        link.is_lost.store(true, Ordering::Release);
        let mut state = self.state.lock();
        if state.link.as_ref().is_some_and(|current| Arc::ptr_eq(current, link)) {
            warn!("the NDB cluster is lost; the next statement connects anew");
            *self.current.write() = None;
            state.link = None;
        }
    }

    /// Connects anew: a connection knows the data nodes that were configured when it was made. Transactions end on the link that they began with.
    ///
    /// # Errors
    /// 1296, 1297: the cluster lets nobody in, and the old link stays.
    pub(crate) fn renew(&self) -> EngineResult<()> {
        let mut state = self.state.lock();
        let Some(old) = state.link.clone() else { return Ok(()) };
        let shim = self.shim(&mut state)?;
        let link =
            Link::open(shim, &self.settings, &self.followed).map_err(NdbError::into_engine)?;
        let link = Arc::new(link);
        {
            let mut retired = self.retired.lock();
            retired.retain(|link| link.strong_count() > 0);
            retired.push(Arc::downgrade(&old));
        }
        *self.current.write() = Some(link.clone());
        state.link = Some(link);
        Ok(())
    }

    /// The table has another definition, or none: every link that is in use looks it up again.
    pub(crate) fn forget(&self, id: TableId) {
        if let Some(link) = self.present() {
            link.forget(id);
        }
        self.retired.lock().iter().filter_map(Weak::upgrade).for_each(|link| link.forget(id));
    }

    /// Lets go of the cluster for good.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        *self.current.write() = None;
        state.link = None;
    }

    /// The library, and where the management servers are.
    ///
    /// # Errors
    /// 1126: no library. 1235: no address.
    pub(crate) fn manager(&self) -> EngineResult<(Shim, String)> {
        let address = self.settings.connectstring.text();
        if address.is_empty() {
            return Err(Error::not_supported("ALTER CLUSTER without --ndb-connectstring").into());
        }
        Ok((self.shim(&mut self.state.lock())?, address))
    }

    /// The nodes of the cluster.
    pub(crate) fn nodes(&self) -> EngineResult<Vec<Node>> {
        let shim = self.shim(&mut self.state.lock())?;
        let address = self.settings.connectstring.text();
        blocking(|| shim.nodes(&address)).map_err(NdbError::into_engine)
    }
}

impl Link {
    /// Shows `each` the committed rows of a table of the engine with keys from `low` to before `high`.
    pub(crate) fn scan_rows(
        &self,
        table: &sys::sync::Arc<crate::shim::NdbTable>,
        low: &[u8],
        high: Option<&[u8]>,
        mut each: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), NdbError> {
        const ROWS: usize = 64;
        let mut transaction = NdbTransaction::begin(&self.connection, None)?;
        let range = ScanRange {
            low: Some(low),
            low_inclusive: true,
            high,
            descending: false,
            with_rows: true,
            batch: 16,
        };
        let mut scan = transaction.scan(table, &range)?;
        while scan.next(ROWS, &mut each)? > 0 {}
        Ok(())
    }

    /// The committed definition of a shared table.
    ///
    /// # Errors
    /// 1412 while it changes.
    pub(crate) fn kept(&self, table: TableId) -> EngineResult<Option<Kept>> {
        let (low, high) = (definition_key(table, 0), definition_key(TableId(table.0 + 1), 0));
        for _ in 0..TRIES {
            let mut parts = Vec::new();
            let take = |_: &[u8], part: &[u8]| parts.push(part.to_vec());
            self.scan_rows(&self.definitions, &low, Some(&high), take)
                .map_err(NdbError::into_engine)?;
            if parts.is_empty() {
                return Ok(None);
            }
            if let Some(kept) = Kept::from_parts(&parts) {
                return Ok(Some(kept));
            }
            sys::threads::sleep(PAUSE);
        }
        Err(outdated().into())
    }
}
