//! What CHANGE REPLICATION SOURCE TO sets.

use binlog::mariadb::MariadbPosition;
use client::Framing;
use errors::{Error, ErrorCode, Result};
use serde_json::{Map, Value as Json, json};
use syntax::ast::{Ident, ReplicationValue};

use crate::filter::Filters;
use crate::store::Position;

/// Names of `SOURCE_COMPRESSION_ALGORITHMS`.
const ALGORITHMS: [&str; 3] = ["zlib", "zstd", UNCOMPRESSED];
const UNCOMPRESSED: &str = "uncompressed";
/// The level of zstd that the reference takes.
const ZSTD_LEVEL: u8 = 3;

/// Most workers of a channel.
pub(crate) const WORKERS_MAX: u64 = 1024;

/// Settings of a channel.
#[derive(Clone, PartialEq)]
pub(crate) struct Settings {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) auto_position: bool,
    /// Seconds between attempts to connect, and how many there are.
    pub(crate) connect_retry: u64,
    pub(crate) retry_count: u64,
    /// Seconds that a transaction waits after its commit on the source.
    pub(crate) delay: u64,
    /// Seconds between signs of life.
    pub(crate) heartbeat: f64,
    /// Whether the connection must be encrypted.
    pub(crate) ssl: bool,
    /// The file of the authorities that sign certificates of sources; empty: they are not looked at.
    pub(crate) ssl_ca: String,
    /// A directory of such files.
    pub(crate) ssl_capath: String,
    /// A file of lists of revoked certificates, and a directory of such files.
    pub(crate) ssl_crl: String,
    pub(crate) ssl_crlpath: String,
    /// Files of the replica's own certificate and key.
    pub(crate) ssl_cert: String,
    pub(crate) ssl_key: String,
    /// Ciphers and versions that may be used, as the statement names them; empty for all.
    pub(crate) ssl_cipher: String,
    pub(crate) tls_ciphersuites: String,
    pub(crate) tls_version: String,
    /// How the stream may be compressed, the first that the source can, and the level of zstd.
    pub(crate) compression: String,
    pub(crate) zstd_level: u8,
    /// Whether the certificate must be for the host.
    pub(crate) ssl_verify: bool,
    /// Servers whose transactions are left out.
    pub(crate) ignored_servers: Vec<u64>,
    /// Which changes are repeated.
    pub(crate) filters: Filters,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            host: String::new(),
            port: 3306,
            user: String::new(),
            password: String::new(),
            auto_position: false,
            connect_retry: 60,
            retry_count: 10,
            delay: 0,
            heartbeat: 30.0,
            ssl: false,
            ssl_ca: String::new(),
            ssl_capath: String::new(),
            ssl_crl: String::new(),
            ssl_crlpath: String::new(),
            ssl_cert: String::new(),
            ssl_key: String::new(),
            ssl_cipher: String::new(),
            tls_ciphersuites: String::new(),
            tls_version: String::new(),
            compression: UNCOMPRESSED.to_owned(),
            zstd_level: ZSTD_LEVEL,
            ssl_verify: false,
            ignored_servers: Vec::new(),
            filters: Filters::default(),
        }
    }
}

// Without the password.
impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}:{}", self.user, self.host, self.port)
    }
}

