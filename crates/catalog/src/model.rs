//! Contents of the catalog: immutable descriptions of schemas, tables, views. A change makes a new version; a statement keeps the
//! version that it was bound with.

use std::sync::Arc;

use engine_api::{ColumnDef, IndexDef, IndexId, KeyPart, TableDef, TableId};
use types::fulltext::WordParser;
use types::{CollationId, DataType, TypeKind};

use crate::history::ColumnHistory;
use crate::routine::{Routine, RoutineKey};
use crate::shared_map::SharedMap;
use crate::stored::StoredTable;

/// Grows with every committed change of any object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct CatalogVersion(pub u64);

/// What INSTALL PLUGIN or UNINSTALL PLUGIN chose for a plugin, for later starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginChoice {
    /// Whether it is loaded.
    pub is_loaded: bool,
    /// The file that it comes from; `None` for one that is compiled in.
    pub library: Option<Box<str>>,
}

/// A value that SET PERSIST keeps for later starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PersistedVariable {
    /// As an option would give it.
    pub value: Box<str>,
    /// When it was set, microseconds since 1970 UTC; 0 in dictionaries from before it was kept.
    pub set_micros: i64,
    /// Who set it.
    pub user: Box<str>,
    /// From where.
    pub host: Box<str>,
}

/// What CREATE and ALTER DATABASE set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemaOptions {
    /// Collation of tables without a COLLATE clause.
    pub collation: CollationId,
    /// DEFAULT ENCRYPTION: its tables are declared encrypted unless they say otherwise.
    pub is_encrypted: bool,
    /// READ ONLY: neither its objects nor the rows of its tables change.
    pub is_read_only: bool,
}

impl SchemaOptions {
    /// Those of a schema that is made with nothing but a collation.
    pub fn of_collation(collation: CollationId) -> SchemaOptions {
        SchemaOptions { collation, is_encrypted: false, is_read_only: false }
    }
}

/// A schema (database).
#[derive(Clone, Debug)]
pub struct Schema {
    /// Name as created; names compare case-sensitively (`lower_case_table_names=0`).
    pub name: Arc<str>,
    /// What CREATE and ALTER DATABASE set.
    pub options: SchemaOptions,
    /// Tables, views and sequences share one namespace.
    pub(crate) relations: SharedMap<Arc<str>, StoredRelation>,
    /// Procedures and functions, by kind and name in lower case.
    pub(crate) routines: SharedMap<RoutineKey, Arc<Routine>>,
    /// Triggers by name in lower case.
    pub(crate) triggers: SharedMap<Arc<str>, Arc<crate::Trigger>>,
    pub(crate) events: SharedMap<Arc<str>, Arc<crate::Event>>,
}

/// The object that the catalog keeps under a name in a schema.
#[derive(Clone, Debug)]
pub(crate) enum StoredRelation {
    Table(Arc<StoredTable>),
    View(Arc<View>),
}

/// The object that a name in a schema denotes.
#[derive(Clone, Debug)]
pub enum Relation {
    /// A stored table.
    Table(Arc<Table>),
    /// A view.
    View(Arc<View>),
}

/// A stored table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Engine's id.
    pub id: TableId,
    /// Schema name.
    pub schema: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Engine name as the registry knows it.
    pub engine: Arc<str>,
    /// CREATE TEMPORARY.
    pub temporary: bool,
    /// In order of declaration.
    pub columns: Vec<Column>,
    /// Primary first.
    pub indexes: Vec<Index>,
    /// FULLTEXT indexes. Only MATCH uses them, so they are not in `indexes`.
    pub fulltext: Vec<FulltextIndex>,
    /// Foreign keys of this table.
    pub foreign_keys: Vec<ForeignKey>,
    /// CHECK constraints.
    pub checks: Vec<Check>,
    /// Collation of columns without a COLLATE clause.
    pub collation: CollationId,
    /// COMMENT.
    pub comment: String,
    /// Options kept only for SHOW: `(NAME, value)`.
    pub options: Vec<(String, String)>,
    /// PARTITION BY.
    pub partitioning: Option<Arc<crate::Partitioning>>,
    /// PERIOD FOR, of application time.
    pub period: Option<Period>,
    /// Microseconds since 1970 UTC.
    pub created_micros: i64,
    /// The definition given to the engine; `columns[i].stored` indexes into it.
    pub definition: TableDef,
}

