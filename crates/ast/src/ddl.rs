//! Statements that define schema objects, and data types.

use super::{CreateFlags, Expr, Ident, ObjectName, Query, Span, UserName};

/// A data type as written (synonyms resolved: `INTEGER` is `Int`, `NUMERIC` is `Decimal`, ...).
#[derive(Clone, Debug, PartialEq)]
pub struct DataType {
    /// Which.
    pub name: TypeName,
    /// `(length)`: display width, precision, characters, bytes, fraction digits or dimensions.
    pub length: Option<u64>,
    /// `(.., decimals)`.
    pub decimals: Option<u32>,
    /// `UNSIGNED`.
    pub unsigned: bool,
    /// `ZEROFILL`.
    pub zerofill: bool,
    /// `CHARACTER SET`; `ASCII` is latin1, `UNICODE` is ucs2, `BYTE` is binary, national is utf8mb3.
    pub charset: Option<Ident>,
    /// `COLLATE` where it is part of the type (CAST, JSON_TABLE, routine parameters). In column
    /// definitions it is a [`ColumnAttribute`].
    pub collation: Option<Ident>,
    /// The `BINARY` attribute of character types: the `_bin` collation.
    pub binary: bool,
    /// The members of ENUM and SET.
    pub values: Vec<Box<[u8]>>,
    /// Where.
    pub span: Span,
}

impl DataType {
    /// The type `name` without any modifier.
    pub fn new(name: TypeName) -> DataType {
        DataType {
            name,
            length: None,
            decimals: None,
            unsigned: false,
            zerofill: false,
            charset: None,
            collation: None,
            binary: false,
            values: Vec::new(),
            span: Span::default(),
        }
    }
}

/// The data types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum TypeName {
    TinyInt,
    SmallInt,
    MediumInt,
    Int,
    BigInt,
    /// `BIGINT UNSIGNED NOT NULL AUTO_INCREMENT UNIQUE`.
    Serial,
    /// `BOOL`: `TINYINT(1)`.
    Bool,
    Bit,
    Decimal,
    Float,
    Double,
    Date,
    Time,
    Datetime,
    Timestamp,
    Year,
    Char,
    Varchar,
    Binary,
    Varbinary,
    TinyText,
    /// `TEXT`, `TEXT(n)`.
    Text,
    /// Also `LONG`, `LONG VARCHAR`.
    MediumText,
    LongText,
    TinyBlob,
    Blob,
    /// Also `LONG VARBINARY`.
    MediumBlob,
    LongBlob,
    Enum,
    Set,
    Json,
    Vector,
    Geometry,
    Point,
    LineString,
    Polygon,
    MultiPoint,
    MultiLineString,
    MultiPolygon,
    GeometryCollection,
    /// MariaDB.
    Uuid,
    /// MariaDB.
    Inet4,
    /// MariaDB.
    Inet6,
    /// `CAST(.. AS SIGNED)`.
    Signed,
    /// `CAST(.. AS UNSIGNED)`.
    Unsigned,
}

/// `CREATE DATABASE`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct CreateDatabase {
    pub flags: CreateFlags,
    pub name: Ident,
    pub options: Vec<DatabaseOption>,
}

/// `ALTER DATABASE [name] options`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct AlterDatabase {
    pub name: Option<Ident>,
    pub options: Vec<DatabaseOption>,
}

/// `DROP DATABASE`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct DropDatabase {
    pub if_exists: bool,
    pub name: Ident,
}

/// Options of databases.
#[derive(Clone, Debug, PartialEq)]
pub enum DatabaseOption {
    /// `CHARACTER SET`; None is `DEFAULT`.
    Charset(Option<Ident>),
    /// `COLLATE`; None is `DEFAULT`.
    Collation(Option<Ident>),
    /// `ENCRYPTION 'Y'`.
    Encryption(Box<str>),
    /// `READ ONLY`: None is `DEFAULT`.
    ReadOnly(Option<bool>),
    /// MariaDB's `COMMENT`.
    Comment(Box<str>),
}

