//! Tables that travel between servers as files: FLUSH TABLES .. FOR EXPORT writes one for each table or partition, IMPORT TABLESPACE and
//! IMPORT TABLE read them. The format is docs/format/transport.md.
//!
//! A file comes from an untrusted place: reading it is total on any bytes, takes memory for a block and a row, and every value is checked
//! against the type of its column. Nothing here knows sessions, locks or statements: the caller holds the table still while it is written, and
//! runs an INSERT that reads [`FileRows`] as if they were a table's.
#![forbid(unsafe_code)]

mod check;
mod definition;
mod export;
mod file_names;
mod format;
mod import;
mod reader;
mod rows;
mod writer;

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;

pub use definition::{Definition, FileColumn};
pub use export::{Exported, Place, export_table, exportable, remove_exports};
pub use file_names::{EXPORT_DIRECTORY, IMPORT_DIRECTORY};
pub use format::VERSION;
pub use import::{
    TableFile, below_import, check_complete, check_new, creation, expand, files_to_import,
    imported, shown, tables_of,
};
pub use reader::{FileError, Reader};
pub use rows::{FileRows, check_alike, file_table, open, unreadable};
