//! Views as information tables see them: the result of binding their SELECT.

use std::sync::Arc;

use binder::{BindInput, Binder, VariableTypes, ViewReader};
use catalog::{Relation, View};
use definitions::DualityTable;
use errors::Result;
use plan::{LogicalStatement, OutputColumn};
use plugin_api::{
    BindContext, ColumnView, DualityLinkView, DualityObjectView, TableView, ViewUsage,
};
use types::{DataType, SqlMode, TypeKind};

use crate::columns::{default_view, plain_column};
use crate::information::Information;
use crate::show_create;
use crate::tables::VIEW;

/// A view's SELECT has no variables.
struct NoVariables;

impl VariableTypes for NoVariables {
    fn user_variable(&self, _: &str) -> Option<DataType> {
        None
    }

    fn system_variable(
        &self,
        _: &str,
        _: Option<syntax::ast::VarScope>,
    ) -> Result<Option<DataType>> {
        Ok(None)
    }
}

impl Information<'_> {
    pub(crate) fn view_view(&self, view: &View) -> TableView {
        let columns = self.view_columns(view);
        // Without columns an object that it refers to is gone.
        let comment = match columns.is_empty() {
            true => errors::err!(VIEW_INVALID, view.schema, view.name).message().to_owned(),
            false => "VIEW".to_owned(),
        };
        TableView {
            schema: view.schema.to_string(),
            name: view.name.to_string(),
            table_type: VIEW,
            comment,
            columns,
            create_statement: show_create::create_view(
                view,
                self.database.as_deref(),
                self.style(),
            ),
            view_definition: Some(view.definition.to_string()),
            definer: view.definer.to_string(),
            security: if view.invoker { "INVOKER" } else { "DEFINER" },
            check_option: view.check_option.to_string(),
            session_charset: view.charset_client.to_string(),
            session_collation: view.collation_connection.to_string(),
            duality: self.duality_objects(view),
            ..TableView::default()
        }
    }

    /// The objects of a JSON duality view; none of any other.
    fn duality_objects(&self, view: &View) -> Vec<DualityObjectView> {
        if !view.is_duality {
            return Vec::new();
        }
        let catalog = self.catalog_view();
        let find = |schema: &str, name: &str| catalog.relation(schema, name);
        let mut objects = Vec::new();
        if let Ok(root) = definitions::duality_of(&view.definition, &find) {
            add_objects(&root, None, &mut objects);
        }
        objects
    }

    /// Whether rows can be changed through a view.
    pub(crate) fn is_view_updatable(&self, view: &Arc<View>) -> bool {
        // Whether its tags allow a change of documents or not, as in the reference.
        view.is_duality || self.with_binder(view, |binder| binder.is_updatable(view))
    }

    /// What a view names itself.
    pub(crate) fn usage_of(&self, view: &View) -> ViewUsage {
        let Some(query) = binder::view_query(view) else { return ViewUsage::default() };
        let statement = syntax::Statement::Query(query);
        let usage =
            self.with_binder(view, |binder| binder.usage(&statement, view.definition.as_bytes()));
        let texts = |(schema, name): (Arc<str>, Arc<str>)| (schema.to_string(), name.to_string());
        ViewUsage {
            tables: usage.tables.into_iter().map(texts).collect(),
            routines: usage.routines.into_iter().map(texts).collect(),
        }
    }

    /// Columns of a view; empty when an object that it refers to is gone.
    fn view_columns(&self, view: &View) -> Vec<ColumnView> {
        let Some(query) = binder::view_query(view) else { return Vec::new() };
        let statement = syntax::Statement::Query(query);
        let bind = |binder: Binder<'_>| binder.bind(&statement, view.definition.as_bytes());
        let bound = self.with_binder(view, bind);
        let Ok(bound) = bound else { return Vec::new() };
        let LogicalStatement::Query(query) = bound.plan.statement else { return Vec::new() };
        query
            .outputs
            .iter()
            .enumerate()
            .map(|(position, output)| {
                let name = view.columns.get(position).unwrap_or(&output.name);
                let ty = definitions::shown_type(output);
                let (default, default_is_expression) = self.view_default(output, &ty);
                let plain = plain_column(name.to_string(), ty);
                ColumnView { default, default_is_expression, ..plain }
            })
            .collect()
    }

    /// The default that a view's column is shown with: that of the column it shows, or the zero of a computed one.
    fn view_default(&self, output: &OutputColumn, ty: &DataType) -> (Option<String>, bool) {
        let table = output.source.as_ref().and_then(|source| {
            let relation = self.catalog_view().relation(&source.schema, &source.org_table)?;
            let Relation::Table(table) = relation else { return None };
            table.column(&source.org_name).map(|position| (table, position))
        });
        match table {
            Some((table, position)) => default_view(&table.columns[position], &*self.zone()),
            None => (zero_text(ty), false),
        }
    }

    /// Calls `run` with a binder for which unqualified names belong to the view's schema.
    fn with_binder<T>(&self, view: &View, run: impl FnOnce(Binder<'_>) -> T) -> T {
        let catalog = self.catalog_view();
        let bind = view_context(view);
        run(Binder::new(BindInput {
            catalog: &ViewReader { view: &catalog, database: Some(&view.schema) },
            registry: &self.server.registry(),
            bind: &bind,
            variables: &NoVariables,
            parameter_types: None,
        }))
    }
}

