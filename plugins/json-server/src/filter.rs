//! Query by example: `{"age": {"$gt": 5}, "$or": [{"a": 1}, {"b.c": "x"}]}` as a tree. What a path means is its user's matter.

use types::json::{JsonObject, JsonValue};

use crate::reply::Reply;
use crate::statement::invalid;

/// Deepest nesting of conditions.
const DEPTH_MAX: usize = 24;
/// Conditions and values of a filter.
const TERMS_MAX: usize = 1000;

/// A condition on a document or row.
#[derive(Debug)]
pub enum Filter {
    /// All of them; true when there is none.
    All(Vec<Filter>),
    /// One of them at least.
    Any(Vec<Filter>),
    /// Not this one.
    Not(Box<Filter>),
    /// A test of a field.
    Field(String, Test),
}

/// A test of one field.
#[derive(Debug)]
pub enum Test {
    /// A comparison with a value.
    Compare(Comparison, JsonValue),
    /// Equal to one of the values.
    In(Vec<JsonValue>),
    /// There, whatever its value, or not there.
    Exists(Presence),
    /// An array that contains the value.
    Contains(JsonValue),
    /// A string that matches a pattern of LIKE.
    Like(String),
    /// A string that matches a regular expression.
    Regex(String),
}

/// How a field compares with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `$eq`
    Equal,
    /// `$gt`
    Greater,
    /// `$gte`
    GreaterOrEqual,
    /// `$lt`
    Less,
    /// `$lte`
    LessOrEqual,
}

/// Whether a field is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is.
    Present,
    /// It is not.
    Absent,
}

impl Filter {
    /// The filter that everything passes.
    pub fn everything() -> Filter {
        Filter::All(Vec::new())
    }

    /// Reads a filter.
    ///
    /// # Errors
    /// Status 400.
    pub fn parse(json: JsonValue) -> Result<Filter, Reply> {
        Reader { terms: 0 }.filter(json, DEPTH_MAX)
    }
}

impl Comparison {
    /// The operator in SQL.
    pub fn sql(self) -> &'static str {
        match self {
            Comparison::Equal => " = ",
            Comparison::Greater => " > ",
            Comparison::GreaterOrEqual => " >= ",
            Comparison::Less => " < ",
            Comparison::LessOrEqual => " <= ",
        }
    }

    /// The comparison that follows from this one when both sides lost precision in the same way.
    pub fn weakened(self) -> Comparison {
        match self {
            Comparison::Equal => Comparison::Equal,
            Comparison::Greater | Comparison::GreaterOrEqual => Comparison::GreaterOrEqual,
            Comparison::Less | Comparison::LessOrEqual => Comparison::LessOrEqual,
        }
    }
}

struct Reader {
    terms: usize,
}

impl Reader {
    fn count(&mut self, terms: usize) -> Result<(), Reply> {
        self.terms = self.terms.saturating_add(terms);
        match self.terms > TERMS_MAX {
            true => Err(invalid(format_args!("a filter has at most {TERMS_MAX} terms"))),
            false => Ok(()),
        }
    }

    fn filter(&mut self, json: JsonValue, depth: usize) -> Result<Filter, Reply> {
        let JsonValue::Object(object) = json else {
            return Err(invalid(format_args!("a filter is an object")));
        };
        let Some(depth) = depth.checked_sub(1) else {
            return Err(invalid(format_args!("a filter is nested at most {DEPTH_MAX} deep")));
        };
        let mut all = Vec::new();
        for (name, value) in members(object)? {
            self.count(1)?;
            all.push(match name.as_str() {
                "$and" => Filter::All(self.filters(&name, value, depth)?),
                "$or" => Filter::Any(self.filters(&name, value, depth)?),
                "$nor" => not(Filter::Any(self.filters(&name, value, depth)?)),
                "$not" => not(self.filter(value, depth)?),
                _ if name.starts_with('$') => return Err(unknown(&name)),
                _ => self.field(name, value, depth)?,
            });
        }
        Ok(all_of(all))
    }

    fn filters(&mut self, name: &str, json: JsonValue, depth: usize) -> Result<Vec<Filter>, Reply> {
        if let JsonValue::Array(filters) = json
            && !filters.is_empty()
        {
            return filters.into_iter().map(|filter| self.filter(filter, depth)).collect();
        }
        Err(invalid(format_args!("{name} takes an array of filters")))
    }

    fn field(&mut self, path: String, json: JsonValue, depth: usize) -> Result<Filter, Reply> {
        let object = match json {
            JsonValue::Object(object) if has_operator(&object) => object,
            value => return Ok(Filter::Field(path, Test::Compare(Comparison::Equal, value))),
        };
        let Some(depth) = depth.checked_sub(1) else {
            return Err(invalid(format_args!("a filter is nested at most {DEPTH_MAX} deep")));
        };
        let mut all = Vec::new();
        for (operator, value) in members(object)? {
            self.count(1)?;
            all.push(self.test(&path, &operator, value, depth)?);
        }
        Ok(all_of(all))
    }