/// A column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name; column names compare without regard to case.
    pub name: Arc<str>,
    /// Type.
    pub ty: DataType,
    /// Position in the record; virtual generated columns have none.
    pub stored: Option<usize>,
    /// DEFAULT.
    pub default: ColumnDefault,
    /// `ON UPDATE CURRENT_TIMESTAMP`, with its digits.
    pub on_update_now: Option<u8>,
    /// AUTO_INCREMENT.
    pub auto_increment: bool,
    /// `GENERATED ALWAYS AS (text)`.
    pub generated: Option<Generated>,
    /// INVISIBLE.
    pub invisible: bool,
    /// COMMENT.
    pub comment: String,
    /// CHARACTER SET or COLLATE was written, and is shown even where the table says the same.
    pub collation_written: bool,
    /// The distribution of its values, if ANALYZE TABLE has built a histogram.
    pub histogram: Option<Arc<crate::Histogram>>,
    /// What a table that keeps history does with it.
    pub history: ColumnHistory,
    /// STORAGE and COLUMN_FORMAT.
    pub placement: Placement,
}

/// Where and how a column is declared to be stored. Every column is stored in one way; the words are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// STORAGE.
    pub medium: Option<Medium>,
    /// COLUMN_FORMAT.
    pub format: Option<RecordFormat>,
}

/// What STORAGE names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Medium {
    Disk,
    Memory,
}

/// What COLUMN_FORMAT names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum RecordFormat {
    Fixed,
    Dynamic,
}

impl Column {
    /// Expression of a vacant column, whose values nobody reads.
    pub const VACANT: &'static str = "NULL";

    /// Whether it only fills the place of a dropped column in the records, which were not rewritten. It is hidden; new rows have its default there.
    pub fn is_vacant(&self) -> bool {
        let generated = self.generated.as_ref();
        generated
            .is_some_and(|made| made.hidden && made.stored && *made.expression == *Self::VACANT)
    }

    /// The type of the elements, if it is the array of a multi-valued index part.
    pub fn elements(&self) -> Option<&DataType> {
        self.generated.as_ref()?.elements.as_ref()
    }

    /// The type of its entries in an index, where a row may have several: the elements of an array, or the cells of a geometry.
    pub fn entry_type(&self) -> Option<&DataType> {
        /// Numbers of cells, see `types::geometry::cells`.
        static CELL: DataType = DataType::bigint_unsigned().with_nullable(false);
        let cell = (self.ty.kind == TypeKind::Geometry).then_some(&CELL);
        self.elements().or(cell)
    }
}

/// A generated column.
#[derive(Clone, Debug, PartialEq)]
pub struct Generated {
    /// Canonical text.
    pub expression: Arc<str>,
    /// STORED, not VIRTUAL.
    pub stored: bool,
    /// The hidden column of a functional index part: not in `SELECT *`, not in SHOW.
    pub hidden: bool,
    /// The hidden column of a multi-valued part: `CAST(expression AS type ARRAY)`. The column itself is a JSON array of such elements.
    pub elements: Option<DataType>,
}

impl Generated {
    /// The expression with the cast to an array that a multi-valued part has.
    pub fn shown(&self) -> Arc<str> {
        let Some(ty) = &self.elements else { return self.expression.clone() };
        let name = if ty.is_integer() {
            if ty.unsigned { "unsigned".into() } else { "signed".into() }
        } else if ty.kind == TypeKind::Decimal {
            format!("decimal({}, {})", ty.length, ty.decimals)
        } else if let Some(kind) = ty.as_fixed() {
            kind.name().into()
        } else if ty.is_temporal() {
            format!("{:?}{}", ty.kind, digits(ty.decimals)).to_lowercase()
        } else if ty.is_binary() {
            format!("binary({})", ty.length)
        } else {
            format!("char({})", ty.length)
        };
        format!("cast({} as {name} array)", self.expression).into()
    }
}

/// Digits of a fraction as a type has them.
fn digits(decimals: u8) -> String {
    if decimals == 0 { String::new() } else { format!("({decimals})") }
}

/// DEFAULT of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnDefault {
    /// No default given or implied: an INSERT must name the column.
    None,
    /// A constant, already converted to the column's type. NULL included.
    Constant(types::Value),
    /// `CURRENT_TIMESTAMP(n)`.
    Now(u8),
    /// `DEFAULT (expression)`, canonical text.
    Expression(Arc<str>),
}

