//! AES-256-XTS (IEEE 1619) on units of 512 bytes: as long as the plain text, so that files keep their form, and a unit is what a device writes whole or
//! not at all, so that a torn write tears no unit.

use aes::Aes256;
use aes::cipher::{Block, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};

use crate::Secret;

/// Bytes of a unit.
pub const UNIT_BYTES: usize = 512;
/// Bytes of the key: one AES-256 key for the data, one for the tweaks.
pub const DATA_KEY_BYTES: usize = 64;

const BLOCK_BYTES: usize = 16;
const UNIT_BLOCKS: usize = UNIT_BYTES / BLOCK_BYTES;
/// Units whose tweaks are made at a time: those of a usual page.
const BATCH_UNITS: usize = 32;
/// The polynomial of the field in which tweaks are doubled.
const POLYNOMIAL: u128 = 0x87;

type AesBlock = Block<Aes256>;

/// Encrypts and decrypts units. Expanded keys are wiped when it is dropped.
pub struct UnitCipher {
    data: Aes256,
    tweaks: Aes256,
}

impl std::fmt::Debug for UnitCipher {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("UnitCipher")
    }
}

impl UnitCipher {
    /// With a key of `DATA_KEY_BYTES`; `None` for another length.
    pub fn new(key: &Secret) -> Option<UnitCipher> {
        let bytes = key.bytes();
        if bytes.len() != DATA_KEY_BYTES {
            return None;
        }
        let (data, tweaks) = bytes.split_at(DATA_KEY_BYTES / 2);
        Some(UnitCipher {
            data: Aes256::new_from_slice(data).ok()?,
            tweaks: Aes256::new_from_slice(tweaks).ok()?,
        })
    }

    /// Encrypts whole units in place; the first one has the number `first`.
    pub fn encrypt(&self, first: u128, bytes: &mut [u8]) {
        debug_assert!(bytes.len().is_multiple_of(UNIT_BYTES), "a rest would stay plain text");
        self.each(first, bytes, &|blocks| self.data.encrypt_blocks(blocks), |_| false);
    }

    /// Decrypts whole units in place. A unit of zeros was never written, and stays; so does a rest that is no unit.
    pub fn decrypt(&self, first: u128, bytes: &mut [u8]) {
        let is_hole = |unit: &[u8; UNIT_BYTES]| unit.iter().all(|byte| *byte == 0);
        self.each(first, bytes, &|blocks| self.data.decrypt_blocks(blocks), is_hole);
    }

    fn each(
        &self,
        first: u128,
        bytes: &mut [u8],
        apply: &dyn Fn(&mut [AesBlock]),
        skips: impl Fn(&[u8; UNIT_BYTES]) -> bool,
    ) {
        let mut number = first;
        for batch in bytes.as_chunks_mut::<UNIT_BYTES>().0.chunks_mut(BATCH_UNITS) {
            let mut tweaks = [AesBlock::default(); BATCH_UNITS];
            for tweak in &mut tweaks {
                tweak.copy_from_slice(&number.to_le_bytes());
                number = number.wrapping_add(1);
            }
            self.tweaks.encrypt_blocks(&mut tweaks[..batch.len()]);
            for (unit, tweak) in batch.iter_mut().zip(&tweaks) {
                if !skips(unit) {
                    one_unit(unit, u128::from_le_bytes((*tweak).into()), apply);
                }
            }
            number = number.wrapping_sub((BATCH_UNITS - batch.len()) as u128);
        }
    }
}

fn one_unit(unit: &mut [u8; UNIT_BYTES], first: u128, apply: &dyn Fn(&mut [AesBlock])) {
    let mut tweaks = [0_u128; UNIT_BLOCKS];
    let mut blocks = [AesBlock::default(); UNIT_BLOCKS];
    let mut tweak = first;
    let plain = unit.as_chunks_mut::<BLOCK_BYTES>().0;
    for ((slot, block), bytes) in tweaks.iter_mut().zip(&mut blocks).zip(plain.iter()) {
        *slot = tweak;
        block.copy_from_slice(&(u128::from_le_bytes(*bytes) ^ tweak).to_le_bytes());
        // Without a branch: it would tell bits of the tweak.
        tweak = (tweak << 1) ^ ((tweak >> 127) * POLYNOMIAL);
    }
    apply(&mut blocks);
    for ((bytes, block), tweak) in plain.iter_mut().zip(&blocks).zip(&tweaks) {
        *bytes = (u128::from_le_bytes((*block).into()) ^ tweak).to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digit = |byte: u8| (byte as char).to_digit(16).expect("a digit") as u8;
        text.as_bytes().chunks(2).map(|two| digit(two[0]) << 4 | digit(two[1])).collect()
    }

    /// IEEE 1619-2007, vector 10: AES-256, a unit of 512 bytes with the number 0xff.
    #[test]
    fn a_unit_is_encrypted_as_the_standard_says() {
        let key = "2718281828459045235360287471352662497757247093699959574966967627\
                   3141592653589793238462643383279502884197169399375105820974944592";
        let cipher = UnitCipher::new(&Secret::new(hex(key))).expect("a key");
        let plain: Vec<u8> = (0..512).map(|at| at as u8).collect();
        let mut bytes = plain.clone();
        cipher.encrypt(0xff, &mut bytes);
        assert_eq!(
            bytes[..32],
            hex("1c3b3a102f770386e4836c99e370cf9bea00803f5e482357a4ae12d414a3e63b")
        );
        cipher.decrypt(0xff, &mut bytes);
        assert_eq!(bytes, plain);
    }

    #[test]
    fn units_differ_by_their_number_and_holes_stay() {
        let cipher = UnitCipher::new(&Secret::new((0..64).collect())).expect("a key");
        let mut many = vec![7; 70 * UNIT_BYTES];
        cipher.encrypt(u128::MAX - 3, &mut many);
        for (unit, at) in many.chunks(UNIT_BYTES).zip(0_u128..) {
            let mut one = [7; UNIT_BYTES];
            cipher.encrypt((u128::MAX - 3).wrapping_add(at), &mut one);
            assert_eq!(unit, one);
            cipher.decrypt((u128::MAX - 3).wrapping_add(at), &mut one);
            assert_eq!(one, [7; UNIT_BYTES]);
        }
        assert_ne!(many[..UNIT_BYTES], many[UNIT_BYTES..2 * UNIT_BYTES]);
        let mut hole = [0; UNIT_BYTES];
        cipher.decrypt(1, &mut hole);
        assert_eq!(hole, [0; UNIT_BYTES]);
        assert!(UnitCipher::new(&Secret::new(vec![0; 32])).is_none());
    }
}
