//! Spatial relations of two geometries: the matrix of the intersections of their interiors, boundaries and exteriors (DE-9IM), of the
//! geometries themselves or of the rectangles around them.

use errors::{ErrorCode, Result};
use geo::Intersects;
use geo::algorithm::coordinate_position::CoordPos;
use geo::algorithm::dimensions::Dimensions;
use geo::algorithm::relate::{IntersectionMatrix, Relate};
use plugin_api::kit::scalar;
use plugin_api::{Arity, ScalarFunction};
use types::geometry::{Position, Shape};
use types::{DataType, Value};

use crate::flat;
use crate::geodesic::Ellipsoid;
use crate::pair::{Pair, of_pair, points};
use crate::place::{Place, place};
use crate::planar::{Planar, coord, layers, planar};
use crate::properties::{dimension, rectangle};

/// A function for each relation; each contains its own name for messages. `meet`: true only where the boxes of both have a point in common.
macro_rules! functions {
    ($relate:ident: $($name:literal $lower:literal $boxes:ident $test:expr, $help:literal;)*) => {
        &[$(functions!(@ $boxes scalar(
            $name,
            Arity::exactly(2),
            concat!($name, "(geometry, geometry)\n", $help),
            |_, args| {
                of_pair($lower, args, DataType::boolean(), &[], |pair, _| $relate(pair, $test))
            },
        ))),*]
    };
    (@ meet $function:expr) => { $function.where_boxes_meet() };
    (@ any $function:expr) => { $function };
}

pub(crate) const FUNCTIONS: &[ScalarFunction] = functions! { relate:
    "ST_CONTAINS" "st_contains" meet |m, _| Some(m.is_contains()), "Whether the first contains the second.";
    "ST_WITHIN" "st_within" meet |m, _| Some(m.is_within()), "Whether the first is within the second.";
    "ST_INTERSECTS" "st_intersects" meet |m, _| Some(m.is_intersects()), "Whether they have a point in common.";
    "ST_DISJOINT" "st_disjoint" any |m, _| Some(m.is_disjoint()), "Whether they have no point in common.";
    "ST_EQUALS" "st_equals" meet |m, of| Some(of[0] == of[1] && m.is_equal_topo()), "Whether they have the same points.";
    "ST_TOUCHES" "st_touches" meet touches, "Whether they have points of their boundaries in common, but none of their interiors.";
    "ST_CROSSES" "st_crosses" meet crosses, "Whether the first passes through the second.";
    "ST_OVERLAPS" "st_overlaps" meet overlaps, "Whether some of the first is in the second, of the same dimension.";
};

pub(crate) const OF_RECTANGLES: &[ScalarFunction] = functions! { relate_rectangles:
    "MBRCONTAINS" "mbrcontains" meet |m| m.is_contains(), "Whether the first one's rectangle contains the second one's.";
    "MBRWITHIN" "mbrwithin" meet |m| m.is_within(), "Whether the first one's rectangle is within the second one's.";
    "MBRCOVERS" "mbrcovers" meet |m| m.is_covers(), "Whether the first one's rectangle covers the second one's.";
    "MBRCOVEREDBY" "mbrcoveredby" meet |m| m.is_coveredby(), "Whether the first one's rectangle is covered by the second one's.";
    "MBRINTERSECTS" "mbrintersects" meet |m| m.is_intersects(), "Whether the rectangles have a point in common.";
    "MBRDISJOINT" "mbrdisjoint" any |m| m.is_disjoint(), "Whether the rectangles have no point in common.";
    "MBREQUALS" "mbrequals" meet |m| m.is_equal_topo(), "Whether the rectangles are the same.";
    "MBRTOUCHES" "mbrtouches" meet |m| m.is_touches(), "Whether the rectangles have points of their boundaries in common only.";
    "MBROVERLAPS" "mbroverlaps" meet overlap_at_all, "Whether each rectangle has points in common with the other, and others.";
};

/// Kinds of points, lines or areas: the dimensions of both.
type Of = [i64; 2];

