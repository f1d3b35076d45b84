//! Properties of a geometry as a whole: its reference system, coordinates, kind, extent.

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{self, any_nullable, integer_type, scalar, text_type};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, FunctionContext, ScalarFunction,
};
use types::geometry::{Geometry, Position, ReferenceSystem, Shape, is_closed};
use types::{DataType, Value};

use crate::argument::{self, coercion, known, placed, plane_only, srid, value};
use crate::check::{self, Source};

/// The length of the longest name of a kind, and one more.
const KIND_LENGTH: u64 = 15;
/// Display width of counts.
pub(crate) const COUNT_LENGTH: u32 = 10;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "ST_SRID",
        Arity::between(1, 2),
        "ST_SRID(geometry[, srid])\nThe SRID of a geometry, or the geometry with another.",
        bind_srid,
    ),
    scalar(
        "ST_X",
        Arity::between(1, 2),
        "ST_X(point[, x])\nThe first coordinate of a point, or the point with another.",
        |_, args| bind_coordinate("st_x", args, Coordinate::X),
    ),
    scalar(
        "ST_Y",
        Arity::between(1, 2),
        "ST_Y(point[, y])\nThe second coordinate of a point, or the point with another.",
        |_, args| bind_coordinate("st_y", args, Coordinate::Y),
    ),
    scalar(
        "ST_LATITUDE",
        Arity::between(1, 2),
        "ST_LATITUDE(point[, latitude])\nThe latitude of a point, or the point with another.",
        |_, args| bind_coordinate("st_latitude", args, Coordinate::Latitude),
    ),
    scalar(
        "ST_LONGITUDE",
        Arity::between(1, 2),
        "ST_LONGITUDE(point[, longitude])\nThe longitude of a point, or the point with another.",
        |_, args| bind_coordinate("st_longitude", args, Coordinate::Longitude),
    ),
    scalar(
        "ST_GEOMETRYTYPE",
        Arity::exactly(1),
        "ST_GEOMETRYTYPE(geometry)\nWhat kind of geometry it is.",
        |ctx, args| {
            let ty = text_type(KIND_LENGTH, ctx.collation_connection);
            of_placed("st_geometrytype", args, ty, |_, geometry, _| {
                Ok(Value::text(geometry.shape.kind().name()))
            })
        },
    ),
    scalar(
        "ST_DIMENSION",
        Arity::exactly(1),
        "ST_DIMENSION(geometry)\n0 for points, 1 for lines, 2 for polygons.",
        |_, args| {
            of_placed("st_dimension", args, integer_type(COUNT_LENGTH, true), |_, geometry, _| {
                Ok(dimension(&geometry.shape).map_or(Value::Null, Value::Int))
            })
        },
    ),
    scalar(
        "ST_ISEMPTY",
        Arity::exactly(1),
        "ST_ISEMPTY(geometry)\nWhether a geometry has no points.",
        |_, args| {
            of_placed("st_isempty", args, DataType::boolean(), |_, geometry, _| {
                Ok(Value::bool(geometry.shape.is_empty()))
            })
        },
    ),
    scalar(
        "ST_ISCLOSED",
        Arity::exactly(1),
        "ST_ISCLOSED(linestring)\nWhether a line, or each of several, ends where it begins.",
        |_, args| of_placed("st_isclosed", args, DataType::boolean(), closed),
    ),
    scalar(
        "ST_ENVELOPE",
        Arity::exactly(1),
        "ST_ENVELOPE(geometry)\nThe rectangle around a geometry.",
        |_, args| of_placed("st_envelope", args, DataType::geometry(), envelope),
    ),
    scalar(
        "ST_SWAPXY",
        Arity::exactly(1),
        "ST_SWAPXY(geometry)\nA geometry with the coordinates of each position swapped.",
        |_, args| {
            of_placed("st_swapxy", args, DataType::geometry(), |_, mut geometry, _| {
                geometry.shape.swap_axes();
                Ok(value(geometry.srid, geometry.shape))
            })
        },
    ),
];

type OfPlaced = fn(&str, Geometry, &ReferenceSystem) -> Result<Value>;

/// A function of one geometry in a known reference system.
fn of_placed(
    name: &'static str,
    args: &[ArgInfo],
    ty: DataType,
    answer: OfPlaced,
) -> Result<BoundFunction> {
    Ok(BoundFunction::new(ty, vec![coercion(&args[0])], move |ctx, args| {
        let (geometry, system) = placed(ctx, name, &args[0])?;
        answer(name, geometry, &system)
    }))
}

