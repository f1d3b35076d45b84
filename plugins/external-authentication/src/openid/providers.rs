//! Identity providers: the text of `authentication_openid_connect_configuration`.
//!
//! An object with a member for each provider. Its value is a JWK, as text or as an object, and the provider's name is its issuer; or an object
//! `{"issuer": .., "audience": .. or [..], "keys": [..] or "jwks_uri": ".."}`.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, JwkSet};
use plugin_api::GlobalValue;
use serde_json::Value as Json;
use sys::private_file::{self, Stamp};
use sys::sync::Mutex;

use crate::outbound::check_url;

/// More keys of a provider are refused: each may be tried.
const KEYS_MAX: usize = 64;

/// Where a provider's keys come from.
#[derive(Debug)]
pub(crate) enum KeySource {
    /// The configuration.
    Fixed(Arc<JwkSet>),
    /// A URL that has a JWK set.
    Url(String),
}

/// An identity provider.
#[derive(Debug)]
pub(crate) struct Provider {
    /// The claim `iss` of its tokens.
    pub(crate) issuer: String,
    /// One of these is in the claim `aud`; empty: nobody asks.
    pub(crate) audiences: Vec<String>,
    /// Its keys.
    pub(crate) keys: KeySource,
}

/// Providers by name.
pub(crate) type Providers = HashMap<String, Provider>;

/// # Errors
/// What is wrong with the keys.
pub(crate) fn checked(keys: JwkSet) -> Result<Arc<JwkSet>, String> {
    let is_secret = |key: &Jwk| matches!(key.algorithm, AlgorithmParameters::OctetKey(_));
    if keys.keys.iter().any(is_secret) {
        return Err(
            "a key is a secret one (kty oct): tokens are checked by public keys only".into()
        );
    }
    match keys.keys.len() {
        0 => Err("there are no keys".into()),
        1..=KEYS_MAX => Ok(Arc::new(keys)),
        _ => Err(format!("there are more than {KEYS_MAX} keys")),
    }
}

fn one_key(name: &str, key: Json) -> Result<Provider, String> {
    let key: Jwk = serde_json::from_value(key).map_err(|error| format!("a key: {error}"))?;
    let keys = KeySource::Fixed(checked(JwkSet { keys: vec![key] })?);
    Ok(Provider { issuer: name.to_owned(), audiences: Vec::new(), keys })
}

fn audiences(value: &Json) -> Result<Vec<String>, String> {
    let text = |value: &Json| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let found = match value {
        Json::Array(values) => values.iter().map(text).collect(),
        value => text(value).map(|audience| vec![audience]),
    };
    found
        .filter(|found: &Vec<String>| !found.is_empty())
        .ok_or_else(|| "'audience' is a text or an array of texts, and wanted".to_owned())
}

fn provider(name: &str, value: &Json) -> Result<Provider, String> {
    if let Some(text) = value.as_str() {
        let key = serde_json::from_str(text).map_err(|error| format!("a key: {error}"))?;
        return one_key(name, key);
    }
    if value.get("kty").is_some() {
        return one_key(name, value.clone());
    }
    let members = value.as_object().ok_or("neither a key nor an object")?;
    let known = ["issuer", "audience", "keys", "jwks_uri"];
    if let Some(other) = members.keys().find(|member| !known.contains(&member.as_str())) {
        return Err(format!("'{other}' is none of issuer, audience, keys, jwks_uri"));
    }
    let issuer = members.get("issuer").map_or(Some(name), Json::as_str);
    let keys = match (members.get("keys"), members.get("jwks_uri").and_then(Json::as_str)) {
        (Some(keys), None) => {
            let keys = serde_json::json!({ "keys": keys });
            let keys = serde_json::from_value(keys).map_err(|error| format!("keys: {error}"))?;
            KeySource::Fixed(checked(keys)?)
        }
        (None, Some(url)) => {
            check_url(url)?;
            KeySource::Url(url.to_owned())
        }
        (None, None) | (Some(_), Some(_)) => {
            return Err("either 'keys' or 'jwks_uri' is wanted".into());
        }
    };
    Ok(Provider {
        issuer: issuer.ok_or("'issuer' is no text")?.to_owned(),
        audiences: audiences(members.get("audience").unwrap_or(&Json::Null))?,
        keys,
    })
}

/// The path of a `file://` text.
fn file_of(text: &str) -> Option<&Path> {
    text.strip_prefix("file://").map(Path::new)
}

/// # Errors
/// The text is no configuration, or its file cannot be read.
pub(crate) fn parse(text: &str) -> Result<Providers, String> {
    let read;
    let json = if text.is_empty() {
        return Ok(Providers::new());
    } else if let Some(path) = file_of(text) {
        read = sys::files::read_text(path).map_err(|error| format!("'{text}': {error}"))?;
        read.as_str()
    } else {
        text.strip_prefix("JSON://").ok_or("neither JSON:// nor file:// at the beginning")?
    };
    let parsed: Json = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let members = parsed.as_object().ok_or("no object with a member for each provider")?;
    let one = |(name, value): (&String, &Json)| {
        let provider = provider(name, value).map_err(|reason| format!("'{name}': {reason}"))?;
        Ok((name.clone(), provider))
    };
    members.iter().map(one).collect()
}

/// What was parsed last: from which text, and from which state of its file.
type Parsed = (String, Stamp, Arc<Providers>);

/// The configuration, parsed again when it or its file changes.
#[derive(Default)]
pub(crate) struct Configuration {
    /// The variable.
    pub(crate) text: GlobalValue,
    parsed: Mutex<Option<Parsed>>,
}

impl Configuration {
    /// The providers now.
    ///
    /// # Errors
    /// As [`parse`].
    pub(crate) fn providers(&self) -> Result<Arc<Providers>, String> {
        let text = self.text.text();
        let stamp = match file_of(&text) {
            Some(path) => {
                private_file::stamp(path).map_err(|error| format!("'{text}': {error}"))?
            }
            None => Stamp::default(),
        };
        let mut parsed = self.parsed.lock();
        if let Some((known, at, providers)) = &*parsed
            && *known == text
            && *at == stamp
        {
            return Ok(providers.clone());
        }
        let providers = Arc::new(parse(&text)?);
        *parsed = Some((text, stamp, providers.clone()));
        Ok(providers)
    }
}
