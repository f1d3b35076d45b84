//! A table definition while a statement builds or changes it: names instead of positions, so that columns may be added, dropped and moved.
//! `finish` resolves the names and checks the whole.

use std::sync::Arc;

use catalog::{
    Check, Column, DISCARDED_OPTION, ForeignKey, Generated, IndexMethod, Partitioning, Table,
    same_name,
};
use engine_api::{IndexId, TableId};
use types::CollationId;
use types::fulltext::WordParser;

use crate::context::Context;
use crate::history::{SystemPeriod, declared_period};
use crate::options::schema_collation;

/// A column of a draft.
#[derive(Clone, Debug)]
pub struct DraftColumn {
    /// The column as the catalog will have it.
    pub column: Column,
    /// Position in the table before ALTER TABLE.
    pub origin: Option<usize>,
    /// NULL or NOT NULL was written.
    pub null_written: Option<bool>,
    /// WITH or WITHOUT SYSTEM VERSIONING was written.
    pub history_written: Option<bool>,
}

/// A part of an index of a draft.
#[derive(Clone, Debug)]
pub struct DraftPart {
    /// Name of its column.
    pub column: Arc<str>,
    /// Characters or bytes of a prefix.
    pub prefix_length: Option<u64>,
    /// DESC.
    pub descending: bool,
}

/// An index of a draft.
#[derive(Clone, Debug)]
pub struct DraftIndex {
    /// `None`: to be generated from its first column.
    pub name: Option<Arc<str>>,
    /// The primary key.
    pub primary: bool,
    /// UNIQUE, or the primary key.
    pub unique: bool,
    /// Parts in order.
    pub parts: Vec<DraftPart>,
    /// Not INVISIBLE.
    pub visible: bool,
    /// Comment.
    pub comment: String,
    /// Id in the table before ALTER TABLE.
    pub origin: Option<IndexId>,
    /// Created only for a foreign key.
    pub for_foreign_key: bool,
    /// USING.
    pub method: Option<IndexMethod>,
    /// WITHOUT OVERLAPS: the period. Until the definition is complete its columns are not among the parts.
    pub without_overlaps: Option<Arc<str>>,
    /// A FULLTEXT index.
    pub fulltext: bool,
    /// WITH PARSER, of a FULLTEXT index.
    pub parser: WordParser,
    /// `SPATIAL` was written; without it an index over a geometry is one, too.
    pub spatial: bool,
    /// The table of its entries before ALTER TABLE.
    pub entries: Option<TableId>,
}

impl DraftIndex {
    /// A unique index of one column, without a name: the primary key, or another key.
    pub(crate) fn of_column(part: DraftPart, primary: bool) -> DraftIndex {
        DraftIndex {
            name: None,
            primary,
            unique: true,
            parts: vec![part],
            visible: true,
            comment: String::new(),
            origin: None,
            for_foreign_key: false,
            method: None,
            without_overlaps: None,
            fulltext: false,
            parser: WordParser::Separated,
            spatial: false,
            entries: None,
        }
    }
}

/// A period of a draft: names instead of positions.
#[derive(Clone, Debug)]
pub(crate) struct DraftPeriod {
    pub(crate) name: Arc<str>,
    pub(crate) start: Arc<str>,
    pub(crate) end: Arc<str>,
}

impl DraftPeriod {
    /// The period of an existing table.
    pub(crate) fn of(table: &Table) -> Option<DraftPeriod> {
        let period = table.period.as_ref()?;
        let name = |at: usize| table.columns[at].name.clone();
        let (start, end) = (name(period.start), name(period.end));
        Some(DraftPeriod { name: period.name.clone(), start, end })
    }

    pub(crate) fn is_of(&self, column: &str) -> bool {
        same_name(&self.start, column) || same_name(&self.end, column)
    }
}

/// A foreign key of a draft.
#[derive(Clone, Debug)]
pub struct DraftForeignKey {
    /// `None`: to be generated.
    pub name: Option<Arc<str>>,
    /// Own columns.
    pub columns: Vec<Arc<str>>,
    /// Positions are not used.
    pub key: ForeignKey,
    /// Existed before ALTER TABLE.
    pub existing: bool,
}

