//! JSON_SEARCH.

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{self, json_type, scalar};
use plugin_api::{ArgInfo, Arity, BindContext, BoundFunction, Coercion, NullRule, ScalarFunction};
use types::json::{ArrayIndex, JsonRef, JsonType, PathLeg};
use types::{CollationId, JsonPath, JsonValue, Value};

use crate::argument::{Call, Wildcards};

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[scalar(
    "JSON_SEARCH",
    Arity::at_least(3),
    "JSON_SEARCH(json_doc, one_or_all, search_str[, escape_char[, path ...]])\nThe paths of strings that match a pattern.",
    bind_search,
)];

/// A search and its results.
struct Search<'a> {
    pattern: &'a [u8],
    escape: Option<char>,
    all: bool,
    found: Vec<Vec<u8>>,
}

fn bind_search(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let call = Call::new("json_search", args, |index| index > 3);
    let coercions = vec![kit::named_coercion(&args[0].ty), Coercion::Text];
    let mut bound = BoundFunction::new(json_type(), coercions, move |_, args| {
        let Some(document) = call.document(args, 0)? else { return Ok(Value::Null) };
        let Some(all) = call.wants_all(args, 1)? else { return Ok(Value::Null) };
        if args[2].is_null() {
            return Ok(Value::Null);
        }
        let mut search = Search {
            pattern: kit::bytes(&args[2]),
            escape: escape_of(args.get(3))?,
            all,
            found: Vec::new(),
        };
        let root = JsonRef::new(&document);
        if args.len() <= 4 {
            search.walk(root, &mut Vec::new());
        }
        for index in 4..args.len() {
            let Some(path) = call.path(args, index, Wildcards::Allowed)? else {
                return Ok(Value::Null);
            };
            let mut places = Vec::new();
            locate(root, path.legs(), &mut Vec::new(), &mut places);
            for (mut legs, place) in places {
                search.walk(place, &mut legs);
            }
        }
        let mut paths = search.found.into_iter().map(JsonValue::String);
        Ok(match (paths.next(), paths.len()) {
            (None, _) => Value::Null,
            (Some(only), 0) => only.to_value(),
            (Some(first), _) => {
                JsonValue::Array(std::iter::once(first).chain(paths).collect()).to_value()
            }
        })
    });
    bound.nulls = NullRule::Kernel;
    Ok(bound)
}

/// One character; a backslash for NULL and for the empty string.
fn escape_of(argument: Option<&Value>) -> Result<Option<char>> {
    let text = argument.map(kit::text).unwrap_or_default();
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (None, _) => Ok(Some('\\')),
        (Some(only), None) => Ok(Some(only)),
        _ => Err(Error::with(ErrorCode::WRONG_ARGUMENTS, &[&"ESCAPE"])),
    }
}

impl Search<'_> {
    fn done(&self) -> bool {
        !self.all && !self.found.is_empty()
    }

    fn walk(&mut self, value: JsonRef<'_>, legs: &mut Vec<PathLeg>) {
        if self.done() {
            return;
        }
        match value.kind() {
            JsonType::String => self.test(value.as_bytes().unwrap_or_default(), legs),
            JsonType::Array => {
                for (index, element) in value.elements().enumerate() {
                    legs.push(cell(index));
                    self.walk(element, legs);
                    legs.pop();
                }
            }
            JsonType::Object => {
                for (name, member) in value.members() {
                    legs.push(PathLeg::Member(name.into()));
                    self.walk(member, legs);
                    legs.pop();
                }
            }
            _ => {}
        }
    }

    fn test(&mut self, text: &[u8], legs: &[PathLeg]) {
        let collation = charset::collation_or_binary(CollationId::UTF8MB4_BIN);
        if !collation.like(self.pattern, text, self.escape) {
            return;
        }
        let mut path = Vec::new();
        JsonPath::from_legs(legs.to_vec()).write_text(&mut path);
        if !self.found.contains(&path) {
            self.found.push(path);
        }
    }
}

fn cell(index: usize) -> PathLeg {
    PathLeg::Cell(ArrayIndex { index: index as u32, from_end: false })
}

/// Every place that a path matches, with its own path.
fn locate<'a>(
    value: JsonRef<'a>,
    legs: &[PathLeg],
    prefix: &mut Vec<PathLeg>,
    out: &mut Vec<(Vec<PathLeg>, JsonRef<'a>)>,
) {
    let Some((leg, rest)) = legs.split_first() else {
        out.push((prefix.clone(), value));
        return;
    };
    let mut descend =
        |next: PathLeg, place: JsonRef<'a>, rest: &[PathLeg], prefix: &mut Vec<PathLeg>| {
            prefix.push(next);
            locate(place, rest, prefix, out);
            prefix.pop();
        };
    match (leg, value.kind()) {
        (PathLeg::Member(name), JsonType::Object) => {
            if let Some(place) = value.get(name) {
                descend(leg.clone(), place, rest, prefix);
            }
        }
        (PathLeg::MemberWildcard, JsonType::Object) => {
            for (name, place) in value.members() {
                descend(PathLeg::Member(name.into()), place, rest, prefix);
            }
        }
        (PathLeg::Cell(_) | PathLeg::CellRange(..) | PathLeg::CellWildcard, JsonType::Array) => {
            let length = value.len();
            let (first, last) = match leg {
                PathLeg::Cell(index) => (index.resolve(length), index.resolve(length)),
                PathLeg::CellRange(from, to) => {
                    (from.resolve(length).or(Some(0)), to.resolve(length))
                }
                _ => (Some(0), length.checked_sub(1)),
            };
            for (index, place) in value.elements().enumerate() {
                if first.is_some_and(|first| index >= first)
                    && last.is_some_and(|last| index <= last)
                {
                    descend(cell(index), place, rest, prefix);
                }
            }
        }
        (PathLeg::Cell(index), _) if index.resolve(1) == Some(0) => {
            locate(value, rest, prefix, out)
        }
        (PathLeg::Ellipsis, kind) => {
            locate(value, rest, prefix, out);
            let mut descend = |next: PathLeg, place: JsonRef<'a>, prefix: &mut Vec<PathLeg>| {
                prefix.push(next);
                locate(place, legs, prefix, out);
                prefix.pop();
            };
            if kind == JsonType::Array {
                for (index, place) in value.elements().enumerate() {
                    descend(cell(index), place, prefix);
                }
            } else if kind == JsonType::Object {
                for (name, place) in value.members() {
                    descend(PathLeg::Member(name.into()), place, prefix);
                }
            }
        }
        _ => {}
    }
}
