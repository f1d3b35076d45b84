//! Changes of the loaded plugins while the server runs.
//!
//! A change publishes another registry. Statements that run keep the one that their plan was compiled with. Publishing a registry is followed
//! by a new version of the catalog, which holds the choice for later starts: no plan of an earlier version is used again, so sessions need
//! no check of their own to take the new registry with their next statement.

use std::sync::Arc;

use catalog::Edit;
use engine_api::{CancelToken, CommitHandle};
use errors::{Error, Result};
use plugin_api::Registry;
use statements::live_plugins::{Change, Setting, Wanted, only_in, show_variables, stored_choice};
use statements::persisted::put_variable;
use types::Value;
use variables::{Changed, Origin, Provenance, VariableId};

use crate::server::Server;

impl Server {
    /// Loads and removes plugins: all steps or none. Later starts do as now. What a plugin runs starts with the `settings`.
    ///
    /// # Errors
    /// Unknown plugins, such that are loaded already or must stay, a listener that cannot start, I/O.
    pub(crate) fn change_plugins(
        &self,
        changes: &[Change],
        settings: &[Setting],
        changed: &Changed,
        cancel: &CancelToken,
    ) -> Result<CommitHandle> {
        sys::blocking::blocking(|| {
            let _changing = self.plugins.changing.lock();
            let before = self.plugins.current();
            let mut after = before.clone();
            for change in changes {
                after = Arc::new(change.apply(&after)?);
            }
            let known = settings.iter().map(|setting| {
                (setting.id, self.globals.get(setting.id), self.globals.provenance(setting.id))
            });
            let known: Vec<_> = known.collect();
            let new: Vec<_> = settings.iter().map(|new| (new.id, new.value.clone())).collect();
            let provenance =
                Provenance { origin: Origin::Dynamic, changed: Some(Arc::new(changed.clone())) };
            self.globals.set(&new, &provenance);
            let changed = self.change_registry(before, after, settings, changed, cancel);
            if changed.is_err() {
                for (id, value, provenance) in known {
                    self.globals.set(&[(id, value)], &provenance);
                }
            }
            changed
        })
    }

    /// Gives listeners other addresses, and keeps these for later starts: all or none. A listener gives up its old addresses last.
    ///
    /// # Errors
    /// An address cannot be bound, I/O.
    pub(crate) fn rebind(
        &self,
        settings: &[(VariableId, Value)],
        changed: Changed,
        cancel: &CancelToken,
    ) -> Result<Option<CommitHandle>> {
        sys::blocking::blocking(|| {
            let _changing = self.plugins.changing.lock();
            let host = self.plugins.host();
            let host = host.ok_or_else(|| Error::internal("nothing runs listeners here"))?;
            let definitions = &self.globals.definitions;
            let named =
                |(id, value): &(VariableId, Value)| (definitions.get(*id).name, value.clone());
            let rebinding = host.rebind(&settings.iter().map(named).collect::<Vec<_>>())?;
            let known = |(name, value)| definitions.find_known(name).map(|id| (id, value));
            let bound: Vec<(VariableId, Value)> =
                rebinding.bound().into_iter().filter_map(known).collect();
            let edit = |(id, value): &(_, _)| put_variable(&self.globals, *id, value, &changed);
            let edits: Vec<Edit> = bound.iter().map(edit).collect();
            let changed = Some(Arc::new(changed.clone()));
            let mut commit = None;
            self.globals.change(&Provenance { origin: Origin::Dynamic, changed }, || {
                commit = Some(self.catalog.commit_alone(&edits, cancel)?);
                Ok(bound)
            })?;
            rebinding.adopt();
            Ok(commit)
        })
    }

    /// ALTER INSTANCE RELOAD TLS.
    ///
    /// # Errors
    /// 3888: a certificate or key cannot be read.
    pub(crate) fn reload_tls(&self, disables_on_error: bool) -> Result<()> {
        let host = self.plugins.host();
        let host = host.ok_or_else(|| Error::internal("nothing runs listeners here"))?;
        sys::blocking::blocking(|| host.reload_tls(disables_on_error))
    }

    /// Starts what came, publishes `after` and keeps the choice, stops what went.
    fn change_registry(
        &self,
        before: Arc<Registry>,
        after: Arc<Registry>,
        settings: &[Setting],
        changed: &Changed,
        cancel: &CancelToken,
    ) -> Result<CommitHandle> {
        let (added, removed) = (only_in(&after, &before), only_in(&before, &after));
        for (at, module) in added.iter().enumerate() {
            if let Err(error) = self.plugins.start(module) {
                self.plugins.stop(added[..at].iter().copied());
                return Err(error);
            }
        }
        self.publish(after.clone());
        let loaded = added.iter().map(|module| stored_choice(module, Wanted::Loaded));
        let not_loaded = removed.iter().map(|module| stored_choice(module, Wanted::NotLoaded));
        let persisted = settings.iter().filter(|setting| setting.persists);
        let persisted = persisted
            .map(|setting| put_variable(&self.globals, setting.id, &setting.value, changed));
        let edits: Vec<Edit> = loaded.chain(not_loaded).chain(persisted).collect();
        match self.catalog.commit_alone(&edits, cancel) {
            Ok(commit) => {
                self.plan_cache.clear();
                self.prepared_plans.clear();
                self.plugins.stop(removed);
                Ok(commit)
            }
            Err(error) => {
                self.publish(before.clone());
                self.plugins.stop(added);
                Err(error)
            }
        }
    }

    fn publish(&self, registry: Arc<Registry>) {
        show_variables(&self.globals, &registry);
        self.plugins.publish(registry.clone());
        self.hooks.refresh(&registry);
    }
}
