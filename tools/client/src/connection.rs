//! A connection: log in, send commands, read answers.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use types::Value;
use wire::{
    AuthSwitchRequest, Capabilities, ColumnDefinition, CommandCode, CompressionKind, CursorFlags,
    ErrPacket, FRAME_HEADER_BYTES, Greeting, HandshakeResponse, OkPacket, PrepareOk, Reply,
    ScanError, SslRequest, StatusFlags,
};

use crate::stream::{Carrier, Reach, Stream};
use crate::{Failure, Result, auth};

/// Largest packet accepted from a server.
const PACKET_BYTES_MAX: usize = 1 << 30;
/// utf8mb4_0900_ai_ci.
const COLLATION: u16 = 255;

/// Where a server is.
#[derive(Clone, Debug)]
pub enum Target {
    /// Host and port.
    Tcp(String, u16),
    /// UNIX socket.
    Socket(PathBuf),
}

/// How to log in.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where.
    pub target: Target,
    /// User.
    pub user: String,
    /// Password.
    pub password: String,
    /// Initial schema.
    pub database: Option<String>,
    /// Whether to encrypt.
    pub tls: Encryption,
    /// Accepted framings of the stream, best first; empty for plain.
    pub framings: Vec<Framing>,
    /// Whether to log in with an expired password, to set a new one.
    pub expired_passwords: bool,
}

/// How packets travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// As they are.
    Plain,
    /// Compressed by zlib.
    Zlib,
    /// Compressed by zstd at this level.
    Zstd(u8),
}

impl Framing {
    /// The capability flag that requests it.
    fn capability(self) -> Capabilities {
        match self {
            Framing::Plain => Capabilities(0),
            Framing::Zlib => Capabilities::COMPRESS,
            Framing::Zstd(_) => Capabilities::ZSTD_COMPRESSION,
        }
    }
}

/// Whether to encrypt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Encryption {
    /// Never.
    Off,
    /// If the server supports it and the connection is not this machine's socket.
    Preferred,
    /// Or else fail.
    Required,
    /// Or else fail, and in this way.
    As(Box<Tls>),
}

/// How to encrypt.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// Certificates of authorities that must have signed the server's, in PEM; empty: it is not verified.
    pub authorities: Vec<u8>,
    /// Lists of revoked certificates, in PEM; empty: none is asked. With them, each authority of a certificate must have one.
    pub revoked: Vec<u8>,
    /// The name or address that the server's certificate must be for; `None`: any.
    pub name: Option<String>,
    /// The client's own certificates and its private key, in PEM.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// `TLSv1.2`, `TLSv1.3`; empty for both.
    pub versions: Vec<String>,
    /// Ciphers that may be used, by their names in OpenSSL; empty for all.
    pub ciphers: Vec<String>,
}

// Without the key.
impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The best framing that the server supports.
fn choose_framing(wanted: &[Framing], server: Capabilities) -> Result<Framing> {
    let mut possible = wanted.iter().filter(|framing| server.contains(framing.capability()));
    match possible.next() {
        Some(framing) => Ok(*framing),
        None if wanted.is_empty() => Ok(Framing::Plain),
        None => Err(Failure::Lost("the server supports none of the compression algorithms".into())),
    }
}

/// A column of a result set.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its caption.
    pub name: String,
    /// Type, length and flags.
    pub ty: wire::TypeOnWire,
}

/// One result of a statement.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Empty for a statement without a result set.
    pub columns: Vec<Column>,
    /// Rows that were read.
    pub rows: u64,
    /// Affected rows.
    pub affected_rows: u64,
    /// Generated id.
    pub last_insert_id: u64,
    /// Warnings.
    pub warnings: u16,
    /// Text of the OK packet.
    pub info: String,
    /// Another result follows: call `next_result`.
    pub more: bool,
    /// The row is the OUT parameters of a CALL.
    pub out_parameters: bool,
}

/// Takes the rows of a result set.
pub trait Answer {
    /// Before the first row.
    fn columns(&mut self, _: &[Column]) {}
    /// A row of the text protocol.
    fn row(&mut self, _: &[Option<&[u8]>]) {}
    /// A row of the binary protocol, as `wire::decode_binary_row` reads it.
    fn binary_row(&mut self, _: &[u8]) {}
}

impl Answer for () {}

/// How rows travel.
#[derive(Clone, Copy)]
enum Protocol {
    Text,
    Binary,
}

/// A prepared statement.
#[derive(Clone, Copy, Debug)]
pub struct Prepared {
    /// Its id.
    pub id: u32,
    /// Number of parameters.
    pub parameters: u16,
}