/// A table under construction.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Schema name.
    pub schema: Arc<str>,
    /// Table name.
    pub name: Arc<str>,
    /// Name of the engine.
    pub engine: Arc<str>,
    /// CREATE TEMPORARY.
    pub temporary: bool,
    /// Columns in order.
    pub columns: Vec<DraftColumn>,
    /// Indexes in the order of the statement.
    pub indexes: Vec<DraftIndex>,
    /// Foreign keys.
    pub foreign_keys: Vec<DraftForeignKey>,
    /// Checks with their given names.
    pub checks: Vec<(Option<Arc<str>>, Check)>,
    /// The collation of columns without a COLLATE clause.
    pub collation: CollationId,
    /// The declared collation: it differs from the stored one where that is a substitute.
    pub declared_collation: CollationId,
    /// Comment.
    pub comment: String,
    /// Options kept only for SHOW: name and value.
    pub options: Vec<(String, String)>,
    /// AUTO_INCREMENT.
    pub auto_increment: Option<u64>,
    /// When the table was created, microseconds since 1970 UTC.
    pub created_micros: i64,
    /// PARTITION BY. Its hidden column is not in `columns`.
    pub partitioning: Option<Partitioning>,
    /// Position of that column in the table before ALTER TABLE.
    pub partition_origin: Option<usize>,
    /// WITH SYSTEM VERSIONING.
    pub keeps_history: bool,
    /// The columns of PERIOD FOR SYSTEM_TIME.
    pub(crate) system_period: Option<SystemPeriod>,
    /// PERIOD FOR of application time.
    pub(crate) period: Option<DraftPeriod>,
}

impl Draft {
    /// A draft of a new table without columns.
    pub(crate) fn new(
        ctx: &dyn Context,
        schema: &Arc<str>,
        name: &Arc<str>,
        temporary: bool,
    ) -> Draft {
        let engines = ctx.engines();
        let engine = if temporary { engines.temporary } else { engines.default };
        let collation = schema_collation(ctx, schema);
        Draft {
            schema: schema.clone(),
            name: name.clone(),
            engine: engine.into(),
            temporary,
            columns: Vec::new(),
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
            checks: Vec::new(),
            collation,
            declared_collation: collation,
            comment: String::new(),
            options: Vec::new(),
            auto_increment: None,
            created_micros: ctx.now_micros(),
            partitioning: None,
            partition_origin: None,
            keeps_history: false,
            system_period: None,
            period: None,
        }
    }

    /// A draft of a table like another: everything but foreign keys and rows.
    pub fn like(ctx: &dyn Context, table: &Table, schema: &Arc<str>, name: &Arc<str>) -> Draft {
        let mut draft = Draft::of(table);
        draft.schema = schema.clone();
        draft.name = name.clone();
        draft.created_micros = ctx.now_micros();
        draft.foreign_keys.clear();
        // The new table has its rows: none.
        draft.options.retain(|(name, _)| name != DISCARDED_OPTION);
        draft.partition_origin = None;
        draft.columns.retain(|column| !column.column.is_vacant());
        for column in &mut draft.columns {
            column.origin = None;
            column.column.histogram = None;
        }
        for index in &mut draft.indexes {
            index.origin = None;
            index.entries = None;
        }
        for (check_name, _) in &mut draft.checks {
            *check_name = None;
        }
        draft
    }

