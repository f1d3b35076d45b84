//! Tokens that the tests sign, against keys in the configuration and at a URL.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RsaKeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use plugin_api::AuthChannel;
use serde_json::{Value as Json, json};

use super::*;

/// A signing key and its JWK.
struct Signer {
    algorithm: Algorithm,
    key: EncodingKey,
    public: Json,
}

fn b64(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn rsa() -> Signer {
    let pair = RsaKeyPair::generate(aws_lc_rs::rsa::KeySize::Rsa2048).expect("a key");
    let public = pair.public_key();
    let (n, e) = (public.modulus(), public.exponent());
    let public = json!({ "kty": "RSA", "kid": "r", "alg": "RS256", "use": "sig",
        "n": b64(n.big_endian_without_leading_zero()), "e": b64(e.big_endian_without_leading_zero()) });
    let der = AsDer::<aws_lc_rs::encoding::Pkcs8V1Der<'_>>::as_der(&pair).expect("a form");
    Signer {
        algorithm: Algorithm::RS256,
        key: EncodingKey::from_rsa_der(&rsa_inside(der.as_ref())),
        public,
    }
}

/// The PKCS#1 key inside a PKCS#8 one: the last octet string.
fn rsa_inside(pkcs8: &[u8]) -> Vec<u8> {
    // SEQUENCE(4) INTEGER(3) AlgorithmIdentifier(15) OCTET STRING(4).
    pkcs8[26..].to_vec()
}

fn ec() -> Signer {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key");
    let point = pair.public_key().as_ref();
    let public = json!({ "kty": "EC", "crv": "P-256", "kid": "e",
        "x": b64(&point[1..33]), "y": b64(&point[33..]) });
    let der = pair.to_pkcs8v1().expect("a form");
    Signer { algorithm: Algorithm::ES256, key: EncodingKey::from_ec_der(der.as_ref()), public }
}

fn ed() -> Signer {
    let pair = Ed25519KeyPair::generate().expect("a key");
    let public = json!({ "kty": "OKP", "crv": "Ed25519", "kid": "d",
        "x": b64(pair.public_key().as_ref()) });
    let der = pair.to_pkcs8v1().expect("a form");
    Signer { algorithm: Algorithm::EdDSA, key: EncodingKey::from_ed_der(der.as_ref()), public }
}

fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time").as_secs()
}

fn claims() -> Json {
    json!({ "iss": "https://id.example.com", "sub": "u-1", "aud": ["squall", "other"],
        "exp": now() + 300, "iat": now(), "preferred_username": "ann" })
}

impl Signer {
    fn sign(&self, claims: &Json) -> String {
        let mut header = Header::new(self.algorithm);
        header.kid = self.public["kid"].as_str().map(str::to_owned);
        jsonwebtoken::encode(&header, claims, &self.key).expect("a token")
    }
}

const ACCOUNT: &[u8] = br#"{"identity_provider": "example", "user": "u-1"}"#;

fn method(configuration: &Json) -> Method {
    let method = Method::default();
    let text = format!("JSON://{configuration}");
    check(&Value::text(&text)).expect("a configuration");
    method.0.configuration.text.store(Value::text(&text));
    method.0.user_claim.store(Value::text("preferred_username"));
    method.0.keys_seconds.store(Value::UInt(3600));
    method
}

fn with_keys(signers: &[&Signer]) -> Json {
    let keys: Vec<&Json> = signers.iter().map(|signer| &signer.public).collect();
    json!({ "example": { "issuer": "https://id.example.com", "audience": "squall", "keys": keys } })
}

fn changed(name: &str, value: Json) -> Json {
    let mut claims = claims();
    match value {
        Json::Null => drop(claims.as_object_mut().expect("an object").remove(name)),
        value => claims[name] = value,
    }
    claims
}

#[test]
fn tokens_of_each_algorithm_prove_what_they_say_and_no_more() {
    let signers = [rsa(), ec(), ed()];
    let method = method(&with_keys(&[&signers[0], &signers[1], &signers[2]]));
    let verify = |token: &str| method.0.verify(ACCOUNT, token);
    for signer in &signers {
        assert_eq!(verify(&signer.sign(&claims())), Ok(()), "{:?}", signer.algorithm);
        for (name, value, reason) in [
            ("iss", json!("https://evil.example.com"), "another issuer"),
            ("iss", Json::Null, "lacks a claim"),
            ("aud", json!("shop"), "another audience"),
            ("aud", Json::Null, "lacks a claim"),
            ("sub", json!("u-2"), "another subject"),
            ("sub", Json::Null, "lacks a claim"),
            ("exp", json!(now() - 120), "has expired"),
            ("exp", Json::Null, "lacks a claim"),
            ("nbf", json!(now() + 600), "not valid yet"),
        ] {
            let told = verify(&signer.sign(&changed(name, value))).expect_err(name);
            assert!(told.contains(reason), "{name}: {told}");
        }
        let token = signer.sign(&claims());
        let (rest, signature) = token.rsplit_once('.').expect("three parts");
        let mut forged = URL_SAFE_NO_PAD.decode(signature).expect("base64");
        forged[20] ^= 1;
        assert_eq!(
            verify(&format!("{rest}.{}", b64(&forged))),
            Err("the token's signature is wrong".to_owned())
        );
    }
    let stranger = rsa();
    assert!(verify(&stranger.sign(&claims())).is_err());
    assert_eq!(method.bearer_user(&signers[1].sign(&claims())), Some("ann".to_owned()));
    assert_eq!(method.bearer_user("no token"), None);
}