/// The structure that an index is declared to be; each is an ordered tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexMethod {
    /// `USING BTREE`.
    BTree,
    /// `USING HASH`, of tables declared with an engine that has such indexes.
    Hash,
}

/// An index.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    /// Engine's id.
    pub id: IndexId,
    /// Name; `PRIMARY`.
    pub name: Arc<str>,
    /// PRIMARY or UNIQUE.
    pub unique: bool,
    /// Parts.
    pub parts: Vec<IndexPart>,
    /// Not INVISIBLE.
    pub visible: bool,
    /// COMMENT.
    pub comment: String,
    /// Created only for a foreign key: it is dropped when another index begins with its columns.
    pub for_foreign_key: bool,
    /// USING: shown as it was written.
    pub method: Option<IndexMethod>,
    /// WITHOUT OVERLAPS: of rows that are alike in the parts before the last two, which are the end and the start of the table's period, no two
    /// have a time in common.
    pub without_overlaps: bool,
}

impl Index {
    /// The parts without those of a period.
    pub fn own_parts(&self) -> &[IndexPart] {
        let period = if self.without_overlaps { 2 } else { 0 };
        &self.parts[..self.parts.len().saturating_sub(period)]
    }
}

/// A period of application time: the row holds from `start` until just before `end`.
#[derive(Clone, Debug, PartialEq)]
pub struct Period {
    /// Its name.
    pub name: Arc<str>,
    /// Index into `Table::columns`.
    pub start: usize,
    /// As `start`.
    pub end: usize,
}

/// A column of an index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexPart {
    /// Index into `Table::columns`.
    pub column: usize,
    /// Prefix length.
    pub prefix_length: Option<u32>,
    /// DESC.
    pub descending: bool,
}

/// A FULLTEXT index. Its entries are the rows of a separate engine table: a word's key, the locator of a row that has the word,
/// and how often (`docs/format/fulltext.md`). They are written in the transaction that writes the row.
#[derive(Clone, Debug, PartialEq)]
pub struct FulltextIndex {
    /// The table of its entries.
    pub entries: TableId,
    /// Name.
    pub name: Arc<str>,
    /// Indexes into `Table::columns`, all texts of one collation.
    pub columns: Vec<usize>,
    /// Not INVISIBLE.
    pub visible: bool,
    /// COMMENT.
    pub comment: String,
    /// WITH PARSER.
    pub parser: WordParser,
}

/// The action of a foreign key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceAction {
    /// No clause given: not shown, acts as RESTRICT.
    NoAction,
    /// RESTRICT.
    Restrict,
    /// CASCADE.
    Cascade,
    /// SET NULL.
    SetNull,
    /// SET DEFAULT (refused, 1215-like, as the reference's engine does).
    SetDefault,
}

/// A foreign key.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignKey {
    /// Constraint name.
    pub name: Arc<str>,
    /// Own columns.
    pub columns: Vec<usize>,
    /// Referenced schema and table; may not exist while `foreign_key_checks=0`.
    pub referenced_schema: Arc<str>,
    /// Table name.
    pub referenced_table: Arc<str>,
    /// Column names.
    pub referenced_columns: Vec<Arc<str>>,
    /// ON UPDATE.
    pub on_update: ReferenceAction,
    /// ON DELETE.
    pub on_delete: ReferenceAction,
}

/// A CHECK constraint.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Name.
    pub name: Arc<str>,
    /// Canonical text.
    pub expression: Arc<str>,
    /// Not `NOT ENFORCED`.
    pub enforced: bool,
}

/// A view.
#[derive(Clone, Debug, PartialEq)]
pub struct View {
    /// Schema.
    pub schema: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// Canonical SELECT with all names qualified.
    pub definition: Arc<str>,
    /// Column names, as given or from the SELECT.
    pub columns: Vec<Arc<str>>,
    /// `user@host`.
    pub definer: Arc<str>,
    /// `SQL SECURITY INVOKER`.
    pub invoker: bool,
    /// `MERGE`, `TEMPTABLE`, `UNDEFINED`.
    pub algorithm: Arc<str>,
    /// `LOCAL`, `CASCADED`, `NONE`.
    pub check_option: Arc<str>,
    /// `character_set_client` of the session that created it.
    pub charset_client: Arc<str>,
    /// `collation_connection` of that session.
    pub collation_connection: Arc<str>,
    /// A JSON duality view: its rows are documents.
    pub is_duality: bool,
}

