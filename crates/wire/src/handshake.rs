//! Connection phase: greeting, handshake response, TLS request, method switch, COM_CHANGE_USER.
//!
//! Text is kept as bytes: only the session knows its character set.

use crate::{Capabilities, Malformed, Reader, StatusFlags, put_lenenc_bytes, put_null_terminated};

/// Bytes of the server's nonce, without the NUL that follows it.
pub const NONCE_BYTES: usize = 20;
/// The greeting carries the first part of the nonce before the capabilities.
const NONCE_FIRST_PART_BYTES: usize = 8;
/// Connection attributes beyond this many bytes are dropped, as in the reference.
const ATTRIBUTES_BYTES_MAX: usize = 64 * 1024;

/// The server's first packet (protocol version 10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// `9.7.0-...`.
    pub server_version: Vec<u8>,
    /// Connection id, cut to 32 bits.
    pub connection_id: u32,
    /// Random bytes without NUL.
    pub nonce: [u8; NONCE_BYTES],
    /// The server's capabilities.
    pub capabilities: Capabilities,
    /// Default collation; only the low byte is sent.
    pub collation: u16,
    /// Status flags.
    pub status: StatusFlags,
    /// Name of the default authentication method.
    pub auth_plugin: Vec<u8>,
}

impl Greeting {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(10);
        put_null_terminated(out, &self.server_version);
        out.extend_from_slice(&self.connection_id.to_le_bytes());
        out.extend_from_slice(&self.nonce[..NONCE_FIRST_PART_BYTES]);
        out.push(0);
        let [low0, low1, high0, high1] = self.capabilities.0.to_le_bytes();
        out.extend_from_slice(&[low0, low1, self.collation as u8]);
        out.extend_from_slice(&self.status.0.to_le_bytes());
        out.extend_from_slice(&[high0, high1, NONCE_BYTES as u8 + 1]);
        out.extend_from_slice(&[0; 10]);
        out.extend_from_slice(&self.nonce[NONCE_FIRST_PART_BYTES..]);
        out.push(0);
        put_null_terminated(out, &self.auth_plugin);
    }

    /// Reads the payload.
    ///
    /// # Errors
    /// It is not a greeting of protocol 10 with a 20-byte nonce.
    pub fn decode(payload: &[u8]) -> Result<Greeting, Malformed> {
        let mut reader = Reader::new(payload);
        if reader.u8()? != 10 {
            return Err(Malformed);
        }
        let server_version = reader.null_terminated()?.to_vec();
        let connection_id = reader.u32()?;
        let mut nonce = [0; NONCE_BYTES];
        let (first, second) = nonce.split_at_mut(NONCE_FIRST_PART_BYTES);
        first.copy_from_slice(reader.bytes(NONCE_FIRST_PART_BYTES)?);
        reader.skip(1)?;
        let low = reader.u16()?;
        let collation = u16::from(reader.u8()?);
        let status = StatusFlags(reader.u16()?);
        let high = reader.u16()?;
        reader.skip(1 + 10)?;
        second.copy_from_slice(reader.bytes(second.len())?);
        reader.skip(1)?;
        let capabilities = Capabilities(u32::from(low) | u32::from(high) << 16);
        let auth_plugin = reader.null_terminated_or_rest().to_vec();
        Ok(Greeting {
            server_version,
            connection_id,
            nonce,
            capabilities,
            collation,
            status,
            auth_plugin,
        })
    }
}

/// The client requests TLS: a handshake response that stops before the user name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SslRequest {
    /// The client's capabilities.
    pub capabilities: Capabilities,
    /// Largest packet the client takes.
    pub packet_bytes_max: u32,
    /// Collation id.
    pub collation: u16,
}

impl SslRequest {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.capabilities.0.to_le_bytes());
        out.extend_from_slice(&self.packet_bytes_max.to_le_bytes());
        // The collation has two bytes; the rest of the 23 is reserved.
        out.extend_from_slice(&self.collation.to_le_bytes());
        out.extend_from_slice(&[0; 22]);
    }
}

/// The client's log-in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HandshakeResponse<'a> {
    /// The client's capabilities, as sent.
    pub capabilities: Capabilities,
    /// Largest packet the client takes.
    pub packet_bytes_max: u32,
    /// Collation id of the client's character set.
    pub collation: u16,
    /// User name.
    pub user: &'a [u8],
    /// First packet of the exchange.
    pub auth_response: &'a [u8],
    /// Schema, if one is given.
    pub database: Option<&'a [u8]>,
    /// Method for which the auth response was made.
    pub auth_plugin: Option<&'a [u8]>,
    /// Connection attributes.
    pub attributes: Vec<(&'a [u8], &'a [u8])>,
    /// Level for zstd, if that was requested.
    pub zstd_level: Option<u8>,
}

