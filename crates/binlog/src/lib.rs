//! The bytes of MySQL 9.7's binary log, version 4: events, row images, sets of transaction identifiers. `docs/format/binary-log.md`
//! describes them. What MariaDB writes in another way can be read (`mariadb`).
//!
//! Must not know files, sockets, sessions or tables of a catalog. Encoders append to the caller's buffer. Decoders are total: any bytes give a
//! value or [`Malformed`], without panic and without allocating much more than their input is long. Values are those of `types`: text
//! is UTF-8 here and in its column's character set in an event; TIMESTAMP is UTC.

mod decimal;
pub mod decode;
pub mod envelope;
pub mod event;
#[cfg(test)]
mod fuzz;
pub mod gtid;
mod json;
mod json_changes;
mod layout;
pub mod mariadb;
pub mod query;
mod read;
pub mod rows;
mod table_map;
#[cfg(test)]
mod tests;
mod value;

pub use decode::{Event, decode};
pub use event::{EventKind, Header, seal, write_event};
pub use json_changes::{JsonChange, JsonChanges, JsonOperation};
pub use layout::Layout;
pub use read::Malformed;
pub use rows::{Image, Row, RowsEvent, RowsKind, RowsWriter};
pub use table_map::{
    Column, KeyPart, KnownColumn, MappedColumn, RowMetadata, TableMap, write_table_map,
};
pub use types::{Gtid, GtidSet, Uuid};
pub use value::put_in_row_format;
