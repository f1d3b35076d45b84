//! A blocking client on `wire`, small enough to send invalid data.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]
#![allow(dead_code)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use types::Value;
use wire::{
    AuthSwitchRequest, Capabilities, ColumnDefinition, CommandCode, Compression, CompressionKind,
    CursorFlags, Eof, ErrPacket, Greeting, HandshakeResponse, OkPacket, Parameter, PrepareOk,
    Reply, ScanError, SslRequest, StatusFlags, TypeOnWire, classify_reply, compressed_frame_len,
    decode_binary_row, decode_text_row, join_parts, put_execute, put_packet,
    put_query_with_attributes, put_simple_command, scan_packet,
};

pub const BASE: Capabilities = Capabilities(
    Capabilities::PROTOCOL_41.0
        | Capabilities::LONG_PASSWORD.0
        | Capabilities::SECURE_CONNECTION.0
        | Capabilities::TRANSACTIONS.0
        | Capabilities::MULTI_RESULTS.0
        | Capabilities::MULTI_STATEMENTS.0
        | Capabilities::PLUGIN_AUTH.0
        | Capabilities::PLUGIN_AUTH_LENENC.0
        | Capabilities::CONNECT_ATTRS.0
        | Capabilities::LOCAL_FILES.0,
);

/// The public view of a result.
#[derive(Debug, Default, PartialEq)]
pub struct ResultSet {
    pub names: Vec<String>,
    pub types: Vec<TypeOnWire>,
    pub rows: Vec<Vec<Option<String>>>,
    pub values: Vec<Vec<Value>>,
    pub affected_rows: u64,
    pub info: String,
    pub status: StatusFlags,
    pub schema_change: Option<String>,
}

/// An error packet.
#[derive(Debug, PartialEq)]
pub struct Refused {
    pub code: u16,
    pub sqlstate: String,
    pub message: String,
}

pub type Answer = Result<ResultSet, Refused>;

trait Duplex: Read + Write + Send {}
impl<T: Read + Write + Send> Duplex for T {}

/// Options of a connection.
pub struct Options<'a> {
    pub caps: Capabilities,
    pub user: &'a str,
    pub password: &'a str,
    pub database: Option<&'a str>,
    pub plugin: &'a str,
    pub tls: bool,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options {
            caps: BASE,
            user: "root",
            password: "",
            database: None,
            plugin: "caching_sha2_password",
            tls: false,
        }
    }
}

pub struct Client {
    socket: Box<dyn Duplex>,
    received: Vec<u8>,
    compression: Option<(Compression, Vec<u8>)>,
    pub sequence: u8,
    pub caps: Capabilities,
    pub greeting: Option<Greeting>,
    /// Whether the last log-in needed the password itself.
    pub full_auth: bool,
}

#[derive(Debug)]
struct AnyCertificate(Arc<rustls::crypto::CryptoProvider>);

impl rustls::client::danger::ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &rustls::pki_types::CertificateDer<'_>,
        _intermediates: &[rustls::pki_types::CertificateDer<'_>],
        _server_name: &rustls::pki_types::ServerName<'_>,
        _ocsp: &[u8],
        _now: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &rustls::pki_types::CertificateDer<'_>,
        dss: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &rustls::pki_types::CertificateDer<'_>,
        dss: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

fn tls_client(socket: TcpStream) -> Box<dyn Duplex> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    let name = "localhost".try_into().expect("a name");
    let connection = rustls::ClientConnection::new(Arc::new(config), name).expect("a connection");
    Box::new(rustls::StreamOwned::new(connection, socket))
}

impl Client {
    fn over(socket: Box<dyn Duplex>, caps: Capabilities) -> Client {
        Client {
            socket,
            received: Vec::new(),
            compression: None,
            sequence: 0,
            caps,
            greeting: None,
            full_auth: false,
        }
    }

    pub fn raw(address: SocketAddr) -> Client {
        let socket = TcpStream::connect(address).expect("connected");
        socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
        socket.set_nodelay(true).expect("a socket");
        Client::over(Box::new(socket), BASE)
    }

