//! URLs: which are requested at all, and where a redirect leads.

use ureq::http::Uri;

use crate::allow::is_host_name;
use crate::failure::Failure;

/// Bytes of the longest URL.
const BYTES_MAX: usize = 8192;

/// A URL that may be requested, as far as its form is concerned.
#[derive(Clone, Debug)]
pub(crate) struct Url {
    pub(crate) uri: Uri,
    /// The host in lower case, an IPv6 address without its brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Url {
    /// Checks a URL: http or https, a host, no user or password, no character that could end a line of the request.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Url, Failure> {
        if text.len() > BYTES_MAX {
            return Err(Failure::new("the URL is too long"));
        }
        let is_unfit = |byte: u8| byte <= b' ' || byte >= 0x7f || byte == b'\\';
        if text.bytes().any(is_unfit) {
            return Err(Failure::new("the URL has a character that must be percent-encoded"));
        }
        let uri: Uri = text.parse().map_err(|error| Failure::new(format!("the URL: {error}")))?;
        let port = match uri.scheme_str() {
            Some("http") => 80,
            Some("https") => 443,
            _ => return Err(Failure::new("the URL is not one of http or https")),
        };
        let authority = uri.authority().ok_or_else(|| Failure::new("the URL has no host"))?;
        if authority.as_str().contains('@') {
            return Err(Failure::new("the URL has a user or a password"));
        }
        let host = authority.host().to_ascii_lowercase();
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let is_address = match bare {
            Some(v6) => v6.parse::<std::net::Ipv6Addr>().is_ok(),
            None => host.parse::<std::net::Ipv4Addr>().is_ok(),
        };
        if !is_address && !is_host_name(&host) {
            return Err(Failure::new(format!("'{host}' is no name of a host")));
        }
        // `host:` and `host:x` are not ports.
        let port = match (authority.port(), authority.as_str().len() > authority.host().len()) {
            (Some(port), _) => port.as_u16(),
            (None, false) => port,
            (None, true) => return Err(Failure::new("the URL has an invalid port")),
        };
        let host = bare.unwrap_or(&host).to_owned();
        Ok(Url { uri, host, port })
    }

    /// The URL that the header `Location` of an answer leads to.
    ///
    /// # Errors
    /// As `parse`; it would leave encryption.
    pub(crate) fn redirected(&self, location: &str) -> Result<Url, Failure> {
        let scheme = self.uri.scheme_str().unwrap_or("http");
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        let location = location.split('#').next().unwrap_or_default();
        let next = if has_scheme(location) {
            location.to_owned()
        } else if location.starts_with("//") {
            format!("{scheme}:{location}")
        } else if location.starts_with('/') {
            format!("{scheme}://{authority}{location}")
        } else if location.starts_with('?') || location.is_empty() {
            format!("{scheme}://{authority}{}{location}", self.uri.path())
        } else {
            let path = self.uri.path();
            let folder = &path[..path.rfind('/').map_or(0, |last| last + 1)];
            format!("{scheme}://{authority}{folder}{location}")
        };
        let next = Url::parse(&next)?;
        if scheme == "https" && next.uri.scheme_str() != Some("https") {
            return Err(Failure::new("a redirect leads from https to http"));
        }
        Ok(next)
    }

    /// Whether two URLs have the same scheme, host and port.
    pub(crate) fn has_origin_of(&self, other: &Url) -> bool {
        self.uri.scheme_str() == other.uri.scheme_str()
            && self.host == other.host
            && self.port == other.port
    }
}

/// Whether a reference is a whole URL: `name:` with letters, digits, `+`, `-` and `.` in the name.
fn has_scheme(reference: &str) -> bool {
    reference.split_once(':').is_some_and(|(scheme, _)| {
        scheme.bytes().next().is_some_and(|first| first.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
    })
}
