//! From a draft to the table: names are resolved to positions, and the whole is checked.

use std::collections::HashSet;
use std::sync::Arc;

use catalog::{
    Column, ColumnHistory, ConstraintKind, ForeignKey, FulltextIndex, Index, IndexMethod,
    IndexPart, NUMBER_INDEX, PARTITION_COLUMN, Table, same_name,
};
use engine_api::{ColumnDef, IndexDef, IndexId, KeyPart, TableDef, TableId};
use errors::{Error, Result, bail, err};
use types::fulltext::WordParser;
use types::geometry::SpatialType;
use types::{DataType, TypeKind, Value};

use crate::draft::{
    Draft, DraftColumn, DraftForeignKey, DraftIndex, DraftPart, is_hidden, is_single_unique,
    is_stored,
};
use crate::names::is_too_long;
use crate::partitions::partition_column;
use crate::periods::resolve;

/// Maximum number of columns of a table.
const COLUMNS_MAX: usize = 4096;
/// Maximum number of indexes of a table.
const INDEXES_MAX: usize = 64;
/// Maximum number of parts of an index.
const KEY_PARTS_MAX: usize = 16;
/// Maximum length of an index part in bytes.
const KEY_BYTES_MAX: u64 = 3072;
/// Maximum number of bytes of a TINYTEXT or TINYBLOB.
const TINY_BYTES_MAX: u64 = 255;
/// Maximum number of bytes of a row without its TEXT, BLOB and JSON columns.
const ROW_BYTES_MAX: u64 = 65_535;

impl Draft {
    /// Checks everything and builds the table. `before`: the table that ALTER TABLE changes.
    ///
    /// # Errors
    /// 1060, 1061, 1068, 1071, 1072, 1075, 1113, 1117, 1118, 1170, 1171, 1069, 1070, 3822, 1826 and similar.
    pub(crate) fn finish(mut self, id: TableId, before: Option<&Table>) -> Result<Table> {
        self.check_columns()?;
        self.drop_covered_indexes();
        self.apply_primary_key()?;
        self.name_indexes()?;
        self.check_auto_increment()?;
        self.name_checks(before)?;
        self.name_foreign_keys(before)?;
        let indexes = self.resolve_indexes(before)?;
        let fulltext = self.resolve_fulltext()?;
        if let Some(partitioning) = &self.partitioning {
            let column = partition_column(&self, partitioning, self.partition_origin)?;
            self.columns.push(column);
        }
        let foreign_keys = self.resolve_foreign_keys()?;
        self.place_columns(before);
        self.check_row_size()?;
        let definition = self.definition(id, &indexes, before);
        let period = resolve(&self);
        let mut table = Table {
            id,
            schema: self.schema,
            name: self.name,
            engine: self.engine,
            temporary: self.temporary,
            columns: self.columns.into_iter().map(|column| column.column).collect(),
            indexes,
            fulltext,
            foreign_keys,
            checks: self.checks.into_iter().map(|(_, check)| check).collect(),
            collation: self.collation,
            comment: self.comment,
            options: self.options,
            partitioning: self.partitioning.map(Arc::new),
            period,
            created_micros: self.created_micros,
            definition,
        };
        table.sort_constraints();
        drop_outdated_histograms(&mut table, before);
        Ok(table)
    }

    fn check_columns(&mut self) -> Result<()> {
        if self.columns.iter().all(|column| is_hidden(&column.column)) {
            bail!(TABLE_MUST_HAVE_COLUMNS);
        }
        if self.columns.len() > COLUMNS_MAX {
            bail!(TOO_MANY_FIELDS);
        }
        if self.columns.iter().all(|column| column.column.invisible || is_hidden(&column.column)) {
            bail!(TABLE_MUST_HAVE_A_VISIBLE_COLUMN);
        }
        let mut names = HashSet::with_capacity(self.columns.len());
        for column in &self.columns {
            let column = &column.column;
            if !names.insert(column.name.to_lowercase()) {
                bail!(DUP_FIELDNAME, column.name);
            }
        }
        Ok(())
    }

