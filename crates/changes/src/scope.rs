//! Whose changes a reader gets.

use errors::{Result, bail};
use serde_json::Value as Json;

/// Whose changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Those of all tables but the server's own.
    #[default]
    All,
    /// Those of one schema.
    Schema(String),
    /// Those of tables: schema and name.
    Tables(Vec<(String, String)>),
}

/// Schemas of the server itself.
pub const OWN: [&str; 6] = [
    "mysql",
    "sys",
    "information_schema",
    "performance_schema",
    "data_dictionary",
    "squall_replication",
];

impl Scope {
    /// Reads the document of `data_dictionary.CHANGE_STREAMS`.
    pub fn of_document(text: &str) -> Scope {
        let Ok(document) = serde_json::from_str::<Json>(text) else { return Scope::Tables(vec![]) };
        if let Some(schema) = document["schema"].as_str() {
            return Scope::Schema(schema.to_owned());
        }
        let Some(tables) = document["tables"].as_array() else { return Scope::All };
        let text = |json: &Json| json.as_str().unwrap_or_default().to_owned();
        Scope::Tables(tables.iter().map(|pair| (text(&pair[0]), text(&pair[1]))).collect())
    }

    /// Reads `tables=a.b,c.d` or `schema=a`; all tables without either.
    ///
    /// # Errors
    /// 1210.
    pub fn of_parameters(tables: Option<&str>, schema: Option<&str>) -> Result<Scope> {
        match (tables, schema) {
            (None, None) => Ok(Scope::All),
            (None, Some(schema)) if !schema.is_empty() => Ok(Scope::Schema(schema.to_owned())),
            (Some(tables), None) => {
                let mut pairs = Vec::new();
                for name in tables.split(',') {
                    match name.split_once('.') {
                        Some((schema, table)) if !schema.is_empty() && !table.is_empty() => {
                            pairs.push((schema.to_owned(), table.to_owned()));
                        }
                        Some(_) | None => bail!(WRONG_ARGUMENTS, "tables"),
                    }
                }
                Ok(Scope::Tables(pairs))
            }
            (Some(_) | None, Some(_)) => bail!(WRONG_ARGUMENTS, "schema"),
        }
    }

    /// Whether changes of the table are wanted.
    pub fn has_table(&self, schema: &str, table: &str) -> bool {
        match self {
            Scope::All => !OWN.contains(&schema.to_ascii_lowercase().as_str()),
            Scope::Schema(wanted) => wanted == schema,
            Scope::Tables(tables) => tables.iter().any(|(s, t)| s == schema && t == table),
        }
    }

    /// Whether changes of a schema itself are wanted.
    pub fn has_schema(&self, schema: &str) -> bool {
        match self {
            Scope::All => !OWN.contains(&schema.to_ascii_lowercase().as_str()),
            Scope::Schema(wanted) => wanted == schema,
            Scope::Tables(tables) => tables.iter().any(|(known, _)| known == schema),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_read() {
        let of = |tables, schema| Scope::of_parameters(tables, schema).ok();
        let pair = |s: &str, t: &str| (s.to_owned(), t.to_owned());
        let two = Scope::Tables(vec![pair("a", "b"), pair("c", "d")]);
        assert_eq!(of(Some("a.b,c.d"), None), Some(two.clone()));
        assert_eq!(of(Some("a"), None), None);
        assert_eq!(of(Some("a."), None), None);
        assert_eq!(of(Some("a.b"), Some("c")), None);
        assert_eq!(of(None, None), Some(Scope::All));
        assert_eq!(Scope::of_document(r#"{"tables":[["a","b"],["c","d"]]}"#), two);
        assert_eq!(Scope::of_document("{}"), Scope::All);
        assert_eq!(Scope::of_document("damaged"), Scope::Tables(vec![]), "nothing is shown");
    }

    #[test]
    fn the_servers_own_tables_are_left_out() {
        assert!(!Scope::All.has_table("mysql", "user"));
        assert!(Scope::All.has_table("a", "b"));
        assert!(!Scope::Schema("a".into()).has_table("b", "b"));
    }
}
