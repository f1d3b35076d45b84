//! Definitions of tables: from the syntax tree of CREATE TABLE, CREATE INDEX and ALTER TABLE to the catalog's `Table`, with all checks
//! and warnings on the way, and the choice of the algorithm by which an ALTER TABLE is carried out.
//!
//! Nothing here runs: no session, no transaction, no executor, no row. Facts of the statement's session (settings, the value of a
//! constant, the type of an expression, the catalog) come through `Context`; the result is a value that the caller carries out.

pub mod alter;
mod charsets;
mod column_type;
pub mod column_values;
mod columns;
mod comments;
mod context;
pub mod create;
mod draft;
mod duality;
mod elements;
pub mod encryption;
mod engines;
pub mod exchange;
mod expressions;
mod finish;
mod foreign_keys;
mod from_query;
mod generated_key;
pub mod histograms;
pub mod history;
mod indexes;
mod names;
mod options;
mod partition_text;
mod partitions;
mod periods;
mod quoting;
mod reference_systems;
pub mod renames;
mod resource_groups;
pub mod sequences;
mod servers;
mod system_partitions;
mod tablespaces;
mod timestamps;
pub mod view_columns;
mod view_order;

pub use charsets::{note_charset, note_old_charset, warn_in_words};
pub use column_type::{TypeContext, column_type, find_charset, find_collation, type_text};
pub use context::Context;
pub use draft::{Draft, is_hidden, is_single_unique};
pub use duality::{DualityLink, DualityTable, check_duality, duality_of, is_other_kind};
pub use engines::{
    DECLARED_ENGINE, EngineChoice, Engines, SHOWN_ENGINE, check_transaction, default_row_format,
    engine_choice, has_hash_indexes, shown_engine,
};
pub use foreign_keys::foreign_key_reference;
pub use from_query::{add_query_columns, shown_type};
pub use generated_key::has_generated_key;
pub use indexes::NGRAM;
pub use names::{check_schema_name, check_table_name};
pub use options::{AUTOEXTEND_SIZE, check_declared_once, choose_collation};
pub use partition_text::{method_expression, method_name, partitioning_text, values_text};
pub use quoting::{literal, needs_quotes, quote, quote_for};
pub use reference_systems::{SystemChange, create_reference_system, drop_reference_system};
pub use resource_groups::{
    GroupChange, SYSTEM_DEFAULT, USER_DEFAULT, change_resource_group, resource_group,
    resource_groups,
};
pub use servers::{IfExists, ServerChange, drop_server, put_server};
pub use tablespaces::{change_tablespace, refuse_logfile_group};
