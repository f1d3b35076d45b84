//! Runs plans: compiles `plan::Plan` into a shareable `Program` and runs it over engine-api transactions.
//!
//! Four levels: a point program for statements on one row by a full key, a row program of pulled operators for the rest, typed
//! shortcuts inside both, and a batch program for groupings over large scans. Knows no SQL text, catalog, session or packet; rows leave through `RowSink`.
//!
//! From low to high: the run and compiled expressions (`run`, `expr`), which know operators as `operator::Source` only; operators (`ops`); pipelines of
//! the crate `batch`; the compilers of plans into programs (`ops::compile`, `query`, `write`, `program`).

mod buffers;
mod context;
mod expr;
mod fulltext;
mod kept_rows;
mod measure;
mod operator;
mod ops;
mod output;
mod pipelines;
mod program;
mod query;
mod run;
mod spill;
mod table_work;
mod watch;
mod write;

pub use budget::{ConnectionLimits, ConnectionMemory, CountedLimits, MemoryBudget};
pub use context::{
    Environment, ExecContext, ExecScratch, ExecSettings, Host, Outcome, RowSink, StatementCall,
    TransactionSource, TriggerRows,
};
pub use fulltext::{FulltextTable, check_fulltext};
pub use measure::{ExecCounts, Measure, MeasuredNodes, Measuring};
pub use program::{Program, compile, compile_measured};
pub use table_work::{TableCounts, TableWork};
pub use watch::{RowMark, RowWatch, RowWish, RowWrite};
