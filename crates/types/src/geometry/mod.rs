//! Geometries: their kinds, their tree, and the stored form of a value (`docs/format/geometry.md`).
//!
//! A value is four bytes of SRID and little-endian WKB. Reading is total: counts are compared with the bytes that are left, and the depth of
//! collections is bounded. Functions on geometries are in a plugin.

pub mod cells;
mod geojson;
mod made;
mod srs;
#[cfg(test)]
mod tests;
mod wkb;
pub mod wkt;

pub use geojson::{GeoJsonStyle, SystemName};
pub use made::{DefinitionFault, KnownSystem, axes_of};
pub use srs::{
    Axes, ReferenceSystem, reference_system, reference_system_numbers, reference_systems,
};
pub use wkb::{GeometryError, LINE_LEAST, RING_LEAST, WkbRules, is_closed};

/// Deepest nesting of collections in a geometry.
pub const DEPTH_MAX: usize = 100;

/// Which geometries a type or a value is: the numbers of WKB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GeometryKind {
    /// Any.
    #[default]
    Geometry,
    Point,
    LineString,
    Polygon,
    MultiPoint,
    MultiLineString,
    MultiPolygon,
    GeometryCollection,
}

impl GeometryKind {
    /// All of them; the position is the number.
    pub const ALL: [GeometryKind; 8] = [
        GeometryKind::Geometry,
        GeometryKind::Point,
        GeometryKind::LineString,
        GeometryKind::Polygon,
        GeometryKind::MultiPoint,
        GeometryKind::MultiLineString,
        GeometryKind::MultiPolygon,
        GeometryKind::GeometryCollection,
    ];

    /// The kind with this number.
    pub fn from_number(number: u32) -> Option<GeometryKind> {
        GeometryKind::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// Its number in WKB; 0 for any.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// The name that `ST_GeometryType` returns.
    pub const fn name(self) -> &'static str {
        match self {
            GeometryKind::Geometry => "GEOMETRY",
            GeometryKind::Point => "POINT",
            GeometryKind::LineString => "LINESTRING",
            GeometryKind::Polygon => "POLYGON",
            GeometryKind::MultiPoint => "MULTIPOINT",
            GeometryKind::MultiLineString => "MULTILINESTRING",
            GeometryKind::MultiPolygon => "MULTIPOLYGON",
            GeometryKind::GeometryCollection => "GEOMCOLLECTION",
        }
    }

    /// Whether a value of kind `value` is one of this kind: the multi-geometries are collections.
    pub fn holds(self, value: GeometryKind) -> bool {
        use GeometryKind::*;
        match self {
            Geometry => true,
            GeometryCollection => {
                matches!(value, MultiPoint | MultiLineString | MultiPolygon | GeometryCollection)
            }
            exact => exact == value,
        }
    }
}

/// The geometries that a column of type GEOMETRY accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SpatialType {
    /// The geometries.
    pub kind: GeometryKind,
    /// Their reference system, when the column has an SRID attribute.
    pub srid: Option<u32>,
}

/// A position as it is stored: of a geographic system the longitude is `x` and the latitude is `y`, in degrees.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Position {
    /// First coordinate.
    pub x: f64,
    /// Second coordinate.
    pub y: f64,
}

/// A geometry without its reference system.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// A point.
    Point(Position),
    /// Two positions or more.
    LineString(Vec<Position>),
    /// Rings, the exterior first; each closed, of four positions or more.
    Polygon(Vec<Vec<Position>>),
    /// Points.
    MultiPoint(Vec<Position>),
    /// Lines.
    MultiLineString(Vec<Vec<Position>>),
    /// Polygons.
    MultiPolygon(Vec<Vec<Vec<Position>>>),
    /// Anything, collections too.
    Collection(Vec<Shape>),
}

