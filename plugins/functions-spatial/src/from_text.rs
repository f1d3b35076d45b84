//! Well-known text: reading it, and `ST_GeomFromText` and similar functions.

use errors::Result;
use plugin_api::kit::{self, scalar};
use plugin_api::{ArgInfo, Arity, BoundFunction, Coercion, ScalarFunction};
use types::DataType;
use types::geometry::{
    DEPTH_MAX, GeometryKind, LINE_LEAST, Position, RING_LEAST, Shape, is_closed,
};

use crate::argument::invalid;
use crate::from_wkb::Place;

/// A function for each name; each contains its own name for messages.
macro_rules! functions {
    ($($name:literal $lower:literal $kind:ident),* $(,)?) => {
        &[$(scalar(
            $name,
            Arity::between(1, 3),
            concat!($name, "(wkt[, srid[, options]])\nThe geometry of its well-known text."),
            |_, args| bind($lower, args, GeometryKind::$kind),
        )),*]
    };
}

pub(crate) const FUNCTIONS: &[ScalarFunction] = functions! {
    "ST_GEOMFROMTEXT" "st_geomfromtext" Geometry,
    "ST_GEOMETRYFROMTEXT" "st_geometryfromtext" Geometry,
    "ST_POINTFROMTEXT" "st_pointfromtext" Point,
    "ST_LINEFROMTEXT" "st_linefromtext" LineString,
    "ST_LINESTRINGFROMTEXT" "st_linestringfromtext" LineString,
    "ST_POLYFROMTEXT" "st_polyfromtext" Polygon,
    "ST_POLYGONFROMTEXT" "st_polygonfromtext" Polygon,
    "ST_MPOINTFROMTEXT" "st_mpointfromtext" MultiPoint,
    "ST_MULTIPOINTFROMTEXT" "st_multipointfromtext" MultiPoint,
    "ST_MLINEFROMTEXT" "st_mlinefromtext" MultiLineString,
    "ST_MULTILINESTRINGFROMTEXT" "st_multilinestringfromtext" MultiLineString,
    "ST_MPOLYFROMTEXT" "st_mpolyfromtext" MultiPolygon,
    "ST_MULTIPOLYGONFROMTEXT" "st_multipolygonfromtext" MultiPolygon,
    "ST_GEOMCOLLFROMTEXT" "st_geomcollfromtext" GeometryCollection,
    "ST_GEOMCOLLFROMTXT" "st_geomcollfromtxt" GeometryCollection,
    "ST_GEOMETRYCOLLECTIONFROMTEXT" "st_geometrycollectionfromtext" GeometryCollection,
};

fn bind(name: &'static str, args: &[ArgInfo], kind: GeometryKind) -> Result<BoundFunction> {
    let coercions = vec![crate::argument::coercion(&args[0]), Coercion::Integer, Coercion::Text];
    Ok(BoundFunction::new(DataType::geometry(), coercions, move |ctx, args| {
        let place = Place::read(ctx, name, &args[1..])?;
        let shape = parse(kit::bytes(&args[0])).ok_or_else(|| invalid(name))?;
        place.finish(name, shape, kind, "WKT")
    }))
}

/// The shape of a text; `None` for a text that is not a geometry.
pub(crate) fn parse(text: &[u8]) -> Option<Shape> {
    let mut parser = Parser { rest: text };
    let shape = parser.shape(0)?;
    parser.skip_spaces();
    parser.rest.is_empty().then_some(shape)
}

/// Bytes of the number at the start of a text.
fn number_length(text: &[u8]) -> usize {
    let is_sign = |at: usize| matches!(text.get(at), Some(b'+' | b'-'));
    let digits = |at: usize| text[at..].iter().take_while(|c| c.is_ascii_digit()).count();
    let mut end = usize::from(is_sign(0));
    end += digits(end);
    if text.get(end) == Some(&b'.') {
        end += 1;
        end += digits(end);
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        end += 1;
        end += usize::from(is_sign(end));
        end += digits(end);
    }
    end
}

struct Parser<'a> {
    rest: &'a [u8],
}

impl<'a> Parser<'a> {
    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    /// The next word, and whether there is one.
    fn word(&mut self) -> &'a [u8] {
        self.skip_spaces();
        let end = self.rest.iter().position(|c| !c.is_ascii_alphabetic());
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        word
    }

    fn eat(&mut self, symbol: u8) -> bool {
        self.skip_spaces();
        match self.rest.split_first() {
            Some((found, rest)) if *found == symbol => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn expect(&mut self, symbol: u8) -> Option<()> {
        self.eat(symbol).then_some(())
    }

    fn is_next(&mut self, symbol: u8) -> bool {
        self.skip_spaces();
        self.rest.first() == Some(&symbol)
    }

    fn number(&mut self) -> Option<f64> {
        self.skip_spaces();
        let end = number_length(self.rest);
        let (number, rest) = self.rest.split_at(end);
        self.rest = rest;
        let number: f64 = std::str::from_utf8(number).ok()?.parse().ok()?;
        number.is_finite().then_some(number)
    }

    fn position(&mut self) -> Option<Position> {
        Some(Position { x: self.number()?, y: self.number()? })
    }

    /// `(item, item, ...)`
    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        self.expect(b'(')?;
        let mut items = vec![item(self)?];
        while self.eat(b',') {
            items.push(item(self)?);
        }
        self.expect(b')')?;
        Some(items)
    }

    fn line(&mut self) -> Option<Vec<Position>> {
        let line = self.list(Self::position)?;
        (line.len() >= LINE_LEAST).then_some(line)
    }

    fn ring(&mut self) -> Option<Vec<Position>> {
        let ring = self.list(Self::position)?;
        (ring.len() >= RING_LEAST && is_closed(&ring)).then_some(ring)
    }

    fn rings(&mut self) -> Option<Vec<Vec<Position>>> {
        self.list(Self::ring)
    }

    /// Points, each with or without parentheses.
    fn points(&mut self) -> Option<Vec<Position>> {
        let mut wrapped = None;
        self.list(|parser| {
            let has = parser.is_next(b'(');
            if *wrapped.get_or_insert(has) != has {
                return None;
            }
            if !has {
                return parser.position();
            }
            parser.expect(b'(')?;
            let position = parser.position()?;
            parser.expect(b')')?;
            Some(position)
        })
    }

    fn shape(&mut self, depth: usize) -> Option<Shape> {
        let word = self.word().to_ascii_uppercase();
        Some(match &word[..] {
            b"POINT" => {
                self.expect(b'(')?;
                let position = self.position()?;
                self.expect(b')')?;
                Shape::Point(position)
            }
            b"LINESTRING" => Shape::LineString(self.line()?),
            b"POLYGON" => Shape::Polygon(self.rings()?),
            b"MULTIPOINT" => Shape::MultiPoint(self.points()?),
            b"MULTILINESTRING" => Shape::MultiLineString(self.list(Self::line)?),
            b"MULTIPOLYGON" => Shape::MultiPolygon(self.list(Self::rings)?),
            b"GEOMETRYCOLLECTION" if depth < DEPTH_MAX => {
                Shape::Collection(self.collection(depth)?)
            }
            _ => return None,
        })
    }

    fn collection(&mut self, depth: usize) -> Option<Vec<Shape>> {
        if !self.is_next(b'(') {
            return self.word().eq_ignore_ascii_case(b"EMPTY").then(Vec::new);
        }
        let start = self.rest;
        self.expect(b'(')?;
        if self.eat(b')') {
            return Some(Vec::new());
        }
        self.rest = start;
        self.list(|parser| parser.shape(depth + 1))
    }
}
