//! Reproducible random numbers (SplitMix64, Steele, Lea and Flood 2014): the load of a seed is always the same.

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `bound`; 0 when `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Letters and digits.
    pub fn word(&mut self, length: usize) -> String {
        const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        let letter = |random: &mut Random| LETTERS[random.below(LETTERS.len() as u64) as usize];
        (0..length).map(|_| char::from(letter(self))).collect()
    }

    /// Groups of digits: `#` becomes a digit.
    pub fn digits(&mut self, pattern: &str) -> String {
        let digit = |random: &mut Random| char::from(b'0' + random.below(10) as u8);
        pattern.chars().map(|c| if c == '#' { digit(self) } else { c }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn a_seed_gives_the_same_stream_within_its_bounds() {
        let (mut a, mut b) = (Random::new(7), Random::new(7));
        assert_eq!(a.word(20), b.word(20));
        assert!((0..1000).all(|_| a.below(3) < 3));
        assert_eq!(a.digits("##-##").len(), 5);
    }
}
