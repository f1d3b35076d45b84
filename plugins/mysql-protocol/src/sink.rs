//! The result sink of a command: encodes the session's results into the worker's output buffer.
//!
//! The buffer is sent when it is large and at the end of the command. A reply that depends on a commit is
//! not sent before that commit is durable.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use charset::{Charset, CollationId};
use engine_api::CommitHandle;
use errors::{Error, ErrorCode, Result, err};
use plugin_api::{
    ColumnMeta, Computed, DumpSink, LocalFile, Next, OkInfo, ResultSink, RowSource, SessionState,
    StateChange,
};
use sys::blocking::blocking;
use types::{DataType, TypeKind};
use wire::{
    BinaryRowWriter, Capabilities, Change, ColumnDefinition, ColumnFlags, ColumnOrigin, Eof,
    ErrPacket, OkPacket, Reader, ScanError, StatusFlags, TypeOnWire, begin_packet, finish_packet,
    put_lenenc_bytes, put_lenenc_int, put_local_infile_request, put_text_cell, scan_packet,
};

use crate::buffer::InputBuffer;
use crate::connection::Timeouts;
use crate::metadata::{MetadataCache, MetadataForm};
use crate::transport::{Fill, Transport};

/// Output is sent when it reaches this size.
const FLUSH_BYTES: usize = 64 * 1024;
/// Sequence number of a reply's first packet.
const FIRST_OF_REPLY: u8 = 1;
/// `resultset_metadata = FULL`.
const METADATA_FULL: u8 = 1;

/// How text leaves the server.
#[derive(Clone, Copy)]
pub(crate) struct TextEncoding {
    collation: u16,
    char_bytes_max: u32,
    /// Set unless UTF-8 goes out as it is.
    charset: Option<&'static Charset>,
}

impl TextEncoding {
    /// The encoding for a session's `result_collation`.
    pub(crate) fn of(collation: u16) -> TextEncoding {
        let known = charset::collation_or_binary(CollationId(collation));
        let charset = known.charset;
        let as_is = charset.is_utf8() || collation == CollationId::BINARY.0;
        TextEncoding {
            collation,
            char_bytes_max: u32::from(charset.max_length).max(1),
            charset: (!as_is).then_some(charset),
        }
    }

    /// The character set in which texts of a column are sent, when it is not the storage character set.
    fn conversion(&self, ty: &DataType) -> Option<&'static Charset> {
        if ty.collation == CollationId::BINARY {
            return None;
        }
        let leaves_in = match CollationId(self.collation) {
            CollationId::BINARY => ty.collation,
            results => results,
        };
        let charset = charset::collation_or_binary(leaves_in).charset;
        (!charset.is_utf8()).then_some(charset)
    }

    fn encode<'t>(&self, text: &'t str, converted: &'t mut Vec<u8>) -> &'t [u8] {
        match self.charset {
            None => text.as_bytes(),
            Some(charset) => {
                *converted = charset.encode(text.as_bytes()).bytes;
                converted
            }
        }
    }
}

impl TextEncoding {
    /// Converts the text cell that begins at `start` of `out`, if any; NULL stays NULL.
    #[inline]
    fn convert_cell(&self, ty: &DataType, out: &mut Vec<u8>, start: usize) {
        if let Some(charset) = self.conversion(ty) {
            convert_cell(charset, out, start);
        }
    }
}

#[cold]
fn convert_cell(charset: &Charset, out: &mut Vec<u8>, start: usize) {
    let cell = out.split_off(start);
    match Reader::new(&cell).nullable_lenenc_bytes() {
        Ok(Some(text)) => put_lenenc_bytes(out, &charset.encode(text).bytes),
        Ok(None) | Err(_) => out.extend_from_slice(&cell),
    }
}

/// Form of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowFormat {
    /// COM_QUERY.
    Text,
    /// COM_STMT_EXECUTE and COM_STMT_FETCH.
    Binary,
}

