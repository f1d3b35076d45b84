//! Values of variables that are kept for later starts.

use catalog::{Edit, PersistedVariable};
use types::Value;
use variables::{Changed, Globals, VariableId, as_text};

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
