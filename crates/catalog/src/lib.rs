//! Schemas, tables, views and accounts: immutable versions behind one pointer, metadata locks, kept in an engine's table.
//!
//! Invariant: knows no SQL text beyond the canonical expressions it stores; never parses.

mod model;

pub use model::*;
