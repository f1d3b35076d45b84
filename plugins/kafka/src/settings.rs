//! The options of a stream whose sink is `kafka`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use errors::{Error, Result, err};
use plugin_api::SinkOptions;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// The port of a broker whose address has none.
const PORT: u16 = 9092;
/// Seconds that a broker may take for a request.
const TIMEOUT: u64 = 10;
const TIMEOUT_MAX: u64 = 300;
/// Bytes of a topic's name.
const TOPIC_MAX: usize = 249;

/// Where to, and how.
#[derive(Clone)]
pub(crate) struct Settings {
    /// Brokers to ask first, with their ports.
    pub brokers: Vec<(String, u16)>,
    pub topic: String,
    pub tls: Option<Arc<ClientConfig>>,
    /// User and password.
    pub account: Option<(String, String)>,
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
        let mut timeout = TIMEOUT;
        for (name, value) in options.iter() {
            match name {
                "url" => url = Some(read_url(value)?),
                "ca" => ca = Some(value),
                "user" => user = Some(value),
                "password" => password = Some(value),
                "timeout_seconds" => {
                    let seconds = value.parse().ok().filter(|s| (1..=TIMEOUT_MAX).contains(s));
                    timeout = seconds.ok_or_else(|| wrong(name))?;
                }
                _ => return Err(wrong(name)),
            }
        }
        let Url { has_tls, brokers, topic } = url.ok_or_else(|| wrong("url is missing"))?;
        let tls = match (has_tls, ca) {
            (true, ca) => Some(tls_config(ca)?),
            (false, Some(_)) => return Err(wrong("ca without TLS")),
            (false, None) => None,
        };
        let account = match (user, password) {
            (Some(user), Some(password)) => Some((user.to_owned(), password.to_owned())),
            (None, None) => None,
            (Some(_), None) => return Err(wrong("password is missing")),
            (None, Some(_)) => return Err(wrong("user is missing")),
        };
        // They end the parts of a log-in.
        if account.iter().any(|(user, password)| user.contains('\0') || password.contains('\0')) {
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

/// Trusts the authorities of the text, or those that browsers trust.
fn tls_config(ca: Option<&str>) -> Result<Arc<ClientConfig>> {
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
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
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
        let refused: [&[(&str, &str)]; 11] = [
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
