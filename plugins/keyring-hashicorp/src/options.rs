//! What a start says of a Vault, and the variables that show it.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use plugin_api::variable::{Definition, Kind, uint};
use ureq::http::Uri;

const SERVER_URL: &str = "keyring_hashicorp_server_url";
const STORE_PATH: &str = "keyring_hashicorp_store_path";
const TOKEN_FILE: &str = "keyring_hashicorp_token_file";
const CA_PATH: &str = "keyring_hashicorp_ca_path";
const TIMEOUT: &str = "keyring_hashicorp_timeout";

const TIMEOUT_DEFAULT: &str = "15";
const TIMEOUT_MAX: u64 = 300;
/// What every path of Vault's interface begins with.
const VERSION: &str = "/v1/";

pub(crate) static DEFINITIONS: &[Definition] = &[
    Definition::fixed(SERVER_URL, Kind::Text, "", "URL of the Vault with the keys that open an encrypted data directory; a new one is encrypted when it is named").option(),
    Definition::fixed(STORE_PATH, Kind::Text, "", "Path of the keys in Vault: /v1/MOUNT/PATH of a key/value engine of version 1, /v1/MOUNT/data/PATH of one of version 2").option(),
    Definition::fixed(TOKEN_FILE, Kind::Text, "", "File with the token for Vault, which others must not be able to read").option(),
    Definition::fixed(CA_PATH, Kind::Text, "", "PEM file of the authorities that Vault's certificate is trusted by; empty for the system's").option(),
    Definition::fixed(TIMEOUT, uint(1, TIMEOUT_MAX), TIMEOUT_DEFAULT, "Seconds that a request to Vault may take").option(),
];

/// How to reach a Vault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaultOptions {
    /// Scheme, host and port.
    pub(crate) server_url: String,
    /// Where the keys are, without a slash at the end.
    pub(crate) store: Store,
    pub(crate) token_file: PathBuf,
    /// A PEM file; `None` for the system's authorities.
    pub(crate) ca_file: Option<PathBuf>,
    /// For a request as a whole.
    pub(crate) timeout: Duration,
}

/// The place of the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Store {
    /// The path under which keys are read and written.
    pub(crate) data: String,
    /// The path under which version 2 lists and removes them; `None` with version 1.
    pub(crate) metadata: Option<String>,
}

impl VaultOptions {
    /// From the options of a start; `None` when they name no Vault.
    ///
    /// # Errors
    /// What is wrong with an option, or missing.
    pub fn collect<'a>(
        last: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Option<VaultOptions>, String> {
        let given = |name: &str| last(name).filter(|value| !value.is_empty());
        let Some(url) = given(SERVER_URL) else {
            return match [STORE_PATH, TOKEN_FILE, CA_PATH].iter().find(|name| given(name).is_some())
            {
                Some(name) => Err(format!("{} wants {}", option(name), option(SERVER_URL))),
                None => Ok(None),
            };
        };
        let needed = |name: &str| {
            given(name).ok_or_else(|| format!("{} wants {}", option(SERVER_URL), option(name)))
        };
        let seconds = given(TIMEOUT).unwrap_or(TIMEOUT_DEFAULT);
        let seconds = seconds.parse().ok().filter(|seconds| (1..=TIMEOUT_MAX).contains(seconds));
        let seconds =
            seconds.ok_or_else(|| format!("{}: seconds, 1 to {TIMEOUT_MAX}", option(TIMEOUT)))?;
        let wrong = |name: &str, reason: String| format!("{}: {reason}", option(name));
        Ok(Some(VaultOptions {
            server_url: server_url(url).map_err(|reason| wrong(SERVER_URL, reason))?,
            store: store(needed(STORE_PATH)?).map_err(|reason| wrong(STORE_PATH, reason))?,
            token_file: PathBuf::from(needed(TOKEN_FILE)?),
            ca_file: given(CA_PATH).map(PathBuf::from),
            timeout: Duration::from_secs(seconds),
        }))
    }
}

/// The name of an option as a command line has it.
fn option(name: &str) -> String {
    format!("--{}", name.replace('_', "-"))
}

