//! Distances, lengths and areas.

use errors::{Error, ErrorCode, Result};
use geo::{Area, Distance, Euclidean, Length};
use plugin_api::kit::{self, any_nullable, scalar};
use plugin_api::{ArgInfo, Arity, BindContext, BoundFunction, Coercion, ScalarFunction};
use types::geometry::{Position, ReferenceSystem, Shape};
use types::{DataType, Value};

use crate::argument::{coercion, unexpected};
use crate::check;
use crate::flat::are_apart;
use crate::geodesic::{Ellipsoid, on_sphere};
use crate::pair::{Pair, of_pair, points};
use crate::planar::{layers, line, planar, polygon};
use crate::relations::meet;
use crate::units::wanted;

/// The radius of the Earth without a reference system, metres.
const EARTH_RADIUS: f64 = 6_370_986.0;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "ST_DISTANCE",
        Arity::between(2, 3),
        "ST_DISTANCE(geometry, geometry[, unit])\nThe least distance between two geometries.",
        |_, args| of_pair("st_distance", args, DataType::double(), &[Coercion::Text], distance),
    ),
    scalar(
        "ST_DISTANCE_SPHERE",
        Arity::between(2, 3),
        "ST_DISTANCE_SPHERE(points, points[, radius])\nThe least distance between points on a sphere, in metres.",
        |_, args| {
            let ty = DataType::double().with_nullable(any_nullable(args));
            of_pair("st_distance_sphere", args, ty, &[Coercion::Double], sphere_distance)
        },
    ),
    scalar(
        "ST_LENGTH",
        Arity::between(1, 2),
        "ST_LENGTH(linestring[, unit])\nThe length of a line or of several.",
        bind_length,
    ),
    scalar(
        "ST_AREA",
        Arity::exactly(1),
        "ST_AREA(polygon)\nThe area of a polygon or of several.",
        bind_area,
    ),
    scalar(
        "ST_FRECHETDISTANCE",
        Arity::between(2, 3),
        "ST_FRECHETDISTANCE(linestring, linestring[, unit])\nThe discrete Fréchet distance of two lines.",
        |_, args| {
            let unit = [Coercion::Text];
            of_pair("st_frechetdistance", args, DataType::double(), &unit, frechet_distance)
        },
    ),
    scalar(
        "ST_HAUSDORFFDISTANCE",
        Arity::between(2, 3),
        "ST_HAUSDORFFDISTANCE(geometry, geometry[, unit])\nThe discrete Hausdorff distance of two geometries.",
        |_, args| {
            let unit = [Coercion::Text];
            of_pair("st_hausdorffdistance", args, DataType::double(), &unit, hausdorff_distance)
        },
    ),
];

fn distance(pair: Pair, rest: &[Value]) -> Result<Value> {
    let unit = wanted(pair.name, rest.first(), &pair.system)?;
    if pair.first.is_empty() || pair.second.is_empty() {
        return Ok(Value::Null);
    }
    let metres = match Ellipsoid::of(&pair.system) {
        None => Euclidean.distance(&planar(&pair.first), &planar(&pair.second)),
        Some(ellipsoid) => match (points(&pair.first), points(&pair.second)) {
            (Some(first), Some(second)) => {
                least(first, second, |from, to| ellipsoid.distance(from, to))
            }
            _ => between(&pair, ellipsoid)?,
        },
    };
    kit::finite(unit.of(metres), pair.name, &[])
}

/// The least distance of two geometries on an ellipsoid: 0 where they meet, else that of a vertex of one and a side of the other.
fn between(pair: &Pair, ellipsoid: Ellipsoid) -> Result<f64> {
    if !are_apart(&pair.first, &pair.second) {
        let (_, first, second) = pair.flat(ellipsoid)?;
        if meet(&layers(&first), &layers(&second)) {
            return Ok(0.0);
        }
    }
    let (first, second) = (sides(&pair.first), sides(&pair.second));
    let from_ends = |from: &[[Position; 2]], to: &[[Position; 2]]| {
        let to_one = |at: Position| {
            to.iter().fold(f64::INFINITY, |least, side| match side[0] == side[1] {
                true => least.min(ellipsoid.distance(at, side[0])),
                false => ellipsoid.to_side(least, at, side[0], side[1]),
            })
        };
        // The end of a side is the beginning of the next one, but for the last.
        let ends = from.iter().flat_map(|side| side.iter().copied());
        ends.map(to_one).fold(f64::INFINITY, f64::min)
    };
    Ok(from_ends(&first, &second).min(from_ends(&second, &first)))
}