/// `CREATE TABLE`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreateTable {
    /// `OR REPLACE`, `IF NOT EXISTS`.
    pub flags: CreateFlags,
    /// `TEMPORARY`.
    pub temporary: bool,
    /// `EXTERNAL`.
    pub external: bool,
    /// The table.
    pub name: ObjectName,
    /// `LIKE other`: all other fields are empty.
    pub like: Option<ObjectName>,
    /// Columns, in order.
    pub columns: Vec<ColumnDef>,
    /// Keys, constraints and checks outside column definitions, in order.
    pub constraints: Vec<TableConstraint>,
    /// MariaDB's `PERIOD FOR name (a, b)` (name, start, end).
    pub periods: Vec<(Ident, Ident, Ident)>,
    /// Table options, in order.
    pub options: Vec<TableOption>,
    /// `PARTITION BY`.
    pub partitioning: Option<Box<Partitioning>>,
    /// `REPLACE`/`IGNORE` before the query.
    pub duplicates: super::LoadDuplicates,
    /// `AS SELECT`.
    pub query: Option<Box<Query>>,
    /// `START TRANSACTION` (atomic CREATE .. SELECT of the row-based log).
    pub start_transaction: bool,
}

/// A column definition.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDef {
    /// The column.
    pub name: Ident,
    /// Its type.
    pub data_type: DataType,
    /// The attributes after the type, in order.
    pub attributes: Vec<ColumnAttribute>,
    /// Where.
    pub span: Span,
}

/// An attribute after the type in a column definition.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnAttribute {
    /// `NULL`, `NOT NULL`.
    Null(bool),
    /// `DEFAULT literal|NOW(n)|(expr)`; the flag means that it was in parentheses.
    Default {
        /// The value.
        value: Expr,
        /// `DEFAULT (expr)`.
        parenthesised: bool,
    },
    /// `ON UPDATE NOW(n)`.
    OnUpdateNow(Option<u32>),
    /// `AUTO_INCREMENT`.
    AutoIncrement,
    /// `[PRIMARY] KEY`.
    PrimaryKey,
    /// `UNIQUE [KEY]`.
    Unique,
    /// `COMMENT '..'`.
    Comment(Box<str>),
    /// `COLLATE`.
    Collation(Ident),
    /// `COLUMN_FORMAT FIXED|DYNAMIC|DEFAULT`.
    ColumnFormat(Ident),
    /// `STORAGE DISK|MEMORY|DEFAULT`.
    Storage(Ident),
    /// `ENGINE_ATTRIBUTE '..'`.
    EngineAttribute(Box<str>),
    /// `SECONDARY_ENGINE_ATTRIBUTE '..'`.
    SecondaryEngineAttribute(Box<str>),
    /// `VISIBLE`, `INVISIBLE`.
    Visible(bool),
    /// `SRID n`.
    Srid(u64),
    /// `NOT SECONDARY`.
    NotSecondary,
    /// `[GENERATED ALWAYS] AS (expr) [VIRTUAL|STORED]`.
    Generated {
        /// The expression.
        expr: Expr,
        /// `STORED` (and MariaDB's `PERSISTENT`).
        stored: bool,
    },
    /// `[CONSTRAINT [name]] CHECK (expr) [[NOT] ENFORCED]`.
    Check(CheckDef),
    /// `REFERENCES ...`; the reference's InnoDB enforces it since 9.0.
    References(References),
    /// MariaDB's `GENERATED ALWAYS AS ROW START|END`; true is `START`.
    RowPeriod(bool),
    /// MariaDB's `WITH|WITHOUT SYSTEM VERSIONING`.
    SystemVersioning(bool),
    /// MariaDB's `COMPRESSED`.
    Compressed,
}

/// A check constraint.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct CheckDef {
    pub name: Option<Ident>,
    pub expr: Expr,
    /// `None`: not written.
    pub enforced: Option<bool>,
}

/// Keys and constraints of a table.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum TableConstraint {
    Index(IndexDef),
    ForeignKey(ForeignKeyDef),
    Check(CheckDef),
}

/// The kinds of index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum IndexKind {
    Primary,
    Unique,
    Plain,
    Fulltext,
    Spatial,
    /// MariaDB's `VECTOR INDEX`.
    Vector,
}

/// An index definition.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexDef {
    /// Which kind.
    pub kind: IndexKind,
    /// `CONSTRAINT name`.
    pub constraint: Option<Ident>,
    /// `IF NOT EXISTS` (MariaDB).
    pub if_not_exists: bool,
    /// Its name; for unique keys the constraint name when only that was given.
    pub name: Option<Ident>,
    /// The indexed parts.
    pub parts: Vec<KeyPart>,
    /// `p WITHOUT OVERLAPS` after the parts (MariaDB): the period.
    pub without_overlaps: Option<Ident>,
    /// Its options.
    pub options: Vec<IndexOption>,
    /// Where.
    pub span: Span,
}

