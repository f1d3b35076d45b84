//! Notes the changes that write out names, where they are resolved.

use syntax::ast;

use crate::binder::Binder;
use crate::scope::{ScopeTable, VisibleColumn};
use crate::spelling::Spelling;

impl Binder<'_> {
    /// The record, when the statement's own text is bound.
    pub(crate) fn spelling(&mut self) -> Option<&mut Spelling> {
        if self.view_depth > 0 {
            return None;
        }
        self.spelling.as_mut()
    }

    /// A table's name refers to a table of the current schema.
    pub(crate) fn spell_table(&mut self, name: &ast::ObjectName, schema: &str) {
        if name.schema.is_none()
            && let Some(spelling) = self.spelling()
        {
            let at = name.name.span;
            spelling.push(at.start, at.start, format!("{}.", quoted(schema)));
        }
    }

    /// A call refers to a stored function of the current schema.
    pub(crate) fn spell_function(&mut self, call: &ast::FunctionCall, schema: &str) {
        debug_assert!(!schema.is_empty(), "a function is in a schema");
        if call.schema.is_none()
            && let Some(spelling) = self.spelling()
        {
            let at = call.name.span;
            spelling.push(at.start, at.start, format!("{}.", quoted(schema)));
        }
    }

    /// A name refers to a column of a table of the block at `level`.
    pub(crate) fn spell_column(
        &mut self,
        name: &ast::ColumnName,
        level: usize,
        place: (usize, usize),
    ) {
        if self.spelling().is_none() {
            return;
        }
        let text = shown_column(&self.blocks[level].tables[place.0], place.1);
        self.spell_name(name, text);
    }

    /// A name is replaced by a text.
    pub(crate) fn spell_name(&mut self, name: &ast::ColumnName, text: String) {
        let first = name.schema.as_ref().or(name.table.as_ref()).unwrap_or(&name.name);
        let (start, end) = (first.span.start, name.name.span.end);
        if let Some(spelling) = self.spelling() {
            spelling.push(start, end, text);
        }
    }

    /// A name of the select list refers to a column of a table, or else keeps its spelling.
    pub(crate) fn spell_listed(&mut self, name: &ast::ColumnName, bound: &plan::Expr) {
        if self.spelling().is_none() {
            return;
        }
        let Some(level) = self.blocks.len().checked_sub(1) else { return };
        let tables = 0..self.blocks[level].tables.len();
        let place = tables.clone().find_map(|table| {
            let columns = 0..self.blocks[level].tables[table].len();
            columns.clone().find_map(|column| {
                let read = self.scope_column(level, table, column).ok()?;
                (read == *bound).then_some((table, column))
            })
        });
        if let Some(place) = place {
            self.spell_column(name, level, place);
        }
    }

    /// `*` refers to these columns of the innermost block.
    pub(crate) fn spell_wildcard(&mut self, span: ast::Span, columns: &[VisibleColumn]) {
        if self.spelling().is_none() {
            return;
        }
        let Some(block) = self.blocks.last() else { return };
        let columns: Vec<String> = columns
            .iter()
            .map(|column| {
                let name = block.tables[column.table].column_name(column.column);
                let text = spelled(column, &block.tables);
                format!("{text} AS {}", quoted(name))
            })
            .collect();
        if let Some(spelling) = self.spelling() {
            spelling.push(span.start, span.end, columns.join(","));
        }
    }

    /// A select item without alias has this name.
    pub(crate) fn spell_item(&mut self, span: ast::Span, name: &str) {
        if let Some(spelling) = self.spelling()
            && !spelling.in_expression
        {
            spelling.push(span.end, span.end, format!(" AS {}", quoted(name)));
        }
    }

    /// Enters a query in an expression or in FROM. Returns the value to pass to
    /// `leave_spelled`.
    pub(crate) fn enter_spelled(&mut self, in_expression: bool) -> bool {
        match &mut self.spelling {
            Some(spelling) => std::mem::replace(&mut spelling.in_expression, in_expression),
            None => false,
        }
    }

    /// Leaves it again.
    pub(crate) fn leave_spelled(&mut self, before: bool) {
        if let Some(spelling) = &mut self.spelling {
            spelling.in_expression = before;
        }
    }
}

/// A column that USING names of one side, as the text of a full join's merged column shows it.
pub(crate) fn spelled(column: &VisibleColumn, tables: &[ScopeTable]) -> String {
    let Some(((_, last), first)) = column.parts.split_last() else {
        return shown_column(&tables[column.table], column.column);
    };
    let branches = first.iter().map(|(_, text)| format!("when ({text} is not null) then {text} "));
    format!("(case {}else {last} end)", branches.collect::<String>())
}

/// A column under the name of its table reference, with the schema of one that has no alias.
fn shown_column(table: &ScopeTable, column: usize) -> String {
    let column = quoted(table.column_name(column));
    match &table.schema {
        // Names in ORDER BY of a union are columns of its result, which has no name.
        _ if table.alias.is_empty() => column,
        Some(schema) if !table.aliased => {
            format!("{}.{}.{column}", quoted(schema), quoted(&table.alias))
        }
        _ => format!("{}.{column}", quoted(&table.alias)),
    }
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