    /// Parts of PRIMARY KEY are NOT NULL.
    fn apply_primary_key(&mut self) -> Result<()> {
        if self.indexes.iter().filter(|index| index.primary).count() > 1 {
            bail!(MULTIPLE_PRI_KEY);
        }
        let Some(primary) = self.indexes.iter().position(|index| index.primary) else {
            return Ok(());
        };
        if !self.indexes[primary].visible {
            bail!(PK_INDEX_CANT_BE_INVISIBLE);
        }
        let parts: Vec<Arc<str>> =
            self.indexes[primary].parts.iter().map(|part| part.column.clone()).collect();
        for name in parts {
            let position =
                self.column(&name).ok_or_else(|| err!(KEY_COLUMN_DOES_NOT_EXIST, name))?;
            let column = &mut self.columns[position];
            if column.null_written == Some(true) {
                bail!(PRIMARY_CANT_HAVE_NULL);
            }
            if column.column.generated.as_ref().is_some_and(|generated| !generated.stored) {
                bail!(
                    UNSUPPORTED_ACTION_ON_GENERATED_COLUMN,
                    "Defining a virtual generated column as primary key"
                );
            }
            if column.column.ty.nullable {
                column.column.ty.nullable = false;
                if column.column.default == catalog::ColumnDefault::Constant(Value::Null) {
                    column.column.default = catalog::ColumnDefault::None;
                }
            }
        }
        // The clustered index comes first.
        let primary = self.indexes.remove(primary);
        self.indexes.insert(0, primary);
        Ok(())
    }

    /// Adds a foreign key, and an index over its columns where the statement names it.
    ///
    /// # Errors
    /// 1059.
    pub(crate) fn add_foreign_key(
        &mut self,
        key: DraftForeignKey,
        index_name: Option<Arc<str>>,
    ) -> Result<()> {
        let mut names = key.name.iter().chain(&index_name);
        if let Some(name) = names.find(|name| is_too_long(name)) {
            bail!(TOO_LONG_IDENT, name);
        }
        let part = |column: &Arc<str>| DraftPart {
            column: column.clone(),
            prefix_length: None,
            descending: false,
        };
        self.indexes.push(DraftIndex {
            name: key.name.clone().or(index_name),
            primary: false,
            unique: false,
            parts: key.columns.iter().map(part).collect(),
            visible: true,
            comment: String::new(),
            origin: None,
            for_foreign_key: true,
            method: None,
            without_overlaps: None,
            fulltext: false,
            parser: WordParser::Separated,
            spatial: false,
            entries: None,
        });
        self.foreign_keys.push(key);
        Ok(())
    }

    /// An index that was added for a foreign key is dropped where another begins with its columns; of two equal ones the later stays.
    fn drop_covered_indexes(&mut self) {
        let columns = &self.columns;
        let covers = |other: &DraftIndex, index: &DraftIndex| {
            let pairs = other.parts.iter().zip(&index.parts);
            let is_array = |part: &DraftPart| {
                let named = |own: &&DraftColumn| same_name(&own.column.name, &part.column);
                columns.iter().find(named).is_some_and(|own| own.column.entry_type().is_some())
            };
            !other.fulltext
                // Rows with an empty array have no entry.
                && !other.parts.iter().any(is_array)
                && other.parts.len() >= index.parts.len()
                && pairs.into_iter().all(|(one, two)| {
                    same_name(&one.column, &two.column) && !one.descending && one.prefix_length.is_none()
                })
        };
        let mut at = 0;
        while at < self.indexes.len() {
            let index = &self.indexes[at];
            let is_covered = index.for_foreign_key
                && self.indexes.iter().enumerate().any(|(place, other)| {
                    let goes_first = other.for_foreign_key
                        && other.parts.len() == index.parts.len()
                        && place < at;
                    place != at && !goes_first && covers(other, index)
                });
            if is_covered {
                self.indexes.remove(at);
            } else {
                at += 1;
            }
        }
    }