/// Takes the results of one command.
pub(crate) struct Sink<'a> {
    pub(crate) transport: &'a mut Transport,
    pub(crate) input: &'a mut InputBuffer,
    pub(crate) sequence: &'a mut u8,
    pub(crate) capabilities: Capabilities,
    pub(crate) timeouts: Timeouts,
    pub(crate) max_packet: usize,
    pub(crate) out: &'a mut Vec<u8>,
    /// Types of the current result set's columns.
    pub(crate) types: &'a mut Vec<DataType>,
    pub(crate) metadata: &'a mut MetadataCache,
    pub(crate) encoding: TextEncoding,
    pub(crate) format: RowFormat,
    /// Status before the statement and whether other results follow, for clients that get an EOF after the metadata.
    pub(crate) metadata_status: StatusFlags,
    /// The end of the metadata waits: if a cursor opens, it is the end of the result too.
    pub(crate) cursor_possible: bool,
    pub(crate) metadata_end_due: bool,
    pub(crate) cursor_opened: bool,
    /// Commits that must be durable before the reply.
    pub(crate) commits: Vec<CommitHandle>,
    /// The connection is lost.
    pub(crate) lost: bool,
}

impl Sink<'_> {
    fn deprecate_eof(&self) -> bool {
        self.capabilities.contains(Capabilities::DEPRECATE_EOF)
    }

    fn lost(&mut self, error: &io::Error) -> Error {
        self.lost = true;
        match error.kind() {
            io::ErrorKind::TimedOut => err!(NET_WRITE_INTERRUPTED),
            _ => err!(NET_ERROR_ON_WRITE),
        }
    }

    fn flush_if_large(&mut self) -> Result<()> {
        if self.out.len() >= FLUSH_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        for commit in self.commits.drain(..) {
            if !commit.is_durable() && blocking(|| commit.wait()).is_err() {
                self.lost = true;
                return Err(Error::internal("the log failed"));
            }
        }
        let sent = self.transport.send(self.out, self.timeouts.write);
        self.out.clear();
        sent.map_err(|error| self.lost(&error))
    }

    /// The settings that the bytes of the metadata depend on in addition to the columns.
    fn metadata_form(&self) -> MetadataForm {
        MetadataForm {
            collation: self.encoding.collation,
            optional: self.capabilities.contains(Capabilities::OPTIONAL_RESULTSET_METADATA),
        }
    }

    /// The number of columns, and each column.
    fn put_columns(&mut self, columns: &[ColumnMeta]) {
        let start = begin_packet(self.out);
        if self.capabilities.contains(Capabilities::OPTIONAL_RESULTSET_METADATA) {
            self.out.push(METADATA_FULL);
        }
        put_lenenc_int(self.out, columns.len() as u64);
        finish_packet(self.out, start, self.sequence);
        for column in columns {
            let start = begin_packet(self.out);
            encode_column(column, self.encoding, self.out);
            finish_packet(self.out, start, self.sequence);
        }
    }

    /// The packet after the metadata, for clients that want one.
    fn put_metadata_end(&mut self) {
        if !self.deprecate_eof() {
            let status = self.metadata_status;
            let start = begin_packet(self.out);
            Eof { warnings: 0, status }.encode(self.out);
            finish_packet(self.out, start, self.sequence);
        }
    }

    fn end_metadata_if_due(&mut self) {
        if std::mem::take(&mut self.metadata_end_due) {
            self.put_metadata_end();
        }
    }

    fn note_commit(&mut self, state: &OkInfo) {
        if let Some(commit) = &state.commit
            && !commit.is_durable()
        {
            self.commits.push(commit.clone());
        }
    }

    fn write_cells(&mut self, row: &dyn RowSource) -> Result<()> {
        match self.format {
            RowFormat::Text => {
                for (index, ty) in self.types.iter().enumerate() {
                    let start = self.out.len();
                    put_text_cell(self.out, ty, row.cell(index)?)?;
                    self.encoding.convert_cell(ty, self.out, start);
                }
            }
            RowFormat::Binary => {
                let writer = BinaryRowWriter::begin(self.out, self.types.len());
                for (index, ty) in self.types.iter().enumerate() {
                    let start = self.out.len();
                    writer.put_cell(self.out, index, ty, row.cell(index)?)?;
                    if BinaryRowWriter::is_sent_as_text(ty.kind) {
                        self.encoding.convert_cell(ty, self.out, start);
                    }
                }
            }
        }
        Ok(())
    }
}

impl Sink<'_> {
    /// The reader of the binary log has all of it.
    pub(crate) fn end_of_events(&mut self) {
        let start = begin_packet(self.out);
        Eof { warnings: 0, status: StatusFlags::default() }.encode(self.out);
        finish_packet(self.out, start, self.sequence);
    }
}