    pub fn connect(address: SocketAddr, options: &Options<'_>) -> Result<Client, Refused> {
        let socket = TcpStream::connect(address).expect("connected");
        socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket");
        socket.set_nodelay(true).expect("a socket");
        let twin = socket.try_clone().expect("a socket");
        let mut client = Client::over(Box::new(socket), options.caps);
        client.log_in(options, Some(twin))?;
        Ok(client)
    }

    pub fn connect_unix(path: &Path, options: &Options<'_>) -> Result<Client, Refused> {
        let socket = UnixStream::connect(path).expect("connected");
        let mut client = Client::over(Box::new(socket), options.caps);
        client.log_in(options, None)?;
        Ok(client)
    }

    fn log_in(&mut self, options: &Options<'_>, tcp: Option<TcpStream>) -> Result<(), Refused> {
        let first = self.read_packet().expect("a greeting");
        if first.first() == Some(&0xff) {
            return Err(refused(&first));
        }
        let greeting = Greeting::decode(&first).expect("a greeting");
        let mut caps = options.caps & greeting.capabilities;
        caps = caps.with_if(Capabilities::CONNECT_WITH_DB, options.database.is_some());
        let nonce = greeting.nonce;
        self.greeting = Some(greeting);
        if options.tls {
            caps = caps | Capabilities::SSL;
            let mut payload = Vec::new();
            SslRequest { capabilities: caps, packet_bytes_max: 1 << 24, collation: 255 }
                .encode(&mut payload);
            self.send_packet(&payload);
            self.socket = tls_client(tcp.expect("TLS over TCP"));
        }
        self.caps = caps;
        let response = HandshakeResponse {
            capabilities: caps,
            packet_bytes_max: 1 << 24,
            collation: 255,
            user: options.user.as_bytes(),
            auth_response: &scramble(options.plugin.as_bytes(), options.password, &nonce),
            database: options.database.map(str::as_bytes),
            auth_plugin: Some(options.plugin.as_bytes()),
            attributes: vec![(b"program_name", b"test")],
            zstd_level: Some(3),
        };
        let mut payload = Vec::new();
        response.encode(&mut payload);
        self.send_packet(&payload);
        self.finish_log_in(options.password, &nonce)?;
        let kind = if caps.contains(Capabilities::COMPRESS) {
            Some(CompressionKind::Zlib)
        } else if caps.contains(Capabilities::ZSTD_COMPRESSION) {
            Some(CompressionKind::Zstd(3))
        } else {
            None
        };
        self.compression = kind.map(|kind| (Compression::new(kind), Vec::new()));
        Ok(())
    }

