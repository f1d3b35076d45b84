//! The options of a stream whose sink is `kafka`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use errors::{Error, Result, err};
use plugin_api::SinkOptions;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::scram::Hash;

/// The port of a broker whose address has none.
const PORT: u16 = 9092;
/// Seconds that a broker may take for a request.
const TIMEOUT: u64 = 10;
const TIMEOUT_MAX: u64 = 300;
/// Bytes of a topic's name.
const TOPIC_MAX: usize = 249;

/// How a password is proved (SASL).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mechanism {
    /// It is sent.
    Plain,
    Scram(Hash),
}

impl Mechanism {
    const ALL: [Mechanism; 3] =
        [Mechanism::Plain, Mechanism::Scram(Hash::Sha256), Mechanism::Scram(Hash::Sha512)];

    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Plain => "PLAIN",
            Mechanism::Scram(Hash::Sha256) => "SCRAM-SHA-256",
            Mechanism::Scram(Hash::Sha512) => "SCRAM-SHA-512",
        }
    }
}

/// Who logs in.
#[derive(Clone)]
pub(crate) struct Account {
    pub user: String,
    pub password: String,
    pub mechanism: Mechanism,
}

/// Where to, and how.
#[derive(Clone)]
pub(crate) struct Settings {
    /// Brokers to ask first, with their ports.
    pub brokers: Vec<(String, u16)>,
    pub topic: String,
    pub tls: Option<Arc<ClientConfig>>,
    pub account: Option<Account>,
    pub timeout: Duration,
}

// The password is secret.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("brokers", &self.brokers).finish_non_exhaustive()
    }
}

fn wrong(why: impl fmt::Display) -> Error {
    err!(WRONG_ARGUMENTS, format!("CHANGE STREAM: kafka: {why}"))
}

impl Settings {
    /// # Errors
    /// 1210 naming the option.
    pub fn read(options: &SinkOptions) -> Result<Settings> {
        let (mut url, mut ca, mut user, mut password) = (None, None, None, None);
        let (mut mechanism, mut certificate, mut private_key) = (None, None, None);
        let mut timeout = TIMEOUT;
        for (name, value) in options.iter() {
            match name {
                "url" => url = Some(read_url(value)?),
                "ca" => ca = Some(value),
                "user" => user = Some(value),
                "password" => password = Some(value),
                "mechanism" => {
                    let is_named = |one: &Mechanism| one.name().eq_ignore_ascii_case(value);
                    let known = Mechanism::ALL.into_iter().find(is_named);
                    mechanism = Some(known.ok_or_else(|| wrong(name))?);
                }
                "certificate" => certificate = Some(value),
                "private_key" => private_key = Some(value),
                "timeout_seconds" => {
                    let seconds = value.parse().ok().filter(|s| (1..=TIMEOUT_MAX).contains(s));
                    timeout = seconds.ok_or_else(|| wrong(name))?;
                }
                _ => return Err(wrong(name)),
            }
        }
        let Url { has_tls, brokers, topic } = url.ok_or_else(|| wrong("url is missing"))?;
        let identity = match (certificate, private_key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            (Some(_), None) => return Err(wrong("private_key is missing")),
            (None, Some(_)) => return Err(wrong("certificate is missing")),
        };
        let tls = match (has_tls, ca.is_some() || identity.is_some()) {
            (true, _) => Some(tls_config(ca, identity)?),
            (false, true) => return Err(wrong("certificates without TLS")),
            (false, false) => None,
        };
        let account = match (user, password) {
            (Some(user), Some(password)) => Some(Account {
                user: user.to_owned(),
                password: password.to_owned(),
                mechanism: mechanism.unwrap_or(Mechanism::Plain),
            }),
            (None, None) if mechanism.is_some() => return Err(wrong("user is missing")),
            (None, None) => None,
            (Some(_), None) => return Err(wrong("password is missing")),
            (None, Some(_)) => return Err(wrong("user is missing")),
        };
        // They end the parts of a log-in.
        let has_end =
            |account: &Account| account.user.contains('\0') || account.password.contains('\0');
        if account.as_ref().is_some_and(has_end) {
            return Err(wrong("user"));
        }
        Ok(Settings { brokers, topic, tls, account, timeout: Duration::from_secs(timeout) })
    }
}

struct Url {
    has_tls: bool,
    brokers: Vec<(String, u16)>,
    topic: String,
}

