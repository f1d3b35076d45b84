//! The error log: the server's own events as lines of text or JSON, in a file that rotates or on standard error, and the last of them in `performance_schema.error_log`.
//!
//! It starts before the server does; its variables act once the server has read them.

mod components;
mod dragnet;
mod log;
mod record;
mod table;

use std::sync::Arc;

use errors::{Error, ErrorCode, Result};
use plugin_api::variable::{Definition, Kind, as_text, uint};
use plugin_api::{Plugin, PluginInfo, Registrar};
use types::Value;

use components::{DRAGNET, SYSTEM};
pub use components::{DragnetPlugin, SystemLogPlugin};
pub use log::ErrorLog;
use log::Settings;

/// The service that writes lines of text, the reference's default.
const SINK_TEXT: &str = "log_sink_internal";
/// The service that writes JSON.
const SINK_JSON: &str = "log_sink_json";
/// The service that applies `log_error_verbosity`.
const FILTER: &str = "log_filter_internal";

static VERBOSITY: Definition = Definition::global(
    "log_error_verbosity",
    uint(1, 3),
    "2",
    "What the error log takes: 1 errors, 2 warnings, 3 notes",
);
static SERVICES: Definition = Definition::global(
    "log_error_services",
    Kind::Text,
    "log_filter_internal; log_sink_internal",
    "Filters and sinks of the error log in their order. log_sink_internal: it is text. log_sink_json: it is an object a line",
);
static SUPPRESSION: Definition = Definition::global(
    "log_error_suppression_list",
    Kind::Text,
    "",
    "Always empty: events of the error log have no numbers",
);

/// The plugin of a log that runs already.
#[derive(Debug)]
pub struct ErrorLogPlugin(pub Arc<ErrorLog>);

impl Plugin for ErrorLogPlugin {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("error_log", "The server's own events: text or JSON, files and a table.")
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        let log = &self.0;
        let known = log.clone();
        let check = move |value: &Value| {
            let mut others = Vec::new();
            others.extend(known.dragnet.installed.is_installed().then_some(DRAGNET));
            others.extend(known.system.installed.is_installed().then_some(SYSTEM));
            check_services(&as_text(value), &others)
        };
        registrar.variable(&VERBOSITY, &log.verbosity);
        registrar.checked_variable(&SERVICES, &log.services, check);
        registrar.checked_variable(&SUPPRESSION, log.suppression(), |value| {
            check_suppression(&as_text(value))
        });
        registrar.information_table(log.table.clone());
        registrar.log_sink(log.clone());
        registrar.job(Arc::new(Settings(log.clone())));
    }
}

/// The services named in a value of `log_error_services`.
fn services(text: &str) -> impl Iterator<Item = &str> {
    text.split([';', ',']).map(str::trim).filter(|name| !name.is_empty())
}

/// `others`: the services that are installed.
///
/// # Errors
/// 1231 for a service that does not exist or is not installed, and for two sinks to one file.
fn check_services(text: &str, others: &[&str]) -> Result<()> {
    let always = [SINK_TEXT, SINK_JSON, FILTER];
    let wrong = |reason: &str| {
        let message = format!("Variable 'log_error_services' can't be set to '{text}': {reason}");
        Err(Error::new(ErrorCode::WRONG_VALUE_FOR_VAR, message))
    };
    if let Some(unknown) =
        services(text).find(|name| !always.contains(name) && !others.contains(name))
    {
        return wrong(&format!("there is no service '{unknown}'"));
    }
    let sinks: Vec<&str> =
        services(text).filter(|name| ![FILTER, DRAGNET].contains(name)).collect();
    match sinks.iter().filter(|name| **name != SYSTEM).count() {
        0 if sinks.is_empty() => wrong("no sink is named"),
        0 | 1 => Ok(()),
        _ => wrong("one sink can be used at a time"),
    }
}

/// # Errors
/// 1235 for anything but the empty list.
fn check_suppression(text: &str) -> Result<()> {
    match text.trim().is_empty() {
        true => Ok(()),
        false => Err(Error::not_supported("log_error_suppression_list")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_known_sink_is_named() {
        assert!(check_services("log_filter_internal; log_sink_json", &[]).is_ok());
        assert!(check_services("log_sink_internal", &[]).is_ok());
        assert!(check_services("log_filter_internal", &[]).is_err());
        assert!(check_services("log_sink_internal; log_sink_json", &[]).is_err());
        assert!(check_services("log_sink_syseventlog", &[]).is_err());
        assert!(check_services("log_sink_syseventlog", &[SYSTEM]).is_ok());
        let all = "log_filter_dragnet; log_sink_internal; log_sink_syseventlog";
        assert!(check_services(all, &[SYSTEM, DRAGNET]).is_ok());
        assert!(check_suppression("MY-010001").is_err());
    }
}