/// One part of an index.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyPart {
    /// Column or expression.
    pub kind: KeyPartKind,
    /// `DESC`.
    pub desc: bool,
    /// `ASC` was written.
    pub explicit_asc: bool,
}

/// The indexed column or expression of a key part.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum KeyPartKind {
    Column {
        name: Ident,
        /// Prefix length.
        length: Option<u64>,
    },
    Expr(Expr),
}

/// Options of indexes.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexOption {
    /// `USING|TYPE BTREE|HASH|RTREE`.
    Using(IndexAlgorithm),
    /// `KEY_BLOCK_SIZE n`.
    KeyBlockSize(u64),
    /// `WITH PARSER name`.
    Parser(Ident),
    /// `COMMENT '..'`.
    Comment(Box<str>),
    /// `VISIBLE`, `INVISIBLE` (MariaDB: `NOT IGNORED`, `IGNORED`).
    Visible(bool),
    /// `ENGINE_ATTRIBUTE`.
    EngineAttribute(Box<str>),
    /// `SECONDARY_ENGINE_ATTRIBUTE`.
    SecondaryEngineAttribute(Box<str>),
    /// An engine-defined `name = value` (MariaDB's vector indexes).
    Other(Ident, Box<str>),
}

/// Index structures by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum IndexAlgorithm {
    BTree,
    Hash,
    RTree,
}

/// `[CONSTRAINT c] FOREIGN KEY [name] (columns) REFERENCES ...`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct ForeignKeyDef {
    pub constraint: Option<Ident>,
    pub name: Option<Ident>,
    pub columns: Vec<Ident>,
    pub references: References,
}

/// `REFERENCES t (columns) [MATCH ..] [ON DELETE ..] [ON UPDATE ..]`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct References {
    pub table: ObjectName,
    /// Empty when none were written.
    pub columns: Vec<Ident>,
    pub match_kind: Option<MatchKind>,
    pub on_delete: Option<ReferenceAction>,
    pub on_update: Option<ReferenceAction>,
}

/// `MATCH` of foreign keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum MatchKind {
    Full,
    Partial,
    Simple,
}

/// Actions of foreign keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ReferenceAction {
    Restrict,
    Cascade,
    SetNull,
    NoAction,
    SetDefault,
}

/// Options of tables.
#[derive(Clone, Debug, PartialEq)]
pub enum TableOption {
    /// `ENGINE = name`.
    Engine(Ident),
    /// `SECONDARY_ENGINE = name`; None is `NULL`.
    SecondaryEngine(Option<Ident>),
    /// `AUTO_INCREMENT = n`.
    AutoIncrement(u64),
    /// `DEFAULT CHARACTER SET`; None is `DEFAULT`.
    Charset(Option<Ident>),
    /// `DEFAULT COLLATE`; None is `DEFAULT`.
    Collation(Option<Ident>),
    /// `COMMENT`.
    Comment(Box<str>),
    /// `ROW_FORMAT = word`.
    RowFormat(Ident),
    /// `TABLESPACE = name`.
    Tablespace(Ident),
    /// `STORAGE DISK|MEMORY`.
    Storage(Ident),
    /// `UNION = (t, ..)`.
    Union(Vec<ObjectName>),
    /// `INSERT_METHOD = word`.
    InsertMethod(Ident),
    /// `COMPRESSION = '..'`.
    Compression(Box<str>),
    /// `ENCRYPTION = '..'`.
    Encryption(Box<str>),
    /// `DATA DIRECTORY = '..'`.
    DataDirectory(Box<str>),
    /// `INDEX DIRECTORY = '..'`.
    IndexDirectory(Box<str>),
    /// `CONNECTION = '..'`.
    Connection(Box<str>),
    /// `PASSWORD = '..'`.
    Password(Box<str>),
    /// `START TRANSACTION`.
    StartTransaction,
    /// `AUTOEXTEND_SIZE = n`.
    AutoextendSize(u64),
    /// `ENGINE_ATTRIBUTE = '..'`.
    EngineAttribute(Box<str>),
    /// `SECONDARY_ENGINE_ATTRIBUTE = '..'`.
    SecondaryEngineAttribute(Box<str>),
    /// `AVG_ROW_LENGTH`, `CHECKSUM`, `DELAY_KEY_WRITE`, `KEY_BLOCK_SIZE`, `MAX_ROWS`, `MIN_ROWS`,
    /// `PACK_KEYS`, `STATS_AUTO_RECALC`, `STATS_PERSISTENT`, `STATS_SAMPLE_PAGES`; None is `DEFAULT`.
    Number(NumberOption, Option<u64>),
    /// MariaDB's `WITH SYSTEM VERSIONING`.
    SystemVersioning,
    /// An option of another product (MariaDB's `PAGE_CHECKSUM=1`, `TRANSACTIONAL=1`, ...).
    Other(Ident, Box<str>),
}