/// The option of a table that is a sequence: its only row says how the values go on.
pub const SEQUENCE_OPTION: &str = "SEQUENCE";

impl Table {
    /// Whether it is a sequence.
    pub fn is_sequence(&self) -> bool {
        self.options.iter().any(|(name, _)| name == SEQUENCE_OPTION)
    }

    /// The column called `name`, without regard to case.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| same_name(&column.name, name))
    }

    /// The index called `name`, without regard to case.
    pub fn index(&self, name: &str) -> Option<&Index> {
        self.indexes.iter().find(|index| same_name(&index.name, name))
    }

    /// Whether a row may have several entries of an index, or none: such an index answers only what asks for an element.
    pub fn is_multi_valued(&self, index: &Index) -> bool {
        self.elements_part(index).is_some()
    }

    /// The part of a multi-valued index that has the elements.
    pub fn elements_part(&self, index: &Index) -> Option<usize> {
        let is_array = |part: &IndexPart| {
            self.columns.get(part.column).is_some_and(|column| column.entry_type().is_some())
        };
        index.parts.iter().position(is_array)
    }

    /// The column of a spatial index: any index over a geometry is one.
    pub fn spatial_column(&self, index: &Index) -> Option<usize> {
        let [part] = &index.parts[..] else { return None };
        let column = self.columns.get(part.column)?;
        (column.ty.kind == TypeKind::Geometry).then_some(part.column)
    }

    /// Gives the engine's definition the types of the elements of multi-valued and spatial parts.
    pub fn mark_elements(&mut self) {
        for column in &self.columns {
            let (Some(elements), Some(stored)) = (column.entry_type(), column.stored) else {
                continue;
            };
            for part in self.definition.indexes.iter_mut().flat_map(|index| &mut index.parts) {
                if part.column == stored {
                    part.elements = Some(elements.clone());
                }
            }
        }
    }

    /// The definitions that the engine needs for the table: its own, and those of its FULLTEXT indexes' entries.
    pub fn engine_tables(&self) -> Vec<TableDef> {
        let entries = self.fulltext.iter().map(|index| index.definition(&self.definition.name));
        std::iter::once(self.definition.clone()).chain(entries).collect()
    }

    /// The name of the check that the period begins before it ends: that of the period, with a number where another check has it.
    pub fn period_check(&self) -> Option<Arc<str>> {
        let name = &self.period.as_ref()?.name;
        let is_free = |name: &str| !self.checks.iter().any(|check| same_name(&check.name, name));
        if is_free(name) {
            return Some(name.clone());
        }
        let numbered = (1..).map(|number| format!("{name}_{number}"));
        numbered.into_iter().find(|name| is_free(name)).map(Arc::from)
    }

    /// Whether rows depend on each other by their periods: there is a key WITHOUT OVERLAPS.
    pub fn refuses_overlaps(&self) -> bool {
        self.indexes.iter().any(|index| index.without_overlaps)
    }

    /// The period called `name`, without regard to case.
    pub fn period(&self, name: &str) -> Option<&Period> {
        self.period.as_ref().filter(|period| same_name(&period.name, name))
    }

    /// The primary key.
    pub fn primary(&self) -> Option<&Index> {
        self.indexes.iter().find(|index| index.id == IndexId::CLUSTERED)
    }
}

impl FulltextIndex {
    /// The table of the entries.
    pub fn definition(&self, table: &str) -> TableDef {
        let column = |name: &str, ty| ColumnDef { name: name.into(), ty, instant_default: None };
        let part =
            |column| KeyPart { column, prefix_length: None, descending: false, elements: None };
        let [word, row, count] = types::fulltext::entry_types();
        TableDef {
            id: self.entries,
            name: format!("{table}#{}", self.name),
            columns: vec![column("word", word), column("row", row), column("count", count)],
            indexes: vec![IndexDef {
                id: IndexId::CLUSTERED,
                name: "PRIMARY".into(),
                unique: true,
                parts: vec![part(0), part(1)],
            }],
        }
    }
}

/// Column, index and constraint names compare without regard to case.
pub fn same_name(a: &str, b: &str) -> bool {
    a == b || a.to_lowercase() == b.to_lowercase()
}
