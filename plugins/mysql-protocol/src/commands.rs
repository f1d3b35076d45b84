//! The command phase: each command is decoded, passed to the session, and answered.

use errors::{Error, Result, err};
use plugin_api::{
    ColumnMeta, CommandOutcome, CountedCommand, DumpRequest, ExecuteRequest, OkInfo, PreparedInfo,
    QueryAttribute, RegisteredReplica, ResultSink as _, SessionHandle,
};
use wire::{
    Capabilities, Command, CursorFlags, Eof, Parameter, PrepareOk, Reader, StatusFlags,
    begin_packet, decode_execute_header, decode_parameters, finish_packet,
};

use crate::connection::{BoundStatements, Connection, Phase, Scratch};
use crate::sink::{RowFormat, Sink, TextEncoding, encode_column, put_end, put_ok, status_of};

/// A client may send long data for statements that do not exist; at most this many are remembered.
const BOUND_STATEMENTS_MAX: usize = 1 << 16;
/// Flag of COM_BINLOG_DUMP: end where the log ends.
const DUMP_NON_BLOCKING: u16 = 1;
/// COM_SET_OPTION: multi statements on.
const OPTION_MULTI_STATEMENTS_ON: u16 = 0;
/// COM_SET_OPTION: multi statements off.
const OPTION_MULTI_STATEMENTS_OFF: u16 = 1;

/// How a command ended.
enum End {
    /// Send the output.
    Reply,
    /// Nothing to send.
    Silent,
    /// Send the output, then close.
    Close,
}

impl Connection {
    /// Runs one command.
    pub(crate) fn take_command(&mut self, payload: &[u8], scratch: &mut Scratch) {
        scratch.output.clear();
        self.cancel.reset_statement();
        self.timeouts_stale = true;
        self.commands = self.commands.wrapping_add(1);
        let command = match Command::decode(payload, self.capabilities) {
            Ok(command) => command,
            Err(malformed) => {
                self.put_error(&malformed.into(), &mut scratch.output);
                return self.send_output(scratch);
            }
        };
        match command {
            Command::Quit => self.phase = Phase::Closed,
            Command::ChangeUser(body) => self.take_change_user(body, scratch),
            Command::Query(text) => {
                let attributes: Vec<QueryAttribute> =
                    text.attributes.into_iter().map(query_attribute).collect();
                self.stream(RowFormat::Text, false, scratch, |session, sink, _| {
                    session.query(text.sql, &attributes, sink)
                });
            }
            Command::StmtExecute(body) => self.execute(body, scratch),
            Command::StmtFetch { statement_id, rows } => self.fetch(statement_id, rows, scratch),
            Command::BinlogDump { position, flags, server_id, file } => {
                self.dump((position, flags, server_id, file), None, scratch);
            }
            Command::BinlogDumpGtid { position, flags, server_id, file, gtids } => {
                self.dump((position, flags, server_id, file), Some(gtids), scratch);
            }
            other => self.answer(&other, scratch),
        }
    }

    /// Runs a command whose results go through a sink, and sends or holds back the reply.
    fn stream(
        &mut self,
        format: RowFormat,
        cursor_possible: bool,
        scratch: &mut Scratch,
        run: impl FnOnce(
            &mut dyn SessionHandle,
            &mut Sink<'_>,
            &[types::Value],
        ) -> Result<CommandOutcome>,
    ) -> bool {
        let Some(session) = &mut self.session else {
            self.phase = Phase::Closed;
            return false;
        };
        let metadata_status = if self.capabilities.contains(Capabilities::DEPRECATE_EOF) {
            StatusFlags::default()
        } else {
            status_of(&session.state())
        };
        let mut sink = Sink {
            transport: &mut self.transport,
            input: &mut self.input,
            sequence: &mut self.sequence,
            capabilities: self.capabilities,
            timeouts: self.timeouts,
            max_packet: self.max_packet,
            out: &mut scratch.output,
            types: &mut scratch.types,
            metadata: &mut scratch.metadata,
            encoding: TextEncoding::of(session.result_collation()),
            format,
            metadata_status,
            cursor_possible,
            metadata_end_due: false,
            cursor_opened: false,
            commits: Vec::new(),
            lost: false,
        };
        let outcome = run(session.as_mut(), &mut sink, &scratch.values);
        let (lost, commits, opened) = (sink.lost, sink.commits, sink.cursor_opened);
        let close = match outcome {
            Ok(CommandOutcome::Continue) => false,
            Ok(CommandOutcome::Close) => true,
            Err(_) => {
                self.phase = Phase::Closed;
                return false;
            }
        };
        if lost || (!close && self.cancel.is_connection_killed()) {
            // A connection that another one killed ends without a reply.
            scratch.output.clear();
            self.phase = Phase::Closed;
        } else if commits.is_empty() {
            self.send_output(scratch);
            if close {
                self.phase = Phase::Closed;
            }
        } else {
            self.park(commits, close, scratch);
        }
        opened
    }