/// A URL that a token may be sent to.
fn server_url(text: &str) -> Result<String, String> {
    // Neither a name nor a password that may be in it is repeated.
    let parsed: Uri = text.parse().map_err(|_| "it is no URL")?;
    let (Some(scheme), Some(authority)) = (parsed.scheme_str(), parsed.authority()) else {
        return Err("a URL with scheme and host, as https://vault.example.com:8200".into());
    };
    if authority.as_str().contains('@') {
        return Err("no name and no password in it".into());
    }
    if !matches!(parsed.path(), "" | "/") || parsed.query().is_some() {
        return Err(format!("without a path: that is {}", option(STORE_PATH)));
    }
    match scheme {
        "https" => {}
        "http" if is_loopback(authority.host()) => {}
        _ => return Err("https, or http to this machine: a token goes there".into()),
    }
    Ok(format!("{scheme}://{authority}"))
}

fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

fn store(text: &str) -> Result<Store, String> {
    let path = text.strip_suffix('/').unwrap_or(text);
    let parts: Vec<&str> = path.strip_prefix(VERSION).unwrap_or_default().split('/').collect();
    let is_part = |part: &&str| {
        let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
        !part.is_empty() && *part != "." && *part != ".." && part.bytes().all(is_known)
    };
    if parts.len() < 2 || !parts.iter().all(is_part) {
        return Err("a path like /v1/secret/data/squall, of letters, digits, - _ . ~".into());
    }
    // The first part is the mount's, or the first of the mount's.
    let metadata = match parts.iter().skip(1).position(|part| *part == "data") {
        Some(at) if at + 2 == parts.len() => {
            return Err(format!("a path below {path}/"));
        }
        Some(at) => {
            let mut parts = parts.clone();
            parts.splice(at + 1..at + 2, ["metadata"]);
            Some(format!("{VERSION}{}", parts.join("/")))
        }
        None => None,
    };
    Ok(Store { data: path.to_owned(), metadata })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_over_tls_or_stay_on_this_machine() {
        for url in ["https://vault.example.com:8200", "http://127.0.0.1:81/", "http://[::1]:8200"] {
            assert_eq!(server_url(url).unwrap(), url.trim_end_matches('/'), "{url}");
        }
        for url in [
            "http://vault.example.com",
            "http://127.0.0.1.example.com",
            "https://me:pw@example.com/",
            "https://example.com/v1/secret",
            "ftp://localhost",
            "/v1",
            "",
        ] {
            let error = server_url(url).unwrap_err();
            assert!(!error.contains("pw"), "{url}: {error}");
        }
    }

    #[test]
    fn the_path_says_which_version_the_engine_has() {
        let of = |data: &str, metadata: Option<&str>| {
            Ok(Store { data: data.to_owned(), metadata: metadata.map(str::to_owned) })
        };
        assert_eq!(store("/v1/kv/squall/"), of("/v1/kv/squall", None));
        assert_eq!(
            store("/v1/secret/data/a/data/b"),
            of("/v1/secret/data/a/data/b", Some("/v1/secret/metadata/a/data/b"))
        );
        // A mount called `data`.
        assert_eq!(store("/v1/data/squall"), of("/v1/data/squall", None));
        for wrong in ["", "/v1/", "/v1/kv", "/v1/kv/data", "/v2/kv/a", "kv/a", "/v1/kv//a"] {
            assert!(store(wrong).is_err(), "{wrong}");
        }
        for wrong in ["/v1/kv/../sys", "/v1/kv/a?b", "/v1/kv/a b", "/v1/kv/%2e"] {
            assert!(store(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let collect = |given: &[(&'static str, &'static str)]| {
            VaultOptions::collect(|name| {
                given.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
            })
        };
        assert_eq!(collect(&[]), Ok(None));
        let url = (SERVER_URL, "https://vault:8200");
        let path = (STORE_PATH, "/v1/secret/data/squall");
        let token = (TOKEN_FILE, "/run/token");
        assert_eq!(
            collect(&[path]).unwrap_err(),
            "--keyring-hashicorp-store-path wants --keyring-hashicorp-server-url"
        );
        assert!(collect(&[url]).unwrap_err().ends_with("wants --keyring-hashicorp-store-path"));
        assert!(collect(&[url, path]).unwrap_err().ends_with("-token-file"));
        let whole = collect(&[url, path, token]).unwrap().unwrap();
        assert_eq!((whole.timeout.as_secs(), whole.ca_file), (15, None));
        for wrong in ["0", "301", "x"] {
            assert!(collect(&[url, path, token, (TIMEOUT, wrong)]).is_err());
        }
    }
}
