//! The cells that an index over geometries has entries for (`docs/format/key.md`): a quadtree over the plane, whose cells are numbered so
//! that those inside a cell are one range of numbers.
//!
//! Invariant: if the boxes of two geometries of one reference system meet, then a cell of one is, contains or is inside a cell of the other.
//! It is all that a search needs; its condition is checked on each row that it finds.

use std::collections::VecDeque;

use super::{Geometry, GeometryKind, Position, Shape, SpatialType, reference_system};

/// The level of the smallest cells; the whole plane is at level 0.
const LEVEL_MAX: u32 = 31;
/// Positions on an axis at that level.
const SIDE: u32 = 1 << LEVEL_MAX;
/// The smallest cells of a search: what is inside them is read as one range.
const SEARCH_LEVEL_MAX: u32 = 24;
/// Most cells of a row.
const ROW_CELLS: usize = 4;
/// Most cells of a search.
const SEARCH_CELLS: usize = 16;
/// The cell of everything.
const WORLD: u64 = 1 << (2 * LEVEL_MAX);

/// A searched box is larger by this: relations of geometries allow for the rounding of coordinates. Degrees.
const MARGIN_DEGREES: f64 = 1e-6;
/// Likewise, of the distance from the origin on a plane.
const MARGIN_SHARE: f64 = 1e-9;
/// Beyond it all coordinates of a plane are in the last cells.
const PLANE_MAX: f64 = 18_446_744_073_709_551_616.0;
/// Longitudes on an ellipsoid differ by less from those on the sphere on which its geodesics are great circles.
const GEODESIC_SHARE: f64 = 1.01;

/// The cells of a stored geometry, in order; at least one.
pub fn row_cells(geometry: &[u8]) -> Vec<u64> {
    let known = Geometry::read(geometry).ok();
    match known.and_then(|geometry| Some((bounds(&geometry)?, is_geographic(geometry.srid)))) {
        Some((bounds, geographic)) => {
            let mut cells = cover(&Square::of(&bounds, geographic), LEVEL_MAX, ROW_CELLS);
            cells.sort_unstable();
            cells
        }
        // Any search reads the cell of everything.
        None => vec![WORLD],
    }
}

/// The ranges of cells, both ends included, in which each row of a column has a cell whose box meets that of `geometry`; `None` for all: of a
/// geometry of another reference system, or without a position.
pub fn searched_cells(geometry: &[u8], column: SpatialType) -> Option<Vec<(u64, u64)>> {
    let srid = column.srid?;
    let geometry = Geometry::read(geometry).ok().filter(|geometry| geometry.srid == srid)?;
    let geographic = is_geographic(srid);
    let bounds = widened(bounds(&geometry)?, geographic);
    let mut ranges = Vec::new();
    for cell in cover(&Square::of(&bounds, geographic), SEARCH_LEVEL_MAX, SEARCH_CELLS) {
        let size = cell & cell.wrapping_neg();
        ranges.push((cell - (size - 1), cell + (size - 1)));
        // Points are in no larger cells.
        if has_one_cell(column.kind) {
            continue;
        }
        let mut above = cell;
        while above != WORLD {
            let size = (above & above.wrapping_neg()) << 2;
            above = (above & !(size | (size - 1))) | size;
            ranges.push((above, above));
        }
    }
    ranges.sort_unstable();
    ranges.dedup();
    Some(ranges)
}

fn is_geographic(srid: u32) -> bool {
    reference_system(srid).is_some_and(|system| system.is_geographic())
}

/// The box of a geometry; of a geographic one with all of its edges, which are geodesics.
fn bounds(geometry: &Geometry) -> Option<[Position; 2]> {
    let bounds = geometry.shape.bounds()?;
    if !is_geographic(geometry.srid) {
        return Some(bounds);
    }
    let mut edges = bounds;
    each_edge(&geometry.shape, &mut |from, to| add_edge(from, to, &mut edges));
    Some(on_globe(edges))
}

