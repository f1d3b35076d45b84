//! From GeoJSON to a geometry. A feature is its geometry, a collection of features one of geometries.

use std::borrow::Cow;

use errors::{Error, ErrorCode, Result};
use plugin_api::kit;
use plugin_api::{ArgInfo, BindContext, BoundFunction, Coercion};
use types::geometry::{GeometryKind, LINE_LEAST, Position, RING_LEAST, Shape, is_closed};
use types::json::JsonObject;
use types::{DataType, JsonRef, JsonValue, TypeKind, Value, json};

use super::{incorrect_type, is_whole, option};
use crate::argument::{known, srid, value};
use crate::check::{self, Source};

const NAME: &str = "st_geomfromgeojson";
/// The reference system of GeoJSON without one.
const SRID_DEFAULT: u32 = 4326;
/// The option that refuses positions of more than two coordinates; the others ignore the additional ones.
const REFUSE_HIGHER: i128 = 1;
const OPTION_MAX: i128 = 4;
/// The forms of names of reference systems.
const PREFIXES: [&str; 2] = ["EPSG:", "urn:ogc:def:crs:EPSG::"];
const LONG_LAT_NAME: &str = "urn:ogc:def:crs:OGC:1.3:CRS84";

pub(super) fn bind(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = &args[0].ty;
    if !ty.is_text() && !matches!(ty.kind, TypeKind::Json | TypeKind::Null) {
        return Err(incorrect_type("geojson", NAME));
    }
    for (arg, what) in args[1..].iter().zip(["options", "SRID"]) {
        if !is_whole(arg) {
            return Err(incorrect_type(what, NAME));
        }
    }
    let coercions = vec![Coercion::AsIs, Coercion::Integer];
    Ok(BoundFunction::new(DataType::geometry(), coercions, |ctx, args| {
        let handling = option(NAME, "option", args.get(1), REFUSE_HIGHER, OPTION_MAX)?;
        let given = args.get(2).map(|arg| srid(NAME, arg)).transpose()?;
        if let Some(srid) = given {
            known(ctx, srid)?;
        }
        let document = match &args[0] {
            Value::Json(document) => JsonValue::from_ref(JsonRef::new(document)),
            text => json::parse(kit::bytes(text)).map_err(|error| {
                let code = ErrorCode::INVALID_JSON_TEXT_IN_PARAM;
                Error::with(code, &[&1, &NAME, &error.message, &error.position])
            })?,
        };
        let object = match &document {
            JsonValue::Null => return Ok(Value::Null),
            JsonValue::Object(object) => object,
            _ => return Err(invalid()),
        };
        let named = system_of(object)?;
        let srid = given.or(named).unwrap_or(SRID_DEFAULT);
        let system = known(ctx, srid)?;
        let reader = Reader { refuse_higher: handling.is_none_or(|how| how == REFUSE_HIGHER) };
        let Some(shape) = reader.shape(object, true)? else { return Ok(Value::Null) };
        check::shape(NAME, &shape, &system, Source::Given)?;
        Ok(value(srid, shape))
    }))
}

fn invalid() -> Error {
    Error::with(ErrorCode::INVALID_GEOJSON_UNSPECIFIED, &[&NAME])
}

fn wrong_type(member: &str, expected: &str) -> Error {
    Error::with(ErrorCode::INVALID_GEOJSON_WRONG_TYPE, &[&NAME, &member, &expected])
}

/// Finds a member by name, case-insensitively.
fn find<'a>(object: &'a JsonObject, name: &str) -> Option<&'a JsonValue> {
    let same = |known: &&(Vec<u8>, JsonValue)| known.0.eq_ignore_ascii_case(name.as_bytes());
    object.members().iter().find(same).map(|(_, value)| value)
}

fn member<'a>(object: &'a JsonObject, name: &str) -> Result<&'a JsonValue> {
    find(object, name)
        .ok_or_else(|| Error::with(ErrorCode::INVALID_GEOJSON_MISSING_MEMBER, &[&NAME, &name]))
}

fn text<'a>(object: &'a JsonObject, name: &str) -> Result<Cow<'a, str>> {
    match member(object, name)? {
        JsonValue::String(text) => Ok(String::from_utf8_lossy(text)),
        _ => Err(wrong_type(name, "string")),
    }
}

fn array<'a>(object: &'a JsonObject, name: &str) -> Result<&'a [JsonValue]> {
    match member(object, name)? {
        JsonValue::Array(items) => Ok(items),
        _ => Err(wrong_type(name, "array")),
    }
}

/// The object in a member; `None` for null.
fn object_or_null<'a>(object: &'a JsonObject, name: &str) -> Result<Option<&'a JsonObject>> {
    match member(object, name)? {
        JsonValue::Object(found) => Ok(Some(found)),
        JsonValue::Null => Ok(None),
        _ => Err(wrong_type(name, "object")),
    }
}