/// Table options with a numeric value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum NumberOption {
    AvgRowLength,
    Checksum,
    DelayKeyWrite,
    KeyBlockSize,
    MaxRows,
    MinRows,
    PackKeys,
    StatsAutoRecalc,
    StatsPersistent,
    StatsSamplePages,
}

/// `PARTITION BY ...`.
#[derive(Clone, Debug, PartialEq)]
pub struct Partitioning {
    /// How rows are distributed.
    pub method: PartitionMethod,
    /// `PARTITIONS n`.
    pub count: Option<u64>,
    /// `SUBPARTITION BY`: HASH or KEY.
    pub subpartition: Option<PartitionMethod>,
    /// `SUBPARTITIONS n`.
    pub subpartition_count: Option<u64>,
    /// The partitions, where listed.
    pub partitions: Vec<PartitionDef>,
}

/// The methods of partitioning.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum PartitionMethod {
    Hash {
        linear: bool,
        expr: Expr,
    },
    Key {
        linear: bool,
        algorithm: Option<u64>,
        columns: Vec<Ident>,
    },
    Range(Expr),
    RangeColumns(Vec<Ident>),
    List(Expr),
    ListColumns(Vec<Ident>),
    /// MariaDB's `SYSTEM_TIME`.
    SystemTime {
        interval: Option<(Expr, super::IntervalUnit)>,
        /// Where the first interval begins: a literal.
        starts: Option<Expr>,
        limit: Option<u64>,
        /// Partitions are added as they are needed.
        auto: bool,
    },
}

/// One partition.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct PartitionDef {
    pub name: Ident,
    pub values: PartitionValues,
    pub options: Vec<PartitionOption>,
    pub subpartitions: Vec<(Ident, Vec<PartitionOption>)>,
}

/// Which rows a partition takes.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum PartitionValues {
    /// Nothing said: HASH, KEY.
    None,
    /// `VALUES LESS THAN (..)`; a None is `MAXVALUE`.
    LessThan(Vec<Option<Expr>>),
    /// `VALUES IN ((..), ..)`; each row has one value per column.
    In(Vec<Vec<Option<Expr>>>),
    /// MariaDB's `HISTORY`.
    History,
    /// MariaDB's `CURRENT`.
    Current,
    /// MariaDB's `DEFAULT`.
    Default,
}

/// Options of partitions.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum PartitionOption {
    Engine(Ident),
    Comment(Box<str>),
    DataDirectory(Box<str>),
    IndexDirectory(Box<str>),
    MaxRows(u64),
    MinRows(u64),
    Tablespace(Ident),
    Nodegroup(u64),
}

/// `ALTER TABLE`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct AlterTable {
    pub name: ObjectName,
    /// MariaDB's `IF EXISTS`.
    pub if_exists: bool,
    pub actions: Vec<AlterAction>,
    /// `PARTITION BY` at the end.
    pub partitioning: Option<Box<Partitioning>>,
}

/// The position of a column.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum ColumnPosition {
    First,
    After(Ident),
}

