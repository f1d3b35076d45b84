//! A geometry as GeoJSON: the result of `ST_AsGeoJSON` and the JSON value of a geometry.

use super::{Geometry, GeometryKind, Position, Shape};
use crate::json::{JsonObject, JsonValue};

/// So many decimals that nothing is rounded.
const DIGITS_MAX: i32 = 308;

/// The form of a reference system's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemName {
    /// `EPSG:4326`.
    Short,
    /// `urn:ogc:def:crs:EPSG::4326`.
    Long,
}

/// The parts of a geometry that are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GeoJsonStyle {
    /// Decimals of coordinates; `None` for all.
    pub digits: Option<u32>,
    /// Whether to include its bounding box.
    pub bounds: bool,
    /// Whether to include its reference system.
    pub system: Option<SystemName>,
}

impl GeometryKind {
    /// The name in GeoJSON.
    pub const fn geojson_name(self) -> &'static str {
        match self {
            GeometryKind::Geometry => "Geometry",
            GeometryKind::Point => "Point",
            GeometryKind::LineString => "LineString",
            GeometryKind::Polygon => "Polygon",
            GeometryKind::MultiPoint => "MultiPoint",
            GeometryKind::MultiLineString => "MultiLineString",
            GeometryKind::MultiPolygon => "MultiPolygon",
            GeometryKind::GeometryCollection => "GeometryCollection",
        }
    }
}

impl Geometry {
    /// The geometry as GeoJSON.
    pub fn to_json(&self, style: &GeoJsonStyle) -> JsonValue {
        let digits = style.digits.and_then(|digits| digits.try_into().ok());
        let digits = digits.unwrap_or(DIGITS_MAX).min(DIGITS_MAX);
        let mut object = shape_object(&self.shape, digits);
        if let Some(name) = style.system {
            object.insert(b"crs".to_vec(), system(self.srid, name));
        }
        if style.bounds
            && let Some([low, high]) = self.shape.bounds()
        {
            let corners = [low.x, low.y, high.x, high.y].map(|number| rounded(number, digits));
            object.insert(b"bbox".to_vec(), JsonValue::Array(corners.to_vec()));
        }
        JsonValue::Object(object)
    }
}

fn system(srid: u32, name: SystemName) -> JsonValue {
    // As the reference has it, also for systems that a user made.
    let organization = if srid == 0 { "MySQL" } else { "EPSG" };
    let name = match name {
        SystemName::Short => format!("{organization}:{srid}"),
        SystemName::Long => format!("urn:ogc:def:crs:{organization}::{srid}"),
    };
    let mut properties = JsonObject::new();
    properties.insert(b"name".to_vec(), JsonValue::string(name));
    let mut system = JsonObject::new();
    system.insert(b"type".to_vec(), JsonValue::string("name"));
    system.insert(b"properties".to_vec(), JsonValue::Object(properties));
    JsonValue::Object(system)
}

fn shape_object(shape: &Shape, digits: i32) -> JsonObject {
    let position = |at: &Position| position(*at, digits);
    let line = |line: &Vec<Position>| JsonValue::Array(line.iter().map(position).collect());
    let lines = |lines: &Vec<Vec<Position>>| JsonValue::Array(lines.iter().map(line).collect());
    let (member, value) = match shape {
        Shape::Point(at) => ("coordinates", position(at)),
        Shape::LineString(points) | Shape::MultiPoint(points) => ("coordinates", line(points)),
        Shape::Polygon(rings) | Shape::MultiLineString(rings) => ("coordinates", lines(rings)),
        Shape::MultiPolygon(polygons) => {
            ("coordinates", JsonValue::Array(polygons.iter().map(lines).collect()))
        }
        Shape::Collection(shapes) => {
            let member = |shape| JsonValue::Object(shape_object(shape, digits));
            ("geometries", JsonValue::Array(shapes.iter().map(member).collect()))
        }
    };
    let mut object = JsonObject::new();
    object.insert(b"type".to_vec(), JsonValue::string(shape.kind().geojson_name()));
    object.insert(member.as_bytes().to_vec(), value);
    object
}

fn position(at: Position, digits: i32) -> JsonValue {
    JsonValue::Array(vec![rounded(at.x, digits), rounded(at.y, digits)])
}

/// A coordinate with this many decimals. JSON has no NaN or infinity.
fn rounded(number: f64, digits: i32) -> JsonValue {
    let scale = 10_f64.powi(digits);
    let scaled = number * scale;
    JsonValue::Double(if !number.is_finite() {
        0.0
    } else if scaled.is_finite() {
        scaled.round_ties_even() / scale
    } else {
        number
    })
}