    fn name_indexes(&mut self) -> Result<()> {
        if self.indexes.len() > INDEXES_MAX {
            bail!(TOO_MANY_KEYS, INDEXES_MAX);
        }
        // Names are generated in the order of the indexes: a generated name conflicts with one that is given later.
        let mut taken: HashSet<String> = HashSet::new();
        for position in 0..self.indexes.len() {
            let index = &self.indexes[position];
            if let Some(name) = &index.name {
                if name.is_empty() {
                    bail!(WRONG_NAME_FOR_INDEX, name);
                }
                if !index.primary && name.eq_ignore_ascii_case("PRIMARY") {
                    bail!(WRONG_NAME_FOR_INDEX, name);
                }
                if is_too_long(name) {
                    bail!(TOO_LONG_IDENT, name);
                }
                if !taken.insert(name.to_lowercase()) {
                    bail!(DUP_KEYNAME, name);
                }
                continue;
            }
            if index.primary {
                self.indexes[position].name = Some("PRIMARY".into());
                continue;
            }
            let part = index.parts.first().map_or("", |part| &part.column);
            // A functional part has a hidden column; its index is called functional_index.
            let hidden = self.column(part).is_some_and(|at| is_hidden(&self.columns[at].column));
            let base = if hidden { "functional_index" } else { part };
            let mut name = base.to_owned();
            let mut number = 2;
            while taken.contains(&name.to_lowercase()) || name.eq_ignore_ascii_case("PRIMARY") {
                name = format!("{base}_{number}");
                number += 1;
            }
            taken.insert(name.to_lowercase());
            self.indexes[position].name = Some(name.into());
        }
        let primary = usize::from(self.indexes.first().is_some_and(|index| index.primary));
        let columns = &self.columns;
        self.indexes[primary..].sort_by_cached_key(|index| listing_rank(columns, index));
        Ok(())
    }

    fn check_auto_increment(&self) -> Result<()> {
        let mut automatic = self.columns.iter().filter(|column| column.column.auto_increment);
        let Some(first) = automatic.next() else { return Ok(()) };
        let is_key = self.indexes.iter().any(|index| {
            index.parts.first().is_some_and(|part| same_name(&part.column, &first.column.name))
        });
        if automatic.next().is_some() || !is_key {
            bail!(WRONG_AUTO_KEY);
        }
        Ok(())
    }

    /// Names of checks without one: `t_chk_1`. ALTER TABLE continues the old table's numbers. As in MySQL a made name does not avoid
    /// those that the statement gives: two equal ones are an error.
    pub(crate) fn name_checks(&mut self, before: Option<&Table>) -> Result<()> {
        let names = self.checks.iter_mut().map(|(name, _)| name);
        name_all(ConstraintKind::Check, &self.name, before, names)?;
        for (name, check) in &mut self.checks {
            if let Some(name) = name {
                check.name = name.clone();
            }
        }
        Ok(())
    }

    /// The name that the last check has or will have.
    pub(crate) fn last_check_name(&self) -> String {
        let kind = ConstraintKind::Check;
        let given = self.checks.iter().filter_map(|(name, _)| name.as_deref());
        let numbers = given.filter_map(|name| kind.made_number(&self.name, name));
        let without = self.checks.iter().filter(|(name, _)| name.is_none()).count() as u64;
        let number = numbers.max().unwrap_or(0).saturating_add(without);
        let last = self.checks.last().and_then(|(name, _)| name.as_deref());
        last.map_or_else(|| kind.made_name(&self.name, number), str::to_owned)
    }

    /// Names of foreign keys without one: `t_ibfk_1`; else as `name_checks`.
    fn name_foreign_keys(&mut self, before: Option<&Table>) -> Result<()> {
        let names = self.foreign_keys.iter_mut().map(|key| &mut key.name);
        name_all(ConstraintKind::ForeignKey, &self.name, before, names)?;
        for key in &mut self.foreign_keys {
            if let Some(name) = &key.name {
                key.key.name = name.clone();
            }
        }
        Ok(())
    }

