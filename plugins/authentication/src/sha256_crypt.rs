//! The SHA-256 variant of crypt(3), as `caching_sha2_password` stores passwords. Pure computation.

use sha2::{Digest, Sha256};

const DIGEST_BYTES: usize = 32;
/// 32 bytes at 6 bits a character, rounded up.
pub(crate) const ENCODED_BYTES: usize = 43;
const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Bytes of the digest in the order in which three at a time become four characters.
const ORDER: [[usize; 3]; 10] = [
    [0, 10, 20],
    [21, 1, 11],
    [12, 22, 2],
    [3, 13, 23],
    [24, 4, 14],
    [15, 25, 5],
    [6, 16, 26],
    [27, 7, 17],
    [18, 28, 8],
    [9, 19, 29],
];

/// The encoded hash of `password` with `salt` after `rounds` rounds.
pub(crate) fn hash(password: &[u8], salt: &[u8], rounds: u32) -> [u8; ENCODED_BYTES] {
    let first = first_digest(password, salt);
    let password_block = repeated(password, password.len(), password.len());
    let salt_block = repeated(salt, 16 + usize::from(first[0]), salt.len());
    let mut digest = first;
    for round in 0..rounds {
        let mut hasher = Sha256::new();
        let odd = round % 2 == 1;
        hasher.update(if odd { &password_block[..] } else { &digest[..] });
        if round % 3 != 0 {
            hasher.update(&salt_block);
        }
        if round % 7 != 0 {
            hasher.update(&password_block);
        }
        hasher.update(if odd { &digest[..] } else { &password_block[..] });
        digest = hasher.finalize().into();
    }
    encode(&digest)
}

fn first_digest(password: &[u8], salt: &[u8]) -> [u8; DIGEST_BYTES] {
    let mut inner = Sha256::new();
    for part in [password, salt, password] {
        inner.update(part);
    }
    let inner: [u8; DIGEST_BYTES] = inner.finalize().into();
    let mut outer = Sha256::new();
    outer.update(password);
    outer.update(salt);
    outer.update(stretched(&inner, password.len()));
    let mut bits = password.len();
    while bits > 0 {
        outer.update(if bits & 1 == 1 { &inner[..] } else { password });
        bits >>= 1;
    }
    outer.finalize().into()
}

/// The digest of `times` copies of `text`, stretched to `len` bytes.
fn repeated(text: &[u8], times: usize, len: usize) -> Vec<u8> {
    let mut hasher = Sha256::new();
    for _ in 0..times {
        hasher.update(text);
    }
    let digest: [u8; DIGEST_BYTES] = hasher.finalize().into();
    stretched(&digest, len)
}

fn stretched(digest: &[u8; DIGEST_BYTES], len: usize) -> Vec<u8> {
    digest.iter().copied().cycle().take(len).collect()
}

fn encode(digest: &[u8; DIGEST_BYTES]) -> [u8; ENCODED_BYTES] {
    let mut text = [0; ENCODED_BYTES];
    let (groups, last) = text.split_at_mut(ORDER.len() * 4);
    for (group, [high, middle, low]) in groups.chunks_exact_mut(4).zip(ORDER) {
        put_bits(group, [digest[high], digest[middle], digest[low]]);
    }
    put_bits(last, [0, digest[31], digest[30]]);
    text
}

/// Six bits a character, lowest first.
fn put_bits(out: &mut [u8], [high, middle, low]: [u8; 3]) {
    let mut bits = u32::from_be_bytes([0, high, middle, low]);
    for character in out {
        *character = ALPHABET[(bits & 63) as usize];
        bits >>= 6;
    }
}