    /// Answers until OK or ERR. Without TLS the password is sent as it is only on a UNIX socket.
    pub fn finish_log_in(&mut self, password: &str, nonce: &[u8]) -> Result<(), Refused> {
        loop {
            let packet = self.read_packet().expect("an answer");
            match packet[0] {
                0 => return Ok(()),
                0xff => return Err(refused(&packet)),
                0xfe => {
                    let switch = AuthSwitchRequest::decode(&packet).expect("a switch");
                    let answer = scramble(switch.plugin, password, nonce);
                    self.send_packet(&answer);
                }
                1 if packet == [1, 4] => {
                    self.full_auth = true;
                    self.send_packet(&[password.as_bytes(), &[0]].concat());
                }
                1 => {}
                other => panic!("unexpected packet {other}"),
            }
        }
    }

    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("sent");
        self.socket.flush().expect("sent");
    }

    pub fn send_packet(&mut self, payload: &[u8]) {
        let mut out = Vec::new();
        put_packet(&mut out, payload, &mut self.sequence);
        if let Some((compression, _)) = &mut self.compression {
            let mut framed = Vec::new();
            compression.encode(&out, &mut framed);
            out = framed;
        }
        self.send_raw(&out);
    }

    pub fn send_command(&mut self, payload: &[u8]) {
        self.sequence = 0;
        if let Some((compression, _)) = &mut self.compression {
            compression.reset_sequence();
        }
        self.send_packet(payload);
    }

    fn receive(&mut self) -> std::io::Result<usize> {
        let mut buf = [0; 65_536];
        let len = self.socket.read(&mut buf)?;
        match &mut self.compression {
            None => self.received.extend_from_slice(&buf[..len]),
            Some((compression, raw)) => {
                raw.extend_from_slice(&buf[..len]);
                while let Some(frame) =
                    compressed_frame_len(raw).filter(|frame| *frame <= raw.len())
                {
                    let frame: Vec<u8> = raw.drain(..frame).collect();
                    let decoded = compression.decode_frame(&frame, 1 << 24, &mut self.received);
                    decoded.expect("a frame");
                }
            }
        }
        Ok(len)
    }

    /// The next packet; `None` when the server closed.
    pub fn read_packet(&mut self) -> Option<Vec<u8>> {
        loop {
            match scan_packet(&self.received, self.sequence, usize::MAX) {
                Ok(packet) => {
                    let payload = join_parts(&mut self.received, packet).to_vec();
                    self.received.drain(..packet.frame_bytes);
                    self.sequence = packet.last_sequence.wrapping_add(1);
                    return Some(payload);
                }
                Err(ScanError::Incomplete { .. }) => match self.receive() {
                    Ok(0) => return None,
                    Ok(_) => {}
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                        panic!("the server does not answer")
                    }
                    Err(_) => return None,
                },
                Err(other) => panic!("{other:?}"),
            }
        }
    }

    /// The next packet whatever its number; `None` when the server closed.
    pub fn read_any(&mut self) -> Option<Vec<u8>> {
        while self.received.len() < 4 {
            if self.receive().ok()? == 0 {
                return None;
            }
        }
        self.sequence = self.received[3];
        self.read_packet()
    }

    pub fn query(&mut self, sql: &str) -> Answer {
        self.query_with(sql, &[])
    }

    pub fn query_with(&mut self, sql: &str, attributes: &[Parameter]) -> Answer {
        let mut payload = Vec::new();
        put_query_with_attributes(&mut payload, sql.as_bytes(), attributes, self.caps);
        self.send_command(&payload);
        self.read_answer(b"a,b\n1,2\n")
    }

    pub fn simple(&mut self, code: CommandCode, body: &[u8]) -> Answer {
        let mut payload = Vec::new();
        put_simple_command(&mut payload, code, body);
        self.send_command(&payload);
        self.read_answer(b"")
    }

    fn eof_deprecated(&self) -> bool {
        self.caps.contains(Capabilities::DEPRECATE_EOF)
    }

    /// Reads one result; sends `file` if the server asks for one.
    pub fn read_answer(&mut self, file: &[u8]) -> Answer {
        let packet = self.read_packet().expect("an answer");
        match classify_reply(&packet, self.caps).expect("a reply") {
            Reply::Ok(ok) => Ok(from_ok(&ok)),
            Reply::Err(_) => Err(refused(&packet)),
            Reply::LocalInfile(_) => {
                if !file.is_empty() {
                    self.send_packet(file);
                }
                self.send_packet(b"");
                self.read_answer(file)
            }
            Reply::ResultSet { columns, .. } => {
                let mut set = ResultSet::default();
                self.read_columns(columns, &mut set);
                if !self.eof_deprecated() {
                    let eof = self.read_packet().expect("EOF");
                    let status = Eof::decode(&eof).expect("EOF").status;
                    if status.contains(StatusFlags::CURSOR_EXISTS) {
                        set.status = status;
                        return Ok(set);
                    }
                    let more = StatusFlags::MORE_RESULTS_EXIST;
                    let set = self.read_rows(set, false)?;
                    assert_eq!(status.contains(more), set.status.contains(more), "known early");
                    return Ok(set);
                }
                self.read_rows(set, false)
            }
        }
    }

    fn read_columns(&mut self, count: usize, set: &mut ResultSet) {
        for _ in 0..count {
            let packet = self.read_packet().expect("a column");
            let column = ColumnDefinition::decode(&packet).expect("a column");
            set.names.push(String::from_utf8_lossy(column.name).into_owned());
            set.types.push(column.ty);
        }
    }

    fn read_rows(&mut self, mut set: ResultSet, binary: bool) -> Answer {
        loop {
            let packet = self.read_packet().expect("a row");
            if packet[0] == 0xff {
                return Err(refused(&packet));
            }
            if packet[0] == 0xfe && packet.len() < 0xff_ffff && !binary_row(&packet, binary) {
                set.status = if self.eof_deprecated() {
                    OkPacket::decode(&packet, self.caps).expect("OK").status
                } else {
                    Eof::decode(&packet).expect("EOF").status
                };
                return Ok(set);
            }
            if binary {
                let mut values = Vec::new();
                decode_binary_row(&packet, &set.types, &mut values).expect("a row");
                set.values.push(values);
            } else {
                let mut cells = Vec::new();
                decode_text_row(&packet, set.types.len(), &mut cells).expect("a row");
                let text = |cell: Option<&[u8]>| {
                    cell.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
                };
                set.rows.push(cells.into_iter().map(text).collect());
            }
        }
    }

    pub fn prepare(&mut self, sql: &str) -> Result<PrepareOk, Refused> {
        let mut payload = Vec::new();
        put_simple_command(&mut payload, CommandCode::StmtPrepare, sql.as_bytes());
        self.send_command(&payload);
        let packet = self.read_packet().expect("an answer");
        if packet[0] == 0xff {
            return Err(refused(&packet));
        }
        let head = PrepareOk::decode(&packet).expect("a statement");
        for count in [head.parameters, head.columns] {
            let mut set = ResultSet::default();
            self.read_columns(usize::from(count), &mut set);
            if count > 0 && !self.eof_deprecated() {
                Eof::decode(&self.read_packet().expect("EOF")).expect("EOF");
            }
        }
        Ok(head)
    }

    pub fn execute(&mut self, id: u32, flags: CursorFlags, parameters: &[Value]) -> Answer {
        let mut payload = Vec::new();
        put_execute(&mut payload, id, flags, parameters, self.caps);
        self.send_command(&payload);
        let packet = self.read_packet().expect("an answer");
        match classify_reply(&packet, self.caps).expect("a reply") {
            Reply::Ok(ok) => Ok(from_ok(&ok)),
            Reply::Err(_) => Err(refused(&packet)),
            Reply::LocalInfile(_) => panic!("no file was asked for"),
            Reply::ResultSet { columns, .. } => {
                let mut set = ResultSet::default();
                self.read_columns(columns, &mut set);
                if !self.eof_deprecated() {
                    let eof = Eof::decode(&self.read_packet().expect("EOF")).expect("EOF");
                    if eof.status.contains(StatusFlags::CURSOR_EXISTS) {
                        set.status = eof.status;
                        return Ok(set);
                    }
                }
                self.read_rows(set, true)
            }
        }
    }

    pub fn fetch(&mut self, id: u32, rows: u32, types: &[TypeOnWire]) -> Answer {
        let body = [id.to_le_bytes(), rows.to_le_bytes()].concat();
        let mut payload = Vec::new();
        put_simple_command(&mut payload, CommandCode::StmtFetch, &body);
        self.send_command(&payload);
        self.read_rows(ResultSet { types: types.to_vec(), ..ResultSet::default() }, true)
    }
}