    fn resolve_indexes(&self, before: Option<&Table>) -> Result<Vec<Index>> {
        let mut next_id = before
            .map_or(0, |table| table.indexes.iter().map(|index| index.id.0).max().unwrap_or(0));
        let mut indexes = Vec::with_capacity(self.indexes.len());
        for draft in self.indexes.iter().filter(|draft| !draft.fulltext) {
            let name = draft.name.clone().unwrap_or_else(|| Arc::from(""));
            if draft.parts.len() > KEY_PARTS_MAX {
                bail!(TOO_MANY_KEY_PARTS, KEY_PARTS_MAX);
            }
            let is_geometry = |part: &DraftPart| {
                let column = self.column(&part.column).map(|at| &self.columns[at].column);
                column.is_some_and(|column| column.ty.kind == TypeKind::Geometry)
            };
            if draft.parts.len() > 1 && (draft.spatial || draft.parts.iter().any(is_geometry)) {
                bail!(TOO_MANY_KEY_PARTS, 1);
            }
            let parts = self.resolve_parts(draft)?;
            let id = match (draft.primary, draft.origin) {
                (true, _) => IndexId::CLUSTERED,
                (false, Some(id)) if id != IndexId::CLUSTERED => id,
                (false, _) => {
                    next_id += 1;
                    IndexId(next_id)
                }
            };
            indexes.push(Index {
                id,
                name: if draft.primary { Arc::from("PRIMARY") } else { name },
                unique: draft.unique || draft.primary,
                parts,
                visible: draft.visible,
                for_foreign_key: draft.for_foreign_key,
                method: draft.method,
                without_overlaps: draft.without_overlaps.is_some(),
                comment: draft.comment.clone(),
            });
        }
        Ok(indexes)
    }

    /// FULLTEXT indexes. A new one gets the table of its entries when the table itself is created.
    fn resolve_fulltext(&self) -> Result<Vec<FulltextIndex>> {
        let mut indexes = Vec::new();
        for draft in self.indexes.iter().filter(|draft| draft.fulltext) {
            if draft.parts.len() > KEY_PARTS_MAX {
                bail!(TOO_MANY_KEY_PARTS, KEY_PARTS_MAX);
            }
            if self.temporary {
                bail!(INNODB_NO_FT_TEMP_TABLE);
            }
            if self.partitioning.is_some() {
                bail!(TABLE_CANT_HANDLE_FT);
            }
            indexes.push(FulltextIndex {
                entries: draft.entries.unwrap_or(TableId(0)),
                name: draft.name.clone().unwrap_or_else(|| Arc::from("")),
                columns: self.fulltext_columns(draft)?,
                visible: draft.visible,
                comment: draft.comment.clone(),
                parser: draft.parser,
            });
        }
        let primary = self.indexes.first().filter(|index| index.primary);
        let Some(primary) = primary.filter(|_| !indexes.is_empty()) else { return Ok(indexes) };
        // An entry names its row by the primary key.
        let parts = self.resolve_parts(primary)?;
        let bytes =
            |part: &IndexPart| part_bytes(&self.columns[part.column].column.ty, part.prefix_length);
        if parts.iter().map(bytes).sum::<u64>() > types::fulltext::LOCATOR_BYTES_MAX as u64 {
            return Err(Error::not_supported("FULLTEXT indexes of tables with long primary keys"));
        }
        Ok(indexes)
    }

    fn fulltext_columns(&self, draft: &DraftIndex) -> Result<Vec<usize>> {
        let mut columns: Vec<usize> = Vec::with_capacity(draft.parts.len());
        for part in &draft.parts {
            let at = self
                .column(&part.column)
                .ok_or_else(|| err!(KEY_COLUMN_DOES_NOT_EXIST, part.column))?;
            if columns.contains(&at) {
                bail!(DUP_FIELDNAME, part.column);
            }
            let column = &self.columns[at].column;
            if column.ty.kind == TypeKind::Json {
                bail!(JSON_USED_AS_KEY, part.column);
            }
            let first = columns.first().map_or(at, |first| *first);
            if !column.ty.is_text()
                || column.ty.collation != self.columns[first].column.ty.collation
            {
                bail!(BAD_FT_COLUMN, part.column);
            }
            if column.generated.as_ref().is_some_and(|generated| !generated.stored) {
                bail!(
                    UNSUPPORTED_ACTION_ON_GENERATED_COLUMN,
                    "Fulltext index on virtual generated column"
                );
            }
            columns.push(at);
        }
        Ok(columns)
    }

