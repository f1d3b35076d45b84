//! Tables of the catalog: their definitions and the statistics of their engine.

use catalog::{
    CatalogView, Column, DISCARDED_OPTION, Index, IndexMethod, IndexPart, ReferenceAction,
    SEQUENCE_OPTION, Table, same_name,
};
use definitions::{
    DECLARED_ENGINE, default_row_format, has_hash_indexes, is_hidden, quote, shown_engine,
};
use engine_api::IndexId;
use plugin_api::{
    ConstraintKind, ConstraintView, IndexPartView, IndexView, PartitionView, ReferencedView,
    TableDetail, TableView,
};

use crate::columns::column_view;
use crate::information::Information;
use crate::show_create::TABLESPACE;
use crate::{partitions, show_create};

const PRIMARY: &str = "PRIMARY";
pub(crate) const BASE_TABLE: &str = "BASE TABLE";
pub(crate) const VIEW: &str = "VIEW";
pub(crate) const SEQUENCE: &str = "SEQUENCE";
pub(crate) const SYSTEM_VERSIONED: &str = "SYSTEM VERSIONED";

fn table_type(table: &Table) -> &'static str {
    if table.is_sequence() {
        SEQUENCE
    } else if table.row_times().is_some() {
        SYSTEM_VERSIONED
    } else {
        BASE_TABLE
    }
}

impl Information<'_> {
    /// Adds the statistics that only the engine has.
    fn add_statistics(&self, view: &mut TableView, table: &Table) {
        let registry = self.server.registry();
        let engine = registry.engine(&table.engine);
        let stats = engine.and_then(|engine| engine.table_stats(table.id).ok()).unwrap_or_default();
        let has_counter = table.columns.iter().any(|column| column.auto_increment);
        let next = engine
            .filter(|_| has_counter)
            .and_then(|engine| engine.auto_increment_next(table.id).ok());
        view.auto_increment = next;
        view.rows = stats.rows;
        partitions::share_rows(&mut view.partitions, stats.rows);
        if let Some(engine) = engine {
            partitions::count_rows(&mut view.partitions, table, &**engine);
        }
        view.data_bytes = stats.data_bytes;
        let entries = table.fulltext.iter().filter_map(|index| {
            let stats = engine?.table_stats(index.entries).ok()?;
            Some(stats.data_bytes + stats.index_bytes)
        });
        view.index_bytes = stats.index_bytes + entries.sum::<u64>();
        view.indexes = index_views(table, &stats.distinct, stats.rows);
        view.create_statement =
            show_create::create_table(table, next, self.zone().as_ref(), self.style());
        if self.hides_key(table) {
            view.indexes.retain(|index| index.name != PRIMARY);
        }
    }

    pub(crate) fn table_view(&self, table: &Table, detail: TableDetail) -> TableView {
        let zone = self.zone();
        let collation = charset::collation_or_binary(table.collation).name;
        let options: Vec<String> = table
            .options
            .iter()
            .filter(|(name, _)| {
                ![DECLARED_ENGINE, DISCARDED_OPTION, SEQUENCE_OPTION, TABLESPACE].contains(&&**name)
            })
            .map(|(name, value)| match &**name {
                "ENCRYPTION" => format!("{name}={value}"),
                name => format!("{}={value}", name.to_lowercase()),
            })
            .collect();
        let partitions = partitions::views(table, self.zone().as_ref());
        let row_format = table.options.iter().find(|(name, _)| name == "ROW_FORMAT");
        let mut view = TableView {
            schema: table.schema.to_string(),
            name: table.name.to_string(),
            table_type: table_type(table),
            engine: Some(shown_engine(table).to_owned()),
            kept_by: Some(table.engine.to_string()),
            collation: collation.to_owned(),
            comment: table.comment.clone(),
            create_options: with_partitioned(options, &partitions).join(" "),
            row_format: row_format
                .map_or_else(|| default_row_format(table).to_owned(), |(_, word)| capital(word)),
            created_micros: table.created_micros,
            columns: table
                .columns
                .iter()
                .enumerate()
                .filter(|(_, column)| !column.is_unlisted())
                .map(|(position, column)| column_view(table, position, column, zone.as_ref()))
                .collect(),
            indexes: index_views(table, &[], 0),
            constraints: constraint_views(table, &self.catalog_view()),
            temporary: table.temporary,
            partitions,
            ..TableView::default()
        };
        if self.hides_key(table) {
            view.columns.remove(0);
            view.columns_before = 1;
            view.indexes.retain(|index| index.name != PRIMARY);
            view.constraints.retain(|constraint| constraint.name != PRIMARY);
        }
        if detail == TableDetail::Statistics {
            self.add_statistics(&mut view, table);
        }
        view
    }
}

/// The options, and whether the table is partitioned: the reference checks the text of the expression, which KEY () does not have.
fn with_partitioned(mut options: Vec<String>, partitions: &[PartitionView]) -> Vec<String> {
    if partitions.first().is_some_and(|first| first.expression.is_some()) {
        options.push("partitioned".into());
    }
    options
}

