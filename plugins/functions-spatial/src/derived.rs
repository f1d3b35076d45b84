//! Geometries derived from geometries: centroids, hulls, simpler lines, positions along a line.

use errors::{Error, ErrorCode, Result};
use geo::{Centroid, ConvexHull};
use plugin_api::kit::{self, scalar};
use plugin_api::{ArgInfo, Arity, BindContext, BoundFunction, Coercion, ScalarFunction};
use types::geometry::{LINE_LEAST, Position, RING_LEAST, Shape};
use types::{DataType, Value};

use crate::argument::{coercion, placed, plane_only, point_type, unexpected, value};
use crate::check;
use crate::geodesic::Ellipsoid;
use crate::pair::{Pair, of_pair};
use crate::planar::{one_or, planar, shape};
use crate::properties::rectangle;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "ST_CENTROID",
        Arity::exactly(1),
        "ST_CENTROID(geometry)\nThe centroid of a geometry's parts of the greatest dimension.",
        |_, args| of_plane("st_centroid", args, point_type(), centroid),
    ),
    scalar(
        "ST_CONVEXHULL",
        Arity::exactly(1),
        "ST_CONVEXHULL(geometry)\nThe least convex geometry around a geometry.",
        |_, args| of_plane("st_convexhull", args, DataType::geometry(), convex_hull),
    ),
    scalar(
        "ST_SIMPLIFY",
        Arity::exactly(2),
        "ST_SIMPLIFY(geometry, max_distance)\nA geometry without the positions that are as near to the line between others.",
        bind_simplify,
    ),
    scalar(
        "ST_MAKEENVELOPE",
        Arity::exactly(2),
        "ST_MAKEENVELOPE(point, point)\nThe rectangle between two corners.",
        |_, args| of_pair("st_makeenvelope", args, DataType::geometry(), &[], make_envelope),
    ),
    scalar(
        "ST_LINEINTERPOLATEPOINT",
        Arity::exactly(2),
        "ST_LINEINTERPOLATEPOINT(linestring, fraction)\nThe point at a fraction of a line's length.",
        |_, args| {
            along("st_lineinterpolatepoint", args, |line, fraction| {
                let length = line.length();
                (0.0..=1.0)
                    .contains(&fraction)
                    .then(|| Shape::Point(line.at_length(fraction * length)))
            })
        },
    ),
    scalar(
        "ST_LINEINTERPOLATEPOINTS",
        Arity::exactly(2),
        "ST_LINEINTERPOLATEPOINTS(linestring, fraction)\nThe points at all multiples of a fraction of a line's length.",
        |_, args| along("st_lineinterpolatepoints", args, multiples),
    ),
    scalar(
        "ST_POINTATDISTANCE",
        Arity::exactly(2),
        "ST_POINTATDISTANCE(linestring, distance)\nThe point at a distance along a line.",
        |_, args| {
            along("st_pointatdistance", args, |line, distance| {
                let within = (0.0..=line.length()).contains(&distance);
                within.then(|| Shape::Point(line.at_length(distance)))
            })
        },
    ),
];

/// Most points that a call makes.
pub(crate) const POINTS_MAX: usize = 65_536;

/// A function of one geometry on the plane that returns NULL for an empty one.
fn of_plane(
    name: &'static str,
    args: &[ArgInfo],
    ty: DataType,
    make: fn(&Shape) -> Option<Shape>,
) -> Result<BoundFunction> {
    Ok(BoundFunction::new(ty, vec![coercion(&args[0])], move |ctx, args| {
        let (geometry, system) = placed(ctx, name, &args[0])?;
        plane_only(name, &geometry, &system)?;
        check::finite(name, &geometry.shape)?;
        check::computable(name, &geometry.shape)?;
        let made = if geometry.shape.is_empty() { None } else { make(&geometry.shape) };
        Ok(made.map_or(Value::Null, |made| value(geometry.srid, made)))
    }))
}

fn centroid(of: &Shape) -> Option<Shape> {
    planar(of).centroid().map(|point| shape(point.into()))
}