    fn execute(&mut self, body: &[u8], scratch: &mut Scratch) {
        let decoded = self.decode_execute(body, scratch);
        let (id, flags, attributes, count) = match decoded {
            Ok(decoded) => decoded,
            Err(error) => {
                self.put_error(&error, &mut scratch.output);
                return self.send_output(scratch);
            }
        };
        let cursor = flags.contains(CursorFlags::READ_ONLY);
        let opened = self.stream(RowFormat::Binary, cursor, scratch, |session, sink, values| {
            let request = ExecuteRequest {
                statement_id: id,
                parameters: &values[..count.min(values.len())],
                attributes: &attributes,
                cursor,
            };
            session.execute(&request, sink)
        });
        if opened {
            self.statements.entry(id).or_default().cursor = scratch.types.clone();
        }
    }

    /// Statement, flags, attributes, and the number of parameters at the front of `scratch.values`.
    fn decode_execute(
        &mut self,
        body: &[u8],
        scratch: &mut Scratch,
    ) -> Result<(u32, CursorFlags, Vec<QueryAttribute>, usize)> {
        let mut reader = Reader::new(body);
        let head = decode_execute_header(&mut reader)?;
        let id = head.statement_id;
        let session = self.session.as_ref().ok_or_else(|| err!(UNKNOWN_COM_ERROR))?;
        let count = session.parameter_count(id)?;
        scratch.values.clear();
        let counted = head.flags.contains(CursorFlags::PARAMETER_COUNT_AVAILABLE);
        if count == 0 && !counted {
            return Ok((id, head.flags, Vec::new(), 0));
        }
        if self.statements.len() >= BOUND_STATEMENTS_MAX && !self.statements.contains_key(&id) {
            return Err(err!(MAX_PREPARED_STMT_COUNT_REACHED, BOUND_STATEMENTS_MAX));
        }
        let bound = self.statements.entry(id).or_default();
        let long_data = std::mem::take(&mut bound.long_data);
        if let Some(error) = bound.long_data_error.take() {
            return Err(error);
        }
        let long = |index: usize| {
            let found = long_data.iter().find(|(at, _)| usize::from(*at) == index);
            found.map(|(_, bytes)| &bytes[..])
        };
        decode_parameters(
            &mut reader,
            self.capabilities,
            head.flags,
            count,
            &mut bound.types,
            &long,
            &mut scratch.values,
        )?;
        let named = bound.types.iter().zip(&scratch.values).skip(count);
        let attributes = named.map(|(ty, value)| QueryAttribute {
            name: String::from_utf8_lossy(&ty.name).into_owned(),
            value: value.clone(),
        });
        Ok((id, head.flags, attributes.collect(), count))
    }

    /// Sends the binary log: it ends when the reader goes, or has it all and wanted no more.
    fn dump(
        &mut self,
        (position, flags, server_id, file): (u64, u16, u32, &[u8]),
        gtids: Option<&[u8]>,
        scratch: &mut Scratch,
    ) {
        let request = DumpRequest {
            server_id,
            is_short: flags & DUMP_NON_BLOCKING != 0,
            file: String::from_utf8_lossy(file).into_owned(),
            position,
            gtids: gtids.map(<[u8]>::to_vec),
            connection_id: self.id,
            ..DumpRequest::default()
        };
        self.stream(RowFormat::Text, false, scratch, |session, sink, _| {
            match session.dump_binary_log(request, sink) {
                Ok(()) => sink.end_of_events(),
                Err(error) => sink.error(&error)?,
            }
            Ok(CommandOutcome::Continue)
        });
    }

