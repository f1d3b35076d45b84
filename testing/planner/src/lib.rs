//! What the binder and the optimizer make of a statement, without a server: tables are CREATE TABLE texts, their sizes are told.
//!
//! `rules` holds scripts: a few tables, then statements, each with what it is bound to (`rules/binder`) or the plan that it gets
//! (`rules/optimizer`), or the tables that definitions make (`rules/definitions`). README.md has their form.

mod definer;
mod fixture;
mod script;

pub use fixture::{Fixture, View};
pub use script::check;