impl Settings {
    /// Reads what `written` made.
    pub(crate) fn read(text: &str) -> Result<Settings> {
        let json: Json = serde_json::from_str(text).map_err(Error::internal)?;
        let text = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
        let number = |name: &str, default| json[name].as_u64().unwrap_or(default);
        let defaults = Settings::default();
        Ok(Settings {
            host: text("host"),
            port: u16::try_from(number("port", 3306)).unwrap_or(3306),
            user: text("user"),
            password: text("password"),
            auto_position: json["auto_position"].as_bool().unwrap_or(false),
            connect_retry: number("connect_retry", defaults.connect_retry),
            retry_count: number("retry_count", defaults.retry_count),
            delay: number("delay", 0),
            heartbeat: json["heartbeat"].as_f64().unwrap_or(defaults.heartbeat),
            ssl: json["ssl"].as_bool().unwrap_or(false),
            ssl_ca: text("ssl_ca"),
            ssl_capath: text("ssl_capath"),
            ssl_crl: text("ssl_crl"),
            ssl_crlpath: text("ssl_crlpath"),
            ssl_cert: text("ssl_cert"),
            ssl_key: text("ssl_key"),
            ssl_cipher: text("ssl_cipher"),
            tls_ciphersuites: text("tls_ciphersuites"),
            tls_version: text("tls_version"),
            compression: json["compression"].as_str().unwrap_or(UNCOMPRESSED).to_owned(),
            zstd_level: json["zstd_level"].as_u64().map_or(ZSTD_LEVEL, |level| level as u8),
            ssl_verify: json["ssl_verify"].as_bool().unwrap_or(false),
            ignored_servers: json["ignored_servers"]
                .as_array()
                .map(|ids| ids.iter().filter_map(Json::as_u64).collect())
                .unwrap_or_default(),
            filters: Filters::read(&json["filters"]),
        })
    }

    /// How the stream may be compressed, best first.
    pub(crate) fn framings(&self) -> Vec<Framing> {
        if self.compression == UNCOMPRESSED {
            return Vec::new();
        }
        let framing = |name: &str| match name {
            "zlib" => Framing::Zlib,
            "zstd" => Framing::Zstd(self.zstd_level),
            _ => Framing::Plain,
        };
        self.compression.split(',').map(|name| framing(name.trim())).collect()
    }

    /// As it is stored.
    pub(crate) fn written(&self) -> String {
        let mut map = Map::new();
        let mut put = |name: &str, value: Json| _ = map.insert(name.to_owned(), value);
        put("host", json!(self.host));
        put("port", json!(self.port));
        put("user", json!(self.user));
        put("password", json!(self.password));
        put("auto_position", json!(self.auto_position));
        put("connect_retry", json!(self.connect_retry));
        put("retry_count", json!(self.retry_count));
        put("delay", json!(self.delay));
        put("heartbeat", json!(self.heartbeat));
        put("ssl", json!(self.ssl));
        put("ssl_ca", json!(self.ssl_ca));
        put("ssl_capath", json!(self.ssl_capath));
        put("ssl_crl", json!(self.ssl_crl));
        put("ssl_crlpath", json!(self.ssl_crlpath));
        put("ssl_cert", json!(self.ssl_cert));
        put("ssl_key", json!(self.ssl_key));
        put("ssl_cipher", json!(self.ssl_cipher));
        put("tls_ciphersuites", json!(self.tls_ciphersuites));
        put("tls_version", json!(self.tls_version));
        put("compression", json!(self.compression));
        put("zstd_level", json!(self.zstd_level));
        put("ssl_verify", json!(self.ssl_verify));
        put("ignored_servers", json!(self.ignored_servers));
        put("filters", self.filters.written());
        Json::Object(map).to_string()
    }

    /// Applies the options of a statement, to the position too.
    ///
    /// # Errors
    /// 1210 for a value of another type, 1235 for an option that is not built.
    pub(crate) fn change(
        &mut self,
        options: &[(Ident, ReplicationValue)],
        position: &mut Position,
        channel: &str,
    ) -> Result<()> {
        let is_given = |name: &str| options.iter().any(|(option, _)| option.is(name));
        let names_position = is_given("SOURCE_LOG_FILE") || is_given("SOURCE_LOG_POS");
        let is_elsewhere = is_given("SOURCE_HOST") || is_given("SOURCE_PORT");
        if is_elsewhere && !names_position {
            position.file.clear();
            position.offset = 4;
        }
        for (option, value) in options {
            self.change_one(option, value, position, channel)?;
        }
        if self.auto_position && names_position {
            let text = "Parameters SOURCE_LOG_FILE and SOURCE_LOG_POS cannot be set when \
                        SOURCE_AUTO_POSITION is active.";
            return Err(Error::new(ErrorCode(1776), text));
        }
        Ok(())
    }