    fn fetch(&mut self, statement_id: u32, rows: u32, scratch: &mut Scratch) {
        let cursor = self.statements.get(&statement_id).map(|bound| bound.cursor.clone());
        scratch.types = cursor.unwrap_or_default();
        self.stream(RowFormat::Binary, false, scratch, |session, sink, _| {
            session.fetch(statement_id, rows, sink).map(|()| CommandOutcome::Continue)
        });
    }

    /// Commands with a short answer.
    fn answer(&mut self, command: &Command<'_>, scratch: &mut Scratch) {
        let result = self.short_answer(command, &mut scratch.output);
        let end = match result {
            Ok(end) => end,
            Err(error) => {
                scratch.output.clear();
                self.put_error(&error, &mut scratch.output);
                End::Reply
            }
        };
        match end {
            End::Silent => {}
            End::Reply => self.send_output(scratch),
            End::Close => {
                self.send_output(scratch);
                self.phase = Phase::Closed;
            }
        }
    }

    fn short_answer(&mut self, command: &Command<'_>, out: &mut Vec<u8>) -> Result<End> {
        let Some(session) = &mut self.session else { return Ok(End::Close) };
        let caps = self.capabilities;
        let sequence = &mut self.sequence;
        if matches!(
            command,
            Command::Ping | Command::Debug | Command::ResetConnection | Command::SetOption(_)
        ) {
            session.count(CountedCommand::Administration);
        }
        match command {
            Command::InitDb(name) => {
                let name = String::from_utf8_lossy(name);
                put_ok(out, &session.init_db(&name)?, caps, sequence);
            }
            Command::Ping => put_ok(out, &session.state(), caps, sequence),
            Command::Statistics => {
                let line = session.statistics();
                wire::put_packet(out, line.as_bytes(), sequence);
            }
            Command::Debug => put_plain_eof(out, &session.state(), caps, sequence),
            Command::ProcessKill(id) => {
                let id = u64::from(*id);
                put_ok(out, &session.kill(id)?, caps, sequence);
                return Ok(if id == self.id { End::Close } else { End::Reply });
            }
            Command::ResetConnection => {
                let ok = session.reset_connection()?;
                self.statements.clear();
                put_ok(out, &ok, caps, sequence);
            }
            Command::SetOption(option) => {
                set_option(session.as_mut(), *option)?;
                put_plain_eof(out, &session.state(), caps, sequence);
            }
            Command::FieldList { table, wildcard } => {
                let table = String::from_utf8_lossy(table);
                let columns = session.field_list(&table, &String::from_utf8_lossy(wildcard))?;
                put_fields(&columns, TextEncoding::of(session.result_collation()), out, sequence);
                put_end(out, &session.state(), caps, sequence);
            }
            Command::StmtPrepare(sql) => {
                let info = session.prepare(sql)?;
                let encoding = TextEncoding::of(session.result_collation());
                let status = status_of(&session.state());
                put_prepared(out, &info, encoding, caps, status, sequence)?;
            }
            Command::StmtReset(id) => {
                let ok = session.reset_statement(*id)?;
                forget_long_data(&mut self.statements, *id);
                put_ok(out, &ok, caps, sequence);
            }
            Command::StmtClose(id) => {
                session.close_statement(*id);
                self.statements.remove(id);
                return Ok(End::Silent);
            }
            Command::StmtSendLongData { statement_id, parameter, data } => {
                session.count(CountedCommand::LongData);
                if session.parameter_count(*statement_id).is_ok() {
                    let limit = self.max_packet;
                    add_long_data(&mut self.statements, *statement_id, *parameter, data, limit);
                }
                return Ok(End::Silent);
            }
            Command::RegisterReplica { server_id, host, user, port } => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let replica = RegisteredReplica {
                    server_id: *server_id,
                    host: text(host),
                    user: text(user),
                    port: *port,
                    connection_id: self.id,
                    ..RegisteredReplica::default()
                };
                put_ok(out, &session.register_replica(replica)?, caps, sequence);
            }
            Command::Unknown(_) => return Err(err!(UNKNOWN_COM_ERROR)),
            // Handled before.
            Command::Quit
            | Command::Query(_)
            | Command::ChangeUser(_)
            | Command::BinlogDump { .. }
            | Command::BinlogDumpGtid { .. }
            | Command::StmtExecute(_)
            | Command::StmtFetch { .. } => return Ok(End::Silent),
        }
        Ok(End::Reply)
    }
}

