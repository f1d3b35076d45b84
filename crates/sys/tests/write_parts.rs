//! Many writes at once leave the same file, whichever way they take.

#![cfg(not(any(loom, shuttle)))]

use std::path::PathBuf;
use std::sync::Arc;

use sys::disk::{BLOCK_BYTES, BlockBuffer, Disk, File, OpenMode, RealDisk, SyncPolicy};
use sys::io_times::IoTimes;

/// More than are under way at a time.
const PARTS: usize = 200;

fn directory(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _gone = std::fs::remove_dir_all(&path);
    path
}

fn open(name: &str, io_uring: bool) -> (RealDisk, Arc<dyn File>, Arc<IoTimes>) {
    let times = Arc::new(IoTimes::default());
    let disk = RealDisk::open(&directory(name), SyncPolicy::Device, times.clone());
    let disk = disk.expect("a directory").with_io_uring(io_uring);
    let file = disk.open_pages("pages", OpenMode::OrCreate).expect("a file");
    (disk, file, times)
}

fn calls(times: &IoTimes, call: &str) -> u64 {
    times.buckets().iter().filter(|bucket| bucket.call == call).map(|bucket| bucket.count).sum()
}

#[test]
fn parts_come_to_their_places() {
    for io_uring in [true, false] {
        let (_disk, file, times) = open(&format!("write-parts-{io_uring}"), io_uring);
        let mut memory = BlockBuffer::default();
        memory.reset(PARTS * 2 * BLOCK_BYTES);
        for (at, block) in memory.bytes_mut().chunks_mut(BLOCK_BYTES).enumerate() {
            block.fill(at as u8 ^ 0x5A);
        }
        // Each second block of the file, one or two blocks long, from the back.
        let bytes = memory.bytes();
        let parts: Vec<(u64, &[u8])> = (0..PARTS)
            .rev()
            .map(|at| {
                let start = at * 2 * BLOCK_BYTES;
                (start as u64, &bytes[start..start + (1 + at % 2) * BLOCK_BYTES])
            })
            .collect();
        file.write_parts(&parts).expect("written");
        file.sync().expect("synced");
        let mut read = vec![0; PARTS * 2 * BLOCK_BYTES];
        let count = file.read_at(&mut read, 0).expect("read");
        assert_eq!(count, PARTS * 2 * BLOCK_BYTES);
        for (at, block) in read.chunks(BLOCK_BYTES).enumerate() {
            let is_written = at % 2 == 0 || (at / 2) % 2 == 1;
            let expected = if is_written { at as u8 ^ 0x5A } else { 0 };
            assert!(block.iter().all(|byte| *byte == expected), "block {at}, ring {io_uring}");
        }
        let (ring, single) = (calls(&times, "io_uring_enter"), calls(&times, "pwrite"));
        match io_uring {
            // A kernel that has no ring, or forbids it, writes one by one.
            true => assert!(ring > 0 && single == 0 || ring == 0 && single >= PARTS as u64),
            false => assert!(ring == 0 && single >= PARTS as u64),
        }
    }
}

#[test]
fn a_failed_part_is_an_error() {
    let (disk, file, _) = open("write-parts-fails", true);
    let mut memory = BlockBuffer::default();
    memory.reset(2 * BLOCK_BYTES);
    // No file is that long.
    let far = i64::MAX as u64 - (BLOCK_BYTES as u64 - 1);
    let (one, other) = memory.bytes().split_at(BLOCK_BYTES);
    file.write_parts(&[(0, one), (far, other)]).expect_err("too far");
    // The file is usable.
    file.write_parts(&[(0, one), (BLOCK_BYTES as u64, other)]).expect("written");
    drop(disk);
}
