//! The library combines areas on a grid of integers. Its results are snapped back to the original positions: those of the
//! operands, and the intersections of their sides.

use geo::algorithm::bool_ops::unary_union;
use geo::algorithm::line_intersection::{LineIntersection, line_intersection};
use geo::algorithm::orient::{Direction, Orient};
use geo::{Coord, Line, LineString, LinesIter, MultiPolygon, Polygon};

/// Parts of the extent of both operands that a step of the library's grid takes at most.
const GRID_STEPS: f64 = (1_u32 << 27) as f64;

/// Converts areas that may overlap to areas that do not.
pub(crate) fn merged(areas: Vec<Polygon<f64>>) -> MultiPolygon<f64> {
    let areas = MultiPolygon(areas);
    if areas.0.len() < 2 {
        return areas;
    }
    let grid = Grid::of(&areas, &areas, &meetings(&areas, &areas));
    // The library takes the direction of the first ring for that of all.
    grid.moved(unary_union(&areas.orient(Direction::Default).0))
}

/// The intersections of the sides of two areas: points, and the ends of shared segments.
pub(crate) fn meetings(first: &MultiPolygon<f64>, second: &MultiPolygon<f64>) -> Vec<Coord<f64>> {
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

/// The possible positions of vertices of a result, from left to right.
pub(crate) struct Grid {
    positions: Vec<Coord<f64>>,
    /// The distance by which the library may have moved a vertex.
    pub(crate) step: f64,
}

impl Grid {
    /// The vertices of both, and the intersections.
    pub(crate) fn of(
        first: &MultiPolygon<f64>,
        second: &MultiPolygon<f64>,
        meetings: &[Coord<f64>],
    ) -> Grid {
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

    /// The nearest known position, if one is within the tolerance.
    fn nearest(&self, at: Coord<f64>, within: f64) -> Option<Coord<f64>> {
        let from = self.positions.partition_point(|known| known.x < at.x - within);
        let near = self.positions[from..].iter().take_while(|known| known.x <= at.x + within);
        let apart = |known: &Coord<f64>| (known.x - at.x).hypot(known.y - at.y);
        let near = near.map(|known| (apart(known), *known)).filter(|(apart, _)| *apart <= within);
        near.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, known)| known)
    }

    /// Areas with their vertices moved to these positions.
    pub(crate) fn moved(&self, areas: MultiPolygon<f64>) -> MultiPolygon<f64> {
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
