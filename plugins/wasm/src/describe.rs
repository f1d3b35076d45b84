//! The text in which a plugin describes itself: a line for each fact.

use plugin_api::Coercion;
use types::{CollationId, DataType, TypeKind};

use crate::failure::Failure;

/// Functions that a plugin may have.
const FUNCTIONS_MAX: usize = 256;
/// Characters of a name.
const NAME_CHARS_MAX: usize = 64;

/// A function of a plugin.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Described {
    pub(crate) name: String,
    pub(crate) parameters: Vec<Kind>,
    pub(crate) returns: Kind,
    /// The same arguments have the same result.
    pub(crate) deterministic: bool,
}

/// The types that a plugin may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Int,
    Double,
    Text,
    Bytes,
}

impl Kind {
    fn of(word: &str) -> Result<Kind, Failure> {
        match word.trim() {
            "int" => Ok(Kind::Int),
            "double" => Ok(Kind::Double),
            "text" => Ok(Kind::Text),
            "bytes" => Ok(Kind::Bytes),
            other => {
                Err(Failure::Guest(format!("squall_describe names an unknown type '{other}'")))
            }
        }
    }

    /// The SQL type.
    pub(crate) fn data_type(self) -> DataType {
        let collation = CollationId::UTF8MB4_0900_AI_CI;
        match self {
            Kind::Int => DataType::new(TypeKind::BigInt, 20, 0),
            Kind::Double => DataType::new(TypeKind::Double, 22, types::NOT_FIXED_DECIMALS),
            Kind::Text => DataType { collation, ..DataType::new(TypeKind::LongText, u32::MAX, 0) },
            Kind::Bytes => DataType {
                collation: CollationId::BINARY,
                ..DataType::new(TypeKind::LongBlob, u32::MAX, 0)
            },
        }
    }
}

impl Described {
    /// The conversions of its arguments, so that they have the types that it names.
    pub(crate) fn coercions(&self) -> Vec<Coercion> {
        let coercion = |kind: &Kind| match kind {
            Kind::Int => Coercion::Integer,
            Kind::Double => Coercion::Double,
            Kind::Text => Coercion::Text,
            // Bytes stay what they are.
            Kind::Bytes => Coercion::AsIs,
        };
        self.parameters.iter().map(coercion).collect()
    }

    /// The SQL types of its parameters.
    pub(crate) fn parameter_types(&self) -> Vec<DataType> {
        self.parameters.iter().map(|kind| kind.data_type()).collect()
    }
}

/// What a plugin says about itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Description {
    pub(crate) version: String,
    pub(crate) author: String,
    pub(crate) licence: String,
    pub(crate) description: String,
    pub(crate) functions: Vec<Described>,
    pub(crate) aggregates: Vec<Described>,
}

impl Description {
    pub(crate) fn parse(text: &str) -> Result<Description, Failure> {
        let mut found = Description::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "version" => found.version = rest.to_owned(),
                "author" => found.author = rest.to_owned(),
                "licence" => found.licence = rest.to_owned(),
                "description" => found.description = rest.to_owned(),
                "function" => found.functions.push(function(rest)?),
                "aggregate" => found.aggregates.push(aggregate(rest)?),
                // Facts of later versions.
                _ => {}
            }
        }
        let all = found.functions.iter().chain(&found.aggregates);
        let mut names: Vec<String> = all.map(|one| one.name.to_ascii_uppercase()).collect();
        if names.is_empty() || names.len() > FUNCTIONS_MAX {
            return Err(Failure::guest("squall_describe names no function, or too many"));
        }
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Failure::Guest(format!("squall_describe names {} twice", twice[0])));
        }
        Ok(found)
    }
}

/// `name(type, type) type [deterministic]`.
fn function(text: &str) -> Result<Described, Failure> {
    let wrong =
        || Failure::Guest(format!("squall_describe has a line that is not a function: {text}"));
    let (name, rest) = text.split_once('(').ok_or_else(wrong)?;
    let (parameters, result) = rest.split_once(')').ok_or_else(wrong)?;
    let mut words = result.split_whitespace();
    let returns = Kind::of(words.next().ok_or_else(wrong)?)?;
    let deterministic = match words.next() {
        None => false,
        Some("deterministic") => true,
        Some(_) => return Err(wrong()),
    };
    let name = name.trim();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.bytes().all(is_name) {
        return Err(wrong());
    }
    let parameters = match parameters.trim() {
        "" => Vec::new(),
        list => list.split(',').map(Kind::of).collect::<Result<_, _>>()?,
    };
    Ok(Described { name: name.to_owned(), parameters, returns, deterministic })
}

/// `name(type, type) type`.
fn aggregate(text: &str) -> Result<Described, Failure> {
    let described = function(text)?;
    if described.deterministic {
        return Err(Failure::Guest(format!(
            "squall_describe has a line that is not an aggregate: {text}"
        )));
    }
    Ok(described)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_a_line_for_each_fact() {
        let text = "version 1.2\nauthor A B\n\nlicence MIT\ndescription Some text.\nlater fact\n\
                    function add(int, double) bytes deterministic\n  function f() text\n\
                    aggregate middle(double) double";
        let found = Description::parse(text).expect("a description");
        assert_eq!((&*found.version, &*found.author), ("1.2", "A B"));
        assert_eq!((&*found.licence, &*found.description), ("MIT", "Some text."));
        let add = Described {
            name: "add".into(),
            parameters: vec![Kind::Int, Kind::Double],
            returns: Kind::Bytes,
            deterministic: true,
        };
        let f = Described {
            name: "f".into(),
            parameters: Vec::new(),
            returns: Kind::Text,
            deterministic: false,
        };
        assert_eq!(found.functions, [add, f]);
        let middle = Described {
            name: "middle".into(),
            parameters: vec![Kind::Double],
            returns: Kind::Double,
            deterministic: false,
        };
        assert_eq!(found.aggregates, [middle]);
        for wrong in [
            "",
            "version 1",
            "function f",
            "function f(int",
            "function f(int)",
            "function f(uuid) int",
            "function f(int) int always",
            "function (int) int",
            "function a b(int) int",
            "aggregate f(int) int deterministic",
            "aggregate f(int) int\nfunction F(int) int",
        ] {
            assert!(Description::parse(wrong).is_err(), "{wrong}");
        }
    }
}
