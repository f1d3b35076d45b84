//! Builds that are wrong on purpose, and runs that must notice.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

use std::sync::Arc;

use sys::disk::Disk;
use sys::encryption::{DirectoryKey, EncryptedDisk, KeyFile, Secret};
use sys::fault::{Call, FaultDisk, Rule, Verdict};
use sys::sim::SimDisk;

/// The engine under test's view of a disk.
pub type Build<'a> = &'a (dyn Fn(SimDisk) -> Arc<dyn Disk> + Sync);

/// Whose files are encrypted under a key that is made with the first of them.
pub fn encrypted(disk: SimDisk) -> Arc<dyn Disk> {
    let disk: Arc<dyn Disk> = Arc::new(disk);
    let master = Secret::new(vec![7; 32]);
    let key = match KeyFile::read(&*disk).expect("a disk that has not crashed") {
        Some(file) => DirectoryKey::open(&disk, file, &master).expect("a key").expect("its master"),
        None => DirectoryKey::make(&disk, "master", &master).expect("a disk that has not crashed"),
    };
    Arc::new(EncryptedDisk::new(disk, Arc::new(key)))
}

/// A build that believes in calls it never makes.
pub fn skipping(call: Call, name: &'static str) -> impl Fn(SimDisk) -> Arc<dyn Disk> {
    move |disk| {
        let rule: Rule =
            Arc::new(move |made, file: &str| match made == call && file.starts_with(name) {
                true => Verdict::Skip,
                false => Verdict::Pass,
            });
        Arc::new(FaultDisk::new(Arc::new(disk), rule))
    }
}

/// Whether `run` finds something wrong with one of `seeds` seeds.
pub fn is_caught(seeds: u64, run: impl Fn(u64)) -> bool {
    (1..=seeds).any(|seed| {
        let attempt = std::panic::AssertUnwindSafe(|| run(seed));
        std::panic::catch_unwind(attempt).is_err()
    })
}

/// A number from the environment.
pub fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
