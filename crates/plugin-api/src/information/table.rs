//! A table or view of the catalog, as information tables see it.

use types::{DataType, Value};

/// The level of detail requested for a table. Each level includes the previous ones; facts of higher levels may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableDetail {
    /// Schema, name and type.
    Name,
    /// Facts from its definition.
    Definition,
    /// Its engine's counts, and the CREATE statement, which shows some of them.
    Statistics,
}

/// A table or view of the catalog, as information tables see it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableView {
    /// Schema name.
    pub schema: String,
    /// Table name.
    pub name: String,
    /// `BASE TABLE`, `SYSTEM VERSIONED`, `VIEW`, `SYSTEM VIEW`, `SEQUENCE`.
    pub table_type: &'static str,
    /// Engine name; `None` for views.
    pub engine: Option<String>,
    /// Name of the engine that keeps its rows; `None` where `engine` is.
    pub kept_by: Option<String>,
    /// Default collation name.
    pub collation: String,
    /// Comment.
    pub comment: String,
    /// As given in CREATE TABLE, for `CREATE_OPTIONS`.
    pub create_options: String,
    /// `ROW_FORMAT` shown.
    pub row_format: String,
    /// Next AUTO_INCREMENT value, when the table has such a column.
    pub auto_increment: Option<u64>,
    /// Estimated rows.
    pub rows: u64,
    /// Bytes of data and of indexes.
    pub data_bytes: u64,
    /// Bytes of indexes other than the clustered one.
    pub index_bytes: u64,
    /// Creation time, microseconds since 1970 UTC.
    pub created_micros: i64,
    /// Columns in order.
    pub columns: Vec<ColumnView>,
    /// Columns before them that the session does not want to see.
    pub columns_before: u64,
    /// Indexes, primary first.
    pub indexes: Vec<IndexView>,
    /// Primary, unique, foreign keys and checks.
    pub constraints: Vec<ConstraintView>,
    /// Full text of SHOW CREATE TABLE or SHOW CREATE VIEW.
    pub create_statement: String,
    /// Defining SELECT of a view.
    pub view_definition: Option<String>,
    /// `user@host` of a view.
    pub definer: String,
    /// `DEFINER` or `INVOKER`, of a view.
    pub security: &'static str,
    /// `NONE`, `LOCAL` or `CASCADED`, of a view.
    pub check_option: String,
    /// `character_set_client` and `collation_connection` of the session that made a view.
    pub session_charset: String,
    /// See `session_charset`.
    pub session_collation: String,
    /// CREATE TEMPORARY.
    pub temporary: bool,
    /// Partitions in order, with their subpartitions; empty for a table without PARTITION BY.
    pub partitions: Vec<PartitionView>,
    /// The objects of a JSON duality view, the document first; empty for any other, and when a table is gone.
    pub duality: Vec<DualityObjectView>,
}

/// An object of a JSON duality view, as information tables see it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DualityObjectView {
    /// Schema of the table whose rows are the objects.
    pub schema: String,
    /// The table.
    pub table: String,
    /// The object that has it; `None` of the document.
    pub link: Option<DualityLinkView>,
    /// `WITH (INSERT)`.
    pub insert: bool,
    /// `WITH (UPDATE)`.
    pub update: bool,
    /// `WITH (DELETE)`.
    pub delete: bool,
    /// Column, key, and whether the column is the primary key.
    pub columns: Vec<(String, String, bool)>,
}

/// What ties an object of a JSON duality view to the one that has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DualityLinkView {
    /// Place of the other in the list of objects.
    pub parent: usize,
    /// Key in the other.
    pub key: String,
    /// Column of the other's table.
    pub parent_column: String,
    /// Column of the own table.
    pub child_column: String,
    /// An array of objects.
    pub is_nested: bool,
}