/// Adds an edge on the globe: a geodesic has its highest latitude between its ends, and goes the shorter way around.
fn add_edge(from: Position, to: Position, bounds: &mut [Position; 2]) {
    let [low, high] = bounds;
    let turn = (to.x - from.x).abs() * GEODESIC_SHARE;
    if turn >= 180.0 {
        (low.x, high.x, low.y, high.y) = (-180.0, 180.0, -90.0, 90.0);
        return;
    }
    // The highest latitude of a great circle between two of its points is at most this. The library computes the same on every machine:
    // an entry is found again by the cells of its row.
    let half = libm::cos((turn / 2.0).to_radians());
    let top = |at: f64| libm::atan(libm::tan(at.to_radians()) / half).to_degrees();
    let (south, north) = (from.y.min(to.y), from.y.max(to.y));
    if turn > 0.0 && north > 0.0 {
        high.y = high.y.max(top(north));
    }
    if turn > 0.0 && south < 0.0 {
        low.y = low.y.min(top(south));
    }
}

/// The ends of a pole's longitudes meet, and so do those of 180 degrees.
fn on_globe(mut bounds: [Position; 2]) -> [Position; 2] {
    let [low, high] = &mut bounds;
    let is_pole = low.y <= -90.0 || high.y >= 90.0;
    if low.x == high.x && low.x.abs() >= 180.0 && !is_pole {
        (low.x, high.x) = (-180.0, -180.0);
    } else if is_pole || low.x <= -180.0 || high.x >= 180.0 {
        (low.x, high.x) = (-180.0, 180.0);
    }
    bounds
}

fn widened([low, high]: [Position; 2], geographic: bool) -> [Position; 2] {
    let margin = |at: f64| match geographic {
        true => MARGIN_DEGREES,
        false => (1.0 + at.abs()) * MARGIN_SHARE,
    };
    let bounds = [
        Position { x: low.x - margin(low.x), y: low.y - margin(low.y) },
        Position { x: high.x + margin(high.x), y: high.y + margin(high.y) },
    ];
    if geographic { on_globe(bounds) } else { bounds }
}

fn each_edge(shape: &Shape, visit: &mut impl FnMut(Position, Position)) {
    let mut line = |line: &Vec<Position>| {
        line.windows(2).for_each(|ends| visit(ends[0], ends[1]));
    };
    match shape {
        Shape::Point(_) | Shape::MultiPoint(_) => {}
        Shape::LineString(positions) => line(positions),
        Shape::Polygon(lines) | Shape::MultiLineString(lines) => lines.iter().for_each(line),
        Shape::MultiPolygon(polygons) => polygons.iter().flatten().for_each(line),
        Shape::Collection(shapes) => shapes.iter().for_each(|shape| each_edge(shape, visit)),
    }
}

/// A box in positions of the smallest cells.
struct Square {
    low: [u32; 2],
    high: [u32; 2],
}

impl Square {
    fn of([low, high]: &[Position; 2], geographic: bool) -> Square {
        let place = |at: &Position| match geographic {
            true => [share((at.x + 180.0) / 360.0), share((at.y + 90.0) / 180.0)],
            false => [on_axis(at.x), on_axis(at.y)],
        };
        let is_known = [low.x, low.y, high.x, high.y].iter().all(|at| !at.is_nan());
        match is_known {
            true => Square { low: place(low), high: place(high) },
            false => Square { low: [0, 0], high: [SIDE - 1, SIDE - 1] },
        }
    }

    /// Whether the box meets a cell, and whether it holds the whole of it.
    fn meets(&self, cell: &Cell) -> (bool, bool) {
        let last = (1u32 << (LEVEL_MAX - cell.level)) - 1;
        let (mut meets, mut holds) = (true, true);
        for axis in 0..2 {
            let (from, to) = (cell.at[axis], cell.at[axis] + last);
            meets &= from <= self.high[axis] && self.low[axis] <= to;
            holds &= self.low[axis] <= from && to <= self.high[axis];
        }
        (meets, holds)
    }
}

/// The position of a share of an axis.
fn share(share: f64) -> u32 {
    // The conversion clamps.
    ((share * f64::from(SIDE)) as u32).min(SIDE - 1)
}

/// The position of a coordinate of a plane, in the order of coordinates: even up to 1, then an equal part of the axis for each power of two.
fn on_axis(at: f64) -> u32 {
    /// Bits of a fraction that the smallest cells do not tell apart.
    const DROPPED: u32 = 28;
    let size = (at.abs().min(PLANE_MAX) + 1.0).to_bits() - 1f64.to_bits();
    let size = ((size >> DROPPED) as u32).min(SIDE / 2 - 1);
    if at < 0.0 { SIDE / 2 - 1 - size } else { SIDE / 2 + size }
}

/// A cell by its lowest position.
#[derive(Clone, Copy)]
struct Cell {
    level: u32,
    at: [u32; 2],
}

