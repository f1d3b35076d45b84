//! Replies of the command phase: OK, EOF, ERR, the head of a prepared statement, the request for a file.

use errors::Error;

use crate::{
    Capabilities, Malformed, Reader, StatusFlags, TrackType, put_lenenc_bytes, put_lenenc_int,
};

/// A session state change in an OK packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// A tracked system variable and its value.
    SystemVariable(&'a [u8], &'a [u8]),
    /// The current schema.
    Schema(&'a [u8]),
    /// Something changed.
    State,
    /// Identifiers of transactions.
    Gtids(&'a [u8]),
    /// Statements that begin a transaction like the open one.
    TransactionCharacteristics(&'a [u8]),
    /// What the open transaction has done.
    TransactionState(&'a [u8]),
    /// Any other kind, undecoded.
    Other(u8, &'a [u8]),
}

/// The end of a statement, or of a result set when EOF packets are deprecated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OkPacket<'a> {
    /// Affected rows.
    pub affected_rows: u64,
    /// Generated key.
    pub last_insert_id: u64,
    /// Status flags; SESSION_STATE_CHANGED is set by the encoder as needed.
    pub status: StatusFlags,
    /// Number of warnings.
    pub warnings: u16,
    /// Human-readable text.
    pub info: &'a [u8],
    /// Session state changes.
    pub changes: Vec<Change<'a>>,
}

impl<'a> OkPacket<'a> {
    /// Appends the payload of an OK that ends a statement.
    pub fn encode(&self, out: &mut Vec<u8>, in_force: Capabilities) {
        self.encode_with_header(out, 0x00, in_force);
    }

    /// Appends the payload of an OK in place of EOF.
    pub fn encode_as_eof(&self, out: &mut Vec<u8>, in_force: Capabilities) {
        self.encode_with_header(out, 0xfe, in_force);
    }

    fn encode_with_header(&self, out: &mut Vec<u8>, header: u8, in_force: Capabilities) {
        let tracking = in_force.contains(Capabilities::SESSION_TRACK);
        let changed = tracking && !self.changes.is_empty();
        let status = self
            .status
            .without(StatusFlags::SESSION_STATE_CHANGED)
            .with_if(StatusFlags::SESSION_STATE_CHANGED, changed);
        out.push(header);
        put_lenenc_int(out, self.affected_rows);
        put_lenenc_int(out, self.last_insert_id);
        out.extend_from_slice(&status.0.to_le_bytes());
        out.extend_from_slice(&self.warnings.to_le_bytes());
        // The text is preceded by its length in either form, despite the documentation of the older one.
        if changed || !self.info.is_empty() {
            put_lenenc_bytes(out, self.info);
        }
        if changed {
            let mut block = Vec::new();
            for change in &self.changes {
                put_change(&mut block, change);
            }
            put_lenenc_bytes(out, &block);
        }
    }

    /// Reads a payload that starts with 0x00 or 0xFE.
    ///
    /// # Errors
    /// Cut short.
    pub fn decode(payload: &'a [u8], in_force: Capabilities) -> Result<OkPacket<'a>, Malformed> {
        let mut reader = Reader::new(payload);
        if !matches!(reader.u8()?, 0x00 | 0xfe) {
            return Err(Malformed);
        }
        let affected_rows = reader.lenenc_int()?;
        let last_insert_id = reader.lenenc_int()?;
        let status = StatusFlags(reader.u16()?);
        let warnings = reader.u16()?;
        let mut ok =
            OkPacket { affected_rows, last_insert_id, status, warnings, ..OkPacket::default() };
        if !reader.is_empty() {
            ok.info = reader.lenenc_bytes()?;
            if in_force.contains(Capabilities::SESSION_TRACK)
                && status.contains(StatusFlags::SESSION_STATE_CHANGED)
            {
                ok.changes = read_changes(reader.lenenc_bytes()?)?;
            }
        }
        Ok(ok)
    }
}

fn put_change(out: &mut Vec<u8>, change: &Change<'_>) {
    let mut data = Vec::new();
    let kind = match change {
        Change::SystemVariable(name, value) => {
            put_lenenc_bytes(&mut data, name);
            put_lenenc_bytes(&mut data, value);
            TrackType::SystemVariables as u8
        }
        Change::Schema(name) => {
            put_lenenc_bytes(&mut data, name);
            TrackType::Schema as u8
        }
        Change::State => {
            // Bytes without a length, despite the documentation.
            data.push(b'1');
            TrackType::StateChange as u8
        }
        Change::Gtids(set) => {
            // The encoding: text.
            data.push(0);
            put_lenenc_bytes(&mut data, set);
            TrackType::Gtids as u8
        }
        Change::TransactionCharacteristics(text) => {
            put_lenenc_bytes(&mut data, text);
            TrackType::TransactionCharacteristics as u8
        }
        Change::TransactionState(text) => {
            put_lenenc_bytes(&mut data, text);
            TrackType::TransactionState as u8
        }
        Change::Other(kind, bytes) => {
            data.extend_from_slice(bytes);
            *kind
        }
    };
    out.push(kind);
    put_lenenc_bytes(out, &data);
}

fn read_changes(block: &[u8]) -> Result<Vec<Change<'_>>, Malformed> {
    let mut reader = Reader::new(block);
    let mut changes = Vec::new();
    while !reader.is_empty() {
        let kind = reader.u8()?;
        let bytes = reader.lenenc_bytes()?;
        let mut data = Reader::new(bytes);
        changes.push(match TrackType::from_u8(kind) {
            Some(TrackType::SystemVariables) => {
                Change::SystemVariable(data.lenenc_bytes()?, data.lenenc_bytes()?)
            }
            Some(TrackType::Schema) => Change::Schema(data.lenenc_bytes()?),
            Some(TrackType::StateChange) => Change::State,
            Some(TrackType::Gtids) if data.u8()? == 0 => Change::Gtids(data.lenenc_bytes()?),
            Some(TrackType::TransactionCharacteristics) => {
                Change::TransactionCharacteristics(data.lenenc_bytes()?)
            }
            Some(TrackType::TransactionState) => Change::TransactionState(data.lenenc_bytes()?),
            Some(TrackType::Gtids) | None => Change::Other(kind, bytes),
        });
    }
    Ok(changes)
}

/// The EOF packet for clients without CLIENT_DEPRECATE_EOF.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Eof {
    /// Number of warnings.
    pub warnings: u16,
    /// Status flags.
    pub status: StatusFlags,
}

impl Eof {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(0xfe);
        out.extend_from_slice(&self.warnings.to_le_bytes());
        out.extend_from_slice(&self.status.0.to_le_bytes());
    }

    /// Reads the payload.
    ///
    /// # Errors
    /// Not an EOF packet.
    pub fn decode(payload: &[u8]) -> Result<Eof, Malformed> {
        let mut reader = Reader::new(payload);
        if reader.u8()? != 0xfe || payload.len() >= 9 {
            return Err(Malformed);
        }
        Ok(Eof { warnings: reader.u16()?, status: StatusFlags(reader.u16()?) })
    }
}

/// A failed command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrPacket<'a> {
    /// Error number.
    pub code: u16,
    /// SQLSTATE; `HY000` for a packet without one.
    pub sqlstate: [u8; 5],
    /// Text.
    pub message: &'a [u8],
}

