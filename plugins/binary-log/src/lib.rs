//! The binary log: what transactions changed, as MySQL's replicas and tools read it.
//!
//! A session's recorder turns changes into events, which are committed as a part of the transaction, in the engine's own log: one log,
//! one sync. A single thread follows that log and writes the files that readers see (`docs/format/binary-log.md`); they can be written
//! again after a crash, so nothing waits for them.

mod core;
mod dependencies;
mod dump;
mod files;
mod follower;
mod recorder;
mod semi_sync;
mod sink_outlet;
mod sink_states;
mod sinks;
mod state_file;
mod stream_file;
mod streams;
mod tables;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine_api::Engine;
use errors::{Error, Result};
use plugin_api::{BackgroundJob, Plugin, PluginInfo, Registrar, RunningJob, SessionFactory};
use sys::disk::{Disk, DiskOptions, SyncPolicy};
use sys::encryption::EncryptedDisk;
use sys::io_times::IoTimes;
use sys::sync::atomic::Ordering;
use sys::threads::{Thread, spawn};
use types::Uuid;

use crate::core::{Core, Home};

/// The directory of the log's files, in the data directory.
pub const DIRECTORY: &str = "binary-log";
/// Their base name.
pub const BASE: &str = core::BASE;

/// The plugin.
pub struct BinaryLogPlugin {
    core: Arc<Core>,
    io_times: Arc<IoTimes>,
}

impl BinaryLogPlugin {
    /// For the engine whose transactions carry attachments.
    pub fn new(engine: Arc<dyn Engine>, io_times: Arc<IoTimes>) -> BinaryLogPlugin {
        BinaryLogPlugin { core: Arc::new(Core::new(engine)), io_times }
    }
}

impl Plugin for BinaryLogPlugin {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("binary_log", "The log of changes for replicas and other readers.")
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.privilege(streams::PRIVILEGE);
        registrar.binary_log(self.core.clone());
        for table in tables::all(&self.core) {
            registrar.information_table(Arc::new(table));
        }
        semi_sync::register(&self.core, registrar);
        semi_sync::register_numbers(&self.core, registrar);
        if self.core.is_on() {
            let (core, io_times) = (self.core.clone(), self.io_times.clone());
            registrar.job(Arc::new(Job { core, io_times }));
        }
    }
}

/// The server runs without the log: which transactions a clone has brought is soon not true any more.
///
/// # Errors
/// I/O.
pub fn forget_clone(data_directory: &Path) -> io::Result<()> {
    match sys::files::remove(&data_directory.join(DIRECTORY).join(state_file::CLONED)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

struct Job {
    core: Arc<Core>,
    io_times: Arc<IoTimes>,
}

impl BackgroundJob for Job {
    fn name(&self) -> &'static str {
        "binary_log"
    }

    fn start(&self, sessions: Arc<dyn SessionFactory>) -> Result<Box<dyn RunningJob>> {
        let root = PathBuf::from(sessions.global_text("datadir")).join(DIRECTORY);
        let way = DiskOptions { sync: SyncPolicy::Device, uses_io_uring: false };
        let disk = sys::disk::open(&root, way, self.io_times.clone())
            .map_err(|error| Error::internal(format!("{}: {error}", root.display())))?;
        let disk: Arc<dyn Disk> = match self.core.engine.directory_key() {
            Some(key) => Arc::new(EncryptedDisk::new(disk, key)),
            None => disk,
        };
        let uuid = Uuid::parse(&sessions.global_text("server_uuid"))
            .ok_or_else(|| Error::internal("the server has no UUID"))?;
        let server_version = sessions.server_version();
        let home = Arc::new(Home { disk, uuid, server_version, sessions: sessions.clone() });
        let mut streams = stream_file::read(&*home.disk).map_err(|error| core::io_error(&error))?;
        streams.iter_mut().for_each(|s| s.generation = self.core.settings.next_number());
        self.core.streams.lock().0 = streams;
        *self.core.home.lock() = Some(home.clone());
        // Pairs with the loads in `follower`.
        self.core.is_stopping.store(false, Ordering::Release);
        self.core.state.lock().is_running = true;
        let (core, own) = (self.core.clone(), sessions.clone());
        let thread = spawn("binlog", move || follower::serve(&core, &home, &own));
        let thread = thread.map_err(|error| Error::internal(error.to_string()))?;
        let core = self.core.clone();
        let sinks = spawn("change-sinks", move || sinks::serve(&core, &sessions));
        let mut running = Running { core: self.core.clone(), threads: vec![thread] };
        match sinks {
            Ok(sinks) => running.threads.insert(0, sinks),
            Err(error) => {
                Box::new(running).stop();
                return Err(Error::internal(error.to_string()));
            }
        }
        Ok(Box::new(running))
    }
}

struct Running {
    core: Arc<Core>,
    threads: Vec<Thread>,
}

impl RunningJob for Running {
    fn stop(mut self: Box<Self>) {
        // Pairs with the loads in `follower`.
        self.core.is_stopping.store(true, Ordering::Release);
        if let Some(wake) = &*self.core.waker.lock() {
            wake();
        }
        self.core.streams_changed.notify_all();
        self.threads.drain(..).for_each(Thread::join);
        // It knows the server, which is not to know it for ever.
        *self.core.home.lock() = None;
    }
}
