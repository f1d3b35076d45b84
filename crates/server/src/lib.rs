//! The composition root: options, log, data directory, engines, plugins, start and stop of the server.
//!
//! The only crate that names engines and plugins. Knows no SQL: what it sets goes through system variables.

mod boot;
mod check;
mod components;
mod crash_report;
mod data_directory;
mod encryption;
mod engines;
mod gate;
mod init_file;
mod keyrings;
mod options;
mod plugins;
mod recovery;
mod restore;
mod running;
mod stop;
mod storage_profile;
#[cfg(test)]
mod tests;

pub use boot::run;

/// The version that clients see: the reference's number, then ours.
pub const VERSION: &str = concat!("9.7.0-Squall-", env!("CARGO_PKG_VERSION"));
