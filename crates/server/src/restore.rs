//! `--restore-from`: a new data directory from a backup, with the log that was archived since, up to a point in time.
//!
//! The files are copied and the log is cut; then storage is opened and closed once, so that the data reported as restored has been
//! recovered and can be read.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use engine::{Restored, restore, time_text};
use sys::clock::monotonic;
use sys::disk::{self, Disk, DiskOptions, SyncPolicy};
use sys::io_times::IoTimes;
use tracing::{info, warn};

use crate::boot::BootResult;
use crate::data_directory::DataDirectory;
use crate::encryption::{Keys, through};
use crate::engines::{Engines, StorageOptions};
use crate::options::{Options, RestoreOptions};
use crate::recovery::RecoveryState;

/// Interval between lines in the log.
const LINE_EVERY: Duration = Duration::from_secs(2);

pub(crate) fn run(
    options: &Options,
    wanted: &RestoreOptions,
    directory: &DataDirectory,
) -> BootResult<()> {
    let storage = directory.path.join("storage");
    let keys = options.keys(directory)?;
    let restored = copy(wanted, &storage, &keys, &directory.io_times)?;
    let state = Arc::new(RecoveryState::new());
    let storage = StorageOptions {
        directory: storage,
        pool_bytes: options.pool_bytes,
        sync: SyncPolicy::Device,
        open_up_to_log_damage: false,
        doublewrite: options.doublewrite,
        log_bin: false,
        io_uring: options.io_uring,
        keys,
        io_times: directory.io_times.clone(),
    };
    let engines = Engines::open(&storage, None, &state)?;
    for engine in engines.all() {
        engine.shutdown().map_err(|error| format!("engine {}: {error:?}", engine.name()))?;
    }
    let Restored { end_position, last_commit_micros, is_reached, .. } = restored;
    if last_commit_micros > 0 {
        info!("the last commit restored is of {}", time_text(last_commit_micros));
    }
    if !is_reached && wanted.until != engine::RestoreUntil::End {
        warn!("the log ends before the requested time; the whole log was restored");
    }
    info!(
        position = end_position,
        "restored; start squalld with --datadir={}",
        directory.path.display()
    );
    Ok(())
}

fn copy(
    wanted: &RestoreOptions,
    storage: &Path,
    keys: &Keys,
    io_times: &Arc<IoTimes>,
) -> BootResult<Restored> {
    let read = |path: &Path| -> BootResult<Arc<dyn Disk>> {
        let disk = disk::open_read_only(path);
        Ok(disk.map_err(|error| format!("directory {}: {error}", path.display()))?)
    };
    let backup = read(&wanted.backup)?;
    // The archive is of the same data directory, so it has the same data key.
    let key = keys.open(&backup)?;
    let backup = through(backup, key.as_ref());
    let archive = wanted.archive.as_deref().map(read).transpose()?;
    let archive = archive.map(|archive| through(archive, key.as_ref()));
    let options = DiskOptions { sync: SyncPolicy::Device, uses_io_uring: true };
    let target = disk::open(storage, options, io_times.clone())?;
    let was_empty = target.list()?.is_empty();
    let target_key = match was_empty {
        true => keys.open_or_make(&target)?,
        false => None,
    };
    let target = through(target, target_key.as_ref());
    let mut reported = monotonic();
    info!(backup = %wanted.backup.display(), "restoring");
    let restored =
        restore(&backup, archive.as_ref(), target.as_ref(), wanted.until, |done, total| {
            if monotonic() >= reported + LINE_EVERY {
                reported = monotonic();
                info!(bytes = done, total, "restoring: {}%", done * 100 / total.max(1));
            }
        });
    if restored.is_err() && was_empty {
        // So that another attempt finds space. The first error says more than one of the cleanup.
        for name in target.list()? {
            let _ = target.remove(&name);
        }
    }
    Ok(restored.map_err(|error| format!("restore from {}: {error}", wanted.backup.display()))?)
}
