//! The slot for work in the background.

use std::sync::Arc;

use errors::Result;

use crate::session::SessionFactory;

/// Work that a plugin does in a thread of its own while it is loaded.
pub trait BackgroundJob: Send + Sync {
    /// Name for logs and tables.
    fn name(&self) -> &'static str;
    /// Starts it.
    ///
    /// # Errors
    /// The operating system refuses a thread.
    fn start(&self, sessions: Arc<dyn SessionFactory>) -> Result<Box<dyn RunningJob>>;
}

/// A started job.
pub trait RunningJob: Send {
    /// Ends it and joins its threads.
    fn stop(self: Box<Self>);
}