impl<'a> ErrPacket<'a> {
    /// The packet for `error`.
    pub fn of(error: &'a Error) -> ErrPacket<'a> {
        ErrPacket {
            code: error.code().0,
            sqlstate: error.sqlstate(),
            message: error.message().as_bytes(),
        }
    }

    /// Appends the payload. Before the handshake response is read, clients expect no SQLSTATE:
    /// `in_force` lacks PROTOCOL_41 then.
    pub fn encode(&self, out: &mut Vec<u8>, in_force: Capabilities) {
        out.push(0xff);
        out.extend_from_slice(&self.code.to_le_bytes());
        if in_force.contains(Capabilities::PROTOCOL_41) {
            out.push(b'#');
            out.extend_from_slice(&self.sqlstate);
        }
        out.extend_from_slice(self.message);
    }

    /// Reads the payload.
    ///
    /// # Errors
    /// Not an ERR packet.
    pub fn decode(payload: &'a [u8]) -> Result<ErrPacket<'a>, Malformed> {
        let mut reader = Reader::new(payload);
        if reader.u8()? != 0xff {
            return Err(Malformed);
        }
        let code = reader.u16()?;
        let mut sqlstate = *b"HY000";
        if reader.peek() == Some(b'#') && reader.remaining() >= 6 {
            reader.skip(1)?;
            sqlstate.copy_from_slice(reader.bytes(5)?);
        }
        Ok(ErrPacket { code, sqlstate, message: reader.rest() })
    }

    /// The error value, on the client's side.
    pub fn to_error(&self) -> Error {
        Error::with_sqlstate(
            errors::ErrorCode(self.code),
            self.sqlstate,
            String::from_utf8_lossy(self.message),
        )
    }
}

/// First packet of the reply to COM_STMT_PREPARE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrepareOk {
    /// Id for later commands.
    pub statement_id: u32,
    /// Number of result columns.
    pub columns: u16,
    /// Number of parameters.
    pub parameters: u16,
    /// Number of warnings.
    pub warnings: u16,
    /// Whether column definitions follow.
    pub metadata_follows: Option<bool>,
}

impl PrepareOk {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(0);
        out.extend_from_slice(&self.statement_id.to_le_bytes());
        out.extend_from_slice(&self.columns.to_le_bytes());
        out.extend_from_slice(&self.parameters.to_le_bytes());
        out.push(0);
        out.extend_from_slice(&self.warnings.to_le_bytes());
        if let Some(follows) = self.metadata_follows {
            out.push(u8::from(follows));
        }
    }

