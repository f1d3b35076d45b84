//! Follows the definitions that other servers change (`engine_api::SharedDefinitions`): a thread asks the engines whether anything has changed, and puts what has into
//! this server's catalog, under the metadata lock that a statement would need. It runs only where an engine shares definitions.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use catalog::{
    CatalogSnapshot, DdlWaitPolicy, Edit, LockMode, LockWait, MetadataGuard, RelationKind,
    SharedEntry, Table,
};
use engine_api::{CancelToken, Engine, SharedDefinitions, TableId};
use errors::{Error, Result};
use sys::clock;
use sys::sync::{Condvar, Mutex};
use tracing::{info, warn};

use crate::server::Server;

/// How often it asks.
const PERIOD: Duration = Duration::from_millis(100);
/// After so long it compares everything, whether something has changed or not.
const WHOLE_PERIOD: Duration = Duration::from_secs(10);
/// Looks after a change: what one transaction has changed may become visible piece by piece.
const LOOKS: u32 = 3;
/// The longest wait for statements that use a table; then others may use it, and it is tried again.
const LOCK_WAIT: Duration = Duration::from_millis(500);
/// Its number among the sessions that hold metadata locks.
const SESSION: u64 = 1 << 48;
/// How long a stopping server waits for it.
const STOP_GRACE: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
struct State {
    runs: bool,
    stopping: bool,
}

/// What the thread shares with those who stop it.
#[derive(Debug, Default)]
pub(crate) struct Follower {
    state: Mutex<State>,
    changed: Condvar,
    cancel: CancelToken,
}

impl Follower {
    /// Ends the thread.
    pub(crate) fn stop(&self) {
        let mut state = self.state.lock();
        state.stopping = true;
        self.cancel.kill_connection();
        self.changed.notify_all();
        if state.runs {
            drop(self.changed.wait_for(state, STOP_GRACE));
        }
    }
}

impl Server {
    /// Takes over the definitions that other servers share with this one, and follows them from now on.
    ///
    /// # Errors
    /// The operating system refuses a thread.
    pub fn follow_definitions(&self) -> Result<()> {
        let engines = self.engines.engines().iter();
        let engines = engines.filter(|engine| engine.shared_definitions().is_some());
        let follows: Vec<Follows> = engines.map(|engine| Follows::new(engine.clone())).collect();
        if follows.is_empty() {
            return Ok(());
        }
        let mut following = Following { server: self.arc()?, follows };
        following.look();
        self.follower.state.lock().runs = true;
        let started = sys::threads::spawn("definitions", move || following.run());
        started.map(drop).map_err(|error| Error::internal(error.to_string()))
    }
}

/// How far it is with one engine.
struct Follows {
    engine: Arc<dyn Engine>,
    version: Option<u64>,
    looks: u32,
    /// When everything was compared.
    compared: Duration,
    has_failed: bool,
    /// Definitions that have no place here, told once.
    told: HashSet<(TableId, u64)>,
}

impl Follows {
    fn new(engine: Arc<dyn Engine>) -> Follows {
        let told = HashSet::new();
        let compared = Duration::ZERO;
        Follows { engine, version: None, looks: 0, compared, has_failed: false, told }
    }
}

struct Following {
    server: Arc<Server>,
    follows: Vec<Follows>,
}

impl Following {
    fn run(&mut self) {
        let server = self.server.clone();
        let follower = &server.follower;
        loop {
            let state = follower.state.lock();
            if !state.stopping {
                drop(follower.changed.wait_for(state, PERIOD));
            }
            let mut state = follower.state.lock();
            if state.stopping {
                state.runs = false;
                follower.changed.notify_all();
                return;
            }
            drop(state);
            self.look();
        }
    }

    /// Follows what has changed. Errors end with the cluster that causes them: the next look tries again.
    fn look(&mut self) {
        for follows in &mut self.follows {
            let engine = follows.engine.clone();
            let Some(shared) = engine.shared_definitions() else { continue };
            match look_at(&self.server, follows, shared) {
                Ok(()) => follows.has_failed = false,
                Err(error) => {
                    if !follows.has_failed && !self.server.follower.cancel.is_cancelled() {
                        let name = engine.name();
                        warn!("definitions of {name} tables cannot be compared now: {error}");
                    }
                    follows.has_failed = true;
                }
            }
        }
    }
}

