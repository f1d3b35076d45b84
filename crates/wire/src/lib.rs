//! The MySQL client/server protocol (version 10) as bytes: encoders and total decoders, for both sides.
//!
//! Must not know sockets, threads, sessions or authentication methods. Every decoder is total: any byte
//! string gives a value or [`Malformed`], without panic and without allocating more than its input is long.

mod codec;
mod column;
mod command;
mod compression;
mod constants;
mod frame;
#[cfg(test)]
mod fuzz;
mod handshake;
mod parameters;
mod reply;
mod row;
mod temporal;
#[cfg(test)]
mod tests;

pub use codec::{
    Malformed, Reader, lenenc_int_len, put_lenenc_bytes, put_lenenc_int, put_null_terminated,
    put_u24,
};
pub use column::{ColumnDefinition, ColumnOrigin, TypeOnWire};
pub use command::{Command, ExecuteHeader, QueryText, decode_execute_header, put_simple_command};
pub use compression::{
    Compression, CompressionKind, MIN_COMPRESS_BYTES, compressed_frame_len, zstd_level_clamped,
};
pub use constants::{
    Capabilities, ColumnFlags, ColumnType, CommandCode, CursorFlags, StatusFlags, TrackType,
};
pub use frame::{
    FRAME_HEADER_BYTES, FRAME_PAYLOAD_MAX, FrameStart, Packet, ScanError, begin_packet,
    finish_packet, join_parts, put_packet, scan_packet,
};
pub use handshake::{
    AuthSwitchRequest, ChangeUser, FirstReply, Greeting, HandshakeResponse, NONCE_BYTES,
    SslRequest, decode_first_reply, put_auth_more_data,
};
pub use parameters::{
    Parameter, ParameterType, decode_parameters, decode_query_attributes, put_execute,
    put_query_with_attributes,
};
pub use reply::{
    Change, Eof, ErrPacket, OkPacket, PrepareOk, Reply, classify_reply, put_local_infile_request,
};
pub use row::{
    BinaryRowWriter, decode_binary_row, decode_text_row, put_text_bytes, put_text_cell,
    put_text_int, put_text_null, put_text_uint,
};
pub use temporal::{
    decode_binary_datetime, decode_binary_time, put_binary_date, put_binary_datetime,
    put_binary_time,
};
