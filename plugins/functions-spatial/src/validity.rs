//! Whether a geometry is well formed.

use std::borrow::Cow;

use errors::Result;
use geo::algorithm::coordinate_position::CoordPos;
use geo::algorithm::dimensions::Dimensions;
use geo::algorithm::line_intersection::{LineIntersection, line_intersection};
use geo::algorithm::relate::Relate;
use geo::{Area, Coord, Line, Polygon, Validation};
use plugin_api::kit::{any_nullable, scalar};
use plugin_api::{ArgInfo, Arity, BindContext, BoundFunction, FunctionContext, ScalarFunction};
use types::geometry::{Geometry, Position, ReferenceSystem, Shape, is_closed};
use types::{DataType, Value};

use crate::argument::{coercion, plane_only, value};
use crate::check;
use crate::flat::Flat;
use crate::geodesic::Ellipsoid;
use crate::pair::points;
use crate::planar::{Planar, line, planar};

/// Sides of a line that are compared with others between two checks for cancellation of the statement.
const SIDES_UNCHECKED: usize = 1024;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "ST_ISVALID",
        Arity::exactly(1),
        "ST_ISVALID(geometry)\nWhether a geometry is well formed: rings do not cross, lines have a length.",
        |_, args| {
            let ty = DataType::boolean().with_nullable(any_nullable(args));
            Ok(BoundFunction::new(ty, vec![coercion(&args[0])], |ctx, args| {
                let (geometry, system) = check::operand(ctx, "st_isvalid", &args[0])?;
                Ok(Value::bool(is_valid("st_isvalid", &geometry, &system)?))
            }))
        },
    ),
    scalar(
        "ST_VALIDATE",
        Arity::exactly(1),
        "ST_VALIDATE(geometry)\nThe geometry if it is well formed, else NULL.",
        |_, args| {
            let ty = DataType::geometry();
            Ok(BoundFunction::new(ty, vec![coercion(&args[0])], |ctx, args| {
                let (geometry, system) = check::operand(ctx, "st_validate", &args[0])?;
                Ok(match is_valid("st_validate", &geometry, &system)? {
                    true => value(geometry.srid, geometry.shape),
                    false => Value::Null,
                })
            }))
        },
    ),
    scalar(
        "ST_ISSIMPLE",
        Arity::exactly(1),
        "ST_ISSIMPLE(geometry)\nWhether a geometry does not meet itself.",
        bind_simple,
    ),
];

fn is_valid(name: &str, geometry: &Geometry, system: &ReferenceSystem) -> Result<bool> {
    if points(&geometry.shape).is_some() {
        return Ok(true);
    }
    let shape = flat(name, geometry, system)?;
    Ok(has_areas(&shape) && planar(&shape).is_valid())
}

/// The shape on a plane.
///
/// # Errors
/// 3618 for what spans nearly half of the Earth.
fn flat<'a>(
    name: &str,
    geometry: &'a Geometry,
    system: &ReferenceSystem,
) -> Result<Cow<'a, Shape>> {
    let shape = &geometry.shape;
    let (Some(ellipsoid), false) = (Ellipsoid::of(system), shape.is_empty()) else {
        return Ok(Cow::Borrowed(shape));
    };
    match Flat::one(ellipsoid, shape) {
        Some(flat) => Ok(Cow::Owned(flat)),
        None => plane_only(name, geometry, system).map(|()| Cow::Borrowed(shape)),
    }
}

/// Whether no ring of a polygon is flat.
fn has_areas(shape: &Shape) -> bool {
    let has_area =
        |ring: &Vec<Position>| Polygon::new(line(ring), Vec::new()).unsigned_area() != 0.0;
    match shape {
        Shape::Polygon(rings) => rings.iter().all(has_area),
        Shape::MultiPolygon(polygons) => polygons.iter().flatten().all(has_area),
        Shape::Collection(shapes) => shapes.iter().all(has_areas),
        Shape::Point(_)
        | Shape::MultiPoint(_)
        | Shape::LineString(_)
        | Shape::MultiLineString(_) => true,
    }
}

fn bind_simple(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = DataType::boolean().with_nullable(any_nullable(args));
    Ok(BoundFunction::new(ty, vec![coercion(&args[0])], |ctx, args| {
        let name = "st_issimple";
        let (geometry, system) = check::operand(ctx, name, &args[0])?;
        let shape = match points(&geometry.shape) {
            Some(_) => Cow::Borrowed(&geometry.shape),
            None => flat(name, &geometry, &system)?,
        };
        Ok(Value::bool(is_simple(ctx, &shape)?))
    }))
}

