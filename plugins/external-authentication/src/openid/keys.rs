//! Keys of providers that publish them at a URL.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jsonwebtoken::jwk::JwkSet;
use sys::sync::Mutex;

use super::providers::checked;
use crate::outbound::{Reach, get};

/// A larger set is refused.
const SET_BYTES_MAX: u64 = 1 << 20;
/// URLs whose keys are kept.
const URLS_MAX: usize = 64;
/// An unknown key has the set fetched again, but no sooner than this after the last time.
const UNKNOWN_KEY_INTERVAL: Duration = Duration::from_secs(30);

struct Fetched {
    at: Duration,
    keys: Arc<JwkSet>,
}

/// Sets by URL.
#[derive(Default)]
pub(crate) struct FetchedKeys(Mutex<HashMap<String, Fetched>>);

impl FetchedKeys {
    /// The keys at a URL: fetched when they are older than `lifetime`, or when `wanted` is not among them and they are not quite new.
    ///
    /// # Errors
    /// The URL has no keys, or does not answer.
    pub(crate) fn keys(
        &self,
        url: &str,
        wanted: Option<&str>,
        lifetime: Duration,
        reach: &Reach,
    ) -> Result<Arc<JwkSet>, String> {
        let now = sys::clock::monotonic();
        if let Some(known) = self.0.lock().get(url) {
            let age = now.saturating_sub(known.at);
            let has_wanted = wanted.is_none_or(|id| known.keys.find(id).is_some());
            if age < lifetime && (has_wanted || age < UNKNOWN_KEY_INTERVAL) {
                return Ok(known.keys.clone());
            }
        }
        let (status, body) = get(url, None, reach, SET_BYTES_MAX)?;
        if !status.is_success() {
            return Err(format!("'{url}' answered with status {}", status.as_u16()));
        }
        let keys: Result<JwkSet, _> = serde_json::from_slice(&body);
        let keys = keys.map_err(|error| format!("'{url}' has no key set: {error}"))?;
        let keys = checked(keys).map_err(|reason| format!("'{url}': {reason}"))?;
        let mut fetched = self.0.lock();
        if fetched.len() >= URLS_MAX && !fetched.contains_key(url) {
            fetched.clear();
        }
        fetched.insert(url.to_owned(), Fetched { at: now, keys: keys.clone() });
        Ok(keys)
    }
}