impl Cell {
    fn id(&self) -> u64 {
        let code = spread(self.at[0]) << 1 | spread(self.at[1]);
        let rest = 2 * (LEVEL_MAX - self.level);
        (code >> rest << 1 | 1) << rest
    }

    fn children(&self) -> [Cell; 4] {
        let level = self.level + 1;
        let side = 1u32 << (LEVEL_MAX - level);
        [[0, 0], [0, side], [side, 0], [side, side]]
            .map(|[x, y]| Cell { level, at: [self.at[0] + x, self.at[1] + y] })
    }
}

/// Puts a zero before each bit.
fn spread(bits: u32) -> u64 {
    let mut bits = u64::from(bits);
    for (shift, mask) in [
        (16, 0x0000_FFFF_0000_FFFF),
        (8, 0x00FF_00FF_00FF_00FF),
        (4, 0x0F0F_0F0F_0F0F_0F0F),
        (2, 0x3333_3333_3333_3333),
        (1, 0x5555_5555_5555_5555),
    ] {
        bits = (bits | bits << shift) & mask;
    }
    bits
}

/// At most `max` cells that hold the box, none inside another and none below level `deepest`: the largest ones are split while there is room.
fn cover(square: &Square, deepest: u32, max: usize) -> Vec<u64> {
    let differs = (square.low[0] ^ square.high[0]) | (square.low[1] ^ square.high[1]);
    let level = (differs.leading_zeros() - 1).min(deepest);
    let keep = |at: u32| match level {
        0 => 0,
        level => at >> (LEVEL_MAX - level) << (LEVEL_MAX - level),
    };
    let common = Cell { level, at: square.low.map(keep) };
    let mut cells = Vec::with_capacity(max);
    let mut open = VecDeque::from([common]);
    while let Some(cell) = open.pop_front() {
        let (_, is_inside) = square.meets(&cell);
        if cell.level == deepest || is_inside {
            cells.push(cell.id());
            continue;
        }
        let parts = cell.children().into_iter().filter(|part| square.meets(part).0);
        let parts: Vec<Cell> = parts.collect();
        if cells.len() + open.len() + parts.len() > max {
            cells.push(cell.id());
        } else {
            open.extend(parts);
        }
    }
    cells
}

