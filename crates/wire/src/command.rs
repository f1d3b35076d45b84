//! Command packets of the command phase.

use crate::{
    Capabilities, CommandCode, CursorFlags, Malformed, Parameter, Reader, decode_query_attributes,
};

/// A decoded command. Text is as the client sent it.
#[derive(Clone, Debug, PartialEq)]
pub enum Command<'a> {
    /// COM_QUIT.
    Quit,
    /// COM_INIT_DB.
    InitDb(&'a [u8]),
    /// COM_QUERY.
    Query(QueryText<'a>),
    /// COM_FIELD_LIST.
    FieldList { table: &'a [u8], wildcard: &'a [u8] },
    /// COM_STATISTICS.
    Statistics,
    /// COM_PROCESS_KILL.
    ProcessKill(u32),
    /// COM_DEBUG.
    Debug,
    /// COM_PING.
    Ping,
    /// COM_CHANGE_USER, still to be decoded by [`crate::ChangeUser`].
    ChangeUser(&'a [u8]),
    /// COM_STMT_PREPARE.
    StmtPrepare(&'a [u8]),
    /// COM_STMT_EXECUTE, still to be decoded with the statement's parameter count.
    StmtExecute(&'a [u8]),
    /// COM_STMT_SEND_LONG_DATA. Has no reply.
    StmtSendLongData { statement_id: u32, parameter: u16, data: &'a [u8] },
    /// COM_STMT_CLOSE. Has no reply.
    StmtClose(u32),
    /// COM_STMT_RESET.
    StmtReset(u32),
    /// COM_SET_OPTION.
    SetOption(u16),
    /// COM_STMT_FETCH.
    StmtFetch { statement_id: u32, rows: u32 },
    /// COM_RESET_CONNECTION.
    ResetConnection,
    /// COM_BINLOG_DUMP.
    BinlogDump { position: u64, flags: u16, server_id: u32, file: &'a [u8] },
    /// COM_BINLOG_DUMP_GTID.
    BinlogDumpGtid { position: u64, flags: u16, server_id: u32, file: &'a [u8], gtids: &'a [u8] },
    /// COM_REGISTER_REPLICA.
    RegisterReplica { server_id: u32, host: &'a [u8], user: &'a [u8], port: u16 },
    /// Anything else: answered with 1047.
    Unknown(u8),
}

/// Text and attributes of COM_QUERY.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryText<'a> {
    /// Attributes.
    pub attributes: Vec<Parameter>,
    /// Text.
    pub sql: &'a [u8],
}

impl<'a> Command<'a> {
    /// Reads a command packet.
    ///
    /// # Errors
    /// Empty, or its fixed part is cut short.
    pub fn decode(payload: &'a [u8], in_force: Capabilities) -> Result<Command<'a>, Malformed> {
        let mut reader = Reader::new(payload);
        let number = reader.u8()?;
        let Some(code) = CommandCode::from_u8(number) else {
            return Ok(Command::Unknown(number));
        };
        Ok(match code {
            CommandCode::Quit => Command::Quit,
            CommandCode::InitDb => Command::InitDb(reader.rest()),
            CommandCode::Query => Command::Query(decode_query(&mut reader, in_force)?),
            CommandCode::FieldList => {
                let table = reader.null_terminated()?;
                Command::FieldList { table, wildcard: trim_nul(reader.rest()) }
            }
            CommandCode::Statistics => Command::Statistics,
            CommandCode::ProcessKill => Command::ProcessKill(reader.u32()?),
            CommandCode::Debug => Command::Debug,
            CommandCode::Ping => Command::Ping,
            CommandCode::ChangeUser => Command::ChangeUser(reader.rest()),
            CommandCode::StmtPrepare => Command::StmtPrepare(reader.rest()),
            CommandCode::StmtExecute => Command::StmtExecute(reader.rest()),
            CommandCode::StmtSendLongData => Command::StmtSendLongData {
                statement_id: reader.u32()?,
                parameter: reader.u16()?,
                data: reader.rest(),
            },
            CommandCode::StmtClose => Command::StmtClose(reader.u32()?),
            CommandCode::StmtReset => Command::StmtReset(reader.u32()?),
            CommandCode::SetOption => Command::SetOption(reader.u16()?),
            CommandCode::StmtFetch => {
                Command::StmtFetch { statement_id: reader.u32()?, rows: reader.u32()? }
            }
            CommandCode::ResetConnection => Command::ResetConnection,
            CommandCode::BinlogDump => {
                let position = u64::from(reader.u32()?);
                let (flags, server_id) = (reader.u16()?, reader.u32()?);
                let file = trim_nul(reader.rest());
                Command::BinlogDump { position, flags, server_id, file }
            }
            CommandCode::BinlogDumpGtid => {
                let (flags, server_id) = (reader.u16()?, reader.u32()?);
                let length = reader.u32()? as usize;
                let file = trim_nul(reader.bytes(length)?);
                let position = reader.u64()?;
                let length = reader.u32()? as usize;
                let gtids = reader.bytes(length)?;
                Command::BinlogDumpGtid { position, flags, server_id, file, gtids }
            }
            CommandCode::RegisterReplica => {
                let server_id = reader.u32()?;
                let mut text = || {
                    let length = usize::from(reader.u8()?);
                    reader.bytes(length)
                };
                let (host, user, _password) = (text()?, text()?, text()?);
                Command::RegisterReplica { server_id, host, user, port: reader.u16()? }
            }
            CommandCode::Sleep
            | CommandCode::CreateDb
            | CommandCode::DropDb
            | CommandCode::Refresh
            | CommandCode::Shutdown
            | CommandCode::ProcessInfo
            | CommandCode::Connect
            | CommandCode::Time
            | CommandCode::DelayedInsert
            | CommandCode::TableDump
            | CommandCode::ConnectOut
            | CommandCode::Daemon
            | CommandCode::Clone => Command::Unknown(number),
        })
    }
}

fn decode_query<'a>(
    reader: &mut Reader<'a>,
    in_force: Capabilities,
) -> Result<QueryText<'a>, Malformed> {
    let attributes = if in_force.contains(Capabilities::QUERY_ATTRIBUTES) {
        decode_query_attributes(reader)?
    } else {
        Vec::new()
    };
    Ok(QueryText { attributes, sql: reader.rest() })
}

fn trim_nul(text: &[u8]) -> &[u8] {
    text.strip_suffix(&[0]).unwrap_or(text)
}

/// Head of COM_STMT_EXECUTE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecuteHeader {
    /// Statement.
    pub statement_id: u32,
    /// Whether a cursor is wanted, and how parameters are written.
    pub flags: CursorFlags,
}

/// Reads the head of COM_STMT_EXECUTE's body; parameters follow in `reader`.
///
/// # Errors
/// Cut short.
pub fn decode_execute_header(reader: &mut Reader<'_>) -> Result<ExecuteHeader, Malformed> {
    let statement_id = reader.u32()?;
    let flags = CursorFlags(reader.u8()?);
    // The iteration count is always 1 and has no meaning.
    reader.u32()?;
    Ok(ExecuteHeader { statement_id, flags })
}

/// Appends the payload of a command whose body is plain bytes, on the client's side.
pub fn put_simple_command(out: &mut Vec<u8>, code: CommandCode, body: &[u8]) {
    out.push(code as u8);
    out.extend_from_slice(body);
}
