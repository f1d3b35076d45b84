//! Names and types: turns a syntax tree into a logical plan over registers, with the privileges it needs and the tables it uses.
//!
//! Must not know how rows are found or stored, nor sessions; it asks for this information through `CatalogReader` and
//! `VariableTypes`. Nothing here runs SQL.

mod aggregate;
mod array_match;
mod binder;
mod block;
mod call;
mod collation;
mod compare;
mod document_key;
mod duality;
mod expr;
mod fixed;
mod from;
mod fulltext;
mod generated_match;
mod group_by;
mod grouping;
mod hints;
mod history;
mod insert;
mod json_table;
mod literal;
mod native;
mod partitions;
mod portion;
mod query;
mod reader;
mod recursion;
mod respell;
mod returning;
mod scope;
mod select;
mod sequence;
mod spelling;
mod statement;
mod subquery;
mod table_expression;
mod table_function;
mod table_write;
mod typing;
mod update;
mod usage;
mod view_check;
mod view_write;
mod window;
mod zero_dates;

pub use binder::{BindInput, Binder, Bound, Reference};
pub use duality::{
    check_duality_delete, check_duality_insert, check_duality_update, refuse_more_objects,
};
pub use from::{system_view, view_query};
pub use fulltext::{fulltext_write, key_columns, record_of};
pub use literal::number_of_bits;
pub use reader::{
    BoundTableExpression, CatalogReader, Disallowed, Notice, OnlySequences, PrivilegeKind,
    RequiredPrivilege, StoredProgram, VariableTypes, ViewReader,
};
pub use spelling::Change;
pub use usage::Usage;
