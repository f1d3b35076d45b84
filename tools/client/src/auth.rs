//! The client's computations to prove that it has a password.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rsa::{OAEP_SHA1_MGF1SHA1, OaepPublicEncryptingKey, PublicEncryptingKey};
use sha1::{Digest, Sha1};

/// First answer of the method `plugin` to `nonce`; `None` for an unknown method.
pub fn first_answer(plugin: &[u8], password: &[u8], nonce: &[u8]) -> Option<Vec<u8>> {
    if password.is_empty() {
        return Some(Vec::new());
    }
    match plugin {
        b"caching_sha2_password" => {
            let once = digest(&SHA256, password);
            let twice = digest(&SHA256, once.as_ref());
            let salted = digest(&SHA256, &[twice.as_ref(), nonce].concat());
            Some(exclusive_or(once.as_ref(), salted.as_ref()))
        }
        b"mysql_native_password" => {
            let once = Sha1::digest(password);
            let twice = Sha1::digest(once);
            let salted = Sha1::digest([nonce, twice.as_slice()].concat());
            Some(exclusive_or(&once, &salted))
        }
        b"mysql_clear_password" => Some([password, &[0]].concat()),
        // The password is an ID token: a byte of capabilities, then the token after its length.
        b"authentication_openid_connect_client" => {
            let mut packet = vec![1];
            wire::put_lenenc_bytes(&mut packet, password);
            Some(packet)
        }
        _ => None,
    }
}

/// Whether the method `plugin` sends the password as it is.
pub fn sends_password(plugin: &[u8]) -> bool {
    matches!(plugin, b"mysql_clear_password" | b"authentication_openid_connect_client")
}

/// The password under the server's RSA key, for caching_sha2_password without TLS.
pub fn encrypted_password(pem: &[u8], password: &[u8], nonce: &[u8]) -> Option<Vec<u8>> {
    let padded = [password, &[0]].concat();
    let masked: Vec<u8> = padded.iter().zip(nonce.iter().cycle()).map(|(a, b)| a ^ b).collect();
    let key = PublicEncryptingKey::from_der(&pem_body(pem)?).ok()?;
    let key = OaepPublicEncryptingKey::new(key).ok()?;
    let mut out = vec![0; key.ciphertext_size()];
    let sealed = key.encrypt(&OAEP_SHA1_MGF1SHA1, &masked, &mut out, None).ok()?;
    Some(sealed.to_vec())
}

fn exclusive_or(a: &[u8], b: &[u8]) -> Vec<u8> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

/// The bytes between the lines of a PEM text.
fn pem_body(pem: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(pem).ok()?;
    let letters = text.lines().filter(|line| !line.starts_with("-----")).flat_map(str::bytes);
    let mut out = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for letter in letters.filter(|letter| !letter.is_ascii_whitespace() && *letter != b'=') {
        const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        bits = bits << 6 | ALPHABET.iter().position(|known| *known == letter)? as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    Some(out)
}