    fn test(
        &mut self,
        path: &str,
        operator: &str,
        value: JsonValue,
        depth: usize,
    ) -> Result<Filter, Reply> {
        let field = |test| Filter::Field(path.to_owned(), test);
        let compare = |comparison, value| field(Test::Compare(comparison, value));
        Ok(match operator {
            "$eq" => compare(Comparison::Equal, value),
            "$ne" => not(compare(Comparison::Equal, value)),
            "$gt" => compare(Comparison::Greater, value),
            "$gte" => compare(Comparison::GreaterOrEqual, value),
            "$lt" => compare(Comparison::Less, value),
            "$lte" => compare(Comparison::LessOrEqual, value),
            "$in" => field(Test::In(self.values(operator, value)?)),
            "$nin" => not(field(Test::In(self.values(operator, value)?))),
            "$contains" => field(Test::Contains(value)),
            "$like" => field(Test::Like(string(operator, value)?)),
            "$regex" => field(Test::Regex(string(operator, value)?)),
            "$exists" => {
                let JsonValue::Bool(wanted) = value else {
                    return Err(invalid(format_args!("$exists takes true or false")));
                };
                field(Test::Exists(if wanted { Presence::Present } else { Presence::Absent }))
            }
            "$not" => not(self.field(path.to_owned(), value, depth)?),
            _ => return Err(unknown(operator)),
        })
    }

    fn values(&mut self, operator: &str, json: JsonValue) -> Result<Vec<JsonValue>, Reply> {
        let JsonValue::Array(values) = json else {
            return Err(invalid(format_args!("{operator} takes an array")));
        };
        self.count(values.len())?;
        Ok(values)
    }
}

/// Members with names as text.
fn members(object: JsonObject) -> Result<Vec<(String, JsonValue)>, Reply> {
    let members = object.into_members().into_iter();
    members
        .map(|(name, value)| match String::from_utf8(name) {
            Ok(name) => Ok((name, value)),
            Err(_) => Err(invalid(format_args!("a name in the filter is not UTF-8"))),
        })
        .collect()
}

fn has_operator(object: &JsonObject) -> bool {
    object.members().iter().any(|(name, _)| name.starts_with(b"$"))
}

fn all_of(filters: Vec<Filter>) -> Filter {
    match <[Filter; 1]>::try_from(filters) {
        Ok([one]) => one,
        Err(filters) => Filter::All(filters),
    }
}

fn not(filter: Filter) -> Filter {
    Filter::Not(Box::new(filter))
}

fn string(operator: &str, json: JsonValue) -> Result<String, Reply> {
    let JsonValue::String(bytes) = json else {
        return Err(invalid(format_args!("{operator} takes a string")));
    };
    String::from_utf8(bytes).map_err(|_| invalid(format_args!("{operator} takes UTF-8")))
}

fn unknown(operator: &str) -> Reply {
    invalid(format_args!("no operator is called {operator:?}"))
}

/// Reads JSON.
///
/// # Errors
/// Status 400.
pub fn read_json(what: &str, text: &[u8]) -> Result<JsonValue, Reply> {
    types::json::parse(text).map_err(|_| invalid(format_args!("{what} is not JSON")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Filter, Reply> {
        Filter::parse(read_json("the filter", text.as_bytes())?)
    }

    #[test]
    fn an_example_is_a_filter() {
        let shown = |text: &str| format!("{:?}", parse(text).unwrap());
        assert_eq!(shown(r#"{"a":1}"#), r#"Field("a", Compare(Equal, Int(1)))"#);
        assert_eq!(shown("{}"), "All([])");
        assert_eq!(shown(r#"{"$not":{}}"#), "Not(All([]))");
        assert_eq!(
            shown(r#"{"a":{"$not":{"$exists":true}}}"#),
            r#"Not(Field("a", Exists(Present)))"#
        );
    }

    #[test]
    fn what_is_no_filter_is_refused() {
        let deep = format!("{}{}", r#"{"$not":"#.repeat(40), "{}".to_owned() + &"}".repeat(40));
        let wide = format!(r#"{{"a":{{"$in":[{}1]}}}}"#, "1,".repeat(1000));
        let cases = [
            "[]",
            "1",
            "",
            r#"{"$where":"1"}"#,
            r#"{"a":{"$gt":1,"b":2}}"#,
            r#"{"$or":[]}"#,
            r#"{"$or":{}}"#,
            r#"{"a":{"$in":1}}"#,
            r#"{"a":{"$like":1}}"#,
            r#"{"a":{"$exists":1}}"#,
            &deep,
            &wide,
            "{\"a\":\"\u{0}",
        ];
        for case in cases {
            assert_eq!(parse(case).unwrap_err().status.as_u16(), 400, "{case}");
        }
    }
}