    /// A draft of an existing table.
    pub fn of(table: &Table) -> Draft {
        let partition_origin = table.partition_column();
        let own = table.columns.iter().enumerate();
        let own = own.filter(|(position, _)| Some(*position) != partition_origin);
        let columns = own.map(|(position, column)| DraftColumn {
            column: column.clone(),
            origin: Some(position),
            null_written: None,
            history_written: None,
        });
        let foreign_keys = table.foreign_keys.iter().map(|key| DraftForeignKey {
            name: Some(key.name.clone()),
            columns: key.columns.iter().map(|column| name_of(table, *column)).collect(),
            key: key.clone(),
            existing: true,
        });
        Draft {
            schema: table.schema.clone(),
            name: table.name.clone(),
            engine: table.engine.clone(),
            temporary: table.temporary,
            columns: columns.collect(),
            indexes: index_drafts(table),
            foreign_keys: foreign_keys.collect(),
            checks: table
                .checks
                .iter()
                .map(|check| (Some(check.name.clone()), check.clone()))
                .collect(),
            collation: table.collation,
            declared_collation: table.collation,
            comment: table.comment.clone(),
            options: table.options.clone(),
            auto_increment: None,
            created_micros: table.created_micros,
            partitioning: table.partitioning.as_deref().cloned(),
            partition_origin,
            keeps_history: table.row_times().is_some(),
            system_period: declared_period(table),
            period: DraftPeriod::of(table),
        }
    }

    /// Position of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| same_name(&column.column.name, name))
    }

    /// Position of an index.
    pub fn index(&self, name: &str) -> Option<usize> {
        self.indexes
            .iter()
            .position(|index| index.name.as_ref().is_some_and(|known| same_name(known, name)))
    }
}

fn name_of(table: &Table, position: usize) -> Arc<str> {
    table.columns[position].name.clone()
}

/// The indexes of an existing table, FULLTEXT ones last.
fn index_drafts(table: &Table) -> Vec<DraftIndex> {
    let period = || table.period.as_ref().map(|period| period.name.clone());
    let indexes = table.indexes.iter().map(|index| DraftIndex {
        name: Some(index.name.clone()),
        primary: index.id == IndexId::CLUSTERED,
        unique: index.unique,
        parts: index
            .own_parts()
            .iter()
            .map(|part| DraftPart {
                column: name_of(table, part.column),
                prefix_length: part.prefix_length.map(u64::from),
                descending: part.descending,
            })
            .collect(),
        visible: index.visible,
        comment: index.comment.clone(),
        origin: Some(index.id),
        for_foreign_key: index.for_foreign_key,
        method: index.method,
        without_overlaps: period().filter(|_| index.without_overlaps),
        fulltext: false,
        parser: WordParser::Separated,
        spatial: table.spatial_column(index).is_some(),
        entries: None,
    });
    let fulltext = table.fulltext.iter().map(|index| DraftIndex {
        name: Some(index.name.clone()),
        primary: false,
        unique: false,
        parts: index
            .columns
            .iter()
            .map(|column| DraftPart {
                column: name_of(table, *column),
                prefix_length: None,
                descending: false,
            })
            .collect(),
        visible: index.visible,
        comment: index.comment.clone(),
        origin: None,
        for_foreign_key: false,
        method: None,
        without_overlaps: None,
        fulltext: true,
        parser: index.parser,
        spatial: false,
        entries: Some(index.entries),
    });
    indexes.chain(fulltext).collect()
}

/// Whether the column takes space in the record. An indexed virtual column does: its index needs the value.
pub(crate) fn is_stored(column: &Column) -> bool {
    match &column.generated {
        None => true,
        Some(Generated { stored, hidden, .. }) => *stored || *hidden || column.stored.is_some(),
    }
}

/// The hidden column of a functional index part.
pub fn is_hidden(column: &Column) -> bool {
    column.generated.as_ref().is_some_and(|generated| generated.hidden)
}

/// Whether a unique index contains only this column.
pub fn is_single_unique(table: &Table, column: usize) -> bool {
    let mut unique = table.indexes.iter().filter(|index| index.unique);
    unique.any(|index| index.parts.len() == 1 && index.parts[0].column == column)
}

/// A virtual column that an index needs takes space in the record.
pub(crate) fn materialise_indexed_columns(draft: &mut Draft) {
    let indexed: Vec<Arc<str>> = draft
        .indexes
        .iter()
        .flat_map(|index| index.parts.iter().map(|part| part.column.clone()))
        .collect();
    for column in &mut draft.columns {
        let is_virtual =
            column.column.generated.as_ref().is_some_and(|generated| !generated.stored);
        let is_indexed = indexed.iter().any(|name| catalog::same_name(name, &column.column.name));
        if is_virtual {
            column.column.stored = is_indexed.then_some(usize::MAX);
        }
    }
}