impl DumpSink for Sink<'_> {
    fn event(&mut self, event: &[u8]) -> Result<()> {
        const EVENT_FOLLOWS: u8 = 0;
        let start = begin_packet(self.out);
        self.out.push(EVENT_FOLLOWS);
        self.out.extend_from_slice(event);
        finish_packet(self.out, start, self.sequence);
        self.flush_if_large()
    }

    fn asking_event(&mut self, event: &[u8]) -> Result<()> {
        DumpSink::event(self, event)?;
        *self.sequence = 1;
        Ok(())
    }

    fn answer(&mut self, limit: Duration) -> Result<Option<Vec<u8>>> {
        // Answers are numbered from 0, each by itself.
        let mut number = 0;
        let mut reading = ClientFile {
            transport: self.transport,
            input: self.input,
            sequence: &mut number,
            limit,
            max_packet: self.max_packet,
            lost: &mut self.lost,
            // Nothing is read that is not waited for.
            ended: true,
        };
        reading.answer()
    }

    fn flush(&mut self) -> Result<()> {
        Sink::flush(self)
    }
}

impl ResultSink for Sink<'_> {
    fn bytes_written(&mut self) -> u64 {
        self.transport.traffic.counts().1 + self.out.len() as u64
    }

    fn shared_columns(&mut self, columns: &Arc<[ColumnMeta]>) -> Result<()> {
        let form = self.metadata_form();
        if *self.sequence != FIRST_OF_REPLY || self.cursor_possible {
            return self.columns(columns);
        }
        self.types.clear();
        self.types.extend(columns.iter().map(|column| column.ty.clone()));
        if let Some(packets) = self.metadata.find(columns, form) {
            self.out.extend_from_slice(&packets.bytes);
            *self.sequence = packets.next_sequence;
        } else {
            let start = self.out.len();
            self.put_columns(columns);
            self.metadata.keep(columns, form, &self.out[start..], *self.sequence);
        }
        self.put_metadata_end();
        self.flush_if_large()
    }

    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<()> {
        self.types.clear();
        self.types.extend(columns.iter().map(|column| column.ty.clone()));
        self.put_columns(columns);
        if self.cursor_possible {
            self.metadata_end_due = true;
        } else {
            self.put_metadata_end();
        }
        self.flush_if_large()
    }

    fn followed_by(&mut self, next: Next) {
        let more = StatusFlags::MORE_RESULTS_EXIST;
        self.metadata_status =
            self.metadata_status.without(more).with_if(more, next == Next::Result);
    }

    fn row(&mut self, row: &dyn RowSource) -> Result<()> {
        self.end_metadata_if_due();
        let start = begin_packet(self.out);
        if let Err(error) = self.write_cells(row) {
            start.abandon(self.out);
            return Err(error);
        }
        finish_packet(self.out, start, self.sequence);
        self.flush_if_large()
    }

    fn out_parameters(
        &mut self,
        _: &[usize],
        columns: &[ColumnMeta],
        row: &dyn RowSource,
        state: &SessionState,
    ) -> Result<()> {
        if !self.capabilities.contains(Capabilities::PS_MULTI_RESULTS) {
            return Ok(());
        }
        let state = OkInfo { more_results: true, out_parameters: true, ..state.clone() };
        // Clients that get an EOF after the metadata expect the flag there.
        let before = std::mem::replace(&mut self.metadata_status, status_of(&state));
        let sent = self.columns(columns).and_then(|()| self.row(row));
        self.metadata_status = before;
        sent?;
        self.end(&state)
    }

    fn end(&mut self, state: &SessionState) -> Result<()> {
        self.note_commit(state);
        if state.cursor_open && self.metadata_end_due {
            self.metadata_end_due = false;
            self.cursor_opened = true;
        }
        self.end_metadata_if_due();
        put_end(self.out, state, self.capabilities, self.sequence);
        self.flush_if_large()
    }

    fn ok(&mut self, ok: &OkInfo) -> Result<()> {
        self.note_commit(ok);
        put_ok(self.out, ok, self.capabilities, self.sequence);
        self.flush_if_large()
    }

    fn error(&mut self, error: &Error) -> Result<()> {
        if self.lost {
            return Err(err!(NET_ERROR_ON_WRITE));
        }
        self.end_metadata_if_due();
        let mut converted = Vec::new();
        let message = self.encoding.encode(error.message(), &mut converted);
        let packet = ErrPacket { message, ..ErrPacket::of(error) };
        let start = begin_packet(self.out);
        packet.encode(self.out, self.capabilities);
        finish_packet(self.out, start, self.sequence);
        Ok(())
    }

    fn local_file(&mut self, name: &str) -> Result<Box<dyn LocalFile + '_>> {
        if !self.capabilities.contains(Capabilities::LOCAL_FILES) {
            return Err(err!(CLIENT_LOCAL_FILES_DISABLED));
        }
        let start = begin_packet(self.out);
        put_local_infile_request(self.out, name.as_bytes());
        finish_packet(self.out, start, self.sequence);
        self.flush()?;
        Ok(Box::new(ClientFile {
            transport: self.transport,
            input: self.input,
            sequence: self.sequence,
            limit: self.timeouts.read,
            max_packet: self.max_packet,
            lost: &mut self.lost,
            ended: false,
        }))
    }
}