fn look_at(server: &Server, follows: &mut Follows, shared: &dyn SharedDefinitions) -> Result<()> {
    let cancel = &server.follower.cancel;
    let version = shared.version().map_err(|error| error.into_error(cancel))?;
    let now = clock::monotonic();
    if follows.version != Some(version) {
        follows.looks = LOOKS;
    } else if now.saturating_sub(follows.compared) > WHOLE_PERIOD {
        follows.looks = 1;
    }
    if follows.looks == 0 {
        return Ok(());
    }
    let is_done = compare(server, follows, shared, version)?;
    follows.version = Some(version);
    follows.compared = now;
    if is_done {
        follows.looks -= 1;
    }
    Ok(())
}

/// Follows every difference. False: a table is in use, or changes at this moment.
fn compare(
    server: &Server,
    follows: &mut Follows,
    shared: &dyn SharedDefinitions,
    version: u64,
) -> Result<bool> {
    let cancel = &server.follower.cancel;
    let stamps = shared.stamps().map_err(|error| error.into_error(cancel))?;
    let snapshot = server.catalog.snapshot();
    let is_followed =
        |id: TableId, stamp: u64| shared.followed(id) == Some(stamp) && snapshot.has_table(id);
    let mut different: Vec<TableId> =
        stamps.iter().filter(|(id, stamp)| !is_followed(*id, *stamp)).map(|(id, _)| *id).collect();
    // Where nothing was ever defined it is another cluster, or an empty one: what this server knows is not dropped for that.
    if version > 0 {
        let present: HashSet<TableId> = stamps.iter().map(|(id, _)| *id).collect();
        let own = snapshot.shared_tables(follows.engine.name());
        different.extend(own.into_iter().filter(|id| !present.contains(id)));
    }
    if different.is_empty() {
        return Ok(true);
    }
    let (tables, guards): (Vec<_>, Vec<_>) =
        different.iter().filter_map(|id| Some((*id, lock(server, *id)?))).unzip();
    let all_locked = tables.len() == different.len();
    let is_done = adopt(server, follows, shared, &tables)?;
    drop::<Vec<MetadataGuard>>(guards);
    Ok(is_done && all_locked)
}

fn lock(server: &Server, table: TableId) -> Option<MetadataGuard> {
    let wait = LockWait { timeout: LOCK_WAIT, policy: DdlWaitPolicy::Queue };
    let wanted = [(Some(table), LockMode::Exclusive)];
    server.metadata_locks.lock(SESSION, &wanted, wait, &server.follower.cancel).ok()
}

/// What the other servers have of a table.
struct Wanted {
    id: TableId,
    stamp: u64,
    entry: SharedEntry,
}

/// Puts the definitions of tables that are locked into the catalog. False: one changes at this moment.
fn adopt(
    server: &Server,
    follows: &mut Follows,
    shared: &dyn SharedDefinitions,
    tables: &[TableId],
) -> Result<bool> {
    let catalog = &server.catalog;
    let _sharing = catalog.sharing();
    // A statement of this server may have been faster.
    let snapshot = catalog.snapshot();
    let (mut wanted, mut followed, mut is_done) = (Vec::new(), Vec::new(), true);
    let mut plan = Plan::new(&snapshot);
    for id in tables.iter().copied() {
        match shared.read(id) {
            Ok(Some(kept)) => {
                let is_here = snapshot.has_table(id);
                if is_here && shared.followed(id) == Some(kept.stamp) {
                    continue;
                }
                match SharedEntry::read(&kept.entry) {
                    Ok(mut entry) => {
                        if let Some(known) = snapshot.table_by_id(id) {
                            entry.keep_histograms(&known);
                        }
                        wanted.push(Wanted { id, stamp: kept.stamp, entry });
                    }
                    Err(error) => {
                        let text = format!("a definition cannot be read: {error}");
                        tell(follows, (id, kept.stamp), &text);
                    }
                }
            }
            Ok(None) => {
                if snapshot.has_table(id) {
                    plan.drop_table(id)?;
                }
                followed.push((id, None));
            }
            // It changes, or the cluster is gone.
            Err(_) => is_done = false,
        }
    }
    for (wanted, refused) in plan.take_over(wanted)? {
        match refused {
            None => followed.push((wanted.id, Some(wanted.stamp))),
            Some(text) => tell(follows, (wanted.id, wanted.stamp), &text),
        }
    }
    let edits = plan.edits;
    if !edits.is_empty() {
        let all = programs::follow_tables(&snapshot, &edits)?;
        let edits = all.as_deref().unwrap_or(&edits);
        catalog.commit_alone(edits, &server.follower.cancel)?;
        info!("{} changes of definitions by other servers are followed", edits.len());
    }
    followed.into_iter().for_each(|(id, stamp)| shared.follow(id, stamp));
    Ok(is_done)
}