fn bind_srid(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let coercions = vec![coercion(&args[0]), Coercion::Integer];
    if args.len() == 1 {
        let ty = integer_type(COUNT_LENGTH, any_nullable(args));
        return Ok(BoundFunction::new(ty, coercions, get_srid));
    }
    Ok(BoundFunction::new(DataType::geometry(), coercions, |ctx, args| {
        let name = "st_srid";
        let srid = srid(name, &args[1])?;
        let geometry = argument::geometry(name, &args[0])?;
        check::finite(name, &geometry.shape)?;
        let system = known(ctx, srid)?;
        check::shape(name, &geometry.shape, &system, Source::Parameter)?;
        Ok(value(srid, geometry.shape))
    }))
}

fn get_srid(ctx: &mut FunctionContext<'_>, args: &[Value]) -> Result<Value> {
    let name = "st_srid";
    let geometry = argument::geometry(name, &args[0])?;
    check::finite(name, &geometry.shape)?;
    match ctx.session.reference_system(geometry.srid) {
        Some(system) => check::shape(name, &geometry.shape, &system, Source::Parameter)?,
        None => ctx.diagnostics.warn(ErrorCode::WARN_SRS_NOT_FOUND, &[&geometry.srid]),
    }
    Ok(Value::Int(i64::from(geometry.srid)))
}

/// A coordinate of a point, by its name in functions.
#[derive(Clone, Copy, PartialEq)]
enum Coordinate {
    X,
    Y,
    Latitude,
    Longitude,
}

impl Coordinate {
    /// The place of the coordinate in a position.
    fn of<'a>(self, position: &'a mut Position, system: &ReferenceSystem) -> &'a mut f64 {
        let second = match self {
            // In most geographic systems the latitude is first externally; in storage it is second.
            Coordinate::X => system.swaps_axes(),
            Coordinate::Y => !system.swaps_axes(),
            Coordinate::Latitude => true,
            Coordinate::Longitude => false,
        };
        if second { &mut position.y } else { &mut position.x }
    }
}

fn bind_coordinate(
    name: &'static str,
    args: &[ArgInfo],
    coordinate: Coordinate,
) -> Result<BoundFunction> {
    let ty = match args.len() {
        1 => DataType::double().with_nullable(any_nullable(args)),
        _ => DataType::geometry(),
    };
    let coercions = vec![coercion(&args[0]), Coercion::Double];
    Ok(BoundFunction::new(ty, coercions, move |ctx, args| {
        let (geometry, system) = check::argument(ctx, name, &args[0])?;
        let mut position = argument::point(name, &geometry.shape)?;
        let in_degrees = matches!(coordinate, Coordinate::Latitude | Coordinate::Longitude);
        if in_degrees && !system.is_geographic() {
            let code = ErrorCode::SRS_NOT_GEOGRAPHIC;
            return Err(Error::with(code, &[&name, &geometry.srid]));
        }
        let place = coordinate.of(&mut position, &system);
        let Some(given) = args.get(1) else { return Ok(Value::Double(*place)) };
        *place = kit::double(given);
        check::shape(name, &Shape::Point(position), &system, Source::Given)?;
        Ok(value(geometry.srid, Shape::Point(position)))
    }))
}

/// The greatest dimension of the parts of a shape; `None` for an empty shape.
pub(crate) fn dimension(shape: &Shape) -> Option<i64> {
    match shape {
        Shape::Point(_) | Shape::MultiPoint(_) => Some(0),
        Shape::LineString(_) | Shape::MultiLineString(_) => Some(1),
        Shape::Polygon(_) | Shape::MultiPolygon(_) => Some(2),
        Shape::Collection(shapes) => shapes.iter().filter_map(dimension).max(),
    }
}

fn closed(name: &str, geometry: Geometry, system: &ReferenceSystem) -> Result<Value> {
    plane_only(name, &geometry, system)?;
    Ok(match &geometry.shape {
        Shape::LineString(line) => Value::bool(is_closed(line)),
        Shape::MultiLineString(lines) => Value::bool(lines.iter().all(|line| is_closed(line))),
        _ => Value::Null,
    })
}

fn envelope(name: &str, geometry: Geometry, system: &ReferenceSystem) -> Result<Value> {
    plane_only(name, &geometry, system)?;
    check::finite(name, &geometry.shape)?;
    let shape = geometry.shape.bounds().map_or(Shape::Collection(Vec::new()), rectangle);
    Ok(value(geometry.srid, shape))
}

/// The rectangle between two corners: a point or a line when it is as thin.
pub(crate) fn rectangle([low, high]: [Position; 2]) -> Shape {
    if low == high {
        return Shape::Point(low);
    }
    if low.x == high.x || low.y == high.y {
        return Shape::LineString(vec![low, high]);
    }
    let (right, left) = (Position { x: high.x, y: low.y }, Position { x: low.x, y: high.y });
    Shape::Polygon(vec![vec![low, right, high, left, low]])
}
