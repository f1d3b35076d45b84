//! Connection state and the life cycle of statements: variables, transactions, prepared statements, the plan cache, privileges, and
//! every statement that is not a query.
//!
//! Must not know packets or sockets: results leave through `plugin_api::ResultSink`. Names no concrete engine or plugin.

mod account_statements;
mod admin;
mod analyze;
mod backup;
mod binary_log;
mod cached;
mod checksum;
mod cluster;
mod column_values;
mod ddl;
mod described;
mod duality_changes;
mod event_session;
mod factory;
mod facts;
mod follower;
mod function_session;
mod handle;
mod handler;
mod hinted;
mod histogram;
mod information_changes;
mod inner_statement;
mod lent_services;
mod lent_session;
mod load_data;
mod lock_tables;
mod maintenance;
mod measured;
mod observed;
mod offline;
mod optimizer_trace;
mod outfile;
mod own_facts;
mod places;
mod plan_privileges;
mod planner;
mod plugin_statements;
mod plugins;
mod prepared;

mod profile;
mod profiled;
mod program_host;
mod query;
mod reading;
mod recording;
mod renew;
mod replication;
mod resource_groups;
mod restricted;
mod rewritten;
mod sequences;
mod server;
mod services;
mod session;
mod set;
mod statement;
mod text_session;
mod transaction_statements;
mod transport;

mod with_programs;
mod xa_statement;

use statements::{deadline, lifted, plan_cache, planned, prepared_texts, statement_kind, status};

pub use ::transport::remove_exports;
pub use server::{RootAccount, Server, ServerConfig};
pub use statements::live_plugins::{PluginChoice, PluginHost, Wanted};
pub use variables::{StartOption, parse_size, start_options};