    fn change_one(
        &mut self,
        option: &Ident,
        value: &ReplicationValue,
        position: &mut Position,
        channel: &str,
    ) -> Result<()> {
        let name = option.text.to_ascii_uppercase();
        match name.as_str() {
            "SOURCE_HOST" => self.host = text(&name, value)?,
            "SOURCE_PORT" => {
                let port = number(&name, value)?;
                self.port = u16::try_from(port).map_err(|_| wrong(&name))?;
            }
            "SOURCE_USER" => self.user = text(&name, value)?,
            "SOURCE_PASSWORD" => self.password = text(&name, value)?,
            "SOURCE_AUTO_POSITION" => self.auto_position = number(&name, value)? != 0,
            "SOURCE_LOG_FILE" => position.file = text(&name, value)?,
            "SOURCE_LOG_POS" => position.offset = number(&name, value)?.max(4),
            "GTID_SLAVE_POS" => {
                let text = text(&name, value)?;
                position.gtid_slave_pos = MariadbPosition::parse(&text)
                    .ok_or_else(|| Error::with(ErrorCode(1772), &[&text]))?;
            }
            "SOURCE_CONNECT_RETRY" => self.connect_retry = number(&name, value)?,
            "SOURCE_RETRY_COUNT" => self.retry_count = number(&name, value)?,
            "SOURCE_DELAY" => self.delay = number(&name, value)?,
            "SOURCE_HEARTBEAT_PERIOD" => {
                let ReplicationValue::Number(text) = value else { return Err(wrong(&name)) };
                let seconds: f64 = text.parse().map_err(|_| wrong(&name))?;
                if !(0.0..=4_294_967.0).contains(&seconds) {
                    return Err(wrong(&name));
                }
                self.heartbeat = seconds;
            }
            "SOURCE_SSL_CA" => self.ssl_ca = text(&name, value)?,
            "SOURCE_SSL_CAPATH" => self.ssl_capath = text(&name, value)?,
            "SOURCE_SSL_CRL" => self.ssl_crl = text(&name, value)?,
            "SOURCE_SSL_CRLPATH" => self.ssl_crlpath = text(&name, value)?,
            "SOURCE_SSL_CERT" => self.ssl_cert = text(&name, value)?,
            "SOURCE_SSL_KEY" => self.ssl_key = text(&name, value)?,
            "SOURCE_SSL_CIPHER" => self.ssl_cipher = text(&name, value)?,
            "SOURCE_TLS_CIPHERSUITES" => {
                let is_null = matches!(value, ReplicationValue::Null);
                self.tls_ciphersuites = if is_null { String::new() } else { text(&name, value)? };
            }
            "SOURCE_TLS_VERSION" => {
                let versions = text(&name, value)?;
                let is_known = |version: &str| {
                    ["", "tlsv1.2", "tlsv1.3"]
                        .contains(&version.trim().to_ascii_lowercase().as_str())
                };
                if !versions.split(',').all(is_known) {
                    return Err(wrong(&name));
                }
                self.tls_version = versions;
            }
            "SOURCE_COMPRESSION_ALGORITHMS" => {
                let names = text(&name, value)?;
                let is_known = |name: &str| ALGORITHMS.contains(&name.trim());
                if !names.split(',').all(is_known) {
                    let text = format!("Invalid {name} '{names}' for channel '{channel}'.");
                    return Err(Error::new(ErrorCode(3920), text));
                }
                self.compression = names;
            }
            "SOURCE_ZSTD_COMPRESSION_LEVEL" => {
                let level = number(&name, value)?;
                let known = u8::try_from(level).ok().filter(|level| (1..=22).contains(level));
                let text = format!("Invalid {name} {level} for channel '{channel}'.");
                self.zstd_level = known.ok_or_else(|| Error::new(ErrorCode(3921), text))?;
            }
            "SOURCE_SSL_VERIFY_SERVER_CERT" => self.ssl_verify = number(&name, value)? != 0,
            "SOURCE_SSL" => self.ssl = number(&name, value)? != 0,
            // The key comes with the log-in, whether it was asked for or not.
            "GET_SOURCE_PUBLIC_KEY" => _ = number(&name, value)?,
            "IGNORE_SERVER_IDS" => {
                let ReplicationValue::List(ids) = value else { return Err(wrong(&name)) };
                self.ignored_servers.clone_from(ids);
            }
            _ => return Err(Error::not_supported(format!("CHANGE REPLICATION SOURCE TO {name}"))),
        }
        Ok(())
    }
}