    /// New indexes of `made` that duplicate another one: same parts, same uniqueness.
    pub(crate) fn repeated_indexes(made: &Table, before: Option<&Table>) -> Vec<Arc<str>> {
        let is_new = |index: &Index| {
            !before.is_some_and(|table| table.indexes.iter().any(|known| known.id == index.id))
        };
        let same = |one: &Index, other: &Index| {
            one.unique == other.unique && one.parts == other.parts && one.id != other.id
        };
        let is_candidate =
            |index: &&Index| index.id != IndexId::CLUSTERED && !index.for_foreign_key;
        let candidates =
            || made.indexes.iter().enumerate().filter(|(_, index)| is_candidate(index));
        candidates()
            .filter(|(at, index)| {
                is_new(index)
                    && candidates().any(|(other_at, other)| {
                        same(index, other) && (other_at < *at || !is_new(other))
                    })
            })
            .map(|(_, index)| index.name.clone())
            .chain(Draft::repeated_fulltext(made, before))
            .collect()
    }

    fn repeated_fulltext<'t>(
        made: &'t Table,
        before: Option<&'t Table>,
    ) -> impl Iterator<Item = Arc<str>> + 't {
        let is_new = move |index: &FulltextIndex| {
            let mut known = before.into_iter().flat_map(|table| &table.fulltext);
            !known.any(|known| known.entries == index.entries)
        };
        let all = || made.fulltext.iter().enumerate();
        let repeats = move |(at, index): &(usize, &FulltextIndex)| {
            is_new(index)
                && all().any(|(other_at, other)| {
                    other_at != *at
                        && other.columns == index.columns
                        && other.parser == index.parser
                        && (other_at < *at || !is_new(other))
                })
        };
        all().filter(repeats).map(|(_, index)| index.name.clone())
    }

    fn resolve_parts(&self, draft: &DraftIndex) -> Result<Vec<IndexPart>> {
        let mut total = 0;
        let mut seen: HashSet<usize> = HashSet::new();
        let mut parts = Vec::with_capacity(draft.parts.len());
        for part in &draft.parts {
            let is_listed = |at: &usize| !self.columns[*at].column.history.is_undeclared_time();
            let column = self
                .column(&part.column)
                .filter(is_listed)
                .ok_or_else(|| err!(KEY_COLUMN_DOES_NOT_EXIST, part.column))?;
            if !seen.insert(column) {
                bail!(DUP_FIELDNAME, part.column);
            }
            let column_ty = &self.columns[column].column;
            // The entries of an array are its elements.
            let ty = column_ty.elements().unwrap_or(&column_ty.ty);
            if draft.spatial && !matches!(ty.kind, TypeKind::Geometry | TypeKind::Json) {
                bail!(SPATIAL_MUST_HAVE_GEOM_COL);
            }
            let is_text = ty.is_string() && !ty.is_blob();
            if is_text && ty.length == 0 {
                bail!(WRONG_KEY_COLUMN, part.column);
            }
            let prefix_length = part_prefix(part, ty)?;
            if ty.kind == TypeKind::Geometry {
                check_spatial(draft, column_ty)?;
            }
            let bytes = part_bytes(ty, prefix_length);
            if bytes > key_bytes_max(ty) {
                bail!(TOO_LONG_KEY, key_bytes_max(ty));
            }
            total += bytes;
            if total > KEY_BYTES_MAX {
                bail!(TOO_LONG_KEY, KEY_BYTES_MAX);
            }
            parts.push(IndexPart { column, prefix_length, descending: part.descending });
        }
        Ok(parts)
    }

    fn resolve_foreign_keys(&self) -> Result<Vec<ForeignKey>> {
        let mut keys = Vec::with_capacity(self.foreign_keys.len());
        for draft in &self.foreign_keys {
            let mut key = draft.key.clone();
            key.columns = draft
                .columns
                .iter()
                .map(|name| self.column(name).ok_or_else(|| err!(KEY_COLUMN_DOES_NOT_EXIST, name)))
                .collect::<Result<_>>()?;
            keys.push(key);
        }
        Ok(keys)
    }

    /// Gives stored columns their positions in the record: those of the old table first, in its order, so that rows need not
    /// change when columns are only added.
    fn place_columns(&mut self, before: Option<&Table>) {
        let stays = |column: &DraftColumn| {
            let origin = column.origin.and_then(|origin| before?.columns.get(origin));
            origin.and_then(|origin| origin.stored).filter(|_| is_stored(&column.column))
        };
        let mut order: Vec<(usize, usize)> = self
            .columns
            .iter()
            .enumerate()
            .filter(|(_, column)| is_stored(&column.column))
            .map(|(position, column)| (stays(column).unwrap_or(usize::MAX), position))
            .collect();
        order.sort();
        for column in &mut self.columns {
            column.column.stored = None;
        }
        for (place, (_, position)) in order.into_iter().enumerate() {
            self.columns[position].column.stored = Some(place);
        }
    }

    fn check_row_size(&self) -> Result<()> {
        let bytes: u64 = self
            .columns
            .iter()
            .filter(|column| column.column.stored.is_some() && !column.column.is_vacant())
            .map(|column| row_bytes(&column.column.ty))
            .sum();
        let nullable = self.columns.iter().filter(|column| column.column.ty.nullable).count();
        if bytes + nullable.div_ceil(8) as u64 > ROW_BYTES_MAX {
            bail!(TOO_BIG_ROWSIZE, ROW_BYTES_MAX);
        }
        Ok(())
    }

    fn definition(&self, id: TableId, indexes: &[Index], before: Option<&Table>) -> TableDef {
        let mut stored: Vec<(usize, ColumnDef)> = Vec::new();
        for draft in &self.columns {
            let column = &draft.column;
            let Some(place) = column.stored else { continue };
            // Old rows keep the default that an earlier instant ADD COLUMN gave them.
            let promised = draft
                .origin
                .and_then(|origin| before?.columns.get(origin)?.stored)
                .and_then(|place| before?.definition.columns.get(place)?.instant_default.clone());
            // The assignment checks which geometries a column takes; an engine keeps bytes.
            let mut ty = column.ty.clone();
            ty.spatial = SpatialType::default();
            stored.push((
                place,
                ColumnDef { name: column.name.to_string(), ty, instant_default: promised },
            ));
        }
        stored.sort_by_key(|(place, _)| *place);
        let place_of = |column: usize| self.columns[column].column.stored;
        // Rows of a partition are contiguous: its number leads the clustered key.
        let partition = self.partitioning.as_ref().and_then(|_| {
            let column = self.columns.last()?.column.stored?;
            Some(KeyPart { column, prefix_length: None, descending: false, elements: None })
        });
        // Only current rows clash.
        let end =
            |column: &DraftColumn| matches!(column.column.history, ColumnHistory::RowEnd { .. });
        let end = self.columns.iter().position(end).and_then(place_of);
        let end = end.map(|column| KeyPart {
            column,
            prefix_length: None,
            descending: false,
            elements: None,
        });
        let engine_index = |index: &Index| {
            let parts: Option<Vec<KeyPart>> = index
                .parts
                .iter()
                .map(|part| {
                    Some(KeyPart {
                        column: place_of(part.column)?,
                        prefix_length: part.prefix_length,
                        descending: part.descending,
                        elements: self.columns[part.column].column.entry_type().cloned(),
                    })
                })
                .collect();
            let mut parts = parts?;
            if let Some(leading) = partition.as_ref().filter(|_| index.id == IndexId::CLUSTERED) {
                parts.insert(0, leading.clone());
            }
            let end = end.as_ref().filter(|_| index.unique);
            parts.extend(
                end.filter(|end| parts.iter().all(|part| part.column != end.column)).cloned(),
            );
            Some(IndexDef {
                id: index.id,
                name: index.name.to_string(),
                unique: index.unique,
                parts,
            })
        };
        let mut engine_indexes: Vec<IndexDef> = indexes.iter().filter_map(engine_index).collect();
        let limit = self.partitioning.as_ref().and_then(|own| own.method.rotation.limit);
        if limit.is_some() && !indexes.iter().any(|index| index.id == IndexId::CLUSTERED) {
            // Rows of a partition are counted by it.
            engine_indexes.extend(partition.map(|part| IndexDef {
                id: NUMBER_INDEX,
                name: PARTITION_COLUMN.into(),
                unique: false,
                parts: vec![part],
            }));
        }
        TableDef {
            id,
            name: format!("{}.{}", self.schema, self.name),
            columns: stored.into_iter().map(|(_, column)| column).collect(),
            indexes: engine_indexes,
        }
    }
}