fn convex_hull(of: &Shape) -> Option<Shape> {
    let hull = shape(planar(of).convex_hull().into());
    let Shape::Polygon(rings) = hull else { return None };
    let mut ring = rings.into_iter().next()?;
    ring.pop();
    let first = |a: &Position, b: &Position| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y));
    let start = ring.iter().enumerate().min_by(|(_, a), (_, b)| first(a, b))?.0;
    ring.rotate_left(start);
    ring.dedup();
    Some(match ring.len() {
        1 => Shape::Point(ring[0]),
        2 => Shape::LineString(ring),
        _ if ring.iter().all(|at| cross(ring[0], ring[1], *at) == 0.0) => {
            let end = ring.iter().copied().max_by(first)?;
            Shape::LineString(vec![ring[0], end])
        }
        count => {
            // The library may leave a position on a side.
            let is_corner = |at: usize| {
                cross(ring[(at + count - 1) % count], ring[at], ring[(at + 1) % count]) != 0.0
            };
            let mut ring: Vec<_> =
                (0..count).filter(|at| is_corner(*at)).map(|at| ring[at]).collect();
            ring.push(ring[0]);
            Shape::Polygon(vec![ring])
        }
    })
}

/// Twice the area of a triangle; 0 of three positions on a line.
fn cross(a: Position, b: Position, c: Position) -> f64 {
    (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x)
}

fn bind_simplify(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let name = "st_simplify";
    let coercions = vec![coercion(&args[0]), Coercion::Double];
    Ok(BoundFunction::new(DataType::geometry(), coercions, move |ctx, args| {
        let distance = kit::double(&args[1]);
        if distance <= 0.0 {
            return Err(Error::with(ErrorCode::WRONG_ARGUMENTS, &[&name]));
        }
        let (geometry, system) = check::operand(ctx, name, &args[0])?;
        if system.is_geographic() {
            let kinds = format!("{}, ...", geometry.shape.kind().name());
            let code = ErrorCode::NOT_IMPLEMENTED_FOR_GEOGRAPHIC_SRS;
            return Err(Error::with(code, &[&name, &kinds]));
        }
        if geometry.shape.is_empty() {
            return Ok(Value::Null);
        }
        let simpler = simplify(&geometry.shape, distance);
        Ok(simpler.map_or(Value::Null, |simpler| value(geometry.srid, simpler)))
    }))
}

/// `None` when the result is empty.
fn simplify(shape: &Shape, distance: f64) -> Option<Shape> {
    let lines = |lines: &[Vec<Position>]| -> Vec<_> {
        lines.iter().map(|line| simpler_line(line, distance)).collect()
    };
    let polygon = |rings: &Vec<Vec<Position>>| -> Option<Vec<Vec<Position>>> {
        let mut left = rings.iter().map(|ring| simpler_ring(ring, distance));
        // A polygon is dropped with its exterior, a hole alone.
        let exterior = left.next()??;
        Some(std::iter::once(exterior).chain(left.flatten()).collect())
    };
    match shape {
        Shape::Point(_) | Shape::MultiPoint(_) => Some(shape.clone()),
        Shape::LineString(line) => Some(Shape::LineString(simpler_line(line, distance))),
        Shape::MultiLineString(parts) => Some(Shape::MultiLineString(lines(parts))),
        Shape::Polygon(rings) => polygon(rings).map(Shape::Polygon),
        Shape::MultiPolygon(polygons) => {
            let left: Vec<_> = polygons.iter().filter_map(polygon).collect();
            (!left.is_empty()).then(|| one_or(left, Shape::Polygon, Shape::MultiPolygon))
        }
        Shape::Collection(shapes) => {
            let left = shapes.iter().filter_map(|shape| simplify(shape, distance)).collect();
            Some(Shape::Collection(left))
        }
    }
}

/// The Douglas-Peucker algorithm: of the positions between two kept ones, the farthest from their line is kept when it is farther than allowed.
fn simpler_line(line: &[Position], distance: f64) -> Vec<Position> {
    let mut stays = vec![false; line.len()];
    let mut left = vec![(0, line.len() - 1)];
    while let Some((from, to)) = left.pop() {
        stays[from] = true;
        stays[to] = true;
        let between = (from + 1..to).map(|at| (at, from_side(line[at], line[from], line[to])));
        if let Some((at, far)) = between.max_by(|a, b| a.1.total_cmp(&b.1))
            && far > distance
        {
            left.extend([(from, at), (at, to)]);
        }
    }
    let kept: Vec<_> =
        line.iter().zip(stays).filter(|(_, stays)| *stays).map(|(at, _)| *at).collect();
    debug_assert!(kept.len() >= LINE_LEAST);
    kept
}

