//! HTTP from SQL: `http_get`, `http_post`, `http_put` and `http_delete`, and the table function `http`.
//!
//! Off unless loaded, and then nothing is allowed until `http_allowed_hosts` names it. A server that can be told to make requests must not become
//! a way into the network it stands in: `allow` says where requests may go, `resolver` applies that to the addresses that a name leads to, and
//! each redirect is checked like a first request. No credentials in URLs, no proxy of the environment, certificates are verified.

mod address;
mod allow;
mod failure;
mod functions;
mod request;
mod resolver;
mod settings;
mod table;
#[cfg(test)]
mod tests;
mod url;
mod wait;

use plugin_api::{Plugin, PluginInfo, Registrar};

/// The dynamic privilege that requests need.
const PRIVILEGE: &str = "HTTP_REQUEST";

/// The functions and their variables.
#[derive(Debug)]
pub struct HttpFunctions;

impl Plugin for HttpFunctions {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("http_functions", "HTTP requests from SQL: http_get, http_post and more.")
            .on_request()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.privilege(PRIVILEGE);
        settings::declare(registrar);
        functions::FUNCTIONS.iter().for_each(|function| registrar.function(function.clone()));
        registrar.table_function(table::HTTP);
    }
}
