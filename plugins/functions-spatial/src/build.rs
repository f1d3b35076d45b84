//! `POINT`, `LINESTRING` and the others that make a geometry of its parts.

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{self, scalar};
use plugin_api::{ArgInfo, Arity, BindContext, BoundFunction, Coercion, ScalarFunction};
use types::geometry::{DEPTH_MAX, LINE_LEAST, Position, RING_LEAST, Shape, is_closed};
use types::{DataType, TypeKind};

use crate::argument::{geometry, invalid, point_type, value};

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar("POINT", Arity::exactly(2), "POINT(x, y)\nA point.", bind_point),
    scalar(
        "LINESTRING",
        Arity::at_least(1),
        "LINESTRING(point, point, ...)\nA line through points.",
        |_, args| bind("linestring", args, line),
    ),
    scalar(
        "POLYGON",
        Arity::at_least(1),
        "POLYGON(linestring, ...)\nA polygon of rings, the exterior first.",
        |_, args| bind("polygon", args, polygon),
    ),
    scalar(
        "MULTIPOINT",
        Arity::at_least(1),
        "MULTIPOINT(point, ...)\nPoints as one geometry.",
        |_, args| {
            bind("multipoint", args, |name, parts| Ok(Shape::MultiPoint(points(name, parts)?)))
        },
    ),
    scalar(
        "MULTILINESTRING",
        Arity::at_least(1),
        "MULTILINESTRING(linestring, ...)\nLines as one geometry.",
        |_, args| {
            bind("multilinestring", args, |name, parts| {
                Ok(Shape::MultiLineString(lines(name, parts)?))
            })
        },
    ),
    scalar(
        "MULTIPOLYGON",
        Arity::at_least(1),
        "MULTIPOLYGON(polygon, ...)\nPolygons as one geometry.",
        |_, args| bind("multipolygon", args, polygons),
    ),
    scalar(
        "GEOMETRYCOLLECTION",
        Arity::at_least(0),
        "GEOMETRYCOLLECTION([geometry, ...])\nGeometries as one.",
        |_, args| bind("geometrycollection", args, collection),
    )
    .aliases(&["GEOMCOLLECTION"]),
];

fn bind_point(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    Ok(BoundFunction::new(point_type(), vec![Coercion::Double], |_, args| {
        let (x, y) = (kit::double(&args[0]), kit::double(&args[1]));
        Ok(value(0, Shape::Point(Position { x, y })))
    }))
}

type Build = fn(&str, Vec<Shape>) -> Result<Shape>;

fn bind(name: &'static str, args: &[ArgInfo], build: Build) -> Result<BoundFunction> {
    if let Some(arg) = args.iter().find(|arg| arg.ty.kind != TypeKind::Geometry) {
        let shown = arg.constant.as_ref().map_or(String::new(), kit::argument_text);
        return Err(Error::with(ErrorCode::ILLEGAL_VALUE_FOR_TYPE, &[&"non geometric", &shown]));
    }
    Ok(BoundFunction::new(DataType::geometry(), vec![Coercion::AsIs], move |_, args| {
        // The result has no reference system, whatever its parts have.
        let parts = args.iter().map(|arg| Ok(geometry(name, arg)?.shape)).collect::<Result<_>>()?;
        Ok(value(0, build(name, parts)?))
    }))
}

fn wrong_arguments(name: &str) -> Error {
    Error::with(ErrorCode::WRONG_ARGUMENTS, &[&name])
}

fn points(name: &str, parts: Vec<Shape>) -> Result<Vec<Position>> {
    let point = |part| match part {
        Shape::Point(position) => Ok(position),
        _ => Err(wrong_arguments(name)),
    };
    parts.into_iter().map(point).collect()
}

fn lines(name: &str, parts: Vec<Shape>) -> Result<Vec<Vec<Position>>> {
    let line = |part| match part {
        Shape::LineString(line) => Ok(line),
        _ => Err(wrong_arguments(name)),
    };
    parts.into_iter().map(line).collect()
}

fn line(name: &str, parts: Vec<Shape>) -> Result<Shape> {
    let line = points(name, parts)?;
    if line.len() < LINE_LEAST { Err(invalid(name)) } else { Ok(Shape::LineString(line)) }
}

fn polygon(name: &str, parts: Vec<Shape>) -> Result<Shape> {
    let rings = lines(name, parts)?;
    let is_ring = |line: &Vec<Position>| line.len() >= RING_LEAST && is_closed(line);
    if rings.iter().all(is_ring) { Ok(Shape::Polygon(rings)) } else { Err(invalid(name)) }
}

fn polygons(name: &str, parts: Vec<Shape>) -> Result<Shape> {
    let polygon = |part| match part {
        Shape::Polygon(rings) => Ok(rings),
        _ => Err(wrong_arguments(name)),
    };
    Ok(Shape::MultiPolygon(parts.into_iter().map(polygon).collect::<Result<_>>()?))
}

fn collection(name: &str, parts: Vec<Shape>) -> Result<Shape> {
    let shape = Shape::Collection(parts);
    if shape.depth() > DEPTH_MAX { Err(invalid(name)) } else { Ok(shape) }
}
