//! A log file: opened when the first line comes, again after a rotation, and under another name when the name changes.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use errors::{Error, Result};
use plugin_api::{BackgroundJob, RunningJob, SessionFactory};
use sys::files::{Existing, File};
use sys::sync::Mutex;
use tracing::error;

/// Only the server's own account reads logs: they hold texts of statements.
const FILE_MODE: u32 = 0o640;

/// Where relative names of files begin: the data directory, known when the server has started.
#[derive(Debug, Default)]
pub(crate) struct DataDirectory(Mutex<PathBuf>);

impl DataDirectory {
    fn path_of(&self, name: &str) -> PathBuf {
        self.0.lock().join(name)
    }
}

impl BackgroundJob for DataDirectory {
    fn name(&self) -> &'static str {
        "query log directory"
    }

    fn start(&self, sessions: Arc<dyn SessionFactory>) -> Result<Box<dyn RunningJob>> {
        *self.0.lock() = PathBuf::from(sessions.global_text("datadir"));
        Ok(Box::new(Nothing))
    }
}

/// Nothing runs.
struct Nothing;

impl RunningJob for Nothing {
    fn stop(self: Box<Self>) {}
}

/// A log's file.
pub(crate) struct LogFile {
    directory: Arc<DataDirectory>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: Option<(String, File)>,
    /// The last line could not be written: the error log knows.
    has_failed: bool,
}

impl LogFile {
    pub(crate) fn new(directory: Arc<DataDirectory>) -> LogFile {
        LogFile { directory, state: Mutex::default() }
    }

    /// Appends to the file called `name`; `header` begins each file that is opened.
    pub(crate) fn append(&self, name: &str, header: &str, line: &[u8]) {
        let mut state = self.state.lock();
        let written = self.write(&mut state, name, header, line);
        match written {
            Ok(()) => state.has_failed = false,
            Err(error) if !state.has_failed => {
                state.has_failed = true;
                // A line for each statement would fill the error log.
                error!(file = name, "a log cannot be written: {error}");
            }
            Err(_) => {}
        }
    }

    fn write(
        &self,
        state: &mut State,
        name: &str,
        header: &str,
        line: &[u8],
    ) -> std::io::Result<()> {
        if state.open.as_ref().is_none_or(|(open, _)| open != name) {
            let path = self.directory.path_of(name);
            let mut file = File::create(&path, FILE_MODE, Existing::Append)?;
            file.write_all(header.as_bytes())?;
            state.open = Some((name.to_owned(), file));
        }
        match &mut state.open {
            Some((_, file)) => file.write_all(line),
            None => Ok(()),
        }
    }

    /// Opens the file again with the next line, in case it was renamed.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) fn reopen(&self, name: &str, header: &str) -> Result<()> {
        let mut state = self.state.lock();
        if state.open.is_none() {
            return Ok(());
        }
        let before = state.open.take();
        self.write(&mut state, name, header, b"").map_err(|error| {
            state.open = before;
            Error::internal(format!("log file '{name}': {error}"))
        })
    }
}
