//! The plugin's variables.

use std::sync::Arc;
use std::time::Duration;

use plugin_api::variable::{Definition, Kind, as_text, as_u64};
use plugin_api::{GlobalValue, Registrar, SessionServices};
use types::Value;

use crate::allow::AllowList;
use crate::failure::Failure;
use crate::request::Limits;

static ALLOWED_HOSTS: Definition = Definition::global(
    "http_allowed_hosts",
    Kind::Text,
    "",
    "Hosts that http functions may call: name, name:port, *.domain, * (any public one), address or network; empty for none",
);
static TIMEOUT: Definition = Definition::global(
    "http_timeout",
    Kind::UInt { min: 1, max: 3600, block: 1 },
    "10",
    "Seconds that a request of an http function may take with its redirects",
);
static MAX_SIZE: Definition = Definition::global(
    "http_max_size",
    Kind::UInt { min: 1, max: 1 << 30, block: 1 },
    "16777216",
    "Bytes of the largest answer that an http function takes",
);
static MAX_REDIRECTS: Definition = Definition::global(
    "http_max_redirects",
    Kind::UInt { min: 0, max: 20, block: 1 },
    "3",
    "Redirects that a request of an http function follows",
);

pub(crate) fn declare(registrar: &mut Registrar<'_>) {
    for definition in [&ALLOWED_HOSTS, &TIMEOUT, &MAX_SIZE, &MAX_REDIRECTS] {
        // They are read through the session that makes a request.
        registrar.variable(definition, &GlobalValue::default());
    }
}

/// The limits of a request now.
///
/// # Errors
/// An entry of the list is none.
pub(crate) fn limits(session: &dyn SessionServices) -> Result<Limits, Failure> {
    let value =
        |definition: &Definition| session.system_variable(definition.name).unwrap_or(Value::Null);
    let allowed = AllowList::parse(&as_text(&value(&ALLOWED_HOSTS))).map_err(|entry| {
        Failure::new(format!("http_allowed_hosts has an invalid entry '{entry}'"))
    })?;
    Ok(Limits {
        allowed: Arc::new(allowed),
        timeout: Duration::from_secs(as_u64(&value(&TIMEOUT)).max(1)),
        bytes_max: as_u64(&value(&MAX_SIZE)),
        redirects_max: as_u64(&value(&MAX_REDIRECTS)),
    })
}