/// COM_SET_OPTION.
fn set_option(session: &mut dyn SessionHandle, option: u16) -> Result<()> {
    match option {
        OPTION_MULTI_STATEMENTS_ON => session.set_multi_statements(true),
        OPTION_MULTI_STATEMENTS_OFF => session.set_multi_statements(false),
        _ => return Err(err!(UNKNOWN_COM_ERROR)),
    }
    Ok(())
}

/// The columns of COM_FIELD_LIST.
fn put_fields(
    columns: &[ColumnMeta],
    encoding: TextEncoding,
    out: &mut Vec<u8>,
    sequence: &mut u8,
) {
    for column in columns {
        let start = begin_packet(out);
        encode_column(column, encoding, out);
        // The default value; clients only skip over it.
        wire::put_text_null(out);
        finish_packet(out, start, sequence);
    }
}

/// COM_STMT_RESET: the received pieces of parameters are not for the next execution.
fn forget_long_data(statements: &mut BoundStatements, id: u32) {
    if let Some(bound) = statements.get_mut(&id) {
        bound.long_data.clear();
        bound.long_data_error = None;
    }
}

fn query_attribute(parameter: Parameter) -> QueryAttribute {
    let name = String::from_utf8_lossy(&parameter.name).into_owned();
    QueryAttribute { name, value: parameter.value }
}

/// COM_DEBUG and COM_SET_OPTION end with EOF in the old form, or an OK marked as EOF.
fn put_plain_eof(out: &mut Vec<u8>, state: &OkInfo, caps: Capabilities, sequence: &mut u8) {
    put_end(out, state, caps, sequence);
}

/// Keeps a piece of a parameter. All pieces of a statement together stay below the packet limit.
fn add_long_data(
    statements: &mut BoundStatements,
    id: u32,
    parameter: u16,
    data: &[u8],
    limit: usize,
) {
    if statements.len() >= BOUND_STATEMENTS_MAX && !statements.contains_key(&id) {
        return;
    }
    let bound = statements.entry(id).or_default();
    let kept: usize = bound.long_data.iter().map(|(_, bytes)| bytes.len()).sum();
    if kept + data.len() > limit {
        bound.long_data_error = Some(err!(NET_PACKET_TOO_LARGE));
        bound.long_data.clear();
        return;
    }
    match bound.long_data.iter_mut().find(|(at, _)| *at == parameter) {
        Some((_, bytes)) => bytes.extend_from_slice(data),
        None => bound.long_data.push((parameter, data.to_vec())),
    }
}

fn put_prepared(
    out: &mut Vec<u8>,
    info: &PreparedInfo,
    encoding: TextEncoding,
    caps: Capabilities,
    status: StatusFlags,
    sequence: &mut u8,
) -> Result<()> {
    let optional = caps.contains(Capabilities::OPTIONAL_RESULTSET_METADATA);
    let too_many = |_| Error::with(errors::ErrorCode::PS_MANY_PARAM, &[]);
    let head = PrepareOk {
        statement_id: info.statement_id,
        columns: u16::try_from(info.columns.len()).map_err(too_many)?,
        parameters: u16::try_from(info.parameters.len()).map_err(too_many)?,
        warnings: info.warnings,
        metadata_follows: optional.then_some(true),
    };
    let start = begin_packet(out);
    head.encode(out);
    finish_packet(out, start, sequence);
    for columns in [&info.parameters, &info.columns] {
        for column in columns {
            let start = begin_packet(out);
            encode_column(column, encoding, out);
            finish_packet(out, start, sequence);
        }
        if !columns.is_empty() && !caps.contains(Capabilities::DEPRECATE_EOF) {
            let start = begin_packet(out);
            Eof { warnings: 0, status }.encode(out);
            finish_packet(out, start, sequence);
        }
    }
    Ok(())
}