fn touches(matrix: &IntersectionMatrix, of: Of) -> Option<bool> {
    // Points have no boundary.
    (of != [0, 0]).then(|| matrix.is_touches())
}

fn crosses(matrix: &IntersectionMatrix, of: Of) -> Option<bool> {
    // Points cannot be crossed, and areas cannot cross.
    (of[0] != 2 && of[1] != 0).then(|| matrix.is_crosses())
}

fn overlaps(matrix: &IntersectionMatrix, of: Of) -> Option<bool> {
    (of[0] == of[1]).then(|| matrix.is_overlaps())
}

fn overlap_at_all(matrix: &IntersectionMatrix) -> bool {
    let meet = |first, second| matrix.get(first, second) != Dimensions::Empty;
    meet(CoordPos::Inside, CoordPos::Inside)
        && meet(CoordPos::Inside, CoordPos::Outside)
        && meet(CoordPos::Outside, CoordPos::Inside)
}

/// The result for a geometry without points: only equality is defined.
fn of_nothing(pair: &Pair) -> Option<Value> {
    let (first, second) = (pair.first.is_empty(), pair.second.is_empty());
    let equality = matches!(pair.name, "st_equals" | "mbrequals");
    (first || second).then(|| match equality {
        true => Value::bool(first && second),
        false => Value::Null,
    })
}

fn relate(pair: Pair, test: fn(&IntersectionMatrix, Of) -> Option<bool>) -> Result<Value> {
    if let Some(answer) = of_nothing(&pair) {
        return Ok(answer);
    }
    let of = [&pair.first, &pair.second].map(|shape| dimension(shape).unwrap_or(0));
    // On an ellipsoid only points have no curved sides.
    let bends = points(&pair.first).is_none() || points(&pair.second).is_none();
    let Some(ellipsoid) = Ellipsoid::of(&pair.system).filter(|_| bends) else {
        return relate_on_plane(pair, of, test);
    };
    if let Some(answer) = relate_points(&pair, |at, shape| ellipsoid.place(at, shape)) {
        return Ok(answer);
    }
    if flat::are_apart(&pair.first, &pair.second) {
        return Ok(test(&IntersectionMatrix::empty(), of).map_or(Value::Null, Value::bool));
    }
    let (_, first, second) = pair.flat(ellipsoid)?;
    relate_on_plane(Pair { first, second, ..pair }, of, test)
}

fn relate_on_plane(
    pair: Pair,
    of: Of,
    test: fn(&IntersectionMatrix, Of) -> Option<bool>,
) -> Result<Value> {
    let whole = |shape: &Shape| !matches!(shape, Shape::Collection(_));
    if whole(&pair.first) && whole(&pair.second) && are_apart(&pair) {
        return Ok(test(&IntersectionMatrix::empty(), of).map_or(Value::Null, Value::bool));
    }
    let (first, second) = (reduced(layers(&pair.first)), reduced(layers(&pair.second)));
    // A point's place is found without a graph of all sides.
    if let ([first], [second]) = (&first[..], &second[..]) {
        let layer = if points(&pair.first).is_some() { second } else { first };
        if let Some(answer) = relate_points(&pair, |at, _| place(coord(at), layer)) {
            return Ok(answer);
        }
    }
    // Nor is a graph needed to decide whether they meet.
    match (pair.name, &first[..], &second[..]) {
        ("st_intersects", ..) => Ok(Value::bool(meet(&first, &second))),
        ("st_disjoint", ..) => Ok(Value::bool(!meet(&first, &second))),
        (_, [first], [second]) => {
            Ok(test(&first.relate(second), of).map_or(Value::Null, Value::bool))
        }
        // For mixed points, lines and areas no other relation is implemented.
        _ => Err(pair.not_for(match pair.system.is_geographic() {
            true => ErrorCode::NOT_IMPLEMENTED_FOR_GEOGRAPHIC_SRS,
            false => ErrorCode::NOT_IMPLEMENTED_FOR_CARTESIAN_SRS,
        })),
    }
}

