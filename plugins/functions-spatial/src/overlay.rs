//! `ST_Union`, `ST_Intersection`, `ST_Difference` and `ST_SymDifference` of points and areas on the plane.

use errors::{Error, Result};
use geo::{BooleanOps, Coord, Distance, Euclidean, MultiPolygon, Point, Validation};
use plugin_api::kit::scalar;
use plugin_api::{Arity, ScalarFunction};
use types::geometry::{Position, Shape};
use types::{DataType, Value};

use crate::argument::{invalid, value};
use crate::geodesic::Ellipsoid;
use crate::grid::{Grid, meetings};
use crate::pair::{Pair, of_pair, points};
use crate::place::{Place, in_areas};
use crate::planar::{Planar, layers, one_or, shape};
use crate::transform::oriented;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "ST_UNION",
        Arity::exactly(2),
        "ST_UNION(geometry, geometry)\nWhat is in either geometry.",
        |_, args| {
            of_pair("st_union", args, DataType::geometry(), &[], |pair, _| {
                overlay(pair, Operation::Union)
            })
        },
    ),
    scalar(
        "ST_INTERSECTION",
        Arity::exactly(2),
        "ST_INTERSECTION(geometry, geometry)\nWhat is in both geometries.",
        |_, args| {
            of_pair("st_intersection", args, DataType::geometry(), &[], |pair, _| {
                overlay(pair, Operation::Intersection)
            })
        },
    ),
    scalar(
        "ST_DIFFERENCE",
        Arity::exactly(2),
        "ST_DIFFERENCE(geometry, geometry)\nWhat is in the first geometry and not in the second.",
        |_, args| {
            of_pair("st_difference", args, DataType::geometry(), &[], |pair, _| {
                overlay(pair, Operation::Difference)
            })
        },
    ),
    scalar(
        "ST_SYMDIFFERENCE",
        Arity::exactly(2),
        "ST_SYMDIFFERENCE(geometry, geometry)\nWhat is in one of the geometries and not in the other.",
        |_, args| {
            of_pair("st_symdifference", args, DataType::geometry(), &[], |pair, _| {
                overlay(pair, Operation::SymDifference)
            })
        },
    ),
];

/// How two geometries make one.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Operation {
    Union,
    Intersection,
    Difference,
    SymDifference,
}

/// The points and the areas of a geometry.
struct Parts {
    points: Vec<Point<f64>>,
    areas: MultiPolygon<f64>,
}

impl Parts {
    /// # Errors
    /// 3037 for areas that are not well formed, 1235 for lines.
    fn of(name: &str, of: &Shape) -> Result<Parts> {
        let mut parts = Parts { points: Vec::new(), areas: MultiPolygon(Vec::new()) };
        for layer in layers(of) {
            match layer {
                Planar::Point(point) => parts.points.push(point),
                Planar::MultiPoint(points) => parts.points.extend(points),
                Planar::Polygon(polygon) => parts.areas = MultiPolygon(vec![polygon]),
                Planar::MultiPolygon(areas) => parts.areas = areas,
                _ => {
                    let what = format!("{} of lines", name.to_ascii_uppercase());
                    return Err(Error::not_supported(&what));
                }
            }
        }
        if parts.areas.is_valid() { Ok(parts) } else { Err(invalid(name)) }
    }

    fn has(&self, point: &Point<f64>) -> bool {
        self.points.contains(point) || in_areas(point.0, &self.areas.0) != Place::Outside
    }
}

fn overlay(pair: Pair, operation: Operation) -> Result<Value> {
    let only_points = points(&pair.first).is_some() && points(&pair.second).is_some();
    let srid = pair.system.srid;
    match Ellipsoid::of(&pair.system).filter(|_| !only_points) {
        None => Ok(value(srid, on_plane(pair, operation)?)),
        Some(ellipsoid) => {
            // Empty geometries have no place of their own.
            if pair.first.is_empty() && pair.second.is_empty() {
                return Ok(value(srid, Shape::Collection(Vec::new())));
            }
            let (flat, first, second) = pair.flat(ellipsoid)?;
            let made = on_plane(Pair { first, second, ..pair }, operation)?;
            Ok(value(srid, flat.back(&made)))
        }
    }
}

fn on_plane(pair: Pair, operation: Operation) -> Result<Shape> {
    let first = Parts::of(pair.name, &pair.first)?;
    let second = Parts::of(pair.name, &pair.second)?;
    let areas = areas(pair.name, &first.areas, &second.areas, operation)?;
    let of = |parts: &Parts, other: &Parts, shared: bool| -> Vec<Point<f64>> {
        parts.points.iter().filter(|point| other.has(point) == shared).copied().collect()
    };
    let mut points = match operation {
        Operation::Union => [&first.points[..], &second.points].concat(),
        Operation::Intersection => [of(&first, &second, true), of(&second, &first, true)].concat(),
        Operation::Difference => of(&first, &second, false),
        Operation::SymDifference => {
            [of(&first, &second, false), of(&second, &first, false)].concat()
        }
    };
    points.retain(|point| in_areas(point.0, &areas.0) == Place::Outside);
    points.sort_by(|a, b| a.x().total_cmp(&b.x()).then(a.y().total_cmp(&b.y())));
    points.dedup();
    Ok(oriented(together(points, areas)))
}

/// Points and areas as one shape, in the simplest form.
fn together(points: Vec<Point<f64>>, areas: MultiPolygon<f64>) -> Shape {
    let points = points.into_iter().map(|at| Position { x: at.x(), y: at.y() }).collect();
    let points = one_or(points, Shape::Point, Shape::MultiPoint);
    let areas = shape(Planar::MultiPolygon(areas));
    match (areas.is_empty(), points.is_empty()) {
        (true, _) => points,
        (_, true) => areas,
        (false, false) => Shape::Collection(vec![areas, points]),
    }
}

/// The areas that an operation makes of two sets of areas.
///
/// # Errors
/// 1235 for an intersection of areas that have lines or points in common besides areas.
pub(crate) fn areas(
    name: &str,
    first: &MultiPolygon<f64>,
    second: &MultiPolygon<f64>,
    operation: Operation,
) -> Result<MultiPolygon<f64>> {
    if first.0.is_empty() || second.0.is_empty() {
        return Ok(match operation {
            Operation::Intersection => MultiPolygon(Vec::new()),
            Operation::Difference => first.clone(),
            Operation::Union | Operation::SymDifference => {
                MultiPolygon([&first.0[..], &second.0].concat())
            }
        });
    }
    let made = match operation {
        Operation::Union => first.union(second),
        Operation::Intersection => first.intersection(second),
        Operation::Difference => first.difference(second),
        Operation::SymDifference => first.xor(second),
    };
    let meetings = meetings(first, second);
    let grid = Grid::of(first, second, &meetings);
    let made = grid.moved(made);
    if operation == Operation::Intersection {
        // Where sides meet without a common area, the areas only touch.
        let apart = |at: &Coord<f64>| {
            made.0.is_empty() || Euclidean.distance(&Point(*at), &made) > grid.step
        };
        if meetings.iter().any(apart) {
            let what = format!("{} of areas that touch", name.to_ascii_uppercase());
            return Err(Error::not_supported(&what));
        }
    }
    Ok(made)
}
