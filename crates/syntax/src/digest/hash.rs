//! A fast seeded 128-bit hash of token texts. Not a cryptographic one: a cache that keys shared plans
//! by it must compare the texts as well (see `same_shape`).

const K0: u64 = 0x9e37_79b9_7f4a_7c15;
const K1: u64 = 0xc2b2_ae3d_27d4_eb4f;
const K2: u64 = 0x1656_67b1_9e37_79f9;
const K3: u64 = 0x27d4_eb2f_1656_67c5;

/// The state of the hash.
#[derive(Clone, Copy, Debug)]
pub struct TextHash {
    a: u64,
    b: u64,
}

#[inline]
fn fold(x: u64, y: u64) -> u64 {
    let wide = u128::from(x) * u128::from(y);
    (wide as u64) ^ ((wide >> 64) as u64)
}

impl TextHash {
    pub fn new(seed: u64) -> TextHash {
        TextHash { a: fold(seed ^ K0, K1), b: fold(seed ^ K2, K3) ^ K1 }
    }

    #[inline]
    fn mix(&mut self, x: u64, y: u64) {
        self.a = fold(self.a ^ x ^ K0, y.wrapping_add(K1) | 1).wrapping_add(self.b);
        self.b = fold(self.b ^ y ^ K2, x.wrapping_add(K3) | 1).rotate_left(23) ^ self.a;
    }

    /// Adds a text; its length counts, so that the boundaries of texts matter.
    #[inline]
    pub fn text(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(16);
        for chunk in &mut chunks {
            self.mix(word(&chunk[..8]), word(&chunk[8..]));
        }
        let (low, high) = ends(chunks.remainder());
        self.mix(low, high ^ (bytes.len() as u64).wrapping_mul(K2));
    }

    /// Takes a small number.
    #[inline]
    pub fn mark(&mut self, value: u64) {
        self.mix(value, K3);
    }

    pub fn finish(mut self) -> u128 {
        self.mix(K1, K2);
        self.mix(K3, K0);
        u128::from(self.a) << 64 | u128::from(self.b)
    }
}

#[inline]
fn word(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// Two words that distinguish texts of one length below 16: they overlap instead of being assembled byte by byte, and most tokens
/// are that short.
#[inline]
fn ends(bytes: &[u8]) -> (u64, u64) {
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return (u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into());
    }
    match *bytes {
        [] => (0, 0),
        [one] => (one.into(), 0),
        [one, two] => (one.into(), two.into()),
        [one, two, .., last] => (u64::from(one) << 8 | u64::from(two), last.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_text_and_its_length_count() {
        let of = |bytes: &[u8]| {
            let mut hash = TextHash::new(7);
            hash.text(bytes);
            hash.finish()
        };
        let mut seen = std::collections::HashSet::new();
        for length in 0..40 {
            let mut text = vec![b'a'; length];
            assert!(seen.insert(of(&text)), "length {length}");
            for at in 0..length {
                text[at] = b'b';
                assert!(seen.insert(of(&text)), "byte {at} of {length}");
                text[at] = b'a';
            }
        }
    }
}