/// The sides of a geometry; a point is one without length.
fn sides(shape: &Shape) -> Vec<[Position; 2]> {
    fn add(line: &[Position], sides: &mut Vec<[Position; 2]>) {
        sides.extend(line.windows(2).map(|side| [side[0], side[1]]));
    }
    let mut sides = Vec::new();
    let mut shapes = vec![shape];
    while let Some(shape) = shapes.pop() {
        match shape {
            Shape::Point(at) => sides.push([*at, *at]),
            Shape::MultiPoint(points) => sides.extend(points.iter().map(|at| [*at, *at])),
            Shape::LineString(line) => add(line, &mut sides),
            Shape::Polygon(lines) | Shape::MultiLineString(lines) => {
                lines.iter().for_each(|line| add(line, &mut sides));
            }
            Shape::MultiPolygon(polygons) => {
                polygons.iter().flatten().for_each(|line| add(line, &mut sides));
            }
            Shape::Collection(members) => shapes.extend(members),
        }
    }
    sides
}

/// The least distance of two sets of points.
fn least(first: &[Position], second: &[Position], of: impl Fn(Position, Position) -> f64) -> f64 {
    let pairs = first.iter().flat_map(|from| second.iter().map(move |to| (*from, *to)));
    pairs.map(|(from, to)| of(from, to)).fold(f64::INFINITY, f64::min)
}

fn sphere_distance(pair: Pair, rest: &[Value]) -> Result<Value> {
    if pair.system.srid != 0 && !pair.system.is_geographic() {
        return Err(pair.not_for(ErrorCode::NOT_IMPLEMENTED_FOR_PROJECTED_SRS));
    }
    let (Some(first), Some(second)) = (points(&pair.first), points(&pair.second)) else {
        return Err(pair.not_for(match pair.system.is_geographic() {
            true => ErrorCode::NOT_IMPLEMENTED_FOR_GEOGRAPHIC_SRS,
            false => ErrorCode::NOT_IMPLEMENTED_FOR_CARTESIAN_SRS,
        }));
    };
    let radius = match (rest.first(), Ellipsoid::of(&pair.system)) {
        (Some(radius), _) => kit::double(radius),
        (None, Some(ellipsoid)) => ellipsoid.mean_radius(),
        (None, None) => EARTH_RADIUS,
    };
    if radius <= 0.0 {
        return Err(Error::with(ErrorCode::NONPOSITIVE_RADIUS, &[&pair.name]));
    }
    for at in first.iter().chain(second) {
        check::longitude(pair.name, at.x, check::Source::Given)?;
        check::latitude(pair.name, at.y, check::Source::Given)?;
    }
    Ok(Value::Double(least(first, second, |from, to| on_sphere(from, to, radius))))
}

fn bind_length(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let name = "st_length";
    let coercions = vec![coercion(&args[0]), Coercion::Text];
    Ok(BoundFunction::new(DataType::double(), coercions, move |ctx, args| {
        let (geometry, system) = check::operand(ctx, name, &args[0])?;
        let lines = match &geometry.shape {
            Shape::LineString(line) => std::slice::from_ref(line),
            Shape::MultiLineString(lines) => lines,
            _ => return Ok(Value::Null),
        };
        let unit = wanted(name, args.get(1), &system)?;
        let length = |positions: &Vec<Position>| match Ellipsoid::of(&system) {
            None => Euclidean.length(&line(positions)),
            Some(ellipsoid) => {
                positions.windows(2).map(|side| ellipsoid.distance(side[0], side[1])).sum()
            }
        };
        kit::finite(unit.of(lines.iter().map(length).sum()), name, &args[..1])
    }))
}

fn bind_area(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let name = "st_area";
    Ok(BoundFunction::new(DataType::double(), vec![coercion(&args[0])], move |ctx, args| {
        let (geometry, system) = check::operand(ctx, name, &args[0])?;
        let polygons = match &geometry.shape {
            Shape::Polygon(rings) => std::slice::from_ref(rings),
            Shape::MultiPolygon(polygons) => polygons,
            other => return Err(unexpected("POLYGON/MULTIPOLYGON", other.kind(), name)),
        };
        let area = |rings: &Vec<Vec<Position>>| match Ellipsoid::of(&system) {
            None => polygon(rings).unsigned_area(),
            Some(ellipsoid) => ellipsoid.area(rings),
        };
        kit::finite(polygons.iter().map(area).sum(), name, args)
    }))
}