/// The reference system named in a document.
fn system_of(object: &JsonObject) -> Result<Option<u32>> {
    if find(object, "crs").is_none() {
        return Ok(None);
    }
    let Some(system) = object_or_null(object, "crs")? else { return Ok(None) };
    let kind = text(system, "type")?;
    let properties = member(system, "properties")?;
    if kind != "name" {
        return Err(invalid());
    }
    let JsonValue::Object(properties) = properties else {
        return Err(wrong_type("properties", "object"));
    };
    let name = text(properties, "name")?;
    if name == LONG_LAT_NAME {
        return Ok(Some(SRID_DEFAULT));
    }
    let number = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix));
    let srid = number.and_then(|number| number.parse().ok()).filter(|srid| *srid != 0);
    Ok(Some(srid.ok_or_else(invalid)?))
}

struct Reader {
    refuse_higher: bool,
}

impl Reader {
    /// The shape of an object, which is the document itself or within it; `None` for a null geometry. JSON bounds the depth.
    fn shape(&self, object: &JsonObject, is_document: bool) -> Result<Option<Shape>> {
        if !is_document && find(object, "crs").is_some() {
            return Err(Error::with(ErrorCode::INVALID_GEOJSON_CRS_NOT_TOP_LEVEL, &[&NAME]));
        }
        let kind = text(object, "type")?;
        match &*kind {
            "Feature" => {
                let geometry = object_or_null(object, "geometry")?;
                object_or_null(object, "properties")?;
                return geometry.map_or(Ok(None), |geometry| self.shape(geometry, false));
            }
            "FeatureCollection" => {
                return self.collection(array(object, "features")?).map(Some);
            }
            "GeometryCollection" => {
                return self.collection(array(object, "geometries")?).map(Some);
            }
            _ => {}
        }
        let known = GeometryKind::ALL.iter().find(|known| known.geojson_name() == kind);
        let known = *known.ok_or_else(invalid)?;
        let items = array(object, "coordinates")?;
        Ok(Some(match known {
            GeometryKind::Point => Shape::Point(self.position(items)?),
            GeometryKind::LineString => Shape::LineString(self.line(items)?),
            GeometryKind::Polygon => Shape::Polygon(self.rings(items)?),
            GeometryKind::MultiPoint => Shape::MultiPoint(self.positions(items, 1)?),
            GeometryKind::MultiLineString => {
                Shape::MultiLineString(each(items, |items| self.line(items))?)
            }
            GeometryKind::MultiPolygon => {
                Shape::MultiPolygon(each(items, |items| self.rings(items))?)
            }
            GeometryKind::Geometry | GeometryKind::GeometryCollection => return Err(invalid()),
        }))
    }

    fn collection(&self, items: &[JsonValue]) -> Result<Shape> {
        let mut shapes = Vec::with_capacity(items.len());
        for item in items {
            let JsonValue::Object(object) = item else {
                return Err(wrong_type("geometries", "object array"));
            };
            shapes.extend(self.shape(object, false)?);
        }
        Ok(Shape::Collection(shapes))
    }

    fn position(&self, items: &[JsonValue]) -> Result<Position> {
        if items.len() < 2 {
            return Err(invalid());
        }
        if items.len() > 2 && self.refuse_higher {
            let code = ErrorCode::DIMENSION_UNSUPPORTED;
            return Err(Error::with(code, &[&NAME, &items.len(), &2]));
        }
        let number = |item: &JsonValue| match item {
            JsonValue::Int(number) => Ok(*number as f64),
            JsonValue::UInt(number) => Ok(*number as f64),
            JsonValue::Double(number) => Ok(*number),
            JsonValue::Decimal(number) => Ok(number.to_f64()),
            _ => Err(wrong_type("array coordinate", "number")),
        };
        Ok(Position { x: number(&items[0])?, y: number(&items[1])? })
    }

    fn positions(&self, items: &[JsonValue], least: usize) -> Result<Vec<Position>> {
        let positions = each(items, |items| self.position(items))?;
        if positions.len() < least { Err(invalid()) } else { Ok(positions) }
    }

    fn line(&self, items: &[JsonValue]) -> Result<Vec<Position>> {
        self.positions(items, LINE_LEAST)
    }

    fn rings(&self, items: &[JsonValue]) -> Result<Vec<Vec<Position>>> {
        each(items, |items| {
            let ring = self.positions(items, RING_LEAST)?;
            if is_closed(&ring) { Ok(ring) } else { Err(invalid()) }
        })
    }
}

/// Reads each of one or more arrays.
fn each<T>(items: &[JsonValue], read: impl Fn(&[JsonValue]) -> Result<T>) -> Result<Vec<T>> {
    let read_one = |item: &JsonValue| match item {
        JsonValue::Array(items) => read(items),
        _ => Err(invalid()),
    };
    if items.is_empty() {
        return Err(invalid());
    }
    items.iter().map(read_one).collect()
}