/// `kafka://host:port,host:port/topic`, or `kafka+ssl://`.
fn read_url(text: &str) -> Result<Url> {
    let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong("url"))?;
    let has_tls = match scheme.to_ascii_lowercase().as_str() {
        "kafka" => false,
        "kafka+ssl" => true,
        _ => return Err(wrong("url")),
    };
    let (hosts, topic) = rest.split_once('/').ok_or_else(|| wrong("url has no topic"))?;
    let is_known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let is_topic = !topic.is_empty()
        && topic.len() <= TOPIC_MAX
        && topic.chars().all(is_known)
        && !matches!(topic, "." | "..");
    if !is_topic {
        return Err(wrong("url: the name of the topic"));
    }
    let brokers = hosts.split(',').map(read_address).collect::<Result<_>>()?;
    Ok(Url { has_tls, brokers, topic: topic.to_owned() })
}

/// `host`, `host:port`, `[address]` or `[address]:port`.
fn read_address(text: &str) -> Result<(String, u16)> {
    let (host, rest) = match text.strip_prefix('[') {
        Some(text) => text.split_once(']').ok_or_else(|| wrong("url"))?,
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let port = match rest.strip_prefix(':') {
        Some(port) => port.parse().ok().filter(|port| *port != 0).ok_or_else(|| wrong("url"))?,
        None if rest.is_empty() => PORT,
        None => return Err(wrong("url")),
    };
    let is_strange = |c: char| c.is_control() || matches!(c, ' ' | '@' | '?' | '#');
    if host.is_empty() || host.contains(is_strange) {
        return Err(wrong("url"));
    }
    Ok((host.to_owned(), port))
}

/// Trusts the authorities of the text, or those that browsers trust. `identity` is the stream's own certificate with its key.
fn tls_config(ca: Option<&str>, identity: Option<(&str, &str)>) -> Result<Arc<ClientConfig>> {
    let mut roots = RootCertStore::empty();
    match ca {
        Some(text) => {
            for certificate in CertificateDer::pem_slice_iter(text.as_bytes()) {
                let certificate = certificate.map_err(|_| wrong("ca"))?;
                roots.add(certificate).map_err(|_| wrong("ca"))?;
            }
            if roots.is_empty() {
                return Err(wrong("ca"));
            }
        }
        None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().map_err(wrong)?;
    let builder = builder.with_root_certificates(roots);
    let Some((certificate, key)) = identity else {
        return Ok(Arc::new(builder.with_no_client_auth()));
    };
    let chain = CertificateDer::pem_slice_iter(certificate.as_bytes())
        .collect::<std::result::Result<Vec<_>, _>>()
        .map_err(|_| wrong("certificate"))?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| wrong("private_key"))?;
    let config = builder.with_client_auth_cert(chain, key).map_err(|_| wrong("certificate"))?;
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(options: &[(&str, &str)]) -> Result<Settings> {
        let mut given = SinkOptions::default();
        options.iter().for_each(|(name, value)| given.set(name, value));
        Settings::read(&given)
    }

    #[test]
    fn options_are_read_or_refused() {
        let all = [
            ("url", "kafka+ssl://a:1,[::1]:2,c/orders.v1"),
            ("user", "u"),
            ("password", "hidden"),
            ("timeout_seconds", "3"),
        ];
        let settings = read(&all).expect("known options");
        let brokers = [("a".to_owned(), 1), ("::1".to_owned(), 2), ("c".to_owned(), PORT)];
        assert_eq!(
            (settings.brokers.as_slice(), settings.topic.as_str()),
            (&brokers[..], "orders.v1")
        );
        assert!(settings.tls.is_some() && !format!("{settings:?}").contains("hidden"));
        let refused: [&[(&str, &str)]; 15] = [
            &[("url", "kafka://h/t"), ("mechanism", "PLAIN")],
            &[("url", "kafka://h/t"), ("user", "u"), ("password", "p"), ("mechanism", "GSSAPI")],
            &[("url", "kafka+ssl://h/t"), ("certificate", "x")],
            &[("url", "kafka+ssl://h/t"), ("certificate", "x"), ("private_key", "y")],
            &[],
            &[("url", "http://h/t")],
            &[("url", "kafka://h")],
            &[("url", "kafka://h/")],
            &[("url", "kafka://h/a/b")],
            &[("url", "kafka://u:p@h/t")],
            &[("url", "kafka://h:0/t")],
            &[("url", "kafka://h/t"), ("user", "u")],
            &[("url", "kafka://h/t"), ("ca", "x")],
            &[("url", "kafka+ssl://h/t"), ("ca", "x")],
            &[("url", "kafka://h/t"), ("other", "1")],
        ];
        for options in refused {
            read(options).expect_err("refused");
        }
    }
}