/// The client's file for LOAD DATA LOCAL. Dropped early, it reads the rest: the client sends it anyway.
struct ClientFile<'a> {
    transport: &'a mut Transport,
    input: &'a mut InputBuffer,
    sequence: &'a mut u8,
    limit: Duration,
    max_packet: usize,
    lost: &'a mut bool,
    ended: bool,
}

impl ClientFile<'_> {
    fn fail(&mut self, code: ErrorCode) -> Error {
        *self.lost = true;
        self.ended = true;
        Error::with(code, &[])
    }

    /// A packet, if one comes within the limit.
    fn answer(&mut self) -> Result<Option<Vec<u8>>> {
        loop {
            let has_more = match scan_packet(self.input.bytes(), *self.sequence, self.max_packet) {
                Ok(packet) => {
                    let answer = wire::join_parts(self.input.bytes_mut(), packet).to_vec();
                    self.input.consume(packet.frame_bytes);
                    return Ok(Some(answer));
                }
                Err(ScanError::Incomplete { .. }) => self.transport.wait_readable(self.limit),
                Err(ScanError::TooLarge { .. } | ScanError::OutOfOrder) => {
                    return Err(self.fail(ErrorCode::NET_PACKETS_OUT_OF_ORDER));
                }
            };
            match has_more {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(_) => return Err(self.fail(ErrorCode::NET_READ_ERROR)),
            }
            match self.transport.fill(self.input) {
                Ok(Fill::Progress | Fill::Drained) => {}
                Ok(Fill::Closed) | Err(_) => return Err(self.fail(ErrorCode::NET_READ_ERROR)),
            }
        }
    }

    /// The next packet of the file; empty at its end.
    fn next(&mut self) -> Result<Vec<u8>> {
        if self.ended {
            return Ok(Vec::new());
        }
        loop {
            match scan_packet(self.input.bytes(), *self.sequence, self.max_packet) {
                Ok(packet) => {
                    let piece = wire::join_parts(self.input.bytes_mut(), packet).to_vec();
                    self.input.consume(packet.frame_bytes);
                    *self.sequence = packet.last_sequence.wrapping_add(1);
                    self.ended = piece.is_empty();
                    return Ok(piece);
                }
                Err(ScanError::TooLarge { .. }) => {
                    return Err(self.fail(ErrorCode::NET_PACKET_TOO_LARGE));
                }
                Err(ScanError::OutOfOrder) => {
                    return Err(self.fail(ErrorCode::NET_PACKETS_OUT_OF_ORDER));
                }
                Err(ScanError::Incomplete { .. }) => self.fill()?,
            }
        }
    }

    fn fill(&mut self) -> Result<()> {
        match self.transport.wait_readable(self.limit) {
            Ok(true) => {}
            Ok(false) => return Err(self.fail(ErrorCode::NET_READ_INTERRUPTED)),
            Err(_) => return Err(self.fail(ErrorCode::NET_READ_ERROR)),
        }
        match self.transport.fill(self.input) {
            Ok(Fill::Progress | Fill::Drained) => Ok(()),
            Ok(Fill::Closed) | Err(_) => Err(self.fail(ErrorCode::NET_READ_ERROR)),
        }
    }
}

impl LocalFile for ClientFile<'_> {
    fn read(&mut self) -> Result<Vec<u8>> {
        self.next()
    }
}

impl Drop for ClientFile<'_> {
    fn drop(&mut self) {
        while !self.ended {
            if self.next().is_err() {
                return;
            }
        }
    }
}

fn is_call(computed: Option<Computed>) -> bool {
    matches!(computed, Some(Computed::Function | Computed::Variable | Computed::Placeholder))
}

