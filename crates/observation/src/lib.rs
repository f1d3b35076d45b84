//! What observers of statements are told, apart from the session: which events the loaded plugins want, which schemas, tables and rows a statement
//! changes, what it sent to its client, where its time went and what it cost; and the changes that sinks get after a commit, in order.

mod change_order;
mod changes;
pub mod file_calls;
mod hooks;
mod logged_text;
mod measuring;
pub mod process;
mod profiling;
mod resource_groups;
mod result_counts;
mod schema_changes;
mod sequence_rows;
mod table_rows;
pub mod user_locks;
mod watched_rows;

pub use change_order::ChangeOrder;
pub use changes::{Changes, OwnedFacts};
pub use hooks::Hooks;
pub use logged_text::with_definer;
pub use measuring::{Measuring, Phase, Phases};
pub use profiling::{Profiling, ProgramProfile, waits_of};
pub use resource_groups::{GroupPlace, Hinted, check_for_session, may_use_groups};
pub use result_counts::{CountingSink, ResultCounts};
pub use schema_changes::{Change, changes_of};
pub use sequence_rows::sequence_row;
pub use table_rows::table_rows;
pub use watched_rows::RowWatcher;