/// One thing ALTER TABLE does.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum AlterAction {
    AddColumn {
        column: Box<ColumnDef>,
        if_not_exists: bool,
        position: Option<ColumnPosition>,
    },
    AddConstraint(Box<TableConstraint>),
    ChangeColumn {
        old: Ident,
        if_exists: bool,
        column: Box<ColumnDef>,
        position: Option<ColumnPosition>,
    },
    ModifyColumn {
        column: Box<ColumnDef>,
        if_exists: bool,
        position: Option<ColumnPosition>,
    },
    DropColumn {
        name: Ident,
        if_exists: bool,
    },
    /// `RESTRICT`/`CASCADE` are accepted and have no effect.
    DropForeignKey {
        name: Ident,
        if_exists: bool,
    },
    DropPrimaryKey,
    DropIndex {
        name: Ident,
        if_exists: bool,
    },
    DropCheck(Ident),
    DropConstraint {
        name: Ident,
        if_exists: bool,
    },
    AlterColumnDefault {
        name: Ident,
        default: Option<Expr>,
        parenthesised: bool,
    },
    AlterColumnVisible {
        name: Ident,
        visible: bool,
    },
    AlterIndexVisible {
        name: Ident,
        visible: bool,
    },
    AlterConstraintEnforced {
        name: Ident,
        check: bool,
        enforced: bool,
    },
    RenameColumn {
        old: Ident,
        new: Ident,
    },
    RenameIndex {
        old: Ident,
        new: Ident,
    },
    RenameTable(ObjectName),
    ConvertCharset {
        charset: Option<Ident>,
        collation: Option<Ident>,
    },
    DisableKeys,
    EnableKeys,
    Force,
    OrderBy(Vec<super::OrderItem>),
    Option(TableOption),
    Algorithm(Ident),
    Lock(Ident),
    /// `WITH VALIDATION` is true.
    Validation(bool),
    DiscardTablespace,
    ImportTablespace,
    SecondaryLoad,
    SecondaryUnload,
    Partition(Box<PartitionAction>),
    /// MariaDB's `ADD PERIOD [IF NOT EXISTS] FOR name (start, end)`.
    AddPeriod {
        name: Ident,
        start: Ident,
        end: Ident,
        if_not_exists: bool,
    },
    /// MariaDB's `DROP PERIOD [IF EXISTS] FOR name`.
    DropPeriod {
        name: Ident,
        if_exists: bool,
    },
    /// MariaDB's `DROP SYSTEM VERSIONING`.
    DropSystemVersioning,
}

/// Partition operations of ALTER TABLE.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum PartitionAction {
    Add { no_binlog: bool, partitions: Vec<PartitionDef>, count: Option<u64> },
    Drop { if_exists: bool, names: Vec<Ident> },
    Discard(PartitionNames),
    Import(PartitionNames),
    Truncate(PartitionNames),
    Coalesce { no_binlog: bool, count: u64 },
    Reorganize { no_binlog: bool, names: Vec<Ident>, into: Vec<PartitionDef> },
    Exchange { name: Ident, table: ObjectName, validation: bool },
    Analyze { no_binlog: bool, names: PartitionNames },
    Check { names: PartitionNames, options: Vec<Ident> },
    Optimize { no_binlog: bool, names: PartitionNames },
    Rebuild { no_binlog: bool, names: PartitionNames },
    Repair { no_binlog: bool, names: PartitionNames, options: Vec<Ident> },
    SecondaryLoad(PartitionNames),
    SecondaryUnload(PartitionNames),
    Remove,
}

/// `ALL` or a list.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum PartitionNames {
    All,
    List(Vec<Ident>),
}

/// `DROP TABLE`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct DropTable {
    pub temporary: bool,
    pub if_exists: bool,
    pub names: Vec<ObjectName>,
    pub cascade: Option<bool>,
}

/// `DROP VIEW`, `DROP SEQUENCE`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct DropObjects {
    pub if_exists: bool,
    pub names: Vec<ObjectName>,
    pub cascade: Option<bool>,
}

/// `DROP TRIGGER|EVENT|LIBRARY`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct DropObject {
    pub if_exists: bool,
    pub name: ObjectName,
}

/// `RENAME TABLE`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct RenameTable {
    /// MariaDB's `IF EXISTS`.
    pub if_exists: bool,
    pub renames: Vec<(ObjectName, ObjectName)>,
}

/// `CREATE INDEX`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct CreateIndex {
    pub flags: CreateFlags,
    pub table: ObjectName,
    /// Its name is always there.
    pub index: IndexDef,
    pub algorithm: Option<Ident>,
    pub lock: Option<Ident>,
}

/// `DROP INDEX`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct DropIndex {
    pub if_exists: bool,
    pub name: Ident,
    pub table: ObjectName,
    pub algorithm: Option<Ident>,
    pub lock: Option<Ident>,
}