/// Appends the payload of a column definition.
pub(crate) fn encode_column(column: &ColumnMeta, encoding: TextEncoding, out: &mut Vec<u8>) {
    let origin = match column.org_table.is_empty() && !column.materialized {
        true if is_call(column.computed) => ColumnOrigin::Call,
        true => ColumnOrigin::Expression,
        false => ColumnOrigin::Table,
    };
    let is_timestamp = column.ty.kind == TypeKind::Timestamp;
    let collation = match encoding.collation {
        // `character_set_results = NULL`: text is sent in its own collation.
        63 => column.ty.collation.0,
        other => other,
    };
    let mut ty = TypeOnWire::of(&column.ty, origin, collation, encoding.char_bytes_max);
    ty.flags = ty
        .flags
        .with_if(ColumnFlags::PRIMARY_KEY, column.primary_key)
        .with_if(ColumnFlags::UNIQUE_KEY, column.unique_key)
        .with_if(ColumnFlags::MULTIPLE_KEY, column.multiple_key)
        .with_if(
            ColumnFlags::PART_KEY,
            column.primary_key || column.unique_key || column.multiple_key,
        )
        .with_if(ColumnFlags::AUTO_INCREMENT, column.auto_increment)
        .with_if(ColumnFlags::NO_DEFAULT_VALUE, column.no_default)
        .with_if(
            ColumnFlags::TIMESTAMP,
            is_timestamp && (column.default_now || column.on_update_now),
        )
        .with_if(ColumnFlags::ON_UPDATE_NOW, is_timestamp && column.on_update_now);
    let mut converted: [Vec<u8>; 5] = Default::default();
    let [c0, c1, c2, c3, c4] = &mut converted;
    let definition = ColumnDefinition {
        schema: encoding.encode(&column.schema, c0),
        table: encoding.encode(&column.table, c1),
        org_table: encoding.encode(&column.org_table, c2),
        name: encoding.encode(&column.name, c3),
        org_name: encoding.encode(&column.org_name, c4),
        ty,
    };
    definition.encode(out);
}

/// Status flags of a session after a statement.
pub(crate) fn status_of(state: &OkInfo) -> StatusFlags {
    StatusFlags::default()
        .with_if(StatusFlags::IN_TRANSACTION, state.in_transaction)
        .with_if(StatusFlags::AUTOCOMMIT, state.autocommit)
        .with_if(StatusFlags::MORE_RESULTS_EXIST, state.more_results)
        .with_if(StatusFlags::CURSOR_EXISTS, state.cursor_open)
        .with_if(StatusFlags::LAST_ROW_SENT, state.last_row_sent)
        .with_if(StatusFlags::NO_BACKSLASH_ESCAPES, state.no_backslash_escapes)
        .with_if(StatusFlags::PS_OUT_PARAMS, state.out_parameters)
}

fn ok_packet(state: &OkInfo) -> OkPacket<'_> {
    let changes = state.changes.iter().map(|change| match change {
        StateChange::SystemVariable(name, value) => {
            Change::SystemVariable(name.as_bytes(), value.as_bytes())
        }
        StateChange::Schema(name) => Change::Schema(name.as_bytes()),
        StateChange::State => Change::State,
        StateChange::Gtids(set) => Change::Gtids(set.as_bytes()),
        StateChange::TransactionState(text) => Change::TransactionState(text.as_bytes()),
        StateChange::TransactionCharacteristics(text) => {
            Change::TransactionCharacteristics(text.as_bytes())
        }
    });
    OkPacket {
        affected_rows: state.affected_rows,
        last_insert_id: state.last_insert_id,
        status: status_of(state),
        warnings: state.warnings,
        info: state.info.as_bytes(),
        changes: changes.collect(),
    }
}

/// Appends an OK packet.
pub(crate) fn put_ok(out: &mut Vec<u8>, state: &OkInfo, caps: Capabilities, sequence: &mut u8) {
    let start = begin_packet(out);
    ok_packet(state).encode(out, caps);
    finish_packet(out, start, sequence);
}

/// Appends the end of a result set in the form the client wants.
pub(crate) fn put_end(out: &mut Vec<u8>, state: &OkInfo, caps: Capabilities, sequence: &mut u8) {
    let start = begin_packet(out);
    if caps.contains(Capabilities::DEPRECATE_EOF) {
        ok_packet(state).encode_as_eof(out, caps);
    } else {
        Eof { warnings: state.warnings, status: status_of(state) }.encode(out);
    }
    finish_packet(out, start, sequence);
}
