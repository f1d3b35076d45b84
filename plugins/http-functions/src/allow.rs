//! `http_allowed_hosts`: which hosts and addresses requests may go to.
//!
//! A host must be named, by its name or by its address. An address that is not public must be named as an address, whatever name leads to it:
//! so a name that somebody else controls cannot be pointed to a service in here.

use std::net::{IpAddr, SocketAddr};

use crate::address::{canonical, in_network, is_public};

/// The one name that everybody knows to be this machine.
const LOCALHOST: &str = "localhost";

/// The allowed hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AllowList {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    target: Target,
    /// Any, when `None`.
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    /// `*`: every host with a public address.
    Any,
    /// `name`, in lower case.
    Host(String),
    /// `*.domain`: every name below it; with the leading dot.
    Below(String),
    /// An address, or a network in the form `address/bits`.
    Network(IpAddr, u8),
}

impl AllowList {
    /// Reads a list with commas between its entries.
    ///
    /// # Errors
    /// The entry that is none.
    pub(crate) fn parse(text: &str) -> Result<AllowList, String> {
        let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        let entries = entries.map(|entry| parse_entry(entry).ok_or_else(|| entry.to_owned()));
        Ok(AllowList { entries: entries.collect::<Result<_, _>>()? })
    }

    /// Whether the name may be looked up: it is allowed itself, or the list has addresses that it may lead to.
    pub(crate) fn may_resolve(&self, host: &str, port: u16) -> bool {
        let has_networks =
            self.entries.iter().any(|entry| matches!(entry.target, Target::Network(..)));
        has_networks || self.allows_name(host, port)
    }

    /// Whether a connection to an address of this host may be opened.
    pub(crate) fn allows(&self, host: &str, address: SocketAddr) -> bool {
        let (ip, port) = (canonical(address.ip()), address.port());
        let is_named = self.of_port(port).any(|target| match target {
            Target::Network(network, bits) => in_network(ip, *network, *bits),
            Target::Any | Target::Host(_) | Target::Below(_) => false,
        });
        if is_named {
            return true;
        }
        let is_own = host.eq_ignore_ascii_case(LOCALHOST) && ip.is_loopback();
        let names_own = |target: &Target| matches!(target, Target::Host(name) if name == LOCALHOST);
        if is_own {
            return self.of_port(port).any(names_own);
        }
        is_public(ip) && self.allows_name(host, port)
    }

    fn allows_name(&self, host: &str, port: u16) -> bool {
        let host = host.to_ascii_lowercase();
        let host = host.strip_suffix('.').unwrap_or(&host);
        self.of_port(port).any(|target| match target {
            Target::Any => true,
            Target::Host(name) => name == host,
            Target::Below(domain) => host.ends_with(domain),
            Target::Network(..) => false,
        })
    }

    fn of_port(&self, port: u16) -> impl Iterator<Item = &Target> {
        let fits = move |entry: &&Entry| entry.port.is_none_or(|own| own == port);
        self.entries.iter().filter(fits).map(|entry| &entry.target)
    }
}

fn parse_entry(entry: &str) -> Option<Entry> {
    let whole = |address: IpAddr| {
        let address = canonical(address);
        Target::Network(address, if address.is_ipv4() { 32 } else { 128 })
    };
    if let Some((address, bits)) = entry.split_once('/') {
        let address: IpAddr = bare(address).parse().ok()?;
        let bits: u8 = bits.parse().ok()?;
        let bits_max = if address.is_ipv4() { 32 } else { 128 };
        return (bits <= bits_max)
            .then_some(Entry { target: Target::Network(address, bits), port: None });
    }
    if let Ok(address) = bare(entry).parse::<IpAddr>() {
        return Some(Entry { target: whole(address), port: None });
    }
    if let Ok(address) = entry.parse::<SocketAddr>() {
        return Some(Entry { target: whole(address.ip()), port: Some(address.port()) });
    }
    let (name, port) = match entry.rsplit_once(':') {
        Some((name, port)) => (name, Some(port.parse().ok()?)),
        None => (entry, None),
    };
    let name = name.to_ascii_lowercase();
    if name == "*" {
        return Some(Entry { target: Target::Any, port });
    }
    let (below, host) = match name.strip_prefix("*.") {
        Some(domain) => (true, domain),
        None => (false, &*name),
    };
    if !is_host_name(host) {
        return None;
    }
    let target = if below { Target::Below(format!(".{host}")) } else { Target::Host(name) };
    Some(Entry { target, port })
}

/// An address without the brackets that URLs put around those of IPv6.
fn bare(address: &str) -> &str {
    address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(address)
}

/// Whether the text is the name of a host. One whose last part begins with a digit is none: system libraries read such names as addresses
/// (`2130706433`, `0x7f.1`, `0177.0.0.1`).
pub(crate) fn is_host_name(text: &str) -> bool {
    let text = text.strip_suffix('.').unwrap_or(text);
    let is_part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let last = text.rsplit('.').next().unwrap_or_default();
    text.len() <= 253
        && text.split('.').all(is_part)
        && last.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}