/// An object and those within it.
fn add_objects(table: &DualityTable, above: Option<usize>, objects: &mut Vec<DualityObjectView>) {
    let own = objects.len();
    let link = table.link.as_ref().zip(above).map(|(link, parent)| DualityLinkView {
        parent,
        key: link.key.to_string(),
        parent_column: link.parent.to_string(),
        child_column: link.child.to_string(),
        is_nested: link.is_nested,
    });
    let column = |(name, key): &(Arc<str>, Arc<str>)| {
        (name.to_string(), key.to_string(), *name == table.primary)
    };
    objects.push(DualityObjectView {
        schema: table.schema.to_string(),
        table: table.table.to_string(),
        link,
        insert: table.tags.insert,
        update: table.tags.update,
        delete: table.tags.delete,
        columns: table.columns.iter().map(column).collect(),
    });
    table.children.iter().for_each(|child| add_objects(child, Some(own), objects));
}

/// The zero of a type, as the default of a computed column is shown; `None` of a nullable one and of types without defaults.
fn zero_text(ty: &DataType) -> Option<String> {
    use TypeKind::*;
    let with_fraction = |zero: &str, digits: u8| match digits {
        0 => zero.to_owned(),
        digits => format!("{zero}.{}", "0".repeat(usize::from(digits))),
    };
    if ty.nullable {
        return None;
    }
    if ty.is_integer() {
        return Some("0".to_owned());
    }
    match ty.kind {
        Decimal => Some(with_fraction("0", ty.decimals)),
        Float | Double => Some("0".to_owned()),
        Date => Some("0000-00-00".to_owned()),
        Time => Some(with_fraction("00:00:00", ty.decimals)),
        DateTime | Timestamp => Some(with_fraction("0000-00-00 00:00:00", ty.decimals)),
        Char | VarChar | Binary | VarBinary => Some(String::new()),
        Fixed(kind) => {
            let mut text = Vec::new();
            kind.write_text(&kind.zero(), &mut text);
            String::from_utf8(text).ok()
        }
        TinyInt | SmallInt | MediumInt | Int | BigInt | Bit | Year | Null | Enum | Set
        | TinyText | Text | MediumText | LongText | TinyBlob | Blob | MediumBlob | LongBlob
        | Json | Geometry | Vector => None,
    }
}

/// The settings a view's text was written under, as far as its columns depend on them.
fn view_context(view: &View) -> BindContext {
    let collation = charset::collation_by_name(&view.collation_connection);
    BindContext {
        sql_mode: SqlMode::DEFAULT,
        collation_connection: collation
            .map_or(types::CollationId::UTF8MB4_0900_AI_CI, |known| known.id),
        div_precision_increment: 4,
        group_concat_max_len: 1024,
        max_allowed_packet: 1 << 26,
        history: plugin_api::HistorySettings::default(),
        cascades_fire_triggers: false,
    }
}