fn wrong(name: &str) -> Error {
    errors::err!(WRONG_ARGUMENTS, name)
}

fn text(name: &str, value: &ReplicationValue) -> Result<String> {
    if let ReplicationValue::Text(text) = value { Ok(text.to_string()) } else { Err(wrong(name)) }
}

fn number(name: &str, value: &ReplicationValue) -> Result<u64> {
    let ReplicationValue::Number(text) = value else { return Err(wrong(name)) };
    text.parse().map_err(|_| wrong(name))
}

#[cfg(test)]
mod tests {
    use syntax::ast::{Replication, Statement};

    use super::*;

    fn changed(settings: &mut Settings, position: &mut Position, options: &str) -> Result<()> {
        let sql = format!("CHANGE REPLICATION SOURCE TO {options}");
        let parsed = syntax::parse_one(&sql, &syntax::ParseOptions::default()).expect(&sql);
        let Statement::Replication(replication) = parsed.0 else { panic!("{sql}") };
        let Replication::ChangeSource { options, .. } = *replication else { panic!("{sql}") };
        settings.change(&options, position, "")
    }

    #[test]
    fn settings_survive_and_hide_the_password() {
        let (mut settings, mut position) = (Settings::default(), Position::default());
        let options = "SOURCE_HOST = 'h', SOURCE_PORT = 3307, SOURCE_USER = 'u', SOURCE_PASSWORD = 'pw \"1', \
                       SOURCE_DELAY = 3, SOURCE_SSL = 1, SOURCE_SSL_CA = 'ca', SOURCE_SSL_VERIFY_SERVER_CERT = 1, IGNORE_SERVER_IDS = (4, 5), SOURCE_HEARTBEAT_PERIOD = 1.5";
        changed(&mut settings, &mut position, options).expect("known options");
        let read = Settings::read(&settings.written()).expect("what was written");
        assert!(read == settings && read.password == "pw \"1" && read.ignored_servers == [4, 5]);
        assert_eq!(format!("{settings:?}"), "u@h:3307");
    }

    #[test]
    fn another_source_begins_at_its_start() {
        let (mut settings, mut position) = (Settings::default(), Position::default());
        changed(&mut settings, &mut position, "SOURCE_LOG_FILE = 'f', SOURCE_LOG_POS = 99")
            .expect("");
        changed(&mut settings, &mut position, "SOURCE_USER = 'u'").expect("");
        assert_eq!((position.file.as_str(), position.offset), ("f", 99));
        changed(&mut settings, &mut position, "SOURCE_HOST = 'other'").expect("");
        assert_eq!((position.file.as_str(), position.offset), ("", 4));
        for refused in [
            "SOURCE_PORT = 70000",
            "SOURCE_BIND = 'f'",
            "SOURCE_HOST = 1",
            "SOURCE_TLS_VERSION = 'TLSv1.1'",
            "SOURCE_COMPRESSION_ALGORITHMS = 'lz4'",
        ] {
            changed(&mut settings, &mut position, refused).expect_err(refused);
        }
    }
}