    /// Reads the payload.
    ///
    /// # Errors
    /// Cut short.
    pub fn decode(payload: &[u8]) -> Result<PrepareOk, Malformed> {
        let mut reader = Reader::new(payload);
        if reader.u8()? != 0 {
            return Err(Malformed);
        }
        let statement_id = reader.u32()?;
        let columns = reader.u16()?;
        let parameters = reader.u16()?;
        reader.skip(1)?;
        let warnings = reader.u16().unwrap_or(0);
        let metadata_follows = reader.u8().ok().map(|flag| flag != 0);
        Ok(PrepareOk { statement_id, columns, parameters, warnings, metadata_follows })
    }
}

/// Appends a request for the client's file `name` (LOAD DATA LOCAL INFILE).
pub fn put_local_infile_request(out: &mut Vec<u8>, name: &[u8]) {
    out.push(0xfb);
    out.extend_from_slice(name);
}

/// The kind of the first packet of a reply to COM_QUERY or COM_STMT_EXECUTE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply<'a> {
    /// Done without a result set.
    Ok(OkPacket<'a>),
    /// Failed.
    Err(ErrPacket<'a>),
    /// The server wants this file.
    LocalInfile(&'a [u8]),
    /// A result set of this many columns follows; `metadata` says whether their definitions do.
    ResultSet { columns: usize, metadata: bool },
}

/// Reads the first packet of a reply, on the client's side.
///
/// # Errors
/// None of the known forms.
pub fn classify_reply(payload: &[u8], in_force: Capabilities) -> Result<Reply<'_>, Malformed> {
    match payload.first() {
        Some(0x00) => OkPacket::decode(payload, in_force).map(Reply::Ok),
        Some(0xff) => ErrPacket::decode(payload).map(Reply::Err),
        Some(0xfb) => Ok(Reply::LocalInfile(&payload[1..])),
        Some(_) => {
            let mut reader = Reader::new(payload);
            let mut metadata = true;
            let optional = in_force.contains(Capabilities::OPTIONAL_RESULTSET_METADATA);
            if optional && payload.len() > 1 {
                metadata = reader.u8()? != 0;
            }
            let columns = reader.lenenc_int()?;
            if columns > u64::from(u16::MAX) {
                return Err(Malformed);
            }
            Ok(Reply::ResultSet { columns: columns as usize, metadata })
        }
        None => Err(Malformed),
    }
}