fn capital(word: &str) -> String {
    let lower = word.to_lowercase();
    let mut chars = lower.chars();
    chars
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + chars.as_str())
}

fn index_views(table: &Table, distinct: &[Vec<u64>], rows: u64) -> Vec<IndexView> {
    let has_hash = has_hash_indexes(shown_engine(table));
    let view = |index: &Index| {
        let place = table.definition.indexes.iter().position(|known| known.id == index.id);
        let counts = place.and_then(|place| distinct.get(place));
        let hidden = usize::from(table.has_leading_part(index));
        let is_spatial = table.spatial_column(index).is_some();
        let part = |(position, part): (usize, &IndexPart)| {
            let column = &table.columns[part.column];
            let count =
                counts.and_then(|counts| counts.get(position + hidden)).copied().unwrap_or(0);
            let (name, expression) = match &column.generated {
                Some(generated) if generated.hidden => {
                    (None, Some(generated.shown().replace('\'', "\\'")))
                }
                _ => (Some(column.name.to_string()), None),
            };
            IndexPartView {
                column: name,
                expression,
                // The reference's length of a box.
                prefix_length: if is_spatial { Some(32) } else { part.prefix_length },
                descending: part.descending,
                // More elements than rows are not told.
                distinct: if column.entry_type().is_some() { count.min(rows) } else { count },
            }
        };
        IndexView {
            name: index.name.to_string(),
            unique: index.unique,
            kind: match index.method {
                _ if is_spatial => "SPATIAL",
                Some(IndexMethod::Hash) => "HASH",
                None if has_hash => "HASH",
                Some(IndexMethod::BTree) | None => "BTREE",
            },
            parts: index.parts.iter().enumerate().map(part).collect(),
            comment: index.comment.clone(),
            visible: index.visible,
        }
    };
    // An index over words does not order rows: the number of rows is shown.
    let fulltext = table.fulltext.iter().map(|index| {
        let part = |column: &usize| {
            let column = Some(table.columns[*column].name.to_string());
            IndexPartView { column, distinct: rows, ..IndexPartView::default() }
        };
        IndexView {
            name: index.name.to_string(),
            unique: false,
            kind: "FULLTEXT",
            parts: index.columns.iter().map(part).collect(),
            comment: index.comment.clone(),
            visible: index.visible,
        }
    });
    table.indexes.iter().map(view).chain(fulltext).collect()
}

fn constraint_views(table: &Table, catalog: &CatalogView) -> Vec<ConstraintView> {
    let mut views = Vec::new();
    for index in table.indexes.iter().filter(|index| index.unique) {
        let columns = index.parts.iter().map(|part| &table.columns[part.column]);
        let kind = if index.id == IndexId::CLUSTERED {
            ConstraintKind::Primary(columns.map(|column| column.name.to_string()).collect())
        } else {
            let named = |column: &Column| (!is_hidden(column)).then(|| column.name.to_string());
            ConstraintKind::Unique(columns.map(named).collect())
        };
        views.push(ConstraintView { name: index.name.to_string(), kind });
    }
    for key in &table.foreign_keys {
        let parent = catalog.table(&key.referenced_schema, &key.referenced_table);
        let unique_name = parent.and_then(|parent| {
            let index = parent.indexes.iter().find(|index| {
                index.unique
                    && index.parts.len() == key.referenced_columns.len()
                    && index
                        .parts
                        .iter()
                        .zip(&key.referenced_columns)
                        .all(|(part, name)| same_name(&parent.columns[part.column].name, name))
            });
            index.map(|index| index.name.to_string())
        });
        let columns =
            key.columns.iter().map(|column| table.columns[*column].name.to_string()).collect();
        let referenced = key.referenced_columns.iter().map(|column| column.to_string()).collect();
        views.push(ConstraintView {
            name: key.name.to_string(),
            kind: ConstraintKind::Foreign {
                columns,
                referenced: ReferencedView {
                    schema: key.referenced_schema.to_string(),
                    table: key.referenced_table.to_string(),
                    columns: referenced,
                },
                unique_name: unique_name.unwrap_or_default(),
                on_update: action_name(key.on_update),
                on_delete: action_name(key.on_delete),
            },
        });
    }
    for check in &table.checks {
        let kind = ConstraintKind::Check {
            expression: check.expression.to_string(),
            enforced: check.enforced,
        };
        views.push(ConstraintView { name: check.name.to_string(), kind });
    }
    if let (Some(name), Some(period)) = (table.period_check(), &table.period) {
        let [start, end] = [period.start, period.end].map(|at| quote(&table.columns[at].name));
        let kind =
            ConstraintKind::Check { expression: format!("({start} < {end})"), enforced: true };
        views.push(ConstraintView { name: name.to_string(), kind });
    }
    views
}

fn action_name(action: ReferenceAction) -> &'static str {
    match action {
        ReferenceAction::NoAction => "NO ACTION",
        ReferenceAction::Restrict => "RESTRICT",
        ReferenceAction::Cascade => "CASCADE",
        ReferenceAction::SetNull => "SET NULL",
        ReferenceAction::SetDefault => "SET DEFAULT",
    }
}
