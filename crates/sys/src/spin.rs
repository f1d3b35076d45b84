//! The one place where a thread may spin. It only reads, tells the processor that it waits, and stops soon: a longer wait parks the thread.
//!
//! On POWER the thread has low priority among those of its core while it spins, which gives the core to the one that is waited for, and
//! medium priority, that of all programs, when it goes on. A guest cannot hand its turn to the holder's virtual processor (`H_CONFER` is for
//! kernels): parking in the kernel does that.

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
            if left != spins {
                medium_priority();
            }
            return (seen, spins - left);
        }
        left -= 1;
        low_priority();
        spin_hint();
    }
}

/// Lets other threads of this core go first; nothing where the processor has no such instruction.
#[inline(always)]
fn low_priority() {
    #[cfg(all(target_arch = "powerpc64", not(miri)))]
    // SAFETY: an `or` of a register with itself changes none; as a hint it lowers the thread's priority (Power ISA, book II, 3.2).
    unsafe {
        core::arch::asm!("or 1,1,1", options(nomem, nostack, preserves_flags));
    }
}

/// Takes `low_priority` back.
#[inline(always)]
fn medium_priority() {
    #[cfg(all(target_arch = "powerpc64", not(miri)))]
    // SAFETY: as for `low_priority`.
    unsafe {
        core::arch::asm!("or 2,2,2", options(nomem, nostack, preserves_flags));
    }
}
