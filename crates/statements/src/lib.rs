//! What is known of a statement before a session runs it: its kind, its status counters, its time limit, its plan, the state that it has while it runs, and the caches of plans and texts; the records of
//! a file that LOAD DATA reads; the transactions of a copy of a table; where backups go, and rows of SELECT INTO OUTFILE; where result rows go; which plugins are loaded; the traces of the optimizer; the values of sequences; ranges of indexes that are measured while a plan is made.
//!
//! Knows no session.

pub mod backup_directory;
pub mod backup_stream;
pub mod components;
pub mod copier;
pub mod deadline;
pub mod encryption;
pub mod file_records;
pub mod handlers;
pub mod hints;
pub mod known_ranges;
pub mod lifted;
pub mod live_plugins;
pub mod load_options;
pub mod locked_tables;
pub mod maintenance;
pub mod optimizer_traces;
pub mod outfile;
pub mod partition_rows;
pub mod persisted;
pub mod placeholders;
pub mod plan_cache;
pub mod plan_privileges;
pub mod planned;
pub mod preparable;
pub mod prepared_texts;
pub mod safe_updates;
pub mod sequences;
mod show_kind;
pub mod sink;
pub mod statement_kind;
pub mod statement_state;
pub mod status;
pub mod xid;
pub mod xml_records;
