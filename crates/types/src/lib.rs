//! SQL values and types: their comparison, conversion and printing, and their layout in a record or a key.
//!
//! Independent of sessions, tables, statements and storage. Everything that depends on a session setting
//! (time zone, SQL mode) takes it as an argument.

pub mod aggregate;
mod bytes;
mod cell;
pub mod compare;
pub mod convert;
mod data_type;
pub mod decimal;
pub mod elements;
pub mod fixed;
pub mod fulltext;
pub mod function;
#[cfg(test)]
mod fuzz;
pub mod geometry;
mod gtid;
pub mod json;
pub mod key;
mod member_values;
pub mod partition;
pub mod record;
mod sql_mode;
pub mod temporal;
pub mod text;
mod value;

pub use aggregate::{Coercibility, CollationOf, aggregate_collations, common_type};
pub use bytes::SqlBytes;
pub use cell::ResultCell;
pub use charset::CollationId;
pub use compare::{Comparator, ComparisonKind, compare_values, hash_value};
pub use convert::{
    CastContext, StoreMode, cast, json_as_temporal, json_of_value, must_convert, store, to_bool,
    to_date, to_datetime, to_decimal, to_f64, to_i64, to_time, to_u64,
};
pub use data_type::{DataType, Members, NOT_FIXED_DECIMALS, TypeKind};
pub use decimal::Decimal;
pub use fixed::Fixed;
pub use function::{
    AggregateRef, AggregateRole, BoxesOfTruth, DatetimeText, DefinitionUse, DocumentUse,
    FunctionRef, FunctionRole, FunctionTraits, Growth, OperatorCall, PartitionQuestion,
    PartitionUse, RunsStatements, TextSource, Threads, Volatility,
};
pub use gtid::{Gtid, GtidSet, Uuid};
pub use json::{JsonPath, JsonRef, JsonValue};
pub use record::RecordLayout;
pub use sql_mode::SqlMode;
pub use temporal::{Date, DateTime, FixedOffset, TemporalMode, Time, TimeZone, Utc, ZoneRules};
pub use text::to_text;
pub use value::Value;