/// `CREATE VIEW`, `ALTER VIEW`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateView {
    /// `OR REPLACE`, `IF NOT EXISTS`.
    pub flags: CreateFlags,
    /// `JSON DUALITY`.
    pub is_duality: bool,
    /// `ALGORITHM`.
    pub algorithm: ViewAlgorithm,
    /// `DEFINER`.
    pub definer: Option<UserName>,
    /// `SQL SECURITY`.
    pub security: Option<SqlSecurity>,
    /// The view.
    pub name: ObjectName,
    /// Column names, where listed.
    pub columns: Vec<Ident>,
    /// Its query.
    pub query: Query,
    /// The text of the query.
    pub query_span: Span,
    /// `WITH CHECK OPTION`.
    pub check_option: Option<CheckOption>,
}

/// `ALGORITHM` of views.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ViewAlgorithm {
    #[default]
    Undefined,
    Merge,
    Temptable,
}

impl ViewAlgorithm {
    /// As it is written and kept.
    pub fn name(self) -> &'static str {
        match self {
            ViewAlgorithm::Undefined => "UNDEFINED",
            ViewAlgorithm::Merge => "MERGE",
            ViewAlgorithm::Temptable => "TEMPTABLE",
        }
    }
}

/// `SQL SECURITY`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SqlSecurity {
    Definer,
    Invoker,
}

/// `WITH [CASCADED|LOCAL] CHECK OPTION`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum CheckOption {
    Cascaded,
    Local,
}

impl CheckOption {
    /// As it is written and kept.
    pub fn name(self) -> &'static str {
        match self {
            CheckOption::Cascaded => "CASCADED",
            CheckOption::Local => "LOCAL",
        }
    }
}

/// `CREATE SEQUENCE`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct CreateSequence {
    pub flags: CreateFlags,
    pub temporary: bool,
    pub name: ObjectName,
    pub options: Vec<SequenceOption>,
    pub table_options: Vec<TableOption>,
}

/// `ALTER SEQUENCE`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct AlterSequence {
    pub if_exists: bool,
    pub name: ObjectName,
    pub options: Vec<SequenceOption>,
}

/// Options of sequences; `None` is the `NO` form.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum SequenceOption {
    As(Box<DataType>),
    Start(i128),
    Increment(i128),
    MinValue(Option<i128>),
    MaxValue(Option<i128>),
    Cache(Option<i128>),
    Cycle(bool),
    Restart(Option<i128>),
}

/// `CREATE|ALTER SERVER`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct ServerDef {
    pub alter: bool,
    pub flags: CreateFlags,
    pub name: Ident,
    pub wrapper: Option<Ident>,
    /// Option and value (numbers as text).
    pub options: Vec<(ServerOption, Box<str>)>,
}

/// An option of [`ServerDef`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ServerOption {
    Host,
    Database,
    User,
    Password,
    Socket,
    Owner,
    Port,
}

/// `CREATE|ALTER|DROP [UNDO] TABLESPACE` and `LOGFILE GROUP`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Tablespace {
    pub action: TablespaceAction,
    pub undo: bool,
    pub name: Ident,
    /// Option words and values, in order (`RENAME TO` has the new name as value).
    pub options: Vec<(Box<str>, Box<str>)>,
}

/// Operations on a tablespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum TablespaceAction {
    Create,
    Alter,
    Drop,
}

/// `CREATE SPATIAL REFERENCE SYSTEM`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct CreateSpatialReferenceSystem {
    pub flags: CreateFlags,
    pub srid: u64,
    pub name: Option<Box<str>>,
    pub definition: Option<Box<str>>,
    pub organization: Option<(Box<str>, u64)>,
    pub description: Option<Box<str>>,
    /// The first attribute that is written twice.
    pub repeated: Option<&'static str>,
}

/// `CREATE|ALTER|DROP RESOURCE GROUP`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum ResourceGroup {
    Create {
        name: Ident,
        system: bool,
        vcpus: Vec<(u64, u64)>,
        priority: Option<i64>,
        enabled: Option<bool>,
    },
    Alter {
        name: Ident,
        vcpus: Vec<(u64, u64)>,
        priority: Option<i64>,
        enabled: Option<bool>,
        force: bool,
    },
    Drop {
        name: Ident,
        force: bool,
    },
}