#[test]
fn a_public_key_is_no_secret_and_an_unsigned_token_proves_nothing() {
    let signer = rsa();
    let method = method(&with_keys(&[&signer]));
    let public = URL_SAFE_NO_PAD.decode(signer.public["n"].as_str().expect("a text")).expect("n");
    let mut header = Header::new(Algorithm::HS256);
    header.kid = Some("r".into());
    let hmac = jsonwebtoken::encode(&header, &claims(), &EncodingKey::from_secret(&public));
    assert!(method.0.verify(ACCOUNT, &hmac.expect("a token")).is_err());
    let part = |value: &Json| b64(value.to_string().as_bytes());
    let unsigned = format!("{}.{}.", part(&json!({ "alg": "none", "kid": "r" })), part(&claims()));
    assert!(method.0.verify(ACCOUNT, &unsigned).is_err());
    for bad in ["", "a.b", "a.b.c", &"x".repeat(100_000)] {
        assert!(!method.0.opens("ann", ACCOUNT, bad.as_bytes()), "{bad:.10}");
    }
}

#[test]
fn the_configuration_is_the_references_or_ours() {
    let signer = ec();
    let mut as_text = signer.public.clone();
    as_text["alg"] = json!("ES256");
    let plain = method(&json!({ "https://id.example.com": as_text.to_string() }));
    let account = br#"{"identity_provider": "https://id.example.com", "user": "u-1"}"#;
    assert_eq!(plain.0.verify(account, &signer.sign(&claims())), Ok(()));
    assert!(plain.0.verify(ACCOUNT, &signer.sign(&claims())).is_err_and(|e| e.contains("example")));
    for (text, reason) in [
        ("{}", "neither JSON://"),
        ("JSON://{", "EOF"),
        ("JSON://[]", "member for each"),
        (r#"JSON://{"a": {"keys": [], "audience": "x"}}"#, "no keys"),
        (r#"JSON://{"a": {"audience": "x"}}"#, "either"),
        (r#"JSON://{"a": {"jwks_uri": "https://x/", "audience": []}}"#, "audience"),
        (r#"JSON://{"a": {"jwks_uri": "http://x.org/", "audience": "y"}}"#, "neither https"),
        (r#"JSON://{"a": {"keys": [{"kty": "oct", "k": "AAAA"}], "audience": "y"}}"#, "secret"),
        ("file:///no/such/file", "No such file"),
    ] {
        let error = check(&Value::text(text)).expect_err(text);
        assert!(error.message().contains(reason), "{}", error.message());
    }
    assert!(Identity::parse(b"u-1").is_none() && Identity::parse(b"{\"user\": \"u\"}").is_none());
    assert!(plain.hash_password(ACCOUNT).is_ok() && plain.hash_password(b"x").is_err());
}

#[test]
fn keys_at_a_url_are_fetched_once_and_again_for_a_new_one() {
    let (first, second) = (ec(), ed());
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/keys", listener.local_addr().expect("an address"));
    let count = Arc::new(AtomicUsize::new(0));
    let (counting, public) = (count.clone(), first.public.clone());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            counting.fetch_add(1, Ordering::Relaxed);
            let mut head = [0; 1024];
            let _ = stream.read(&mut head);
            let body = json!({ "keys": [public] }).to_string();
            let length = body.len();
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
        }
    });
    let method = method(&json!({ "example": {
        "issuer": "https://id.example.com", "audience": "squall", "jwks_uri": url } }));
    method.0.timeout.store(Value::UInt(5));
    for _ in 0..3 {
        assert_eq!(method.0.verify(ACCOUNT, &first.sign(&claims())), Ok(()));
    }
    assert_eq!(count.load(Ordering::Relaxed), 1);
    // Tokens with unknown keys do not make us ask each time.
    for _ in 0..3 {
        assert!(method.0.verify(ACCOUNT, &second.sign(&claims())).is_err());
    }
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

#[test]
fn the_client_sends_a_byte_and_the_token_after_its_length() {
    let signer = ed();
    let method = method(&with_keys(&[&signer]));
    let ctx = |channel| AuthContext {
        user: "ann".into(),
        nonce: [0; 20],
        channel,
        peer_uid: None,
        peer_user: None,
    };
    let secret =
        AccountSecret { authentication_string: ACCOUNT.to_vec(), ..AccountSecret::default() };
    let refused = method.start(ctx(AuthChannel::Plain), secret.clone()).map(drop);
    assert_eq!(refused.expect_err("no TLS").code(), ErrorCode::SECURE_TRANSPORT_REQUIRED);
    let answer = |packet: &[u8]| {
        let mut exchange =
            method.start(ctx(AuthChannel::Encrypted), secret.clone()).expect("an exchange");
        exchange.next(packet).expect("a step")
    };
    let token = signer.sign(&claims());
    let length = u16::try_from(token.len()).expect("a short token").to_le_bytes();
    let packet = [&[1, 252, length[0], length[1]], token.as_bytes()].concat();
    assert_eq!(answer(&packet), AuthStep::Accept);
    assert_eq!(answer(&packet[..packet.len() - 1]), AuthStep::Refuse);
    assert_eq!(answer(token.as_bytes()), AuthStep::Refuse);
    assert_eq!(answer(b""), AuthStep::Refuse);
    assert_eq!(client_token(&[1, 3, b'a', b'b', b'c']), Some(&b"abc"[..]));
    assert_eq!(client_token(&[1, 253, 1, 0, 0, b'a']), Some(&b"a"[..]));
    assert_eq!(client_token(&[1, 255]), None);
}