/// A logged-in connection.
pub struct Connection {
    stream: Stream,
    capabilities: Capabilities,
    input: Vec<u8>,
    /// Bytes at the start of `input` that belong to the packet read last.
    used: usize,
    output: Vec<u8>,
    sequence: u8,
    /// Protocol of the rows of the last command, the same for all its results.
    protocol: Protocol,
    /// The server's version in the greeting.
    pub server_version: String,
    /// `CONNECTION_ID()`.
    pub connection_id: u32,
}

impl Connection {
    /// Connects and logs in.
    ///
    /// # Errors
    /// The server cannot be reached or refuses.
    pub fn open(options: &Options) -> Result<Connection> {
        let stream = match &options.target {
            Target::Tcp(host, port) => {
                let tcp = TcpStream::connect((host.as_str(), *port))?;
                tcp.set_nodelay(true)?;
                Stream::Tcp(tcp)
            }
            Target::Socket(path) => Stream::Unix(UnixStream::connect(path)?),
        };
        Connection::begin(stream, options)
    }

    /// Logs in over the caller's stream. The target of `options` is ignored.
    ///
    /// # Errors
    /// The server refuses.
    pub fn over(carrier: Box<dyn Carrier>, reach: Reach, options: &Options) -> Result<Connection> {
        Connection::begin(Stream::Carried(carrier, reach), options)
    }

    fn begin(stream: Stream, options: &Options) -> Result<Connection> {
        let mut connection = Connection {
            stream,
            capabilities: Capabilities(0),
            input: Vec::new(),
            used: 0,
            output: Vec::new(),
            sequence: 0,
            protocol: Protocol::Text,
            server_version: String::new(),
            connection_id: 0,
        };
        connection.log_in(options)?;
        Ok(connection)
    }

    fn log_in(&mut self, options: &Options) -> Result<()> {
        let packet = self.read_packet()?;
        if packet.first() == Some(&0xff) {
            return Err(Failure::Server(ErrPacket::decode(packet)?.to_error()));
        }
        let greeting = Greeting::decode(packet)?;
        self.server_version = String::from_utf8_lossy(&greeting.server_version).into_owned();
        self.connection_id = greeting.connection_id;
        let wanted = Capabilities::PROTOCOL_41
            .union(Capabilities::SECURE_CONNECTION)
            .union(Capabilities::PLUGIN_AUTH)
            .union(Capabilities::PLUGIN_AUTH_LENENC)
            .union(Capabilities::TRANSACTIONS)
            .union(Capabilities::MULTI_STATEMENTS)
            .union(Capabilities::MULTI_RESULTS)
            .union(Capabilities::PS_MULTI_RESULTS)
            .union(Capabilities::LOCAL_FILES)
            .union(Capabilities::DEPRECATE_EOF)
            .with_if(Capabilities::CAN_HANDLE_EXPIRED_PASSWORDS, options.expired_passwords)
            .with_if(Capabilities::CONNECT_WITH_DB, options.database.is_some());
        let framing = choose_framing(&options.framings, greeting.capabilities)?;
        let wanted = wanted.union(framing.capability());
        self.capabilities = Capabilities(wanted.0 & greeting.capabilities.0);
        let can_encrypt = greeting.capabilities.contains(Capabilities::SSL);
        let is_network = matches!(self.stream, Stream::Tcp(_) | Stream::Carried(_, Reach::Network));
        let is_required = matches!(options.tls, Encryption::Required | Encryption::As(_));
        if is_required && !(can_encrypt && is_network) {
            return Err(Failure::Lost("SSL connection error: the server cannot encrypt".into()));
        }
        if options.tls != Encryption::Off && can_encrypt && is_network {
            self.capabilities = self.capabilities.union(Capabilities::SSL);
            let request = SslRequest {
                capabilities: self.capabilities,
                packet_bytes_max: PACKET_BYTES_MAX as u32,
                collation: COLLATION,
            };
            let mut payload = Vec::new();
            request.encode(&mut payload);
            self.send(&payload)?;
            let tls = match &options.tls {
                Encryption::As(tls) => Tls::clone(tls),
                Encryption::Off | Encryption::Preferred | Encryption::Required => Tls::default(),
            };
            self.stream = self.replace_stream()?.encrypt(&tls)?;
        }
        let plugin = greeting.auth_plugin.clone();
        let may_answer = self.stream.is_safe() || !auth::sends_password(&plugin);
        let answer = may_answer
            .then(|| auth::first_answer(&plugin, options.password.as_bytes(), &greeting.nonce))
            .flatten();
        let response = HandshakeResponse {
            capabilities: self.capabilities,
            packet_bytes_max: PACKET_BYTES_MAX as u32,
            collation: COLLATION,
            user: options.user.as_bytes(),
            auth_response: &answer.unwrap_or_default(),
            database: options.database.as_deref().map(str::as_bytes),
            auth_plugin: Some(&plugin),
            attributes: Vec::new(),
            zstd_level: match framing {
                Framing::Zstd(level) => Some(level),
                Framing::Zlib | Framing::Plain => None,
            },
        };
        let mut payload = Vec::new();
        response.encode(&mut payload);
        self.send(&payload)?;
        self.authenticate(options.password.as_bytes(), plugin, greeting.nonce.to_vec())?;
        let kind = match framing {
            Framing::Plain => return Ok(()),
            Framing::Zlib => CompressionKind::Zlib,
            Framing::Zstd(level) => CompressionKind::Zstd(level),
        };
        self.stream = self.replace_stream()?.compress(kind);
        Ok(())
    }

