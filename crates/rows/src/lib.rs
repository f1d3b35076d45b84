//! Rows at run time, without anything that runs: how records are read, how values are converted with the session's facts, and their
//! keys for hashing and sorting.
//!
//! Row programs (`exec`) and columns of batches (`batch`) share it. Knows no engine, no expression in compiled form and no run.

pub mod arguments;
pub mod convert;
pub mod key_set;
pub mod layout;
pub mod match_hits;
pub mod match_query;
pub mod numbers;
pub mod overlaps;
pub mod system_partitions;
pub mod times;
pub mod value_key;