/// The kind of a client's first packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FirstReply<'a> {
    /// TLS first, then the response again.
    Ssl(SslRequest),
    /// The log-in.
    Response(HandshakeResponse<'a>),
}

/// Reads the client's first packet. `offered` are the greeting's flags: others are ignored.
///
/// # Errors
/// Not the 4.1 protocol, or cut short.
pub fn decode_first_reply<'a>(
    payload: &'a [u8],
    offered: Capabilities,
) -> Result<FirstReply<'a>, Malformed> {
    let mut reader = Reader::new(payload);
    let capabilities = Capabilities(reader.u32()?);
    let packet_bytes_max = reader.u32()?;
    let collation = reader.u16()?;
    reader.skip(22)?;
    if !capabilities.contains(Capabilities::PROTOCOL_41) {
        return Err(Malformed);
    }
    let in_force = capabilities & offered;
    if in_force.contains(Capabilities::SSL) && reader.is_empty() {
        let request = SslRequest { capabilities, packet_bytes_max, collation };
        return Ok(FirstReply::Ssl(request));
    }
    let user = reader.null_terminated()?;
    let auth_response = read_auth_response(&mut reader, in_force)?;
    let database = read_if(&mut reader, in_force, Capabilities::CONNECT_WITH_DB);
    let auth_plugin = read_if(&mut reader, in_force, Capabilities::PLUGIN_AUTH);
    let attributes = read_attributes(&mut reader, in_force)?;
    let zstd_level =
        if in_force.contains(Capabilities::ZSTD_COMPRESSION) { reader.u8().ok() } else { None };
    Ok(FirstReply::Response(HandshakeResponse {
        capabilities,
        packet_bytes_max,
        collation,
        user,
        auth_response,
        database: database.filter(|name| !name.is_empty()),
        auth_plugin,
        attributes,
        zstd_level,
    }))
}

fn read_if<'a>(
    reader: &mut Reader<'a>,
    in_force: Capabilities,
    wanted: Capabilities,
) -> Option<&'a [u8]> {
    if in_force.contains(wanted) && !reader.is_empty() {
        Some(reader.null_terminated_or_rest())
    } else {
        None
    }
}

fn read_auth_response<'a>(
    reader: &mut Reader<'a>,
    in_force: Capabilities,
) -> Result<&'a [u8], Malformed> {
    if in_force.contains(Capabilities::PLUGIN_AUTH_LENENC) {
        reader.lenenc_bytes()
    } else if in_force.contains(Capabilities::SECURE_CONNECTION) {
        let len = reader.u8()?;
        reader.bytes(usize::from(len))
    } else {
        Ok(reader.null_terminated_or_rest())
    }
}

/// A name and its value.
type Attribute<'a> = (&'a [u8], &'a [u8]);

fn read_attributes<'a>(
    reader: &mut Reader<'a>,
    in_force: Capabilities,
) -> Result<Vec<Attribute<'a>>, Malformed> {
    let mut attributes = Vec::new();
    if !in_force.contains(Capabilities::CONNECT_ATTRS) || reader.is_empty() {
        return Ok(attributes);
    }
    let block = reader.lenenc_bytes()?;
    let mut pairs = Reader::new(&block[..block.len().min(ATTRIBUTES_BYTES_MAX)]);
    while !pairs.is_empty() {
        // A pair truncated by the limit ends the list instead of refusing the log-in.
        let (Ok(name), Ok(value)) = (pairs.lenenc_bytes(), pairs.lenenc_bytes()) else { break };
        attributes.push((name, value));
    }
    Ok(attributes)
}

fn put_attributes(out: &mut Vec<u8>, attributes: &[(&[u8], &[u8])]) {
    let mut block = Vec::new();
    for (name, value) in attributes {
        put_lenenc_bytes(&mut block, name);
        put_lenenc_bytes(&mut block, value);
    }
    put_lenenc_bytes(out, &block);
}