/// Whether each value of a column of this kind has one cell.
pub fn has_one_cell(kind: GeometryKind) -> bool {
    kind == GeometryKind::Point
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test")]

    use super::*;

    /// Numbers that repeat for a seed.
    struct Numbers(u64);

    impl Numbers {
        fn next(&mut self) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0
        }

        fn below(&mut self, end: u64) -> u64 {
            self.next() % end
        }

        fn coordinate(&mut self) -> f64 {
            let small = self.below(2001) as f64 - 1000.0;
            match self.below(8) {
                0 => small,
                1 => small / 1000.0,
                2 => small * 1e-300,
                3 => small * 1e304,
                4 => small * 1e15,
                5 => (self.below(41) as f64 - 20.0).exp2(),
                6 => -(self.below(41) as f64 - 20.0).exp2(),
                _ => (self.below(41) as f64) - 20.0,
            }
        }

        fn shape(&mut self) -> Shape {
            let from = Position { x: self.coordinate(), y: self.coordinate() };
            let to = match self.below(3) {
                0 => from,
                1 => Position { x: self.coordinate(), y: self.coordinate() },
                _ => Position { x: from.x + 0.001, y: from.y * 1.000_001 },
            };
            if from == to { Shape::Point(from) } else { Shape::LineString(vec![from, to]) }
        }
    }

    fn of(srid: u32) -> SpatialType {
        SpatialType { kind: GeometryKind::Geometry, srid: Some(srid) }
    }

    fn finds(row: &[u8], ranges: &[(u64, u64)]) -> bool {
        let is_in = |cell: &u64| ranges.iter().any(|(low, high)| (low..=high).contains(&cell));
        row_cells(row).iter().any(is_in)
    }

    #[test]
    fn boxes_that_meet_share_cells() {
        let seed = u64::from(std::process::id());
        let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15 ^ seed);
        println!("seed {seed}");
        let (mut met, mut found, mut checked) = (0, 0, 0);
        for _ in 0..40_000 {
            let (one, other) = (numbers.shape(), numbers.shape());
            let (Some(a), Some(b)) = (one.bounds(), other.bounds()) else { continue };
            let meets =
                a[0].x <= b[1].x && b[0].x <= a[1].x && a[0].y <= b[1].y && b[0].y <= a[1].y;
            let stored = |shape: Shape| Geometry { srid: 0, shape }.to_bytes();
            let (one, other) = (stored(one), stored(other));
            let cells = row_cells(&one);
            assert!((1..=ROW_CELLS).contains(&cells.len()), "seed {seed}");
            let ranges = searched_cells(&other, of(0)).unwrap();
            let is_found = finds(&one, &ranges);
            assert!(is_found || !meets, "seed {seed}: {a:?} {b:?}");
            checked += 1;
            met += u32::from(meets);
            found += u32::from(is_found);
        }
        assert!(met > 500 && found < checked / 2, "{met} {found} {checked}");
    }

    #[test]
    fn positions_keep_the_order_of_coordinates() {
        let mut numbers = Numbers(7);
        let mut all: Vec<f64> = (0..10_000).map(|_| numbers.coordinate()).collect();
        all.extend([f64::MAX, f64::MIN, 0.0, -0.0, f64::MIN_POSITIVE, -f64::MIN_POSITIVE]);
        all.sort_by(f64::total_cmp);
        assert!(all.windows(2).all(|pair| on_axis(pair[0]) <= on_axis(pair[1])));
        assert_eq!((on_axis(f64::MIN), on_axis(f64::MAX)), (0, SIDE - 1));
        assert!(on_axis(1000.0) < on_axis(1000.0001));
    }

    #[test]
    fn a_cell_is_in_the_range_of_those_above() {
        let point = |x: f64, y: f64| Geometry { srid: 0, shape: Shape::Point(Position { x, y }) };
        let cells = row_cells(&point(3.3, 4.7).to_bytes());
        assert_eq!(cells.len(), 1);
        assert_eq!(cells[0] & 1, 1);
        let ranges = searched_cells(&point(3.3, 4.7).to_bytes(), of(0)).unwrap();
        assert!(ranges.contains(&(WORLD, WORLD)) && ranges.len() <= 40, "{ranges:?}");
        let points = SpatialType { kind: GeometryKind::Point, srid: Some(0) };
        let of_points = searched_cells(&point(3.3, 4.7).to_bytes(), points).unwrap();
        assert!(of_points.len() == 1 && finds(&point(3.3, 4.7).to_bytes(), &of_points));
        assert!(finds(&point(3.3, 4.7).to_bytes(), &ranges));
        assert!(!finds(&point(3.3, 4.8).to_bytes(), &ranges));
        assert!(searched_cells(&point(3.3, 4.7).to_bytes(), of(4326)).is_none());
        let empty = Geometry { srid: 0, shape: Shape::Collection(Vec::new()) }.to_bytes();
        assert_eq!((row_cells(&empty), searched_cells(&empty, of(0))), (vec![WORLD], None));
    }

    #[test]
    fn edges_on_the_globe_are_in_their_boxes() {
        let globe = |shape| Geometry { srid: 4326, shape }.to_bytes();
        let line = |ends: &[(f64, f64)]| {
            Shape::LineString(ends.iter().map(|(x, y)| Position { x: *x, y: *y }).collect())
        };
        let point = |x, y| globe(Shape::Point(Position { x, y }));
        // A geodesic along latitude 60 rises, a wide one to the pole; one over the date line is on both sides.
        for (row, x, y) in [
            (line(&[(0.0, 60.0), (90.0, 60.0)]), 45.0, 67.7),
            (line(&[(0.0, -60.0), (90.0, -60.0)]), 45.0, -67.7),
            (line(&[(-90.0, 80.0), (90.0, 80.0)]), 10.0, 90.0),
            (line(&[(170.0, 10.0), (-170.0, 10.0)]), 180.0, 10.1),
            (line(&[(180.0, 10.0), (170.0, 10.0)]), -180.0, 10.0),
            (Shape::Point(Position { x: 180.0, y: 5.0 }), -180.0, 5.0),
            (Shape::Point(Position { x: 180.0, y: 90.0 }), 20.0, 90.0),
        ] {
            let row = globe(row);
            assert!(finds(&row, &searched_cells(&point(x, y), of(4326)).unwrap()), "{x} {y}");
            assert!(finds(&point(x, y), &searched_cells(&row, of(4326)).unwrap()), "{x} {y}");
        }
        assert!(!finds(&point(1.0, 1.0), &searched_cells(&point(1.0, 1.1), of(4326)).unwrap()));
    }
}
