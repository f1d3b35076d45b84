//! Data of the information tables, and the texts of SHOW CREATE and SHOW GRANTS. Results are limited to what the
//! session's account may see.
//!
//! Reads and changes nothing. Knows the server and the session through `ServerFacts` and `ConnectionFacts`.

mod accounts;
mod cluster;
mod columns;
mod engines;
mod facts;
mod file_status;
mod generated_passwords;
mod grants;
mod histogram;
mod information;
mod information_tables;
mod partitions;
mod programs;
mod schemas;
mod server;
mod settings;
mod show_create;
mod status;
mod tables;
#[cfg(test)]
mod tests;
mod views;

pub use cluster::{cluster_columns, cluster_rows};
pub use columns::key_of;
pub use facts::{ConnectionFacts, Connections, NoConnection, ServerFacts};
pub use generated_passwords::{password_columns, password_row};
pub use grants::{
    SecretForm, account_statements, all_role_grants, create_user_statement, grant_statements,
    with_roles,
};
pub use histogram::{HistogramFault, read_histogram};
pub use information::Information;
pub use settings::{Level, PlannedSetting, check_explainable, setting_columns, setting_rows};
pub use show_create::create_table_statement;
pub use status::{global_status, statistics_line};