fn tell(follows: &mut Follows, which: (TableId, u64), text: &str) {
    if follows.told.insert(which) {
        warn!("table {} of {} is not followed: {text}", which.0.0, follows.engine.name());
    }
}

/// The edits that make the catalog follow, and the catalog after them.
struct Plan {
    snapshot: CatalogSnapshot,
    edits: Vec<Edit>,
}

impl Plan {
    fn new(snapshot: &CatalogSnapshot) -> Plan {
        Plan { snapshot: snapshot.clone(), edits: Vec::new() }
    }

    fn add(&mut self, edit: Edit) -> Result<()> {
        self.snapshot.apply(&edit)?;
        self.edits.push(edit);
        Ok(())
    }

    fn drop_table(&mut self, id: TableId) -> Result<()> {
        self.add(Edit::DropTable(id))
    }

    /// Takes tables over, in an order in which each finds its name free. Returns them with what is in the way.
    fn take_over(&mut self, wanted: Vec<Wanted>) -> Result<Vec<(Wanted, Option<String>)>> {
        let ids: HashSet<TableId> = wanted.iter().map(|wanted| wanted.id).collect();
        let mut blocked: HashMap<TableId, TableId> = HashMap::new();
        for wanted in &wanted {
            let (schema, name) = (&wanted.entry.table.schema, &wanted.entry.table.name);
            let holder = self.snapshot.table(schema, name).map(|table| table.id);
            if let Some(holder) = holder.filter(|id| *id != wanted.id && ids.contains(id)) {
                blocked.insert(wanted.id, holder);
            }
        }
        // Tables that have changed names among each other go out of the way first.
        for holder in blocked.into_values() {
            if let Some(table) = self.snapshot.table_by_id(holder) {
                let mut moved = Table::clone(&table);
                moved.name = format!("#moved-{}", holder.0).into();
                self.add(Edit::ReplaceTable { old: holder, new: Arc::new(moved) })?;
            }
        }
        let mut outcomes = Vec::with_capacity(wanted.len());
        for wanted in wanted {
            let refused = self.take_over_one(&wanted)?;
            outcomes.push((wanted, refused));
        }
        Ok(outcomes)
    }

    fn take_over_one(&mut self, wanted: &Wanted) -> Result<Option<String>> {
        let Wanted { id, entry: SharedEntry { schema, table }, .. } = wanted;
        let kind = self.snapshot.kind(&table.schema, &table.name);
        let holder = self.snapshot.table(&table.schema, &table.name).map(|table| table.id);
        if kind.is_some() && holder != Some(*id) {
            let what = if kind == Some(RelationKind::View) { "view" } else { "table" };
            return Ok(Some(format!(
                "a {what} of this server has the name {}.{}",
                table.schema, table.name
            )));
        }
        if self.snapshot.schema(&table.schema).is_none() {
            let name = table.schema.clone();
            self.add(Edit::CreateSchema { name, options: schema.options })?;
        }
        let new = Arc::new(table.clone());
        if self.snapshot.has_same(table) {
            return Ok(None);
        }
        match self.snapshot.has_table(*id) {
            true => self.add(Edit::ReplaceTable { old: *id, new })?,
            false => self.add(Edit::CreateTable(new))?,
        }
        Ok(None)
    }
}
