//! What a directory is stored on: file system, device, and how writes reach it.

use std::path::Path;

use crate::simulation;

/// The storage of a directory, as far as the system says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Storage {
    /// Name of the file system: `ext4`, `xfs`, ...; empty when unknown.
    pub file_system: String,
    /// Bytes that the device writes at once; 0 when unknown.
    pub sector_bytes: u64,
    /// Whether the file system was mounted so that a sync need not reach the device: its cache may lose what was synced.
    pub lacks_barriers: bool,
}

/// The storage of the directory `path`.
pub fn of(path: &Path) -> Storage {
    if simulation::current().is_some() {
        return Storage::default();
    }
    use std::os::unix::fs::MetadataExt;
    let Ok(about) = std::fs::metadata(path) else { return Storage::default() };
    let device = format!("{}:{}", rustix::fs::major(about.dev()), rustix::fs::minor(about.dev()));
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut storage = mounted(&mounts, &device).unwrap_or_default();
    storage.sector_bytes = sector_bytes(&device);
    storage
}

/// Bytes that the file system of a directory writes at once: ZFS says the size of its records; 0 when unknown.
pub fn record_bytes(path: &Path) -> u64 {
    match simulation::current() {
        Some(_) => 0,
        None => rustix::fs::statvfs(path).map_or(0, |about| about.f_bsize),
    }
}

/// The line of a device in the list of mounts.
fn mounted(mounts: &str, device: &str) -> Option<Storage> {
    let line = mounts.lines().find(|line| line.split(' ').nth(2) == Some(device))?;
    // Optional fields end with a hyphen; the kind, the source and the options of the file system follow.
    let (before, after) = line.split_once(" - ")?;
    let mut after = after.split(' ');
    let file_system = after.next()?.to_owned();
    let options = before.split(' ').nth(5).into_iter().chain(after.nth(1));
    let is_off = |option: &str| matches!(option, "nobarrier" | "barrier=0");
    let lacks_barriers = options.flat_map(|options| options.split(',')).any(is_off);
    Some(Storage { file_system, sector_bytes: 0, lacks_barriers })
}

fn sector_bytes(device: &str) -> u64 {
    // A partition has no queue of its own, the disk that it is on has.
    let places = ["queue", "../queue"]
        .map(|place| format!("/sys/dev/block/{device}/{place}/physical_block_size"));
    let read = |place: &String| std::fs::read_to_string(place).ok()?.trim().parse().ok();
    places.iter().find_map(read).unwrap_or(0)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn mounts_without_barriers_are_found() {
        let mounts = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n\
                      30 22 8:17 / /data rw,noatime - xfs /dev/sdb1 rw,attr2,nobarrier\n";
        let storage = mounted(mounts, "8:1").unwrap();
        assert_eq!((storage.file_system.as_str(), storage.lacks_barriers), ("ext4", false));
        let storage = mounted(mounts, "8:17").unwrap();
        assert_eq!((storage.file_system.as_str(), storage.lacks_barriers), ("xfs", true));
        assert_eq!(mounted(mounts, "8:2"), None);
    }
}