/// The reference's order of indexes after the primary key: unique ones first, of these NOT NULL ones, then those of whole columns; plain columns
/// before virtual ones.
fn listing_rank(columns: &[DraftColumn], index: &DraftIndex) -> (u8, bool, bool) {
    let (mut nullable, mut prefix, mut is_virtual) = (false, false, false);
    for part in &index.parts {
        let of = |column: &&DraftColumn| same_name(&column.column.name, &part.column);
        let Some(DraftColumn { column, .. }) = columns.iter().find(of) else { continue };
        nullable |= column.ty.nullable;
        prefix |= part
            .prefix_length
            .is_some_and(|length| column.ty.is_blob() || length < u64::from(column.ty.length));
        is_virtual |= column.generated.as_ref().is_some_and(|generated| !generated.stored);
    }
    if index.fulltext {
        return (3, false, false);
    }
    match (index.unique, nullable) {
        (true, false) => (0, prefix, is_virtual),
        (true, true) => (1, prefix, is_virtual),
        (false, _) => (2, false, is_virtual),
    }
}

/// Drops the histograms of columns that have another type now, or an index that knows each value.
fn drop_outdated_histograms(table: &mut Table, before: Option<&Table>) {
    for at in 0..table.columns.len() {
        if table.columns[at].histogram.is_none() {
            continue;
        }
        let column = &table.columns[at];
        let known = before.and_then(|before| Some(&before.columns[before.column(&column.name)?]));
        if known.is_none_or(|known| known.ty != column.ty) || is_single_unique(table, at) {
            table.columns[at].histogram = None;
        }
    }
}

