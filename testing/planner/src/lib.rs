//! The results of the binder and the optimizer for a statement, without a server: tables are CREATE TABLE texts, their sizes are given.
//!
//! `rules` holds scripts: a few tables, then statements, each with its bound form (`rules/binder`) or its plan
//! (`rules/optimizer`), or the tables that definitions make (`rules/definitions`). README.md has their form.

mod definer;
mod fixture;
mod script;

pub use fixture::{Fixture, View};
pub use script::check;
