//! `ST_Union`, `ST_Intersection`, `ST_Difference` and `ST_SymDifference` of points and areas on the plane.
//!
//! The library puts areas together on a grid of integers. What it answers is moved to the positions that it came from: those of the
//! operands, and where their sides meet.

use errors::{Error, Result};
use geo::algorithm::coordinate_position::{CoordPos, CoordinatePosition};
use geo::algorithm::line_intersection::{LineIntersection, line_intersection};
use geo::{
    BooleanOps, Coord, Distance, Euclidean, Line, LineString, LinesIter, MultiPolygon, Point,
    Polygon, Validation,
};
use plugin_api::kit::scalar;
use plugin_api::{Arity, ScalarFunction};
use types::geometry::{Position, Shape};
use types::{DataType, Value};

use crate::argument::{invalid, value};
use crate::pair::{Pair, of_pair};
use crate::planar::{Planar, layers, one_or, shape};

/// Parts of the extent of both operands that a step of the library's grid takes at most.
const GRID_STEPS: f64 = (1_u32 << 27) as f64;

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

#[derive(Clone, Copy, PartialEq)]
enum Operation {
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
        self.points.contains(point) || self.areas.coordinate_position(&point.0) != CoordPos::Outside
    }
}

fn overlay(pair: Pair, operation: Operation) -> Result<Value> {
    pair.plane_only()?;
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
    points.retain(|point| areas.coordinate_position(&point.0) == CoordPos::Outside);
    points.sort_by(|a, b| a.x().total_cmp(&b.x()).then(a.y().total_cmp(&b.y())));
    points.dedup();
    Ok(value(pair.system.srid, together(points, areas)))
}

/// Points and areas as one shape, as simple as it can be.
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

/// # Errors
/// 1235 for an intersection of areas that have lines or points in common besides areas.
fn areas(
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
        // Where sides meet and no area is made, the areas touch only.
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

/// Where the sides of two areas meet: points, and the ends of what they share.
fn meetings(first: &MultiPolygon<f64>, second: &MultiPolygon<f64>) -> Vec<Coord<f64>> {
    let low = |side: &Line<f64>| side.start.x.min(side.end.x);
    let high = |side: &Line<f64>| side.start.x.max(side.end.x);
    let sorted = |areas: &MultiPolygon<f64>| {
        let mut sides: Vec<_> = areas.lines_iter().collect();
        sides.sort_by(|a, b| low(a).total_cmp(&low(b)));
        sides
    };
    let (first, second) = (sorted(first), sorted(second));
    let mut meetings = Vec::new();
    // From left to right: each side with those of the other that began before and have not ended.
    let (mut open_first, mut open_second): (Vec<Line<f64>>, Vec<Line<f64>>) =
        (Vec::new(), Vec::new());
    let (mut at_first, mut at_second) = (0, 0);
    loop {
        let (a, b) = (first.get(at_first), second.get(at_second));
        let takes_first = match (a, b) {
            (None, None) => return meetings,
            (Some(a), Some(b)) => low(a) <= low(b),
            (a, _) => a.is_some(),
        };
        let (side, own, others) = if takes_first {
            at_first += 1;
            (first[at_first - 1], &mut open_first, &mut open_second)
        } else {
            at_second += 1;
            (second[at_second - 1], &mut open_second, &mut open_first)
        };
        others.retain(|other| high(other) >= low(&side));
        for other in others.iter() {
            match line_intersection(side, *other) {
                None => {}
                Some(LineIntersection::SinglePoint { intersection, .. }) => {
                    meetings.push(intersection);
                }
                Some(LineIntersection::Collinear { intersection }) => {
                    meetings.extend([intersection.start, intersection.end]);
                }
            }
        }
        own.push(side);
    }
}

/// The positions that vertices of an answer can have, from left to right.
struct Grid {
    positions: Vec<Coord<f64>>,
    step: f64,
}

impl Grid {
    fn of(first: &MultiPolygon<f64>, second: &MultiPolygon<f64>, meetings: &[Coord<f64>]) -> Grid {
        let starts = first.lines_iter().chain(second.lines_iter()).map(|side| side.start);
        let mut positions: Vec<_> = starts.chain(meetings.iter().copied()).collect();
        positions.sort_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)));
        positions.dedup();
        let ends = |of: fn(&Coord<f64>) -> f64| {
            let all = || positions.iter().map(of);
            all().fold(f64::NEG_INFINITY, f64::max) - all().fold(f64::INFINITY, f64::min)
        };
        let extent = f64::max(ends(|at| at.x), ends(|at| at.y));
        Grid { step: extent / GRID_STEPS, positions }
    }

    /// The position nearest to another, where one is as near.
    fn nearest(&self, at: Coord<f64>, within: f64) -> Option<Coord<f64>> {
        let from = self.positions.partition_point(|known| known.x < at.x - within);
        let near = self.positions[from..].iter().take_while(|known| known.x <= at.x + within);
        let apart = |known: &Coord<f64>| (known.x - at.x).hypot(known.y - at.y);
        let near = near.map(|known| (apart(known), *known)).filter(|(apart, _)| *apart <= within);
        near.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, known)| known)
    }

    /// Areas with their vertices at these positions.
    fn moved(&self, areas: MultiPolygon<f64>) -> MultiPolygon<f64> {
        let ring = |ring: &LineString<f64>| {
            let mut coords: Vec<_> =
                ring.coords().map(|at| self.nearest(*at, self.step).unwrap_or(*at)).collect();
            coords.dedup();
            (coords.len() >= types::geometry::RING_LEAST).then(|| LineString::new(coords))
        };
        let polygon = |polygon: &Polygon<f64>| {
            let interiors = polygon.interiors().iter().filter_map(ring).collect();
            Some(Polygon::new(ring(polygon.exterior())?, interiors))
        };
        areas.iter().filter_map(polygon).collect()
    }
}
