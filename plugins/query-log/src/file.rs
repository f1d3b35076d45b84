//! Where logs of statements go: files in the data directory, written by a thread of their own and rotated as `log_rotate_*` say.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use errors::{Error, Result};
use plugin_api::{BackgroundJob, GlobalValue, RunningJob, SessionFactory};
use sys::log_file::{LogFile, LogFiles, Owner, Rotation, Target, Writer};
use sys::sync::Mutex;
use tracing::error;

/// Only the server's own account reads logs: they hold texts of statements.
const FILE_MODE: u32 = 0o640;

/// The server, known once it has started.
#[derive(Clone, Default)]
struct Settings(Arc<Mutex<Option<Arc<dyn SessionFactory>>>>);

impl Settings {
    fn server(&self) -> Option<Arc<dyn SessionFactory>> {
        self.0.lock().clone()
    }

    fn rotation(&self) -> Rotation {
        let Some(server) = self.server() else { return Rotation::default() };
        let keep = server.global_integer("log_rotate_keep");
        Rotation {
            size_bytes: server.global_integer("log_rotate_size"),
            age: Duration::from_secs(server.global_integer("log_rotate_interval")),
            keep: usize::try_from(keep).unwrap_or(usize::MAX),
        }
    }

    /// Relative names begin at the data directory.
    fn path_of(&self, name: &str) -> PathBuf {
        let directory = self.server().map(|server| server.global_text("datadir"));
        PathBuf::from(directory.unwrap_or_default()).join(name)
    }
}

/// What a file needs to know.
struct FileOwner {
    settings: Settings,
    name: GlobalValue,
    header: Box<dyn Fn() -> String + Send + Sync>,
}

impl Owner for FileOwner {
    fn target(&self) -> Target {
        Target {
            path: self.settings.path_of(&self.name.text()),
            mode: FILE_MODE,
            header: (self.header)(),
            rotation: self.settings.rotation(),
        }
    }

    fn failed(&self, path: &Path, error: &io::Error) {
        error!(file = %path.display(), "a log cannot be written, its entries are lost: {error}");
    }
}

/// The files of a plugin's logs.
#[derive(Default)]
pub(crate) struct Files {
    settings: Settings,
    files: LogFiles,
}

impl Files {
    /// Adds a file whose name is a variable; `header` begins it.
    pub(crate) fn add(
        &mut self,
        name: &GlobalValue,
        header: impl Fn() -> String + Send + Sync + 'static,
    ) -> Arc<LogFile> {
        let (settings, name) = (self.settings.clone(), name.clone());
        self.files.add(Box::new(FileOwner { settings, name, header: Box::new(header) }))
    }
}

/// Writes the files.
impl BackgroundJob for Files {
    fn name(&self) -> &'static str {
        "query logs"
    }

    fn start(&self, sessions: Arc<dyn SessionFactory>) -> Result<Box<dyn RunningJob>> {
        *self.settings.0.lock() = Some(sessions);
        let writer = self.files.start("query log");
        let writer = writer.map_err(|error| Error::internal(format!("query logs: {error}")))?;
        Ok(Box::new(Writing { writer, settings: self.settings.clone() }))
    }
}

struct Writing {
    writer: Writer,
    settings: Settings,
}

impl RunningJob for Writing {
    fn stop(self: Box<Self>) {
        self.writer.stop();
        *self.settings.0.lock() = None;
    }
}

/// Opens a file again by its name.
///
/// # Errors
/// It cannot be opened.
pub(crate) fn reopen(file: &LogFile) -> Result<()> {
    file.reopen().map_err(|error| Error::internal(format!("a log file: {error}")))
}