/// Gives constraints without a name the next numbers of their table; 1059, 1826 and 3822 for names that two have.
fn name_all<'names>(
    kind: ConstraintKind,
    table: &str,
    before: Option<&Table>,
    names: impl Iterator<Item = &'names mut Option<Arc<str>>>,
) -> Result<()> {
    let mut next = before.map_or(1, |table| table.next_made_number(kind));
    let mut taken: HashSet<String> = HashSet::new();
    for name in names {
        let name = name.get_or_insert_with(|| {
            let made = kind.made_name(table, next);
            next = next.saturating_add(1);
            made.into()
        });
        if is_too_long(name) {
            bail!(TOO_LONG_IDENT, name);
        }
        if !taken.insert(name.to_lowercase()) {
            return Err(kind.duplicate(name));
        }
    }
    Ok(())
}

/// The prefix length of a part, when it is a real prefix.
/// What an index over a geometry must be: any such index is a spatial one.
fn check_spatial(draft: &DraftIndex, column: &Column) -> Result<()> {
    if draft.unique {
        bail!(SPATIAL_UNIQUE_INDEX);
    }
    if column.ty.nullable {
        bail!(SPATIAL_CANT_HAVE_NULL);
    }
    if draft.method == Some(IndexMethod::BTree) {
        bail!(INDEX_TYPE_NOT_SUPPORTED_FOR_SPATIAL_INDEX, "BTREE");
    }
    if draft.parts.iter().any(|part| part.descending) {
        bail!(WRONG_USAGE, "spatial/fulltext/hash index", "explicit index order");
    }
    if column.generated.as_ref().is_some_and(|generated| !generated.stored) {
        bail!(UNSUPPORTED_ACTION_ON_GENERATED_COLUMN, "Spatial index on virtual generated column");
    }
    Ok(())
}

