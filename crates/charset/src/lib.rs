//! Character sets and collations: names and ids, weights, comparison, sort keys, patterns, conversion.
//!
//! Text inside the server is utf8mb4; other character sets exist at the border only. Knows nothing of
//! SQL types or sessions.

mod id;

pub use id::CollationId;
