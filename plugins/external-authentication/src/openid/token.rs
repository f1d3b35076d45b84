//! One ID token: whose it is, and whether it proves that.

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde_json::Value as Json;

use super::providers::Provider;

/// Seconds that clocks may differ.
const CLOCK_LEEWAY_SECONDS: u64 = 30;

/// Whom an account trusts to say who its user is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Name of the provider.
    pub(crate) provider: String,
    /// The claim `sub` of the user's tokens.
    pub(crate) subject: String,
}

impl Identity {
    /// The identity in the AS clause of an account.
    pub(crate) fn parse(account: &[u8]) -> Option<Identity> {
        let parsed: Json = serde_json::from_slice(account).ok()?;
        let member = |name: &str| {
            parsed.get(name)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
        };
        Some(Identity { provider: member("identity_provider")?, subject: member("user")? })
    }
}

/// The name of the key that signed a token.
pub(crate) fn key_id(token: &str) -> Option<String> {
    jsonwebtoken::decode_header(token).ok()?.kid
}

/// A claim of a token that nobody has verified.
pub(crate) fn claim(token: &str, name: &str) -> Option<String> {
    let claims: Json = jsonwebtoken::dangerous::insecure_decode_claims(token).ok()?;
    claims.get(name)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Whether a key may have made a signature by this algorithm. Only algorithms with public keys are named.
fn fits(key: &Jwk, algorithm: Algorithm) -> bool {
    let is_of_kind = match &key.algorithm {
        AlgorithmParameters::RSA(_) => matches!(
            algorithm,
            Algorithm::RS256
                | Algorithm::RS384
                | Algorithm::RS512
                | Algorithm::PS256
                | Algorithm::PS384
                | Algorithm::PS512
        ),
        AlgorithmParameters::EllipticCurve(key) => matches!(
            (&key.curve, algorithm),
            (EllipticCurve::P256, Algorithm::ES256) | (EllipticCurve::P384, Algorithm::ES384)
        ),
        AlgorithmParameters::OctetKeyPair(key) => {
            key.curve == EllipticCurve::Ed25519 && algorithm == Algorithm::EdDSA
        }
        // Secret keys, and kinds that nobody knows.
        _ => false,
    };
    let is_for_signatures =
        key.common.public_key_use.as_ref().is_none_or(|usage| *usage == PublicKeyUse::Signature);
    let named = key.common.key_algorithm;
    let is_named = named.is_none_or(|named| named.to_string() == format!("{algorithm:?}"));
    is_of_kind && is_for_signatures && is_named
}

/// Checks a token's signature by one of the keys, and its claims: issuer, audience, subject, times.
///
/// # Errors
/// The reason, without anything of the token.
pub(crate) fn verify(
    provider: &Provider,
    keys: &JwkSet,
    identity: &Identity,
    token: &str,
) -> Result<(), String> {
    let header = jsonwebtoken::decode_header(token).map_err(|_| "the token is none".to_owned())?;
    let is_named = |key: &&Jwk| match (&header.kid, &key.common.key_id) {
        (Some(wanted), Some(name)) => wanted == name,
        (None, _) | (_, None) => true,
    };
    let mut validation = Validation::new(header.alg);
    validation.leeway = CLOCK_LEEWAY_SECONDS;
    validation.validate_nbf = true;
    validation.set_issuer(&[&provider.issuer]);
    validation.sub = Some(identity.subject.clone());
    if provider.audiences.is_empty() {
        validation.validate_aud = false;
        validation.set_required_spec_claims(&["exp", "iss", "sub"]);
    } else {
        validation.set_audience(&provider.audiences);
        validation.set_required_spec_claims(&["exp", "iss", "sub", "aud"]);
    }
    let mut reason = "no key of the provider fits the token";
    for key in keys.keys.iter().filter(is_named).filter(|key| fits(key, header.alg)) {
        let Ok(key) = DecodingKey::from_jwk(key) else { continue };
        match jsonwebtoken::decode::<Json>(token, &key, &validation) {
            Ok(_) => return Ok(()),
            Err(error) => reason = told(error.kind()),
        }
    }
    Err(reason.into())
}

fn told(kind: &ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidSignature => "the token's signature is wrong",
        ErrorKind::ExpiredSignature => "the token has expired",
        ErrorKind::ImmatureSignature => "the token is not valid yet",
        ErrorKind::InvalidIssuer => "the token has another issuer",
        ErrorKind::InvalidAudience => "the token is meant for another audience",
        ErrorKind::InvalidSubject => "the token has another subject",
        ErrorKind::MissingRequiredClaim(_) => "the token lacks a claim",
        _ => "the token is malformed",
    }
}
