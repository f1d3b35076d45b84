//! The part of a table's definition that an engine needs: the types of its stored columns and the parts of its indexes.

use types::DataType;
use types::record::RecordLayout;

/// Names a table permanently. Ids are drawn by the catalog and never used again; `DICTIONARY` is the catalog's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub u64);

impl TableId {
    /// The table in which the catalog keeps its objects; created at first start.
    pub const DICTIONARY: TableId = TableId(1);
    /// First id for ordinary tables.
    pub const FIRST_USER: TableId = TableId(1024);
    /// First id of tables whose definitions several servers share (`SharedDefinitions`): the engine draws it, and no catalog.
    pub const FIRST_SHARED: TableId = TableId(1 << 40);

    /// Whether several servers share the table's definition.
    pub fn is_shared(self) -> bool {
        self >= TableId::FIRST_SHARED
    }
}

/// Names an index within its table; stable across ALTER TABLE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IndexId(pub u32);

impl IndexId {
    /// The clustered index: PRIMARY, else the hidden row id.
    pub const CLUSTERED: IndexId = IndexId(0);
}

/// A stored column. Virtual columns are not stored and unknown here.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDef {
    /// For messages only.
    pub name: String,
    /// Type, which fixes its place in the record and its key encoding.
    pub ty: DataType,
    /// Encoded one-column value for records older than the column (instant ADD COLUMN); `None` is NULL.
    pub instant_default: Option<types::Value>,
}

/// A column of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPart {
    /// Index into `TableDef::columns`.
    pub column: usize,
    /// Characters (bytes for binary strings) of a prefix index.
    pub prefix_length: Option<u32>,
    /// `DESC`.
    pub descending: bool,
    /// The column holds a JSON array, and a row has an entry for each element, of this type; one entry with NULL where the column
    /// is NULL, none for an empty array. Or it holds a geometry, and a row has an entry for each of its cells. At most one part of an index.
    pub elements: Option<DataType>,
}

/// An index other than the hidden row id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexDef {
    /// Stable id. `IndexId::CLUSTERED` exactly for the primary key.
    pub id: IndexId,
    /// For messages and statistics.
    pub name: String,
    /// No two rows with equal keys, keys with a NULL part excepted.
    pub unique: bool,
    /// In key order.
    pub parts: Vec<KeyPart>,
}

impl IndexDef {
    /// Whether a row may have several entries, or none.
    pub fn is_multi_valued(&self) -> bool {
        self.parts.iter().any(|part| part.elements.is_some())
    }
}

/// A table as its engine sees it.
///
/// Invariant: when an index with `IndexId::CLUSTERED` exists it is unique, all its columns are NOT NULL, and the locator of a row
/// is its key bytes; otherwise the engine draws an 8-byte big-endian row id.
#[derive(Clone, Debug, PartialEq)]
pub struct TableDef {
    /// Id.
    pub id: TableId,
    /// `schema.table`, for messages and statistics only.
    pub name: String,
    /// Stored columns, in record order.
    pub columns: Vec<ColumnDef>,
    /// All indexes, the clustered one first if it exists.
    pub indexes: Vec<IndexDef>,
}

impl TableDef {
    /// The primary key, when the table has one.
    pub fn primary(&self) -> Option<&IndexDef> {
        self.indexes.iter().find(|index| index.id == IndexId::CLUSTERED)
    }

    /// Where the columns of the table's records are.
    pub fn layout(&self) -> RecordLayout {
        let types: Vec<DataType> = self.columns.iter().map(|column| column.ty.clone()).collect();
        RecordLayout::new(&types)
    }

    /// The index with `id`.
    pub fn index(&self, id: IndexId) -> Option<&IndexDef> {
        self.indexes.iter().find(|index| index.id == id)
    }
}
