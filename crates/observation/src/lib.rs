//! What observers of statements are told, apart from the session: which events the loaded plugins want, which schemas and tables a statement
//! changes, what it sent to its client, where its time went and what it cost.

mod hooks;
mod measuring;
mod profiling;
mod result_counts;
mod schema_changes;

pub use hooks::Hooks;
pub use measuring::{Measuring, Phase, Phases};
pub use profiling::{Profiling, ProgramProfile, waits_of};
pub use result_counts::{CountingSink, ResultCounts};
pub use schema_changes::{Change, changes_of};
