//! A log-in by SCRAM (RFC 5802, 7677): the password is not sent, and the broker proves that it knows it too.

use aws_lc_rs::{digest, hmac, pbkdf2, rand};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Rounds that a broker may ask for: below, the password could be guessed from what is sent; above, it would only cost time.
const ROUNDS: std::ops::RangeInclusive<u32> = 4096..=1_000_000;
/// The head of the first message: no channel is bound.
const GS2_HEADER: &str = "n,,";

/// The hash that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hash {
    Sha256,
    Sha512,
}

impl Hash {
    fn hmac(self) -> hmac::Algorithm {
        match self {
            Hash::Sha256 => hmac::HMAC_SHA256,
            Hash::Sha512 => hmac::HMAC_SHA512,
        }
    }

    fn digest(self) -> &'static digest::Algorithm {
        match self {
            Hash::Sha256 => &digest::SHA256,
            Hash::Sha512 => &digest::SHA512,
        }
    }

    fn pbkdf2(self) -> pbkdf2::Algorithm {
        match self {
            Hash::Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
            Hash::Sha512 => pbkdf2::PBKDF2_HMAC_SHA512,
        }
    }
}

/// The client's side of one log-in.
pub(crate) struct Scram {
    hash: Hash,
    nonce: String,
    /// The first message without its head.
    first: String,
}

impl Scram {
    /// # Errors
    /// The system gives no random bytes.
    pub fn new(hash: Hash, user: &str) -> Result<Scram, String> {
        let mut bytes = [0; 24];
        rand::fill(&mut bytes).map_err(|_| "no random bytes".to_owned())?;
        Ok(Scram::with_nonce(hash, user, STANDARD.encode(bytes)))
    }

    fn with_nonce(hash: Hash, user: &str, nonce: String) -> Scram {
        let user = user.replace('=', "=3D").replace(',', "=2C");
        let first = format!("n={user},r={nonce}");
        Scram { hash, nonce, first }
    }

    /// What is sent first.
    pub fn first(&self) -> String {
        format!("{GS2_HEADER}{}", self.first)
    }

    /// What is sent then, and what the broker has to answer.
    ///
    /// # Errors
    /// The broker's challenge makes no sense.
    pub fn answer(&self, password: &str, challenge: &[u8]) -> Result<(String, String), String> {
        let wrong = || "a malformed challenge".to_owned();
        let challenge = std::str::from_utf8(challenge).map_err(|_| wrong())?;
        let mut parts = challenge.split(',');
        let mut part = |name: &str| parts.next().and_then(|part| part.strip_prefix(name));
        let nonce = part("r=").ok_or_else(wrong)?;
        let salt = part("s=").and_then(|salt| STANDARD.decode(salt).ok()).ok_or_else(wrong)?;
        let rounds: u32 = part("i=").and_then(|rounds| rounds.parse().ok()).ok_or_else(wrong)?;
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err("a challenge that is not for this log-in".to_owned());
        }
        if !ROUNDS.contains(&rounds) {
            return Err(format!("a challenge of {rounds} rounds"));
        }
        let rounds = std::num::NonZeroU32::new(rounds).ok_or_else(wrong)?;
        let mut salted = vec![0; self.hash.digest().output_len()];
        pbkdf2::derive(self.hash.pbkdf2(), rounds, &salt, password.as_bytes(), &mut salted);
        let sign = |key: &[u8], text: &[u8]| {
            hmac::sign(&hmac::Key::new(self.hash.hmac(), key), text).as_ref().to_vec()
        };
        let client_key = sign(&salted, b"Client Key");
        let stored = digest::digest(self.hash.digest(), &client_key);
        let last = format!("c={},r={nonce}", STANDARD.encode(GS2_HEADER));
        let all = format!("{},{challenge},{last}", self.first);
        let signature = sign(stored.as_ref(), all.as_bytes());
        let proof: Vec<u8> =
            client_key.iter().zip(&signature).map(|(key, sign)| key ^ sign).collect();
        let server_key = sign(&salted, b"Server Key");
        let expected = format!("v={}", STANDARD.encode(sign(&server_key, all.as_bytes())));
        Ok((format!("{last},p={}", STANDARD.encode(proof)), expected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_standard() {
        // RFC 7677, 3.
        let nonce = "rOprNGfwEbeRWgbNEkqO".to_owned();
        let scram = Scram::with_nonce(Hash::Sha256, "user", nonce);
        assert_eq!(scram.first(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let challenge = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        let (answer, expected) = scram.answer("pencil", challenge.as_bytes()).expect("answers");
        assert_eq!(
            answer,
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        );
        assert_eq!(expected, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }

    #[test]
    fn a_broker_that_lies_is_refused() {
        let scram = Scram::with_nonce(Hash::Sha512, "a,b=c", "abc".to_owned());
        assert_eq!(scram.first(), "n,,n=a=2Cb=3Dc,r=abc");
        for challenge in [
            "",
            "r=abc,s=QQ==,i=4096",
            "r=xyz1,s=QQ==,i=4096",
            "r=abc1,s=QQ==,i=1",
            "r=abc1,s=QQ==,i=4000000000",
            "r=abc1,s=?,i=4096",
            "s=QQ==,i=4096",
            "e=other-error",
        ] {
            scram.answer("pw", challenge.as_bytes()).expect_err(challenge);
        }
        scram.answer("pw", b"r=abc1,s=QQ==,i=4096").expect("answers");
    }
}
