//! The one place where a thread may spin. It only reads, tells the processor that it waits, and stops soon: a longer wait parks the thread.

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::spin_hint;

/// Waits until `word` has none of the bits of `busy`, for at most `spins` loads. Returns the word seen last, and how many loads were made in vain.
#[inline(never)]
pub fn spin_until_clear(word: &AtomicU64, busy: u64, spins: u32) -> (u64, u32) {
    let mut left = spins;
    loop {
        // Acquire: pairs with the release of the thread that clears the bits.
        let seen = word.load(Ordering::Acquire);
        if seen & busy == 0 || left == 0 {
            return (seen, spins - left);
        }
        left -= 1;
        spin_hint();
    }
}
