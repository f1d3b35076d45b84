//! CRC-32C by vectors, for processors with a carry-less multiplication that `crc_fast` does not know.
//!
//! Eight sums of 16 bytes each run over the text, 128 bytes at a step. What they end with has, read as 128 bytes of text, the same
//! remainder as everything before: the caller's portable code takes it from there, and no other reduction is needed.

#[cfg(target_arch = "s390x")]
use crate::vgfm as instructions;
#[cfg(target_arch = "powerpc64")]
use crate::vpmsum as instructions;

pub(crate) use instructions::is_there;

/// Bytes of one step.
pub(crate) const STEP_BYTES: usize = 128;

/// CRC-32C's polynomial, the coefficient of x^31 in bit 0.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// x^`power` modulo the polynomial, for a multiplication of 64 bits by 64: the coefficient of x^63 in bit 0.
const fn remainder(power: u32) -> u64 {
    // x^0.
    let mut value = 0x8000_0000_u32;
    let mut at = 0;
    while at < power {
        value = if value & 1 == 1 { (value >> 1) ^ POLYNOMIAL } else { value >> 1 };
        at += 1;
    }
    (value as u64) << 32
}

/// Takes a sum's first and second 8 bytes over one step of 1024 bits. Each is one power less, as the product of two reflected numbers is
/// one place off. In the order of a vector: the last 8 bytes of text are the high half.
pub(crate) const FOLD: [u64; 2] = [remainder(1024 - 1), remainder(1024 + 64 - 1)];

/// Puts the bytes of 16 bytes of text into the order of a number, the first one lowest.
#[cfg(target_endian = "big")]
pub(crate) const REVERSE: [u8; 16] = [15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0];

/// `state` after the whole steps of `text`, as the sums that stand for them. At least one step.
///
/// # Safety
/// `is_there`.
///
/// # Panics
/// When `text` is not one or more whole steps.
pub(crate) unsafe fn fold(state: u32, text: &[u8]) -> [u8; STEP_BYTES] {
    assert!(!text.is_empty() && text.len().is_multiple_of(STEP_BYTES), "whole steps");
    let mut sums: [u8; STEP_BYTES] = text[..STEP_BYTES].try_into().expect("a step");
    for (byte, of_state) in sums.iter_mut().zip(state.to_le_bytes()) {
        *byte ^= of_state;
    }
    let steps = text.len() / STEP_BYTES - 1;
    if steps > 0 {
        // SAFETY: the caller's promise, and there are so many steps behind the first.
        unsafe { instructions::run(&mut sums, text.as_ptr().wrapping_add(STEP_BYTES), steps) };
    }
    sums
}