impl Shape {
    /// Kind of the geometry.
    pub fn kind(&self) -> GeometryKind {
        match self {
            Shape::Point(_) => GeometryKind::Point,
            Shape::LineString(_) => GeometryKind::LineString,
            Shape::Polygon(_) => GeometryKind::Polygon,
            Shape::MultiPoint(_) => GeometryKind::MultiPoint,
            Shape::MultiLineString(_) => GeometryKind::MultiLineString,
            Shape::MultiPolygon(_) => GeometryKind::MultiPolygon,
            Shape::Collection(_) => GeometryKind::GeometryCollection,
        }
    }

    /// Calls `visit` for each position, in order.
    pub fn visit(&self, visit: &mut impl FnMut(Position)) {
        match self {
            Shape::Point(position) => visit(*position),
            Shape::LineString(line) | Shape::MultiPoint(line) => {
                line.iter().for_each(|position| visit(*position));
            }
            Shape::Polygon(lines) | Shape::MultiLineString(lines) => {
                lines.iter().flatten().for_each(|position| visit(*position));
            }
            Shape::MultiPolygon(polygons) => {
                polygons.iter().flatten().flatten().for_each(|position| visit(*position));
            }
            Shape::Collection(shapes) => shapes.iter().for_each(|shape| shape.visit(visit)),
        }
    }

    /// Changes each position.
    pub fn change(&mut self, change: &mut impl FnMut(&mut Position)) {
        match self {
            Shape::Point(position) => change(position),
            Shape::LineString(line) | Shape::MultiPoint(line) => line.iter_mut().for_each(change),
            Shape::Polygon(lines) | Shape::MultiLineString(lines) => {
                lines.iter_mut().flatten().for_each(change);
            }
            Shape::MultiPolygon(polygons) => {
                polygons.iter_mut().flatten().flatten().for_each(change);
            }
            Shape::Collection(shapes) => shapes.iter_mut().for_each(|shape| shape.change(change)),
        }
    }

    /// Swaps the coordinates of each position.
    pub fn swap_axes(&mut self) {
        self.change(&mut |position| std::mem::swap(&mut position.x, &mut position.y));
    }

    /// The least and the greatest coordinates; `None` for an empty shape.
    pub fn bounds(&self) -> Option<[Position; 2]> {
        let mut bounds: Option<[Position; 2]> = None;
        self.visit(&mut |at| {
            let [low, high] = bounds.get_or_insert([at, at]);
            *low = Position { x: low.x.min(at.x), y: low.y.min(at.y) };
            *high = Position { x: high.x.max(at.x), y: high.y.max(at.y) };
        });
        bounds
    }

    /// The nesting depth of collections, including this one.
    pub fn depth(&self) -> usize {
        match self {
            Shape::Collection(shapes) => 1 + shapes.iter().map(Shape::depth).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// Whether it has no position.
    pub fn is_empty(&self) -> bool {
        match self {
            Shape::Collection(shapes) => shapes.iter().all(Shape::is_empty),
            Shape::MultiPoint(points) => points.is_empty(),
            Shape::MultiLineString(lines) => lines.is_empty(),
            Shape::MultiPolygon(polygons) => polygons.is_empty(),
            Shape::Point(_) | Shape::LineString(_) | Shape::Polygon(_) => false,
        }
    }
}

/// A geometry.
#[derive(Clone, Debug, PartialEq)]
pub struct Geometry {
    /// Its reference system; 0 for none.
    pub srid: u32,
    /// The shape.
    pub shape: Shape,
}

impl Geometry {
    /// Reads a stored value.
    ///
    /// # Errors
    /// `GeometryError` for bytes that are not a geometry.
    pub fn read(bytes: &[u8]) -> Result<Geometry, GeometryError> {
        let (srid, wkb) = bytes.split_first_chunk().ok_or(GeometryError::Invalid)?;
        let shape = Shape::read_wkb(wkb, WkbRules::Stored)?;
        Ok(Geometry { srid: u32::from_le_bytes(*srid), shape })
    }

    /// The stored form.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = self.srid.to_le_bytes().to_vec();
        self.shape.write_wkb(&mut out);
        out
    }
}
