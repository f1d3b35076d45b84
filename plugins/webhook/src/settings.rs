//! The options of a stream whose sink is `webhook`.

use std::time::Duration;

use errors::{Error, Result, err};
use plugin_api::SinkOptions;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use ureq::http::{HeaderName, HeaderValue, Uri};
use ureq::tls::{PemItem, RootCerts, parse_pem};

/// Headers that belong to the connection or to this sink.
const OWN_HEADERS: &[&str] = &[
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// Seconds that the receiver may take for a batch.
const TIMEOUT: u64 = 10;
const TIMEOUT_MAX: u64 = 300;

/// Where to, and how.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub url: Uri,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Signs batches.
    pub secret: Option<Secret>,
    pub timeout: Duration,
    /// Whose certificates are trusted.
    pub authorities: RootCerts,
}

/// A text that is not shown.
#[derive(Clone)]
pub(crate) struct Secret(pub String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("<secret>")
    }
}

fn wrong(why: impl std::fmt::Display) -> Error {
    err!(WRONG_ARGUMENTS, format!("CHANGE STREAM: webhook: {why}"))
}

impl Settings {
    /// # Errors
    /// 1210 naming the option.
    pub fn read(options: &SinkOptions) -> Result<Settings> {
        let (mut url, mut headers, mut secret) = (None, Vec::new(), None);
        let (mut timeout, mut authorities) = (TIMEOUT, RootCerts::WebPki);
        for (name, value) in options.iter() {
            match name {
                "url" => url = Some(read_url(value)?),
                "headers" => headers = read_headers(value)?,
                "ca" => authorities = read_authorities(value)?,
                "secret" => secret = Some(Secret(value.to_owned())),
                "timeout_seconds" => {
                    let seconds = value.parse().ok().filter(|s| (1..=TIMEOUT_MAX).contains(s));
                    timeout = seconds.ok_or_else(|| wrong(name))?;
                }
                _ => return Err(wrong(name)),
            }
        }
        let url = url.ok_or_else(|| wrong("url is missing"))?;
        let timeout = Duration::from_secs(timeout);
        Ok(Settings { url, headers, secret, timeout, authorities })
    }
}

fn read_url(text: &str) -> Result<Uri> {
    let url: Uri = text.parse().map_err(|_| wrong("url"))?;
    let is_http = matches!(url.scheme_str(), Some("http" | "https"));
    let has_user = url.authority().is_some_and(|authority| authority.as_str().contains('@'));
    if !is_http || url.host().is_none_or(str::is_empty) || has_user {
        return Err(wrong("url"));
    }
    Ok(url)
}

/// Certificates, one after the other.
fn read_authorities(text: &str) -> Result<RootCerts> {
    let mut certificates = Vec::new();
    for item in parse_pem(text.as_bytes()) {
        match item.map_err(|_| wrong("ca"))? {
            PemItem::Certificate(certificate) => certificates.push(certificate),
            _ => return Err(wrong("ca")),
        }
    }
    // One that cannot be used would fail at each attempt.
    let mut roots = RootCertStore::empty();
    for certificate in &certificates {
        roots.add(CertificateDer::from(certificate.der())).map_err(|_| wrong("ca"))?;
    }
    match certificates.is_empty() {
        true => Err(wrong("ca")),
        false => Ok(RootCerts::new_with_certs(&certificates)),
    }
}

/// A header a line: `Name: value`.
fn read_headers(text: &str) -> Result<Vec<(HeaderName, HeaderValue)>> {
    let mut headers = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let (name, value) = line.split_once(':').ok_or_else(|| wrong("headers"))?;
        let name = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| wrong("headers"))?;
        if OWN_HEADERS.contains(&name.as_str()) || name.as_str().starts_with("x-squall-") {
            return Err(wrong(format_args!("the header {name} cannot be set")));
        }
        let value = HeaderValue::from_str(value.trim()).map_err(|_| wrong("headers"))?;
        headers.push((name, value));
    }
    Ok(headers)
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
        let headers = "Authorization: Bearer abc\nX-Other: 1";
        let all = [
            ("url", "https://h/p?q=1"),
            ("headers", headers),
            ("secret", "s"),
            ("timeout_seconds", "3"),
        ];
        let settings = read(&all).expect("known options");
        assert_eq!((settings.headers.len(), settings.timeout.as_secs()), (2, 3));
        assert!(!format!("{:?}", settings.secret).contains("Secret(\"s"));
        let refused: [&[(&str, &str)]; 8] = [
            &[("url", "https://h/"), ("ca", "no certificate")],
            &[],
            &[("url", "ftp://h/")],
            &[("url", "http://user:pw@h/")],
            &[("url", "http://h/"), ("other", "1")],
            &[("url", "http://h/"), ("timeout_seconds", "0")],
            &[("url", "http://h/"), ("headers", "Host: x")],
            &[("url", "http://h/"), ("headers", "no header")],
        ];
        for options in refused {
            read(options).expect_err("refused");
        }
    }
}