fn part_prefix(part: &DraftPart, ty: &DataType) -> Result<Option<u32>> {
    let text_like = ty.is_string();
    match part.prefix_length {
        Some(0) => Err(err!(KEY_PART_0, part.column)),
        Some(_) if !text_like || ty.kind == TypeKind::Json => Err(err!(WRONG_SUB_KEY)),
        Some(length) => {
            let whole = !ty.is_blob() && length >= u64::from(ty.length);
            if whole && length > u64::from(ty.length) {
                return Err(err!(WRONG_SUB_KEY));
            }
            let fits = u32::try_from(length).map_err(|_| err!(TOO_LONG_KEY, KEY_BYTES_MAX))?;
            Ok((!whole).then_some(fits))
        }
        None if ty.kind == TypeKind::Json => Err(err!(JSON_USED_AS_KEY, part.column)),
        None if ty.kind == TypeKind::Geometry => Ok(None),
        None if ty.is_blob() => Err(err!(BLOB_KEY_WITHOUT_LENGTH, part.column)),
        None => Ok(None),
    }
}

/// The most bytes of one part of a key.
pub(crate) fn key_bytes_max(ty: &DataType) -> u64 {
    let is_tiny = matches!(ty.kind, TypeKind::TinyText | TypeKind::TinyBlob);
    if is_tiny { TINY_BYTES_MAX } else { KEY_BYTES_MAX }
}

/// Bytes that a part counts for the limit on keys.
fn part_bytes(ty: &DataType, prefix: Option<u32>) -> u64 {
    if !ty.is_string() {
        return 8;
    }
    let chars = u64::from(prefix.unwrap_or(ty.length));
    chars * u64::from(charset::collation_or_binary(ty.collation).charset.max_length.max(1))
}

/// Bytes that a column counts for the limit on rows: its most in the declared character set. The engine itself has no such limit.
fn row_bytes(ty: &DataType) -> u64 {
    /// Bytes that a value stored outside the row takes in it, besides its length.
    const POINTER: u64 = 8;
    let fraction = u64::from(ty.decimals).div_ceil(2);
    let character = u64::from(charset::collation_or_binary(ty.collation).charset.max_length.max(1));
    let length = u64::from(ty.length) * character;
    match ty.kind {
        TypeKind::Null => 0,
        TypeKind::TinyInt | TypeKind::Year => 1,
        TypeKind::SmallInt => 2,
        TypeKind::MediumInt | TypeKind::Date => 3,
        TypeKind::Int | TypeKind::Float => 4,
        TypeKind::BigInt | TypeKind::Double => 8,
        TypeKind::Time => 3 + fraction,
        TypeKind::Timestamp => 4 + fraction,
        TypeKind::DateTime => 5 + fraction,
        TypeKind::Decimal => length / 2 + 1,
        TypeKind::Bit => length.div_ceil(8),
        TypeKind::Char | TypeKind::Binary => length,
        TypeKind::VarChar | TypeKind::VarBinary => length + if length > 255 { 2 } else { 1 },
        TypeKind::Fixed(kind) => kind.bytes() as u64,
        TypeKind::Enum => 2,
        TypeKind::Set => 8,
        TypeKind::TinyText | TypeKind::TinyBlob => POINTER + 1,
        TypeKind::Text | TypeKind::Blob => POINTER + 2,
        TypeKind::MediumText | TypeKind::MediumBlob => POINTER + 3,
        TypeKind::LongText
        | TypeKind::LongBlob
        | TypeKind::Json
        | TypeKind::Vector
        | TypeKind::Geometry => POINTER + 4,
    }
}
