//! Randomness: from the operating system for secrets, from a seed for everything that a test must repeat.

use std::io;

pub use crate::random::SplitMix;

/// Fills `buf` with unpredictable bytes.
///
/// # Errors
/// The operating system refused.
pub fn fill(buf: &mut [u8]) -> io::Result<()> {
    if let Some(here) = crate::simulation::current() {
        here.fill_entropy(buf);
        return Ok(());
    }
    let mut done = 0;
    while done < buf.len() {
        done += rustix::rand::getrandom(&mut buf[done..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(())
}

/// For [`crate::seeded_hash_maps`]: fills `buf` from the seed of the calling thread's simulated machine, or with real entropy.
pub fn hash_keys(buf: &mut [u8]) -> isize {
    match fill(buf) {
        Ok(()) => buf.len().cast_signed(),
        Err(_) => -1,
    }
}

/// Has the maps of the standard library draw their keys from the simulation's seed in the program that says this: else the order in which
/// their entries come differs from run to run. The library asks the C library's `getrandom`, which may be replaced for that purpose.
#[macro_export]
macro_rules! seeded_hash_maps {
    () => {
        #[unsafe(no_mangle)]
        extern "C" fn getrandom(start: *mut u8, length: usize, _flags: u32) -> isize {
            // SAFETY: the caller hands over `length` bytes to be written, as the C library's function of this name demands.
            $crate::entropy::hash_keys(unsafe { std::slice::from_raw_parts_mut(start, length) })
        }
    };
}