impl HandshakeResponse<'_> {
    /// Appends the payload, for capabilities that both sides have.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let caps = self.capabilities;
        let head = SslRequest {
            capabilities: caps,
            packet_bytes_max: self.packet_bytes_max,
            collation: self.collation,
        };
        head.encode(out);
        put_null_terminated(out, self.user);
        if caps.contains(Capabilities::PLUGIN_AUTH_LENENC) {
            put_lenenc_bytes(out, self.auth_response);
        } else {
            let response = &self.auth_response[..self.auth_response.len().min(255)];
            out.push(response.len() as u8);
            out.extend_from_slice(response);
        }
        if caps.contains(Capabilities::CONNECT_WITH_DB) {
            put_null_terminated(out, self.database.unwrap_or_default());
        }
        if caps.contains(Capabilities::PLUGIN_AUTH) {
            put_null_terminated(out, self.auth_plugin.unwrap_or_default());
        }
        if caps.contains(Capabilities::CONNECT_ATTRS) {
            put_attributes(out, &self.attributes);
        }
        if caps.contains(Capabilities::ZSTD_COMPRESSION) {
            out.push(self.zstd_level.unwrap_or(3));
        }
    }
}

/// The server requests another authentication method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthSwitchRequest<'a> {
    /// Method.
    pub plugin: &'a [u8],
    /// Its first data: the nonce.
    pub data: &'a [u8],
}

impl<'a> AuthSwitchRequest<'a> {
    /// Appends the payload; the data gets a NUL after it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(0xfe);
        put_null_terminated(out, self.plugin);
        out.extend_from_slice(self.data);
        out.push(0);
    }

    /// Reads the payload.
    ///
    /// # Errors
    /// No switch request, or cut short.
    pub fn decode(payload: &'a [u8]) -> Result<AuthSwitchRequest<'a>, Malformed> {
        let mut reader = Reader::new(payload);
        if reader.u8()? != 0xfe {
            return Err(Malformed);
        }
        let plugin = reader.null_terminated()?;
        let data = reader.rest();
        Ok(AuthSwitchRequest { plugin, data: data.strip_suffix(&[0]).unwrap_or(data) })
    }
}

/// Appends an AuthMoreData payload.
pub fn put_auth_more_data(out: &mut Vec<u8>, data: &[u8]) {
    out.push(1);
    out.extend_from_slice(data);
}

/// COM_CHANGE_USER without its first byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangeUser<'a> {
    /// User name.
    pub user: &'a [u8],
    /// First packet of the exchange.
    pub auth_response: &'a [u8],
    /// Schema; `None` when empty.
    pub database: Option<&'a [u8]>,
    /// Collation id, when sent.
    pub collation: Option<u16>,
    /// Method for which the auth response was made.
    pub auth_plugin: Option<&'a [u8]>,
    /// Connection attributes.
    pub attributes: Vec<(&'a [u8], &'a [u8])>,
}

impl<'a> ChangeUser<'a> {
    /// Reads the payload after the command byte.
    ///
    /// # Errors
    /// Cut short.
    pub fn decode(payload: &'a [u8], in_force: Capabilities) -> Result<ChangeUser<'a>, Malformed> {
        let mut reader = Reader::new(payload);
        let user = reader.null_terminated()?;
        let len = reader.u8()?;
        let auth_response = reader.bytes(usize::from(len))?;
        let database = Some(reader.null_terminated_or_rest()).filter(|name| !name.is_empty());
        let collation = reader.u16().ok();
        let auth_plugin = read_if(&mut reader, in_force, Capabilities::PLUGIN_AUTH);
        let attributes = read_attributes(&mut reader, in_force)?;
        Ok(ChangeUser { user, auth_response, database, collation, auth_plugin, attributes })
    }

    /// Appends the payload with the command byte.
    pub fn encode(&self, out: &mut Vec<u8>, in_force: Capabilities) {
        out.push(crate::CommandCode::ChangeUser as u8);
        put_null_terminated(out, self.user);
        let response = &self.auth_response[..self.auth_response.len().min(255)];
        out.push(response.len() as u8);
        out.extend_from_slice(response);
        put_null_terminated(out, self.database.unwrap_or_default());
        out.extend_from_slice(&self.collation.unwrap_or(255).to_le_bytes());
        if in_force.contains(Capabilities::PLUGIN_AUTH) {
            put_null_terminated(out, self.auth_plugin.unwrap_or_default());
        }
        if in_force.contains(Capabilities::CONNECT_ATTRS) {
            put_attributes(out, &self.attributes);
        }
    }
}
