//! Histories of list appends and a checker that finds violations of an isolation level in them.
//!
//! The program `histories` makes them with several connections to a real server. Only that part uses SQL.

mod check;
mod graph;
mod history;
#[cfg(test)]
mod tests;

pub use check::{Anomaly, Finding, Report, check};
pub use history::{Element, End, Key, Level, Op, Reading, Transaction};