    /// Takes the stream out, to wrap it.
    fn replace_stream(&mut self) -> Result<Stream> {
        Ok(std::mem::replace(&mut self.stream, Stream::Unix(UnixStream::pair()?.0)))
    }

    /// The exchange after the first answer, until the server accepts or refuses.
    fn authenticate(&mut self, password: &[u8], plugin: Vec<u8>, nonce: Vec<u8>) -> Result<()> {
        let (mut plugin, mut nonce) = (plugin, nonce);
        loop {
            let packet = self.read_packet()?.to_vec();
            let reply = match packet.first() {
                Some(0x00) => return Ok(()),
                Some(0xff) => return Err(Failure::Server(ErrPacket::decode(&packet)?.to_error())),
                Some(0xfe) => {
                    let switch = AuthSwitchRequest::decode(&packet)?;
                    (plugin, nonce) = (switch.plugin.to_vec(), switch.data.to_vec());
                    if auth::sends_password(&plugin) && !self.stream.is_safe() {
                        let text = "the server asks for the password in the clear: use TLS";
                        return Err(Failure::Lost(text.into()));
                    }
                    auth::first_answer(&plugin, password, &nonce)
                }
                // caching_sha2_password: 3 is "known already", 4 "send the password"; anything else is its public key.
                Some(0x01) if packet[1..] == [3] => continue,
                Some(0x01) if packet[1..] == [4] && self.stream.is_safe() => {
                    Some([password, &[0]].concat())
                }
                Some(0x01) if packet[1..] == [4] => Some(vec![2]),
                Some(0x01) => auth::encrypted_password(&packet[1..], password, &nonce),
                _ => None,
            };
            let name = String::from_utf8_lossy(&plugin).into_owned();
            let reply = reply.ok_or_else(|| {
                Failure::Lost(format!("the authentication method {name} is not known here"))
            })?;
            self.send(&reply)?;
        }
    }

    /// Sends a packet that continues the present exchange.
    fn send(&mut self, payload: &[u8]) -> Result<()> {
        wire::put_packet(&mut self.output, payload, &mut self.sequence);
        self.stream.write_all(&self.output)?;
        self.stream.flush()?;
        self.output.clear();
        Ok(())
    }

    /// Reads one packet.
    fn read_packet(&mut self) -> Result<&[u8]> {
        self.input.drain(..self.used);
        self.used = 0;
        loop {
            // MySQL numbers a packet that begins a compressed frame like the frame.
            let sequence = match self.input.get(3) {
                Some(number) if self.stream.is_compressed() => *number,
                Some(_) | None => self.sequence,
            };
            match wire::scan_packet(&self.input, sequence, PACKET_BYTES_MAX) {
                Ok(packet) => {
                    self.sequence = packet.last_sequence.wrapping_add(1);
                    self.used = packet.frame_bytes;
                    wire::join_parts(&mut self.input, packet);
                    let end = FRAME_HEADER_BYTES + packet.payload_bytes;
                    return Ok(&self.input[FRAME_HEADER_BYTES..end]);
                }
                Err(ScanError::Incomplete { needed }) => self.fill(needed)?,
                Err(ScanError::TooLarge { .. } | ScanError::OutOfOrder) => {
                    return Err(Failure::Lost("packets out of order".into()));
                }
            }
        }
    }