/// The same for a ring, from its first position and the one that is farthest from it; `None` when it collapses.
fn simpler_ring(ring: &[Position], distance: f64) -> Option<Vec<Position>> {
    let far = |at: &Position| (at.x - ring[0].x).hypot(at.y - ring[0].y);
    let (opposite, _) = ring.iter().enumerate().max_by(|a, b| far(a.1).total_cmp(&far(b.1)))?;
    if opposite == 0 || opposite == ring.len() - 1 {
        return None;
    }
    let mut kept = simpler_line(&ring[..=opposite], distance);
    kept.extend(simpler_line(&ring[opposite..], distance).into_iter().skip(1));
    (kept.len() >= RING_LEAST).then_some(kept)
}

/// How far a position is from the side between two others.
fn from_side(at: Position, from: Position, to: Position) -> f64 {
    let (dx, dy) = (to.x - from.x, to.y - from.y);
    let square = dx * dx + dy * dy;
    let along = match square {
        0.0 => 0.0,
        square => (((at.x - from.x) * dx + (at.y - from.y) * dy) / square).clamp(0.0, 1.0),
    };
    (at.x - from.x - along * dx).hypot(at.y - from.y - along * dy)
}

fn make_envelope(pair: Pair, _: &[Value]) -> Result<Value> {
    pair.plane_only()?;
    let (Shape::Point(_), Shape::Point(_)) = (&pair.first, &pair.second) else {
        return Err(Error::with(ErrorCode::WRONG_ARGUMENTS, &[&pair.name]));
    };
    let corners = Shape::Collection(vec![pair.first, pair.second]).bounds();
    Ok(corners.map_or(Value::Null, |corners| value(pair.system.srid, rectangle(corners))))
}

/// A line whose sides are straight or geodesics.
struct Line<'a> {
    positions: &'a [Position],
    ellipsoid: Option<Ellipsoid>,
}

type Along = fn(&Line<'_>, f64) -> Option<Shape>;

/// A function of a line and a number; 1690 where it makes `None`.
fn along(name: &'static str, args: &[ArgInfo], make: Along) -> Result<BoundFunction> {
    let coercions = vec![coercion(&args[0]), Coercion::Double];
    Ok(BoundFunction::new(DataType::geometry(), coercions, move |ctx, args| {
        let (geometry, system) = check::operand(ctx, name, &args[0])?;
        let Shape::LineString(positions) = &geometry.shape else {
            return Err(unexpected("LINESTRING", geometry.shape.kind(), name));
        };
        let line = Line { positions, ellipsoid: Ellipsoid::of(&system) };
        let made = make(&line, kit::double(&args[1]))
            .ok_or_else(|| Error::with(ErrorCode::DATA_OUT_OF_RANGE, &[&"Distance", &name]))?;
        Ok(value(geometry.srid, made))
    }))
}

impl Line<'_> {
    fn side_length(&self, side: &[Position]) -> f64 {
        match self.ellipsoid {
            None => (side[1].x - side[0].x).hypot(side[1].y - side[0].y),
            Some(ellipsoid) => ellipsoid.distance(side[0], side[1]),
        }
    }

    fn length(&self) -> f64 {
        self.positions.windows(2).map(|side| self.side_length(side)).sum()
    }

    /// The position at a distance along the line; beyond its end, the last position.
    fn at_length(&self, mut distance: f64) -> Position {
        for side in self.positions.windows(2) {
            let length = self.side_length(side);
            if distance <= length && length > 0.0 {
                return self.between(side, distance / length);
            }
            distance -= length;
        }
        self.positions[self.positions.len() - 1]
    }

    /// The position at a part of a side.
    fn between(&self, side: &[Position], part: f64) -> Position {
        match self.ellipsoid {
            Some(ellipsoid) => ellipsoid.between(side[0], side[1], part),
            None => {
                let between = |from: f64, to: f64| from + (to - from) * part;
                Position { x: between(side[0].x, side[1].x), y: between(side[0].y, side[1].y) }
            }
        }
    }
}

fn multiples(line: &Line<'_>, fraction: f64) -> Option<Shape> {
    if !(0.0..=1.0).contains(&fraction) {
        return None;
    }
    let count = if fraction == 0.0 { 0 } else { (1.0 / fraction).floor() as usize };
    if count > POINTS_MAX {
        return None;
    }
    let length = line.length();
    let steps = if count == 0 { 0..=0 } else { 1..=count };
    let points = steps.map(|step| line.at_length(step as f64 * fraction * length));
    Some(Shape::MultiPoint(points.collect()))
}
