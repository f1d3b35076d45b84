//! Where a server is: `mysql://user:password@host:port/` or `mysql://user@/path/of/socket`.

use client::{Connection, Encryption, Options, Target};

/// The port of a URL that names none.
const PORT: u16 = 3306;

/// A server and an account on it.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    target: Target,
    pub(crate) user: String,
    password: String,
}

impl Address {
    /// Reads a URL; `password` counts when the URL has none.
    ///
    /// # Errors
    /// The text is no such URL.
    pub(crate) fn parse(url: &str, password: Option<String>) -> Result<Address, String> {
        let wrong = || format!("{url}: expected mysql://user@host:port/ or mysql://user@/socket");
        let rest = url.strip_prefix("mysql://").ok_or_else(wrong)?;
        let (login, place) = rest.rsplit_once('@').unwrap_or(("root", rest));
        let (user, own) = match login.split_once(':') {
            Some((user, own)) => (user, Some(decoded(own).ok_or_else(wrong)?)),
            None => (login, None),
        };
        let target = if place.starts_with('/') {
            Target::Socket(decoded(place).ok_or_else(wrong)?.into())
        } else {
            let place = place.strip_suffix('/').unwrap_or(place);
            let (host, port) = match place.rsplit_once(':') {
                Some((host, port)) if !port.contains(']') => {
                    (host, port.parse().map_err(|_| wrong())?)
                }
                Some(_) | None => (place, PORT),
            };
            let host = host.trim_start_matches('[').trim_end_matches(']');
            if host.is_empty() || host.contains('/') {
                return Err(wrong());
            }
            Target::Tcp(host.to_owned(), port)
        };
        let password = own.or(password).unwrap_or_default();
        Ok(Address { target, user: decoded(user).ok_or_else(wrong)?, password })
    }

    /// A server on this machine.
    pub(crate) fn of_socket(
        path: &std::path::Path,
        user: &str,
        password: Option<String>,
    ) -> Address {
        let target = Target::Socket(path.to_owned());
        Address { target, user: user.to_owned(), password: password.unwrap_or_default() }
    }

    /// A new connection.
    ///
    /// # Errors
    /// The server cannot be reached or refuses.
    pub(crate) fn connect(&self) -> Result<Connection, String> {
        let options = Options {
            target: self.target.clone(),
            user: self.user.clone(),
            password: self.password.clone(),
            database: None,
            tls: Encryption::Preferred,
            framings: Vec::new(),
            expired_passwords: false,
        };
        Connection::open(&options).map_err(|error| format!("{self}: {error}"))
    }

    /// Host and port, or the socket.
    pub(crate) fn place(&self) -> String {
        match &self.target {
            Target::Tcp(host, port) => format!("{host}:{port}"),
            Target::Socket(path) => path.display().to_string(),
        }
    }

    /// Host and port; `None` for a socket.
    pub(crate) fn host(&self) -> Option<(&str, u16)> {
        match &self.target {
            Target::Tcp(host, port) => Some((host, *port)),
            Target::Socket(_) => None,
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}", self.user, self.place())
    }
}

/// Without `%xx`.
fn decoded(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digits = [bytes.next()?, bytes.next()?];
        let digits = std::str::from_utf8(&digits).ok()?;
        out.push(u8::from_str_radix(digits, 16).ok()?);
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_accounts_hosts_and_sockets() {
        let parse =
            |url| Address::parse(url, Some("asked".into())).map(|a| (a.to_string(), a.password));
        let ok = |account: &str, password: &str| Ok((account.to_owned(), password.to_owned()));
        assert_eq!(parse("mysql://ann:p%40ss@db1:3307/"), ok("ann@db1:3307", "p@ss"));
        assert_eq!(parse("mysql://ann@db1"), ok("ann@db1:3306", "asked"));
        assert_eq!(parse("mysql://db1"), ok("root@db1:3306", "asked"));
        assert_eq!(parse("mysql://a%3Ab@[::1]:9/"), ok("a:b@::1:9", "asked"));
        assert_eq!(parse("mysql://root@/run/s.sock"), ok("root@/run/s.sock", "asked"));
        for wrong in
            ["db1:3306", "mysql://", "mysql://a@db1:x/", "mysql://a@db1/shop", "mysql://%zz@h"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
