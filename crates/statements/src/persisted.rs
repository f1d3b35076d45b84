//! Values of variables that are kept for later starts.

use std::sync::Arc;

use catalog::{CatalogSnapshot, Edit, PersistedVariable};
use errors::Result;
use types::Value;
use variables::{Changed, Globals, Origin, Provenance, VariableId, as_text, shown};

/// The edit that keeps a value for later starts.
pub fn put_variable(globals: &Globals, id: VariableId, value: &Value, changed: &Changed) -> Edit {
    let kept = PersistedVariable {
        value: if value.is_null() { "NULL".into() } else { as_text(value).into() },
        set_micros: changed.micros,
        user: changed.user.clone(),
        host: changed.host.clone(),
    };
    Edit::PutVariable { name: globals.definitions.get(id).name.into(), kept }
}

/// Gives variables the values that SET PERSIST kept, and over them those of options.
///
/// # Errors
/// An option names no variable, or a value that it does not take.
pub fn set_at_start(
    globals: &Globals,
    catalog: &CatalogSnapshot,
    options: &[(String, String)],
) -> Result<()> {
    const USES_KEPT: &str = "persisted_globals_load";
    let given = Provenance::of(Origin::CommandLine);
    for (name, value) in options.iter().filter(|(name, _)| name == USES_KEPT) {
        globals.set_option(name, value, &given)?;
    }
    let uses_kept = globals.integer(USES_KEPT) == 1;
    for (name, kept) in catalog.persisted().iter().filter(|_| uses_kept) {
        let changed = (kept.set_micros != 0).then(|| {
            let (user, host) = (kept.user.clone(), kept.host.clone());
            Arc::new(Changed { micros: kept.set_micros, user, host })
        });
        let provenance = Provenance { origin: Origin::Persisted, changed };
        // A variable that a later version dropped is not worth refusing to start.
        let _ = globals.set_option(name, &kept.value, &provenance);
    }
    for (name, value) in options {
        let id = globals.definitions.find_known(name);
        let kept = id.filter(|id| globals.provenance(*id).origin == Origin::Persisted);
        let kept = kept.map(|id| (id, globals.get(id)));
        if let Some(reason) = globals.set_option(name, value, &given)? {
            tracing::warn!("the option {name}={value} has no effect: {}", reason.message());
        }
        if let Some((id, kept)) = kept
            && globals.get(id) != kept
        {
            let kept = shown(&kept);
            tracing::warn!("the option {name}={value} is used, and not the kept value {kept}");
        }
    }
    Ok(())
}
