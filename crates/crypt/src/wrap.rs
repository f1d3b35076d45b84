//! AES key wrap (RFC 3394): a data key under a master key, with a check that says whether the master key is the right one.

use aes::Aes256;
use aes::cipher::{Block, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use zeroize::Zeroize;

use crate::{DATA_KEY_BYTES, Secret};

/// Bytes of a master key.
pub const MASTER_KEY_BYTES: usize = 32;
/// Bytes of a wrapped data key.
pub const WRAPPED_BYTES: usize = DATA_KEY_BYTES + 8;

/// What the check value is before it is wrapped, and must be after it is unwrapped.
const CHECK: u64 = 0xA6A6_A6A6_A6A6_A6A6;
const ROUNDS: u64 = 6;

/// Wraps a key of a multiple of 8 bytes; `None` when one of the two has a wrong length.
pub fn wrap_key(master: &Secret, key: &Secret) -> Option<Vec<u8>> {
    let cipher = Aes256::new_from_slice(master.bytes()).ok()?;
    let (parts, rest) = key.bytes().as_chunks::<8>();
    if parts.len() < 2 || !rest.is_empty() {
        return None;
    }
    let mut parts = parts.to_vec();
    let mut check = CHECK;
    let count = parts.len() as u64;
    for round in 0..ROUNDS {
        for (part, at) in parts.iter_mut().zip(1..) {
            let mut block = joined(check, part);
            cipher.encrypt_block(&mut block);
            check = upper(&block) ^ (count * round + at);
            part.copy_from_slice(&block[8..]);
        }
    }
    debug_assert_ne!(parts.as_flattened(), key.bytes(), "the key is not wrapped");
    Some([check.to_be_bytes().as_slice(), parts.as_flattened()].concat())
}

/// The key that `wrap_key` wrapped; `None` when the master key is another one, or the bytes are damaged.
pub fn unwrap_key(master: &Secret, wrapped: &[u8]) -> Option<Secret> {
    let cipher = Aes256::new_from_slice(master.bytes()).ok()?;
    let (parts, rest) = wrapped.as_chunks::<8>();
    let (first, parts) = parts.split_first()?;
    if parts.len() < 2 || !rest.is_empty() {
        return None;
    }
    let mut check = u64::from_be_bytes(*first);
    let mut parts = parts.to_vec();
    let count = parts.len() as u64;
    for round in (0..ROUNDS).rev() {
        for (part, at) in parts.iter_mut().rev().zip((1..=count).rev()) {
            let mut block = joined(check ^ (count * round + at), part);
            cipher.decrypt_block(&mut block);
            check = upper(&block);
            part.copy_from_slice(&block[8..]);
            block.as_mut_slice().zeroize();
        }
    }
    let key = Secret::new(parts.as_flattened().to_vec());
    parts.zeroize();
    (check == CHECK).then_some(key)
}

fn joined(check: u64, part: &[u8; 8]) -> Block<Aes256> {
    let mut block = Block::<Aes256>::default();
    block[..8].copy_from_slice(&check.to_be_bytes());
    block[8..].copy_from_slice(part);
    block
}

fn upper(block: &Block<Aes256>) -> u64 {
    block[..8].iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 3394, section 4.6: 256 bits of key data with a 256-bit key.
    #[test]
    fn a_key_is_wrapped_as_the_standard_says() {
        let master = Secret::new((0..32).collect());
        let key: Vec<u8> = (0..16).map(|at| at * 0x11).chain(0..16).collect();
        let wrapped = wrap_key(&master, &Secret::new(key.clone())).expect("lengths fit");
        let expected = [
            0x28, 0xC9, 0xF4, 0x04, 0xC4, 0xB8, 0x10, 0xF4, 0xCB, 0xCC, 0xB3, 0x5C, 0xFB, 0x87,
            0xF8, 0x26, 0x3F, 0x57, 0x86, 0xE2, 0xD8, 0x0E, 0xD3, 0x26, 0xCB, 0xC7, 0xF0, 0xE7,
            0x1A, 0x99, 0xF4, 0x3B, 0xFB, 0x98, 0x8B, 0x9B, 0x7A, 0x02, 0xDD, 0x21,
        ];
        assert_eq!(wrapped, expected);
        assert_eq!(unwrap_key(&master, &wrapped), Some(Secret::new(key)));
        for bit in 0..wrapped.len() * 8 {
            let mut damaged = wrapped.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(unwrap_key(&master, &damaged), None);
        }
        assert_eq!(unwrap_key(&Secret::new(vec![1; 32]), &wrapped), None);
        assert_eq!(unwrap_key(&master, &wrapped[..8]), None);
        assert_eq!(wrap_key(&Secret::new(vec![1; 16]), &master), None);
    }
}
