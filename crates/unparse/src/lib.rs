//! Syntax trees to text. Faithful by default: the text parses to the same tree. Canonical on
//! request: the spelling in which the reference stores and shows views, checks and generated
//! columns. Knows the tree of `syntax` and its reserved words, nothing else.

mod dml;
mod expr;
#[cfg(test)]
mod fuzz;
mod negation;
mod query;
mod table;

pub use expr::is_predicate;

use syntax::ast::*;

/// How trees are printed.
#[derive(Clone, Debug, Default)]
pub struct PrintOptions<'a> {
    /// The reference's spelling: lower-case functions under their main names, operators for some
    /// functions, `(0 <> x)` where a truth value is wanted.
    pub canonical: bool,
    /// Character set put before plain strings as introducer (generated columns, checks).
    pub introducer: Option<&'a str>,
    /// Character set of `CAST(.. AS CHAR)` that names none.
    pub cast_charset: Option<&'a str>,
    /// Strings are written for `NO_BACKSLASH_ESCAPES`.
    pub no_backslash_escapes: bool,
    /// Columns are written without their table, which is redundant in a table's own definition.
    pub unqualified: bool,
    /// The schema of sequences that are written without one; it is written.
    pub sequence_schema: Option<&'a str>,
}

/// The text of an expression.
pub fn print_expr(expr: &Expr, options: &PrintOptions<'_>) -> String {
    let mut printer = Printer::new(options);
    printer.expr(expr);
    printer.finish()
}

/// The text of a query.
pub fn print_query(query: &Query, options: &PrintOptions<'_>) -> String {
    let mut printer = Printer::new(options);
    printer.query(query);
    printer.finish()
}

/// As `print_query`, without the schema `home` before the names that it qualifies; `None` when it has tables of other schemas.
pub fn print_query_at_home(
    query: &Query,
    options: &PrintOptions<'_>,
    home: &str,
) -> Option<String> {
    let mut printer = Printer { home: Some(home), ..Printer::new(options) };
    printer.query(query);
    (!printer.abroad).then(|| printer.finish())
}

/// The text of a data type.
pub fn print_data_type(data_type: &DataType, options: &PrintOptions<'_>) -> String {
    let mut printer = Printer::new(options);
    printer.data_type(data_type);
    printer.finish()
}

/// The text of a statement: queries, INSERT, REPLACE, UPDATE, DELETE, CREATE TABLE and CREATE VIEW;
/// None for others.
pub fn print_statement(statement: &Statement, options: &PrintOptions<'_>) -> Option<String> {
    let mut printer = Printer::new(options);
    match statement {
        Statement::Query(query) => printer.query(query),
        Statement::Insert(insert) => printer.insert(insert),
        Statement::Update(update) => printer.update(update),
        Statement::Delete(delete) => printer.delete(delete),
        Statement::CreateTable(table) => printer.create_table(table),
        Statement::CreateView(view) => printer.create_view(view),
        _ => return None,
    }
    Some(printer.finish())
}

/// `name` in backquotes.
pub fn quote_ident(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Collects the text.
pub(crate) struct Printer<'a> {
    out: Vec<u8>,
    options: &'a PrintOptions<'a>,
    /// A schema that is not written.
    home: Option<&'a str>,
    /// A table of another schema was printed.
    abroad: bool,
}

impl<'a> Printer<'a> {
    fn new(options: &'a PrintOptions<'a>) -> Printer<'a> {
        Printer { out: Vec::new(), options, home: None, abroad: false }
    }

    fn finish(self) -> String {
        match String::from_utf8(self.out) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        }
    }

    /// Appends plain text.
    fn s(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn when(&mut self, condition: bool, text: &str) {
        if condition {
            self.s(text);
        }
    }

    fn number(&mut self, value: impl std::fmt::Display) {
        self.s(&value.to_string());
    }

    fn ident(&mut self, ident: &Ident) {
        self.quoted(&ident.text);
    }

    fn quoted(&mut self, name: &str) {
        self.s("`");
        if name.contains('`') {
            self.s(&name.replace('`', "``"));
        } else {
            self.s(name);
        }
        self.s("`");
    }

    fn object(&mut self, name: &ObjectName) {
        if let Some(schema) = &name.schema
            && !self.is_home(schema)
        {
            self.abroad = true;
            self.ident(schema);
            self.s(".");
        }
        self.ident(&name.name);
    }

    fn is_home(&self, schema: &Ident) -> bool {
        self.home.is_some_and(|home| *schema.text == *home)
    }

    fn column(&mut self, column: &ColumnName) {
        if self.options.unqualified {
            return self.ident(&column.name);
        }
        let schema = column.schema.as_ref().filter(|schema| !self.is_home(schema));
        for part in [schema, column.table.as_ref()].into_iter().flatten() {
            self.ident(part);
            self.s(".");
        }
        self.ident(&column.name);
    }

    /// Items with `,` between them.
    fn list<T>(&mut self, items: &[T], mut item: impl FnMut(&mut Self, &T)) {
        for (index, one) in items.iter().enumerate() {
            self.when(index > 0, ",");
            item(self, one);
        }
    }

    fn idents(&mut self, idents: &[Ident]) {
        self.list(idents, Self::ident);
    }

    fn paren_idents(&mut self, idents: &[Ident]) {
        self.s("(");
        self.idents(idents);
        self.s(")");
    }

    /// A string in quotes.
    fn string(&mut self, value: &[u8]) {
        self.s("'");
        for &byte in value {
            let escaped: &str = match byte {
                b'\'' if self.options.no_backslash_escapes => "''",
                _ if self.options.no_backslash_escapes => {
                    self.out.push(byte);
                    continue;
                }
                0 => "\\0",
                b'\n' => "\\n",
                b'\r' => "\\r",
                0x1a => "\\Z",
                b'\\' => "\\\\",
                b'\'' => "\\'",
                _ => {
                    self.out.push(byte);
                    continue;
                }
            };
            self.s(escaped);
        }
        self.s("'");
    }

    fn text(&mut self, value: &str) {
        self.string(value.as_bytes());
    }

    /// A word of an option: in quotes only where it needs them.
    fn word(&mut self, word: &Ident) {
        if is_plain_word(&word.text) { self.s(&word.text) } else { self.ident(word) }
    }

    fn user(&mut self, user: &UserName) {
        if user.current {
            return self.s("CURRENT_USER");
        }
        self.quoted(&user.user);
        if let Some(host) = &user.host {
            self.s("@");
            self.quoted(host);
        }
    }
}

fn is_plain_word(word: &str) -> bool {
    let reserved = syntax::is_reserved_word(word) && !word.eq_ignore_ascii_case("binary");
    !word.is_empty()
        && !reserved
        && !word.as_bytes()[0].is_ascii_digit()
        && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
