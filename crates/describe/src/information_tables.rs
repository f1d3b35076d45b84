//! Information tables themselves, as tables.

use std::sync::Arc;

use definitions::{quote, type_text};
use plugin_api::{InformationTable, TableDetail, TableView};
use types::TypeKind;

use crate::columns::plain_column;
use crate::information::Information;
use crate::tables::{BASE_TABLE, VIEW};

impl Information<'_> {
    /// Information tables and views of system schemas in order of name.
    pub(crate) fn system_tables(
        &self,
        schema: &str,
        name: Option<&str>,
        detail: TableDetail,
    ) -> Vec<TableView> {
        let registry = self.server.registry();
        let known = registry.information_tables().iter();
        let mut tables: Vec<TableView> = known
            .filter(|table| table.schema() == schema)
            // Dumps copy what these list as if it were rows of tables: their facts are found by name only.
            .filter(|_| name.is_some() || schema != "mysql")
            .filter(|table| name.is_none_or(|name| table.name().eq_ignore_ascii_case(name)))
            .map(information_view)
            .collect();
        let views = registry.system_views().iter().filter(|view| view.schema == schema);
        let views = views.filter(|view| name.is_none_or(|name| *view.name == *name));
        tables.extend(views.map(|view| match detail {
            // Columns are known when the query is bound.
            TableDetail::Name => TableView {
                schema: schema.to_owned(),
                name: view.name.to_string(),
                table_type: VIEW,
                ..TableView::default()
            },
            TableDetail::Definition | TableDetail::Statistics => {
                self.view_view(&binder::system_view(view))
            }
        }));
        tables.sort_by(|one, other| one.name.cmp(&other.name));
        tables
    }
}

fn information_view(table: &Arc<dyn InformationTable>) -> TableView {
    let is_view = matches!(table.schema(), "information_schema" | "data_dictionary");
    TableView {
        schema: table.schema().to_owned(),
        name: table.name().to_owned(),
        table_type: if is_view { "SYSTEM VIEW" } else { BASE_TABLE },
        engine: (!is_view).then(|| "PERFORMANCE_SCHEMA".to_owned()),
        collation: "utf8mb4_0900_ai_ci".to_owned(),
        row_format: if is_view { String::new() } else { "Dynamic".to_owned() },
        columns: table
            .columns()
            .iter()
            .map(|column| plain_column(column.name.to_owned(), column.ty.clone()))
            .collect(),
        create_statement: information_create(table),
        ..TableView::default()
    }
}

fn information_create(table: &Arc<dyn InformationTable>) -> String {
    let is_view = table.schema() == "information_schema";
    let (words, end) = match table.schema() {
        "information_schema" => ("TEMPORARY TABLE", "ENGINE=MEMORY DEFAULT CHARSET=utf8mb3"),
        "performance_schema" => (
            "TABLE",
            "ENGINE=PERFORMANCE_SCHEMA DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci",
        ),
        _ => ("TABLE", "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci"),
    };
    let columns: Vec<String> = table
        .columns()
        .iter()
        .map(|column| {
            let null = match (column.ty.nullable, column.ty.kind) {
                (true, TypeKind::LongText | TypeKind::MediumText) => "",
                (true, _) => " DEFAULT NULL",
                (false, TypeKind::VarChar) if is_view => " NOT NULL DEFAULT ''",
                (false, _) => " NOT NULL",
            };
            format!("  {} {}{null}", quote(column.name), type_text(&column.ty))
        })
        .collect();
    let name = quote(table.name());
    format!("CREATE {words} {name} (\n{}\n) {end}", columns.join(",\n"))
}
