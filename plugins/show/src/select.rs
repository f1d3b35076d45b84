//! Builds the text of a SELECT.

use syntax::ast::{Limit, ShowFilter};

/// A SELECT over one information table.
#[derive(Default)]
pub struct Select {
    items: Vec<String>,
    source: String,
    conditions: Vec<String>,
    filter: Option<Filter>,
    order: &'static str,
    limit: Option<(u32, u32, Option<(u32, u32)>)>,
    /// Caption that LIKE applies to: the first one by default.
    subject: String,
    nothing: bool,
}

enum Filter {
    Like(String),
    /// Span of a WHERE expression in the statement's own text.
    Where(usize, usize),
}

impl Select {
    /// Of `source`, for example `information_schema.TABLES`.
    pub fn from(source: &str) -> Select {
        Select { source: source.to_owned(), ..Select::default() }
    }

    /// A result without rows but with these captions and types.
    pub fn empty(columns: &[(&str, &str)]) -> Select {
        let mut select = Select { nothing: true, ..Select::default() };
        for (caption, expression) in columns {
            select = select.item(expression, caption);
        }
        select
    }

    /// Adds a column.
    pub fn item(mut self, expression: &str, caption: &str) -> Select {
        if self.subject.is_empty() {
            self.subject = identifier(caption);
        }
        self.items.push(format!("{expression} AS {}", identifier(caption)));
        self
    }

    /// Adds columns under captions that differ from their names only in case.
    pub fn items(mut self, columns: &[(&str, &str)]) -> Select {
        for (expression, caption) in columns {
            self = self.item(expression, caption);
        }
        self
    }

    /// LIKE applies to the column with this caption, not to the first.
    pub fn about(mut self, caption: &str) -> Select {
        self.subject = identifier(caption);
        self
    }

    /// Adds a condition.
    pub fn only(mut self, condition: String) -> Select {
        self.conditions.push(condition);
        self
    }

    /// Adds `column = text`.
    pub fn equal(self, column: &str, text: &str) -> Select {
        let condition = format!("{column} = {}", literal(text));
        self.only(condition)
    }

    /// Sets the order.
    pub fn ordered(mut self, order: &'static str) -> Select {
        self.order = order;
        self
    }

    /// The statement's own LIKE or WHERE.
    pub fn filtered(mut self, filter: Option<&ShowFilter>) -> Select {
        match filter {
            None => {}
            Some(ShowFilter::Like(pattern)) => {
                self.filter = Some(Filter::Like(bytes_literal(pattern)));
            }
            Some(ShowFilter::Where(expr)) => {
                self.filter = Some(Filter::Where(expr.span.start as usize, expr.span.end as usize));
            }
        }
        self
    }

    /// The statement's own LIMIT, spans of its numbers.
    pub fn limited(mut self, limit: Option<&Limit>) -> Select {
        self.limit = limit.map(|limit| {
            let offset = limit.offset.as_ref().map(|offset| (offset.span.start, offset.span.end));
            (limit.count.span.start, limit.count.span.end, offset)
        });
        self
    }

    /// The text. `statement` is the text that the spans point into.
    pub fn text(&self, statement: &str) -> String {
        let mut text = format!("SELECT {}", self.items.join(", "));
        if !self.source.is_empty() {
            text += &format!(" FROM {}", self.source);
        }
        let mut conditions = self.conditions.clone();
        if self.nothing {
            text += " FROM DUAL";
            conditions.push("FALSE".into());
        }
        if !conditions.is_empty() {
            text += &format!(" WHERE {}", conditions.join(" AND "));
        }
        match &self.filter {
            None => {}
            Some(Filter::Like(pattern)) => {
                text += &format!(" HAVING {} LIKE {pattern}", self.subject);
            }
            Some(Filter::Where(start, end)) => {
                text += &format!(" HAVING ({})", statement.get(*start..*end).unwrap_or("FALSE"));
            }
        }
        if !self.order.is_empty() {
            text += &format!(" ORDER BY {}", self.order);
        }
        if let Some((start, end, offset)) = self.limit {
            let part =
                |start: u32, end: u32| statement.get(start as usize..end as usize).unwrap_or("0");
            text += &format!(" LIMIT {}", part(start, end));
            if let Some((start, end)) = offset {
                text += &format!(" OFFSET {}", part(start, end));
            }
        }
        text
    }
}

/// A quoted identifier.
pub fn identifier(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A string literal that has one meaning in all SQL modes.
pub fn literal(text: &str) -> String {
    bytes_literal(text.as_bytes())
}

fn bytes_literal(bytes: &[u8]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("_utf8mb4 x'{hex}'")
}