/// A partition or a subpartition, as information tables see it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartitionView {
    /// Name.
    pub name: String,
    /// Name of the subpartition.
    pub sub_name: Option<String>,
    /// Place of the partition, from 1.
    pub position: u64,
    /// Place of the subpartition in it, from 1.
    pub sub_position: Option<u64>,
    /// `RANGE`, `LIST COLUMNS`, `LINEAR HASH`, ...
    pub method: String,
    /// The same of subpartitions.
    pub sub_method: Option<String>,
    /// Expression or columns; `None` for KEY ().
    pub expression: Option<String>,
    /// The same of subpartitions.
    pub sub_expression: Option<String>,
    /// VALUES.
    pub description: Option<String>,
    /// Comment.
    pub comment: String,
    /// Estimated rows.
    pub rows: u64,
}

/// A column, as information tables see it.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnView {
    /// Name.
    pub name: String,
    /// Type.
    pub ty: DataType,
    /// `COLUMN_TYPE`, for example `int unsigned`.
    pub column_type: String,
    /// Default as text, or the text of an expression default.
    pub default: Option<String>,
    /// The default is an expression (`DEFAULT_GENERATED`).
    pub default_is_expression: bool,
    /// AUTO_INCREMENT.
    pub auto_increment: bool,
    /// `CURRENT_TIMESTAMP(n)` of ON UPDATE.
    pub on_update: Option<String>,
    /// GENERATED ALWAYS AS.
    pub generated: Option<GeneratedView>,
    /// Comment.
    pub comment: String,
    /// INVISIBLE.
    pub invisible: bool,
    /// WITHOUT SYSTEM VERSIONING in a table that keeps history.
    pub without_history: bool,
    /// `PRI`, `UNI`, `MUL` or empty.
    pub key: &'static str,
    /// How its values are spread, a JSON document.
    pub histogram: Option<Value>,
}

/// The expression of a generated column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedView {
    /// Its text.
    pub expression: String,
    /// STORED.
    pub stored: bool,
}

/// An index, as information tables see it.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexView {
    /// Name; `PRIMARY` for the primary key.
    pub name: String,
    /// UNIQUE or PRIMARY.
    pub unique: bool,
    /// `BTREE`, `FULLTEXT`, `SPATIAL`, `HASH`.
    pub kind: &'static str,
    /// Parts in order.
    pub parts: Vec<IndexPartView>,
    /// Comment.
    pub comment: String,
    /// Not INVISIBLE.
    pub visible: bool,
}

/// A part of an index, as information tables see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexPartView {
    /// Name of the column; `None` for a functional part.
    pub column: Option<String>,
    /// The expression of a functional part.
    pub expression: Option<String>,
    /// Characters or bytes of a prefix.
    pub prefix_length: Option<u32>,
    /// DESC.
    pub descending: bool,
    /// Estimated number of distinct keys up to this part.
    pub distinct: u64,
}

/// The requirement of a constraint.
#[derive(Clone, Debug, PartialEq)]
pub enum ConstraintKind {
    /// PRIMARY KEY over these columns.
    Primary(Vec<String>),
    /// UNIQUE over these columns; `None` is an expression.
    Unique(Vec<Option<String>>),
    /// FOREIGN KEY.
    Foreign {
        /// Own columns.
        columns: Vec<String>,
        /// The columns that they refer to.
        referenced: ReferencedView,
        /// Name of the referenced unique key.
        unique_name: String,
        /// `RESTRICT`, `CASCADE`, `SET NULL`, `NO ACTION`, `SET DEFAULT`.
        on_update: &'static str,
        /// Likewise.
        on_delete: &'static str,
    },
    /// CHECK.
    Check {
        /// Its expression.
        expression: String,
        /// Not NOT ENFORCED.
        enforced: bool,
    },
}

/// The columns that a foreign key refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferencedView {
    /// Schema name.
    pub schema: String,
    /// Table name.
    pub table: String,
    /// Column names.
    pub columns: Vec<String>,
}

/// A constraint, as information tables see it.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstraintView {
    /// Name.
    pub name: String,
    /// The requirement.
    pub kind: ConstraintKind,
}
