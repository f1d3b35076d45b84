//! The plugin's variables.

use errors::{Result, err};
use plugin_api::variable::{Definition, GlobalValue, Kind, as_text};
use types::Value;

pub(crate) static ENDPOINT: Definition = Definition::global(
    "otlp_endpoint",
    Kind::Text,
    "",
    "URL of the collector for traces, such as http://127.0.0.1:4318/v1/traces; empty sends nothing",
);
pub(crate) static STATEMENTS: Definition = Definition::global(
    "otlp_statements",
    Kind::Enum(&["TRACED", "ALL"]),
    "TRACED",
    "TRACED: statements whose client sent a traceparent that asks for it. ALL: every statement",
);
pub(crate) static SERVICE: Definition =
    Definition::global("otlp_service_name", Kind::Text, "squall", "The service name of the spans");

/// The global values, as SET leaves them.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    pub(crate) endpoint: GlobalValue,
    pub(crate) statements: GlobalValue,
    pub(crate) service: GlobalValue,
}

impl Settings {
    /// Whether statements without a traceparent are sent too.
    pub(crate) fn takes_all(&self) -> bool {
        self.statements.text().eq_ignore_ascii_case("ALL") || self.statements.number() == 1
    }
}

/// Refuses what is no address of a collector.
///
/// # Errors
/// 1231.
pub(crate) fn check_endpoint(value: &Value) -> Result<()> {
    let text = as_text(value);
    let is_address = |text: &str| {
        text.parse::<ureq::http::Uri>().is_ok_and(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some()
        })
    };
    match text.is_empty() || is_address(&text) {
        true => Ok(()),
        false => Err(err!(WRONG_VALUE_FOR_VAR, "otlp_endpoint", text)),
    }
}