    fn fill(&mut self, needed: usize) -> Result<()> {
        const READ_BYTES: usize = 16 * 1024;
        while self.input.len() < needed {
            let length = self.input.len();
            self.input.resize(length + READ_BYTES.max((needed - length).min(1 << 20)), 0);
            let count = self.stream.read(&mut self.input[length..]);
            self.input.truncate(length + *count.as_ref().unwrap_or(&0));
            if count? == 0 {
                return Err(Failure::Lost("Lost connection to server during query".into()));
            }
        }
        Ok(())
    }

    /// Sends a command.
    fn command(&mut self, payload: &[u8]) -> Result<()> {
        self.sequence = 0;
        self.stream.begin_command();
        self.send(payload)
    }

    /// Sends a command whose answer is read packet by packet.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn send_command(&mut self, code: CommandCode, payload: &[u8]) -> Result<()> {
        let mut packet = Vec::with_capacity(payload.len() + 1);
        wire::put_simple_command(&mut packet, code, payload);
        self.command(&packet)
    }

    /// Sends a packet beside an answer that is a stream: its number is 0, and the stream's numbers go on.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn send_beside(&mut self, payload: &[u8]) -> Result<()> {
        let of_stream = std::mem::take(&mut self.sequence);
        let sent = self.send(payload);
        self.sequence = of_stream;
        sent
    }

    /// Numbers the packets of a stream anew: the next one is 1, as if a packet had been sent by `send_beside`.
    pub fn number_anew(&mut self) {
        self.sequence = 1;
    }

    /// The next packet of an answer that is a stream; `None` at its end.
    ///
    /// # Errors
    /// The server answers with an error, or the connection is lost.
    pub fn next_packet(&mut self) -> Result<Option<&[u8]>> {
        const EOF_BYTES_MAX: usize = 8;
        let length = self.read_packet()?.len();
        let packet = &self.input[FRAME_HEADER_BYTES..FRAME_HEADER_BYTES + length];
        match packet.first() {
            Some(0xff) => Err(Failure::Server(ErrPacket::decode(packet)?.to_error())),
            Some(0xfe) if length <= EOF_BYTES_MAX => Ok(None),
            Some(_) | None => Ok(Some(packet)),
        }
    }

    /// Runs `sql` and reads its first result; rows go to `answer`.
    ///
    /// # Errors
    /// The statement failed or the connection is lost.
    pub fn query(&mut self, sql: &[u8], answer: &mut dyn Answer) -> Result<Outcome> {
        let mut payload = Vec::with_capacity(sql.len() + 1);
        wire::put_simple_command(&mut payload, CommandCode::Query, sql);
        self.command(&payload)?;
        self.protocol = Protocol::Text;
        self.next_result(answer)
    }

    /// Reads the next result of a statement that announced one.
    ///
    /// # Errors
    /// The statement failed or the connection is lost.
    pub fn next_result(&mut self, answer: &mut dyn Answer) -> Result<Outcome> {
        let (capabilities, protocol) = (self.capabilities, self.protocol);
        let columns = match wire::classify_reply(self.read_packet()?, capabilities)? {
            Reply::Ok(ok) => return Ok(outcome(&ok)),
            Reply::Err(error) => return Err(Failure::Server(error.to_error())),
            Reply::ResultSet { columns, .. } => columns,
            Reply::LocalInfile(name) => {
                let name = PathBuf::from(String::from_utf8_lossy(name).into_owned());
                self.send_file(&name)?;
                return self.next_result(answer);
            }
        };
        let mut result = Outcome::default();
        for _ in 0..columns {
            let column = ColumnDefinition::decode(self.read_packet()?)?;
            let name = String::from_utf8_lossy(column.name).into_owned();
            result.columns.push(Column { name, ty: column.ty });
        }
        if !capabilities.contains(Capabilities::DEPRECATE_EOF) {
            self.read_packet()?;
        }
        answer.columns(&result.columns);
        loop {
            let packet = self.read_packet()?;
            if let Some(end) = end_of_rows(packet, capabilities)? {
                let ended = end?;
                return Ok(Outcome { columns: result.columns, rows: result.rows, ..ended });
            }
            result.rows += 1;
            match protocol {
                Protocol::Text => {
                    let mut cells = Vec::with_capacity(columns);
                    wire::decode_text_row(packet, columns, &mut cells)?;
                    answer.row(&cells);
                }
                Protocol::Binary => answer.binary_row(packet),
            }
        }
    }

    fn send_file(&mut self, name: &std::path::Path) -> Result<()> {
        const PIECE_BYTES: usize = 64 * 1024;
        if let Ok(mut file) = std::fs::File::open(name) {
            let mut piece = vec![0; PIECE_BYTES];
            loop {
                let count = file.read(&mut piece)?;
                if count == 0 {
                    break;
                }
                self.send(&piece[..count])?;
            }
        }
        self.send(&[])
    }

    /// Prepares a statement.
    ///
    /// # Errors
    /// The statement is wrong or the connection is lost.
    pub fn prepare(&mut self, sql: &[u8]) -> Result<Prepared> {
        let mut payload = Vec::new();
        wire::put_simple_command(&mut payload, CommandCode::StmtPrepare, sql);
        self.command(&payload)?;
        let capabilities = self.capabilities;
        let packet = self.read_packet()?;
        if packet.first() == Some(&0xff) {
            return Err(Failure::Server(ErrPacket::decode(packet)?.to_error()));
        }
        let prepared = PrepareOk::decode(packet)?;
        let eof = !capabilities.contains(Capabilities::DEPRECATE_EOF);
        for count in [prepared.parameters, prepared.columns] {
            let packets = usize::from(count) + usize::from(count > 0 && eof);
            for _ in 0..packets {
                self.read_packet()?;
            }
        }
        Ok(Prepared { id: prepared.statement_id, parameters: prepared.parameters })
    }

    /// Runs a prepared statement; rows go to `answer` undecoded.
    ///
    /// # Errors
    /// The statement failed or the connection is lost.
    pub fn execute(
        &mut self,
        statement: Prepared,
        parameters: &[Value],
        answer: &mut dyn Answer,
    ) -> Result<Outcome> {
        let mut payload = Vec::new();
        let none = CursorFlags(0);
        wire::put_execute(&mut payload, statement.id, none, parameters, self.capabilities);
        self.command(&payload)?;
        self.protocol = Protocol::Binary;
        self.next_result(answer)
    }

    /// Runs a prepared statement once for each of `runs`, and sends all of them before it reads the first answer: one round trip for
    /// all. Each statement has one result; rows go to `answer`.
    ///
    /// # Errors
    /// A statement failed, after which the answers to the others are not read, or the connection is lost.
    pub fn execute_pipelined(
        &mut self,
        runs: &[(Prepared, Vec<Value>)],
        answer: &mut dyn Answer,
    ) -> Result<()> {
        let mut payload = Vec::new();
        for (statement, parameters) in runs {
            payload.clear();
            let none = CursorFlags(0);
            wire::put_execute(&mut payload, statement.id, none, parameters, self.capabilities);
            self.sequence = 0;
            wire::put_packet(&mut self.output, &payload, &mut self.sequence);
        }
        self.stream.begin_command();
        self.stream.write_all(&self.output)?;
        self.stream.flush()?;
        self.output.clear();
        self.protocol = Protocol::Binary;
        for _ in runs {
            self.sequence = 1;
            self.next_result(answer)?;
        }
        Ok(())
    }

    /// Closes a prepared statement. The server does not answer.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn close(&mut self, statement: Prepared) -> Result<()> {
        let mut payload = Vec::new();
        let id = statement.id.to_le_bytes();
        wire::put_simple_command(&mut payload, CommandCode::StmtClose, &id);
        self.command(&payload)
    }
}