fn frechet_distance(pair: Pair, rest: &[Value]) -> Result<Value> {
    let unit = wanted(pair.name, rest.first(), &pair.system)?;
    if pair.first.is_empty() || pair.second.is_empty() {
        return Ok(Value::Null);
    }
    let (Shape::LineString(first), Shape::LineString(second)) = (&pair.first, &pair.second) else {
        return Err(pair.not_for(not_implemented(&pair.system)));
    };
    kit::finite(unit.of(frechet(first, second, apart(&pair.system))), pair.name, &[])
}

/// The discrete Fréchet distance: the shortest leash of two that walk from position to position and never back. Of the table of all
/// pairs of positions only a row is kept.
fn frechet(
    first: &[Position],
    second: &[Position],
    apart: impl Fn(Position, Position) -> f64,
) -> f64 {
    let mut row = vec![f64::INFINITY; second.len()];
    for (step, from) in first.iter().enumerate() {
        // The leash at the previous position of both lines, needed next to the current row.
        let mut diagonal = if step == 0 { 0.0 } else { f64::INFINITY };
        for (place, to) in second.iter().enumerate() {
            let before = if place == 0 { f64::INFINITY } else { row[place - 1] };
            let reached = before.min(row[place]).min(diagonal);
            diagonal = row[place];
            row[place] = reached.max(apart(*from, *to));
        }
    }
    row.last().copied().unwrap_or(0.0)
}

/// The distance of two positions in a reference system.
fn apart(system: &ReferenceSystem) -> impl Fn(Position, Position) -> f64 {
    let ellipsoid = Ellipsoid::of(system);
    move |from, to| match ellipsoid {
        None => (from.x - to.x).hypot(from.y - to.y),
        Some(ellipsoid) => ellipsoid.distance(from, to),
    }
}

/// The lines of a shape that consists only of lines.
fn lines(shape: &Shape) -> Option<&[Vec<Position>]> {
    match shape {
        Shape::LineString(line) => Some(std::slice::from_ref(line)),
        Shape::MultiLineString(lines) => Some(lines),
        Shape::Point(_)
        | Shape::MultiPoint(_)
        | Shape::Polygon(_)
        | Shape::MultiPolygon(_)
        | Shape::Collection(_) => None,
    }
}

/// The error for kinds of geometries.
fn not_implemented(system: &ReferenceSystem) -> ErrorCode {
    match system.is_geographic() {
        true => ErrorCode::NOT_IMPLEMENTED_FOR_GEOGRAPHIC_SRS,
        false => ErrorCode::NOT_IMPLEMENTED_FOR_CARTESIAN_SRS,
    }
}

fn hausdorff_distance(pair: Pair, rest: &[Value]) -> Result<Value> {
    let unit = wanted(pair.name, rest.first(), &pair.system)?;
    if pair.first.is_empty() || pair.second.is_empty() {
        return Ok(Value::Null);
    }
    let apart = apart(&pair.system);
    // The reference goes from the first to the second only, and from a line to several when it gets them in the other order.
    let farthest = |from: &[Position], to: &[Position]| {
        from.iter().map(|at| least(std::slice::from_ref(at), to, &apart)).fold(0.0, f64::max)
    };
    let distance = match (&pair.first, &pair.second) {
        (Shape::Point(at), Shape::MultiPoint(points))
        | (Shape::MultiPoint(points), Shape::Point(at)) => {
            farthest(std::slice::from_ref(at), points)
        }
        (Shape::MultiPoint(first), Shape::MultiPoint(second)) => farthest(first, second),
        (first, second) => {
            let (Some(first), Some(second)) = (lines(first), lines(second)) else {
                return Err(pair.not_for(not_implemented(&pair.system)));
            };
            let (first, second) = if second.len() == 1 && first.len() > 1 {
                (second, first)
            } else {
                (first, second)
            };
            let pairs = first.iter().flat_map(|from| second.iter().map(move |to| (from, to)));
            pairs.map(|(from, to)| farthest(from, to)).fold(0.0, f64::max)
        }
    };
    kit::finite(unit.of(distance), pair.name, &[])
}
