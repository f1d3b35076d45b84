//! The events of change streams (`docs/format/changes.md`): made of the binary log while it is read, and of the rows that are there when a stream
//! begins. Who takes them, over HTTP or for a sink, is an [`Outlet`].

mod event;
pub mod json;
mod reader;
mod scope;
mod snapshot;
mod text;
mod value;

pub use event::{Event, Outlet, Post, put_document, put_number, put_text};
pub use reader::{Guard, Reader, Shape, one_line};
pub use scope::{OWN, Scope};
pub use snapshot::{Runner, write as write_snapshot};
pub use text::text;

/// Version of the events.
pub const VERSION: u64 = 1;
