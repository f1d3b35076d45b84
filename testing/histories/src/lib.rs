//! Histories of list appends and a checker that finds in them what an isolation level forbids.
//!
//! The program `histories` makes them with several connections to a real server. Knows SQL only there.

mod check;
mod graph;
mod history;
#[cfg(test)]
mod tests;

pub use check::{Anomaly, Finding, Report, check};
pub use history::{Element, End, Key, Level, Op, Reading, Transaction};