/// The outcome in an OK packet.
fn outcome(ok: &OkPacket<'_>) -> Outcome {
    Outcome {
        affected_rows: ok.affected_rows,
        last_insert_id: ok.last_insert_id,
        warnings: ok.warnings,
        info: String::from_utf8_lossy(ok.info).into_owned(),
        more: ok.status.contains(StatusFlags::MORE_RESULTS_EXIST),
        out_parameters: ok.status.contains(StatusFlags::PS_OUT_PARAMS),
        ..Outcome::default()
    }
}

/// Whether a packet ends the rows, and how.
fn end_of_rows(packet: &[u8], capabilities: Capabilities) -> Result<Option<Result<Outcome>>> {
    match packet.first() {
        Some(0xff) => Ok(Some(Err(Failure::Server(ErrPacket::decode(packet)?.to_error())))),
        Some(0xfe) if packet.len() < 0xff_ffff => {
            if capabilities.contains(Capabilities::DEPRECATE_EOF) {
                return Ok(Some(Ok(outcome(&OkPacket::decode(packet, capabilities)?))));
            }
            if packet.len() > 5 {
                return Ok(None);
            }
            let eof = wire::Eof::decode(packet)?;
            let more = eof.status.contains(StatusFlags::MORE_RESULTS_EXIST);
            let out_parameters = eof.status.contains(StatusFlags::PS_OUT_PARAMS);
            let warnings = eof.warnings;
            Ok(Some(Ok(Outcome { warnings, more, out_parameters, ..Outcome::default() })))
        }
        _ => Ok(None),
    }
}