/// Layers without the points that are on its lines or in its areas, and without the lines if all are within its areas: the same positions.
fn reduced(mut layers: Vec<Planar>) -> Vec<Planar> {
    // They are in the order of their dimensions.
    let mut place = layers.len().saturating_sub(1);
    while place > 0 {
        place -= 1;
        let (lower, higher) = layers.split_at_mut(place + 1);
        match &mut lower[place] {
            Planar::MultiPoint(points) => {
                points.0.retain(|point| !higher.iter().any(|layer| layer.intersects(point)));
                if points.0.is_empty() {
                    layers.remove(place);
                }
            }
            lines => {
                if higher.iter().any(|areas| lines.relate(areas).is_coveredby()) {
                    layers.remove(place);
                }
            }
        }
    }
    layers
}

/// Whether two geometries on a plane, of points, lines and areas, have a point in common.
pub(crate) fn meet(first: &[Planar], second: &[Planar]) -> bool {
    first.iter().any(|a| second.iter().any(|b| a.intersects(b)))
}

/// Whether the rectangles around two geometries have no point in common.
fn are_apart(pair: &Pair) -> bool {
    let (Some([low, high]), Some([other_low, other_high])) =
        (pair.first.bounds(), pair.second.bounds())
    else {
        return false;
    };
    low.x > other_high.x || other_low.x > high.x || low.y > other_high.y || other_low.y > high.y
}

/// Positions of points relative to lines or areas, or the reverse; `None` where they are not known.
fn relate_points(pair: &Pair, place: impl Fn(Position, &Shape) -> Option<Place>) -> Option<Value> {
    let (positions, shape, points_first) = match (points(&pair.first), points(&pair.second)) {
        (Some(positions), None) => (positions, &pair.second, true),
        (None, Some(positions)) => (positions, &pair.first, false),
        _ => return None,
    };
    let places = positions.iter().map(|at| place(*at, shape));
    let places = places.collect::<Option<Vec<_>>>()?;
    let any = |place| places.contains(&place);
    let (inside, boundary, outside) =
        (any(Place::Inside), any(Place::Boundary), any(Place::Outside));
    let answer = match pair.name {
        "st_intersects" => inside || boundary,
        "st_disjoint" => !inside && !boundary,
        "st_within" => points_first && inside && !outside,
        "st_contains" => !points_first && inside && !outside,
        "st_touches" => !inside && boundary,
        "st_crosses" if points_first => inside && outside,
        "st_equals" => false,
        // Nothing passes through points, and points overlap points only.
        "st_crosses" | "st_overlaps" => return Some(Value::Null),
        _ => return None,
    };
    Some(Value::bool(answer))
}

