//! Functions of plugins whose rows are a table: the function returns them as JSON, an array with an array for each row, and the cells are read
//! as JSON_TABLE reads its columns.

use std::sync::Arc;

use errors::{Result, bail};
use plan::{Expr, JsonLevel, JsonRows, Logical, Making, OutputColumn};
use syntax::ast;
use types::{CollationId, DataType, FunctionRole, TypeKind, Value};

use crate::binder::Binder;
use crate::literal;
use crate::scope::{BoundQuery, Clause};

/// The path of the rows in the document.
const ROWS: &str = "$[*]";

impl Binder<'_> {
    pub(crate) fn bind_table_function(&mut self, table: &ast::TableFunction) -> Result<Logical> {
        let called = table.name.text.to_ascii_uppercase();
        let Some(function) = self.input.registry.table_function(&called) else {
            bail!(SP_DOES_NOT_EXIST, "TABLE FUNCTION", table.name.text)
        };
        let clause = std::mem::replace(&mut self.block().clause, Clause::TableFunction);
        let args: Vec<&ast::Expr> = table.args.iter().collect();
        let document = self.bind_args_of(&function.rows, &called, &args);
        self.block().clause = clause;
        let document = document?;
        let lateral = !document.is_constant();
        let alias: Arc<str> = Arc::from(&*table.alias.as_ref().unwrap_or(&table.name).text);
        let (item, ordinal) = (self.new_register(), self.new_register());
        let level = JsonLevel { path: Arc::from(ROWS), parent: None, item, ordinal };
        let mut json = DataType::new(TypeKind::Json, u32::MAX, 0);
        json.collation = CollationId::BINARY;
        let item = Expr::column(item, json.with_nullable(true));
        let mut names: Vec<Arc<str>> = Vec::new();
        let mut outputs = Vec::new();
        for (at, (name, ty)) in (function.columns)().into_iter().enumerate() {
            let text = |text: &str| literal::text(text.as_bytes(), CollationId::UTF8MB4_BIN);
            let null = |ty: DataType| Expr::literal(Value::Null, ty);
            // NULL where a row is too short, an error where a cell does not fit.
            let (on_empty, on_error) = (literal::integer(0), literal::integer(1));
            let args = vec![
                item.clone(),
                text(&format!("$[{at}]")),
                null(ty.with_nullable(true)),
                text(name),
                on_empty,
                null(DataType::null()),
                on_error,
                null(DataType::null()),
            ];
            let expr = self.function(FunctionRole::JsonTableColumn, args)?;
            let name: Arc<str> = Arc::from(name);
            names.push(name.clone());
            outputs.push(OutputColumn { name, expr, source: None, making: Making::Kept });
        }
        let function = Arc::from(&*called.to_ascii_lowercase());
        let rows = JsonRows { document, function, alias: alias.clone(), levels: vec![level] };
        let bound = BoundQuery {
            plan: Logical::JsonRows(Box::new(rows)),
            outputs,
            mergeable: false,
            block: self.blocks.last().map_or(1, |block| block.number),
        };
        self.attach(bound, None, alias, &names, lateral, None)
    }
}
