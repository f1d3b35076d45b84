//! Exchanges end to end, with the client's side played by the test.

use aws_lc_rs::rsa::{OAEP_SHA1_MGF1SHA1, OaepPublicEncryptingKey, PublicEncryptingKey};
use plugin_api::{AccountSecret, AuthChannel, AuthContext, AuthStep, Authenticator};

use crate::sha256_crypt;
use crate::{
    AuthSocket, CachingSha2Password, NativePassword, caching_sha2_scramble, native_scramble,
};

const NONCE: [u8; 20] = *b"\x01bcdefghijklmnopqrs\x7f";

fn ctx(channel: AuthChannel) -> AuthContext {
    AuthContext {
        user: "root".into(),
        nonce: NONCE,
        channel,
        peer_uid: Some(0),
        peer_user: Some("root".into()),
    }
}

fn secret(stored: &[u8]) -> AccountSecret {
    AccountSecret { authentication_string: stored.to_vec(), ..AccountSecret::default() }
}

#[test]
fn sha256_crypt_matches_published_vectors() {
    // From the algorithm's specification, 5000 rounds.
    let hash = sha256_crypt::hash(b"Hello world!", b"saltstring", 5000);
    assert_eq!(&hash, b"5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5");
    // A hash that a server of the reference made, with its salt of 20 bytes that are not text.
    let salt = [
        0xf9, 0xcc, 0x98, 0xce, 0x08, 0x89, 0x29, 0x24, 0xf5, 0x0a, 0x21, 0x3b, 0x6b, 0xc5, 0x71,
        0xa2, 0xc1, 0x17, 0x78, 0xc5,
    ];
    let hash = sha256_crypt::hash(b"hashcat", &salt, 5000);
    assert_eq!(&hash, b"bTy95Y99eAME1dwEkHOA1ndHGBWz.1bxSSRkuTXFGV/");
}

#[test]
fn caching_sha2_full_then_fast() {
    for channel in [AuthChannel::Encrypted, AuthChannel::Local] {
        let method = CachingSha2Password::new();
        let stored = method.hash_password(b"secret").expect("a hash");
        assert!(method.is_valid_stored(&stored));
        assert_eq!(stored.len(), 70);
        let scramble = caching_sha2_scramble(b"secret", &NONCE);
        let mut first = method.start(ctx(channel), secret(&stored)).expect("starts");
        assert_eq!(first.next(&scramble), Ok(AuthStep::Send(vec![4])));
        assert_eq!(first.next(b"secret\0"), Ok(AuthStep::Accept));
        let mut again = method.start(ctx(channel), secret(&stored)).expect("starts");
        assert_eq!(again.next(&scramble), Ok(AuthStep::SendAndAccept(vec![3])));
        let mut wrong = method.start(ctx(channel), secret(&stored)).expect("starts");
        let other = caching_sha2_scramble(b"Secret", &NONCE);
        assert_eq!(wrong.next(&other), Ok(AuthStep::Send(vec![4])));
        assert_eq!(wrong.next(b"Secret\0"), Ok(AuthStep::Refuse));
    }
}

#[test]
fn caching_sha2_with_rsa() {
    let method = CachingSha2Password::new();
    let stored = method.hash_password(b"secret").expect("a hash");
    let mut exchange = method.start(ctx(AuthChannel::Plain), secret(&stored)).expect("starts");
    let scramble = caching_sha2_scramble(b"secret", &NONCE);
    assert_eq!(exchange.next(&scramble), Ok(AuthStep::Send(vec![4])));
    let Ok(AuthStep::Send(pem)) = exchange.next(&[2]) else { panic!("no key") };
    let mut masked = b"secret\0".to_vec();
    for (byte, mask) in masked.iter_mut().zip(NONCE) {
        *byte ^= mask;
    }
    let der = pem_body(&pem);
    let key = PublicEncryptingKey::from_der(&der).expect("a public key");
    let key = OaepPublicEncryptingKey::new(key).expect("a public key");
    let mut cipher = vec![0; key.ciphertext_size()];
    key.encrypt(&OAEP_SHA1_MGF1SHA1, &masked, &mut cipher, None).expect("encrypted");
    assert_eq!(exchange.next(&cipher), Ok(AuthStep::Accept));
    let mut plain = method.start(ctx(AuthChannel::Plain), secret(&stored)).expect("starts");
    assert_eq!(plain.next(&caching_sha2_scramble(b"x", &NONCE)), Ok(AuthStep::Send(vec![4])));
    assert_eq!(plain.next(b"secret\0"), Ok(AuthStep::Refuse));
}

fn pem_body(pem: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(pem).into_owned();
    let value = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> =
        text.lines().filter(|l| !l.starts_with('-')).flat_map(|l| l.bytes()).collect();
    let mut der = Vec::new();
    for group in digits.chunks(4) {
        let bits = group.iter().fold(0u32, |bits, c| bits << 6 | u32::from(value(*c) & 63));
        let bytes = bits.to_be_bytes();
        let padding = group.iter().filter(|c| **c == b'=').count();
        der.extend_from_slice(&bytes[1..4 - padding]);
    }
    der
}

#[test]
fn no_password_matches_only_no_password() {
    let method = CachingSha2Password::new();
    let start =
        |stored: &[u8]| method.start(ctx(AuthChannel::Plain), secret(stored)).expect("starts");
    assert_eq!(start(b"").next(b""), Ok(AuthStep::Accept));
    assert_eq!(start(b"").next(&[1; 32]), Ok(AuthStep::Refuse));
    assert_eq!(start(b"never matches").next(b""), Ok(AuthStep::Refuse));
    let native = |stored: &[u8], packet: &[u8]| {
        NativePassword.start(ctx(AuthChannel::Plain), secret(stored)).expect("starts").next(packet)
    };
    assert_eq!(native(b"", b""), Ok(AuthStep::Accept));
    let stored = NativePassword.hash_password(b"password").expect("a hash");
    assert_eq!(stored, b"*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19");
    assert_eq!(native(&stored, &native_scramble(b"password", &NONCE)), Ok(AuthStep::Accept));
    assert_eq!(native(&stored, &native_scramble(b"Password", &NONCE)), Ok(AuthStep::Refuse));
    assert_eq!(native(&stored, b""), Ok(AuthStep::Refuse));
}

#[test]
fn auth_socket_wants_the_same_name_over_a_local_socket() {
    let check = |ctx: AuthContext, stored: &[u8]| {
        AuthSocket.start(ctx, secret(stored)).expect("starts").next(b"x")
    };
    assert_eq!(check(ctx(AuthChannel::Local), b""), Ok(AuthStep::Accept));
    assert_eq!(check(ctx(AuthChannel::Plain), b""), Ok(AuthStep::Refuse));
    let mut other = ctx(AuthChannel::Local);
    other.user = "app".into();
    assert_eq!(check(other.clone(), b""), Ok(AuthStep::Refuse));
    assert_eq!(check(other, b"root"), Ok(AuthStep::Accept));
}
