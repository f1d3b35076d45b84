//! CRC-32C, the checksum of pages and of the log: with the instructions of the processor that runs, else by tables. `crc_fast` has them for
//! x86-64 and ARM and picks at run time; `vpmsum` is POWER's, `vgfm` IBM Z's.

use crc_fast::{CrcAlgorithm, Digest};

/// What a sum begins with, and what its value is inverted with.
const INVERSE: u32 = u32::MAX;

/// CRC-32C of bytes that come in parts.
pub struct CrcSum {
    /// The remainder, not inverted.
    state: u32,
}

impl CrcSum {
    /// Of nothing.
    pub fn new() -> CrcSum {
        CrcSum { state: INVERSE }
    }

    /// Adds bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.state = by_processor(self.state, bytes);
    }

    /// The sum so far.
    pub fn value(&self) -> u32 {
        self.state ^ INVERSE
    }
}

impl Default for CrcSum {
    fn default() -> Self {
        CrcSum::new()
    }
}

/// CRC-32C, the checksum of pages and of the log.
pub fn crc(bytes: &[u8]) -> u32 {
    by_processor(INVERSE, bytes) ^ INVERSE
}

/// The remainder after `bytes`, by the best instructions there are.
fn by_processor(state: u32, bytes: &[u8]) -> u32 {
    #[cfg(any(target_arch = "powerpc64", target_arch = "s390x"))]
    if bytes.len() >= 2 * crate::folding::STEP_BYTES && crate::folding::is_there() {
        let whole = bytes.len() / crate::folding::STEP_BYTES * crate::folding::STEP_BYTES;
        // SAFETY: the instructions are there.
        let sums = unsafe { crate::folding::fold(state, &bytes[..whole]) };
        return by_library(by_library(0, &sums), &bytes[whole..]);
    }
    by_library(state, bytes)
}

fn by_library(state: u32, bytes: &[u8]) -> u32 {
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(state));
    digest.update(bytes);
    digest.finalize() as u32 ^ INVERSE
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, bit by bit.
    fn by_definition(bytes: &[u8]) -> u32 {
        let mut state = INVERSE;
        for byte in bytes {
            state ^= u32::from(*byte);
            for _ in 0..8 {
                let is_odd = state & 1 == 1;
                state >>= 1;
                if is_odd {
                    state ^= 0x82f6_3b78;
                }
            }
        }
        state ^ INVERSE
    }

    /// Run under an emulator with other processors by `cargo xtask platforms`: each must give the same sums.
    #[test]
    fn this_processor_computes_what_the_definition_says() {
        assert_eq!(crc(b"123456789"), 0xe306_9283);
        let text: Vec<u8> =
            (0..20_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for start in [0, 1, 7, 8, 15] {
            for length in [0, 1, 8, 127, 128, 255, 256, 257, 383, 384, 1000, 4096, 16_384, 16_380] {
                let part = &text[start..start + length];
                assert_eq!(crc(part), by_definition(part), "{length} bytes from {start} on");
                let mut sum = CrcSum::new();
                part.chunks(700).for_each(|chunk| sum.add(chunk));
                assert_eq!(sum.value(), crc(part), "in parts: {length} bytes from {start} on");
            }
        }
    }
}
