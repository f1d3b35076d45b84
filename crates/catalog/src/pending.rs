//! Definitions that a transaction has changed and not committed (`transactional_ddl`).
//!
//! They are edits of a published version of the catalog; the transaction works with that version and its own edits on top. When another version is published,
//! the edits are made again on that one. Others see them when the transaction's commit publishes them together with its rows. The tables that it redefined stay
//! locked until then.

use std::sync::Arc;

use engine_api::TableId;
use errors::{Error, ErrorCode, Result};
use sys::sync::Mutex;

use crate::{Catalog, CatalogSnapshot, Edit, MetadataGuard};

/// See the module. Only its own session changes it.
#[derive(Debug)]
pub struct PendingDefinitions(Mutex<State>);

#[derive(Debug)]
struct State {
    edits: Vec<Edit>,
    /// The published version that they are made on, and the result.
    base: Arc<CatalogSnapshot>,
    own: Arc<CatalogSnapshot>,
    guard: Option<MetadataGuard>,
}

impl PendingDefinitions {
    /// None yet.
    pub fn new(catalog: &Catalog) -> PendingDefinitions {
        let base = catalog.snapshot();
        let own = base.clone();
        PendingDefinitions(Mutex::new(State { edits: Vec::new(), base, own, guard: None }))
    }

    /// The number of edits: a place for `undo_to`.
    pub fn mark(&self) -> usize {
        self.0.lock().edits.len()
    }

    /// The catalog as the transaction sees it.
    pub fn snapshot(&self, catalog: &Catalog) -> Arc<CatalogSnapshot> {
        let mut state = self.0.lock();
        if !catalog.is_current(state.base.version) {
            // Objects that others have changed or dropped: the commit reports it.
            let _ = state.make(catalog, &[]);
        }
        state.own.clone()
    }

    /// Adds edits. `guard` has all locks of the transaction's definitions.
    ///
    /// # Errors
    /// Those of the edits about names; 1412 when another session has changed the same table.
    pub fn add(
        &self,
        catalog: &Catalog,
        edits: &[Edit],
        guard: Option<MetadataGuard>,
    ) -> Result<()> {
        let mut state = self.0.lock();
        state.make(catalog, edits)?;
        state.edits.extend_from_slice(edits);
        if guard.is_some() {
            state.guard = guard;
        }
        Ok(())
    }

    /// Takes back the edits after `mark`. Their tables stay locked, as rows do.
    pub fn undo_to(&self, catalog: &Catalog, mark: usize) {
        let mut state = self.0.lock();
        state.edits.truncate(mark);
        // Those that are left could be made before; if not on the newest version, the commit reports it.
        let base = state.base.clone();
        if state.make(catalog, &[]).is_err()
            && let Ok(own) = state.made_on(&base, catalog, &[])
        {
            state.own = own;
        }
    }

    /// All edits.
    pub fn edits(&self) -> Vec<Edit> {
        self.0.lock().edits.clone()
    }

    /// All edits, if they may be made on `newest`.
    ///
    /// # Errors
    /// 1412 when another session has changed a table that they replace.
    pub(crate) fn edits_on(&self, newest: &CatalogSnapshot) -> Result<Vec<Edit>> {
        let state = self.0.lock();
        state.check(newest)?;
        Ok(state.edits.clone())
    }
}

impl State {
    /// Makes the edits and `more` on the newest version.
    fn make(&mut self, catalog: &Catalog, more: &[Edit]) -> Result<()> {
        let base = catalog.snapshot();
        self.check(&base)?;
        self.own = self.made_on(&base, catalog, more)?;
        self.base = base;
        Ok(())
    }

    fn made_on(
        &self,
        base: &CatalogSnapshot,
        catalog: &Catalog,
        more: &[Edit],
    ) -> Result<Arc<CatalogSnapshot>> {
        let mut own = CatalogSnapshot::clone(base);
        own.version = catalog.private_version();
        own.definitions = own.version;
        self.edits.iter().chain(more).try_for_each(|edit| own.apply(edit))?;
        Ok(Arc::new(own))
    }

    fn check(&self, newest: &CatalogSnapshot) -> Result<()> {
        let is_changed = |table: TableId| {
            let before = self.base.encoded_table(table);
            before.is_some() && before != newest.encoded_table(table)
        };
        let changed = self.edits.iter().filter_map(Edit::replaced_table).any(is_changed);
        match changed {
            true => Err(Error::with(ErrorCode::TABLE_DEF_CHANGED, &[])),
            false => Ok(()),
        }
    }
}