fn relate_rectangles(pair: Pair, test: fn(&IntersectionMatrix) -> bool) -> Result<Value> {
    if let Some(answer) = of_nothing(&pair) {
        return Ok(answer);
    }
    let bounds = |shape: &Shape| match Ellipsoid::of(&pair.system) {
        None => shape.bounds(),
        Some(ellipsoid) => ellipsoid.bounds(shape),
    };
    let (Some(first), Some(second)) = (bounds(&pair.first), bounds(&pair.second)) else {
        return Err(pair.not_for(ErrorCode::NOT_IMPLEMENTED_FOR_GEOGRAPHIC_SRS));
    };
    let matrix = planar(&rectangle(first)).relate(&planar(&rectangle(second)));
    Ok(Value::bool(test(&matrix)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test")]

    use types::geometry::cells::{row_cells, searched_cells};
    use types::geometry::{Geometry, GeometryKind, KnownSystem, SpatialType};

    use super::*;

    /// Numbers that repeat for a seed.
    struct Numbers(u64);

    impl Numbers {
        fn below(&mut self, end: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % end
        }

        /// From -1 to 1.
        fn part(&mut self) -> f64 {
            match self.below(4) {
                0 => self.below(9) as f64 / 4.0 - 1.0,
                1 => (self.below(2001) as f64 - 1000.0) * 1e-9,
                _ => self.below(2_000_001) as f64 / 1e6 - 1.0,
            }
        }

        fn shape(&mut self, geographic: bool) -> Shape {
            let size = match self.below(5) {
                _ if geographic => 1.0,
                0 => 1e100,
                1 => 1e-3,
                _ => 100.0,
            };
            let extent = [1e-7, 0.01, 0.1, 0.9][self.below(4) as usize];
            let (x, y) = (self.part(), self.part());
            let limits = if geographic { [180.0, 90.0] } else { [size, size] };
            let at = |dx: f64, dy: f64| Position {
                x: (x + dx * extent).clamp(-1.0, 1.0) * limits[0],
                y: (y + dy * extent).clamp(-1.0, 1.0) * limits[1],
            };
            match self.below(4) {
                0 => Shape::Point(at(0.0, 0.0)),
                1 => Shape::LineString(vec![at(0.0, 0.0), at(1.0, self.part())]),
                2 => Shape::MultiPoint(vec![at(0.0, 0.0), at(self.part(), self.part())]),
                _ => {
                    let ring = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0), (0.0, 0.0)];
                    Shape::Polygon(vec![ring.iter().map(|(dx, dy)| at(*dx, *dy)).collect()])
                }
            }
        }
    }

    /// Every relation that is true only where boxes meet implies one of these two.
    fn meet(first: &Shape, second: &Shape, srid: u32) -> bool {
        let Some(system) = KnownSystem::built_in(srid) else { return false };
        let pair = |name| Pair {
            name,
            first: first.clone(),
            second: second.clone(),
            system: system.clone(),
        };
        let is_true = |answer: Result<Value>| answer.is_ok_and(|value| value == Value::bool(true));
        is_true(relate(pair("st_intersects"), |m, _| Some(m.is_intersects())))
            || is_true(relate_rectangles(pair("mbrintersects"), |m| m.is_intersects()))
    }

    #[test]
    fn the_antimeridian_is_one_meridian() {
        let at = |(x, y)| Position { x, y };
        for west in [158.65902000000003, 169.48098000000002, 134.67114] {
            let ring = [(west, 45.0), (180.0, 45.0), (180.0, 80.0), (west, 80.0), (west, 45.0)];
            let area = Shape::Polygon(vec![ring.map(at).to_vec()]);
            for (latitude, is_met) in [(-45.0, false), (44.0, false), (60.0, true), (85.0, false)] {
                for longitude in [-180.0, 180.0] {
                    let point = Shape::Point(at((longitude, latitude)));
                    assert_eq!(meet(&point, &area, 4326), is_met, "{west} {longitude} {latitude}");
                }
            }
        }
    }

    #[test]
    fn a_spatial_index_misses_no_row() {
        let seed = std::env::var("SQUALL_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
        println!("SQUALL_SEED={seed}");
        let mut numbers = Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let (mut met, mut found, runs) = (0, 0, 6000);
        for _ in 0..runs {
            let srid = if numbers.below(2) == 0 { 0 } else { 4326 };
            let [row, wanted] = [0; 2].map(|_| numbers.shape(srid != 0));
            let [stored, searched] =
                [&row, &wanted].map(|shape| Geometry { srid, shape: shape.clone() }.to_bytes());
            let column = SpatialType { kind: GeometryKind::Geometry, srid: Some(srid) };
            let ranges = searched_cells(&searched, column).expect("the same system, not empty");
            let is_in = |cell: &u64| ranges.iter().any(|(low, high)| low <= cell && cell <= high);
            let is_found = row_cells(&stored).iter().any(is_in);
            let meets = meet(&row, &wanted, srid);
            assert!(is_found || !meets, "SQUALL_SEED={seed}: {srid} {row:?} {wanted:?}");
            met += u32::from(meets);
            found += u32::from(is_found);
        }
        println!("{met} of {runs} pairs meet, {found} are found");
        assert!(met > runs / 50 && found < runs);
    }
}
