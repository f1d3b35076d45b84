//! A fast hash for in-memory tables keyed by short byte strings. Not for secrets, never stored.

/// Spreads the bits of a number.
pub fn mix(value: u64) -> u64 {
    let product = u128::from(value ^ 0x9E37_79B9_7F4A_7C15) * 0xD6E8_FEB8_6659_FD93_u128;
    (product as u64) ^ ((product >> 64) as u64)
}

/// Hash of `bytes` under `seed`.
pub fn hash_bytes(seed: u64, bytes: &[u8]) -> u64 {
    let mut hash = mix(seed ^ bytes.len() as u64);
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let word = u64::from_le_bytes(chunk.try_into().expect("chunks_exact gives 8 bytes"));
        hash = mix(hash ^ word);
    }
    let rest = chunks.remainder();
    if !rest.is_empty() {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        hash = mix(hash ^ u64::from_le_bytes(word));
    }
    hash
}
