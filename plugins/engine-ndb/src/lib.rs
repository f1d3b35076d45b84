//! MySQL Cluster's data nodes as a storage engine: `ENGINE=NDB`.
//!
//! Rows are opaque bytes in tables of a key and a row; see `table`. The cluster's client library is reached through a shim of C functions that the administrator builds
//! (ndb-shim/), loaded when the first statement needs it. docs/ndb.md is the guide.

mod check;
mod cluster;
mod cursor;
mod ddl;
mod definition;
mod engine;
mod error;
mod fence;
mod index_keys;
mod kept;
mod link;
mod many;
mod ndbinfo;
mod nodes;
mod pending;
mod plugin;
mod shared;
mod shim;
mod sizes;
mod statistics;
mod table;
mod transaction;
mod write;

pub use engine::NdbEngine;
pub use plugin::NdbPlugin;