fn is_simple(ctx: &FunctionContext<'_>, shape: &Shape) -> Result<bool> {
    Ok(match shape {
        Shape::Point(_) => true,
        // Intersections of rings are a matter of validity.
        Shape::Polygon(rings) => rings.iter().all(|ring| has_no_repeats(ring)),
        Shape::MultiPolygon(polygons) => polygons.iter().flatten().all(|ring| has_no_repeats(ring)),
        Shape::MultiPoint(points) => {
            let mut sorted: Vec<_> = points.iter().map(|at| (at.x, at.y)).collect();
            sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
            sorted.windows(2).all(|pair| pair[0] != pair[1])
        }
        Shape::LineString(line) => is_simple_line(ctx, line)?,
        Shape::MultiLineString(lines) => {
            for line in lines {
                if !is_simple_line(ctx, line)? {
                    return Ok(false);
                }
            }
            let lines: Vec<_> = lines.iter().map(|part| Planar::LineString(line(part))).collect();
            meet_at_most(ctx, &lines, Meeting::Boundaries)?
        }
        Shape::Collection(shapes) => {
            for shape in shapes {
                if !is_simple(ctx, shape)? {
                    return Ok(false);
                }
            }
            let parts = shapes.iter().filter(|shape| !shape.is_empty()).map(planar);
            meet_at_most(ctx, &parts.collect::<Vec<_>>(), Meeting::Boundary)?
        }
    })
}

fn has_no_repeats(ring: &[Position]) -> bool {
    ring.windows(2).all(|side| side[0] != side[1])
}

/// The intersection that parts may have.
#[derive(Clone, Copy, PartialEq)]
enum Meeting {
    /// Points of both boundaries: the ends of lines.
    Boundaries,
    /// Points of one's boundary.
    Boundary,
}

/// Whether parts intersect no more than allowed.
fn meet_at_most(ctx: &FunctionContext<'_>, parts: &[Planar], at_most: Meeting) -> Result<bool> {
    for (place, first) in parts.iter().enumerate() {
        ctx.session.check_cancelled()?;
        for second in &parts[place + 1..] {
            let matrix = first.relate(second);
            let meet = |a, b| matrix.get(a, b) != Dimensions::Empty;
            let inside = meet(CoordPos::Inside, CoordPos::Inside);
            let boundary = meet(CoordPos::Inside, CoordPos::OnBoundary)
                || meet(CoordPos::OnBoundary, CoordPos::Inside);
            if inside || (boundary && at_most == Meeting::Boundaries) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Whether a line passes no position twice, except that its end may be its beginning.
fn is_simple_line(ctx: &FunctionContext<'_>, positions: &[Position]) -> Result<bool> {
    let sides: Vec<Line<f64>> = line(positions).lines().collect();
    if sides.iter().any(|side| side.start == side.end) {
        return Ok(false);
    }
    let last = sides.len() - 1;
    let closed = is_closed(positions);
    let left = |side: &Line<f64>| side.start.x.min(side.end.x);
    let right = |side: &Line<f64>| side.start.x.max(side.end.x);
    // From left to right, a side is compared with those that begin before it ends.
    let mut order: Vec<usize> = (0..sides.len()).collect();
    order.sort_by(|a, b| left(&sides[*a]).total_cmp(&left(&sides[*b])));
    let mut unchecked = 0;
    for (place, &one) in order.iter().enumerate() {
        for &other in &order[place + 1..] {
            if left(&sides[other]) > right(&sides[one]) {
                break;
            }
            unchecked += 1;
            if unchecked == SIDES_UNCHECKED {
                unchecked = 0;
                ctx.session.check_cancelled()?;
            }
            let (first, second) = (one.min(other), one.max(other));
            let shared: Option<Coord<f64>> = if second == first + 1 {
                Some(sides[first].end)
            } else if closed && first == 0 && second == last {
                Some(sides[first].start)
            } else {
                None
            };
            match line_intersection(sides[first], sides[second]) {
                None => {}
                Some(LineIntersection::SinglePoint { intersection, .. })
                    if shared == Some(intersection) => {}
                Some(_) => return Ok(false),
            }
        }
    }
    Ok(true)
}
