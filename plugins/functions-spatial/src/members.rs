//! Parts of a geometry: points of a line, rings of a polygon, members of a collection.

use errors::Result;
use plugin_api::kit::{self, integer_type, scalar};
use plugin_api::{ArgInfo, Arity, BoundFunction, Coercion, ScalarFunction};
use types::geometry::Shape;
use types::{DataType, Value};

use crate::argument::{coercion, placed, value};
use crate::properties::COUNT_LENGTH;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "ST_NUMPOINTS",
        Arity::exactly(1),
        "ST_NUMPOINTS(linestring)\nHow many points a line has.",
        |_, args| {
            count("st_numpoints", args, |shape| match shape {
                Shape::LineString(line) => Some(line.len()),
                _ => None,
            })
        },
    ),
    scalar(
        "ST_POINTN",
        Arity::exactly(2),
        "ST_POINTN(linestring, n)\nThe n-th point of a line, counted from 1.",
        |_, args| {
            part("st_pointn", args, |shape, place| match shape {
                Shape::LineString(line) => line.get(place?).copied().map(Shape::Point),
                _ => None,
            })
        },
    ),
    scalar(
        "ST_STARTPOINT",
        Arity::exactly(1),
        "ST_STARTPOINT(linestring)\nThe first point of a line.",
        |_, args| {
            part("st_startpoint", args, |shape, _| match shape {
                Shape::LineString(line) => line.first().copied().map(Shape::Point),
                _ => None,
            })
        },
    ),
    scalar(
        "ST_ENDPOINT",
        Arity::exactly(1),
        "ST_ENDPOINT(linestring)\nThe last point of a line.",
        |_, args| {
            part("st_endpoint", args, |shape, _| match shape {
                Shape::LineString(line) => line.last().copied().map(Shape::Point),
                _ => None,
            })
        },
    ),
    scalar(
        "ST_EXTERIORRING",
        Arity::exactly(1),
        "ST_EXTERIORRING(polygon)\nThe exterior ring of a polygon.",
        |_, args| {
            part("st_exteriorring", args, |shape, _| match shape {
                Shape::Polygon(rings) => rings.first().cloned().map(Shape::LineString),
                _ => None,
            })
        },
    ),
    scalar(
        "ST_INTERIORRINGN",
        Arity::exactly(2),
        "ST_INTERIORRINGN(polygon, n)\nThe n-th interior ring of a polygon, counted from 1.",
        |_, args| {
            part("st_interiorringn", args, |shape, place| match shape {
                Shape::Polygon(rings) => {
                    rings.get(1..)?.get(place?).cloned().map(Shape::LineString)
                }
                _ => None,
            })
        },
    ),
    scalar(
        "ST_NUMINTERIORRINGS",
        Arity::exactly(1),
        "ST_NUMINTERIORRINGS(polygon)\nHow many interior rings a polygon has.",
        |_, args| {
            count("st_numinteriorrings", args, |shape| match shape {
                Shape::Polygon(rings) => Some(rings.len() - 1),
                _ => None,
            })
        },
    )
    .aliases(&["ST_NUMINTERIORRING"]),
    scalar(
        "ST_NUMGEOMETRIES",
        Arity::exactly(1),
        "ST_NUMGEOMETRIES(collection)\nHow many geometries a collection has.",
        |_, args| {
            count("st_numgeometries", args, |shape| match shape {
                Shape::MultiPoint(points) => Some(points.len()),
                Shape::MultiLineString(lines) => Some(lines.len()),
                Shape::MultiPolygon(polygons) => Some(polygons.len()),
                Shape::Collection(shapes) => Some(shapes.len()),
                Shape::Point(_) | Shape::LineString(_) | Shape::Polygon(_) => None,
            })
        },
    ),
    scalar(
        "ST_GEOMETRYN",
        Arity::exactly(2),
        "ST_GEOMETRYN(collection, n)\nThe n-th geometry of a collection, counted from 1.",
        |_, args| {
            part("st_geometryn", args, |shape, place| match shape {
                Shape::MultiPoint(points) => points.get(place?).copied().map(Shape::Point),
                Shape::MultiLineString(lines) => lines.get(place?).cloned().map(Shape::LineString),
                Shape::MultiPolygon(polygons) => polygons.get(place?).cloned().map(Shape::Polygon),
                Shape::Collection(shapes) => shapes.get(place?).cloned(),
                Shape::Point(_) | Shape::LineString(_) | Shape::Polygon(_) => None,
            })
        },
    ),
];

/// The number of parts of one kind of geometry; NULL for other kinds.
fn count(
    name: &'static str,
    args: &[ArgInfo],
    count: fn(&Shape) -> Option<usize>,
) -> Result<BoundFunction> {
    let ty = integer_type(COUNT_LENGTH, true);
    Ok(BoundFunction::new(ty, vec![coercion(&args[0])], move |ctx, args| {
        let (geometry, _) = placed(ctx, name, &args[0])?;
        Ok(count(&geometry.shape).map_or(Value::Null, |count| Value::Int(count as i64)))
    }))
}

/// A part, by its 1-based number in the second argument if present; NULL when the part does not exist.
fn part(
    name: &'static str,
    args: &[ArgInfo],
    part: fn(&Shape, Option<usize>) -> Option<Shape>,
) -> Result<BoundFunction> {
    let coercions = vec![coercion(&args[0]), Coercion::Integer];
    Ok(BoundFunction::new(DataType::geometry(), coercions, move |ctx, args| {
        let (geometry, _) = placed(ctx, name, &args[0])?;
        let place = args.get(1).and_then(|arg| usize::try_from(kit::integer(arg) - 1).ok());
        Ok(part(&geometry.shape, place).map_or(Value::Null, |part| value(geometry.srid, part)))
    }))
}