fn binary_row(packet: &[u8], binary: bool) -> bool {
    binary && packet[0] == 0
}

fn from_ok(ok: &OkPacket<'_>) -> ResultSet {
    let schema_change = ok.changes.iter().find_map(|change| match change {
        wire::Change::Schema(name) => Some(String::from_utf8_lossy(name).into_owned()),
        _ => None,
    });
    ResultSet {
        affected_rows: ok.affected_rows,
        info: String::from_utf8_lossy(ok.info).into_owned(),
        status: ok.status,
        schema_change,
        ..ResultSet::default()
    }
}

pub fn refused(packet: &[u8]) -> Refused {
    let packet = ErrPacket::decode(packet).expect("an error");
    Refused {
        code: packet.code,
        sqlstate: String::from_utf8_lossy(&packet.sqlstate).into_owned(),
        message: String::from_utf8_lossy(packet.message).into_owned(),
    }
}

fn scramble(plugin: &[u8], password: &str, nonce: &[u8]) -> Vec<u8> {
    match plugin {
        b"caching_sha2_password" => {
            authentication::caching_sha2_scramble(password.as_bytes(), nonce)
        }
        b"mysql_native_password" => authentication::native_scramble(password.as_bytes(), nonce),
        _ => Vec::new(),
    }
}
