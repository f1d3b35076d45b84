//! The tables whose changes are wanted: `shop.orders, shop.pay%`.

use errors::{Error, ErrorCode, Result};

/// Patterns of schemas and tables; `%` at the end stands for anything.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tables(Vec<(String, String)>);

impl Tables {
    /// Reads a list with commas between its patterns.
    ///
    /// # Errors
    /// 1231 for a pattern that is not `schema.table`.
    pub(crate) fn parse(text: &str) -> Result<Tables> {
        let patterns = text.split(',').map(str::trim).filter(|pattern| !pattern.is_empty());
        let pattern = |pattern: &str| {
            let parts =
                pattern.split_once('.').map(|(schema, table)| (schema.trim(), table.trim()));
            let is_possible = |part: &str| {
                let middle = part.strip_suffix('%').unwrap_or(part);
                !part.is_empty() && !middle.contains('%')
            };
            match parts {
                Some((schema, table)) if is_possible(schema) && is_possible(table) => {
                    Ok((schema.to_lowercase(), table.to_lowercase()))
                }
                Some(_) | None => Err(Error::new(
                    ErrorCode::WRONG_VALUE_FOR_VAR,
                    format!(
                        "change_log_tables: '{pattern}' is not schema.table; % may stand at the end of each"
                    ),
                )),
            }
        };
        patterns.map(pattern).collect::<Result<_>>().map(Tables)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the changes of a table are wanted.
    pub(crate) fn has(&self, schema: &str, table: &str) -> bool {
        let fits = |pattern: &str, name: &str| match pattern.strip_suffix('%') {
            Some(start) => name.starts_with(start),
            None => name == pattern,
        };
        let (schema, table) = (schema.to_lowercase(), table.to_lowercase());
        self.0.iter().any(|(schemas, tables)| fits(schemas, &schema) && fits(tables, &table))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_tables() {
        let tables = Tables::parse(" shop.pay%, Other.T ,x%.%").expect("patterns");
        assert!(tables.has("shop", "Payments") && tables.has("shop", "pay"));
        assert!(tables.has("other", "t") && tables.has("xy", "anything"));
        assert!(!tables.has("shop", "carts") && !tables.has("other", "tt"));
        assert!(Tables::parse("").expect("none").is_empty());
        for text in ["t", "a.", ".t", "a%b.t", "a.b%c"] {
            assert!(Tables::parse(text).is_err(), "{text}");
        }
    }
}
