//! Positions of points relative to lines and areas whose sides are geodesics of an ellipsoid, and the bounding rectangles of latitudes and
//! longitudes. Areas around a pole or across the antimeridian are not handled here: the callers refuse them.

use geographiclib_rs::{DirectGeodesic, InverseGeodesic};
use types::geometry::{Position, Shape, is_closed};

use crate::geodesic::Ellipsoid;
use crate::place::Place;

/// Degrees within which a position is on a geodesic: a hundredth of a millimetre.
const ON_SIDE: f64 = 1e-10;
/// Most steps in search of the latitude at which a geodesic passes a meridian. Each halves the remaining range.
const STEPS_MAX: usize = 64;

/// Difference of two longitudes by the shorter way, -180 exclusive to 180 inclusive.
fn turn(from: f64, to: f64) -> f64 {
    let turn = to - from;
    if turn > 180.0 {
        turn - 360.0
    } else if turn <= -180.0 {
        turn + 360.0
    } else {
        turn
    }
}

impl Ellipsoid {
    /// Position of a point relative to a shape of lines or areas; `None` when it is not known.
    pub(crate) fn place(self, at: Position, shape: &Shape) -> Option<Place> {
        match shape {
            Shape::LineString(line) => Some(self.on_lines(at, std::slice::from_ref(line))),
            Shape::MultiLineString(lines) => Some(self.on_lines(at, lines)),
            Shape::Polygon(rings) => self.in_polygon(at, rings),
            Shape::MultiPolygon(polygons) => {
                let places = polygons.iter().map(|rings| self.in_polygon(at, rings));
                Some(Place::of_areas(places.collect::<Option<Vec<_>>>()?.into_iter()))
            }
            Shape::Point(_) | Shape::MultiPoint(_) | Shape::Collection(_) => None,
        }
    }

    /// The boundary of lines is the set of ends that belong to an odd number of them.
    fn on_lines(self, at: Position, lines: &[Vec<Position>]) -> Place {
        let open = lines.iter().filter(|line| !is_closed(line));
        let ends = open.flat_map(|line| [line[0], line[line.len() - 1]]);
        if ends.filter(|end| *end == at).count() % 2 == 1 {
            return Place::Boundary;
        }
        let on = |side: &[Position]| self.side(at, side) == Some(Side::On);
        match lines.iter().flat_map(|line| line.windows(2)).any(on) {
            true => Place::Inside,
            false => Place::Outside,
        }
    }

    fn in_polygon(self, at: Position, rings: &[Vec<Position>]) -> Option<Place> {
        let (exterior, holes) = rings.split_first()?;
        match self.in_ring(at, exterior)? {
            Place::Inside => {}
            other => return Some(other),
        }
        for hole in holes {
            match self.in_ring(at, hole)? {
                Place::Inside => return Some(Place::Outside),
                Place::Boundary => return Some(Place::Boundary),
                Place::Outside => {}
            }
        }
        Some(Place::Inside)
    }

    /// A point is in a ring when an odd number of its sides are north of it. `None` for a ring around a pole.
    fn in_ring(self, at: Position, ring: &[Position]) -> Option<Place> {
        let mut turned = 0.0;
        let mut north = 0;
        for side in ring.windows(2) {
            let step = turn(side[0].x, side[1].x);
            if step == 180.0 {
                // It passes a pole.
                return None;
            }
            turned += step;
            match self.side(at, side) {
                Some(Side::On) => return Some(Place::Boundary),
                Some(Side::North) => north += 1,
                Some(Side::South) | None => {}
            }
        }
        if f64::abs(turned) > 180.0 {
            return None;
        }
        Some(if north % 2 == 1 { Place::Inside } else { Place::Outside })
    }

    /// Whether a position is on the geodesic between two others.
    pub(crate) fn is_on(self, at: Position, side: &[Position]) -> bool {
        self.side(at, side) == Some(Side::On)
    }

    /// Where a side passes the meridian of a point; `None` when it does not. Of two sides that meet on the meridian one passes it when they
    /// continue across it, both or neither when they turn back.
    fn side(self, at: Position, side: &[Position]) -> Option<Side> {
        // The antimeridian has two longitudes; as one, equal turns are computed alike.
        let [from, to, at] = [side[0], side[1], at]
            .map(|place| Position { x: if place.x == -180.0 { 180.0 } else { place.x }, ..place });
        if from == at || to == at {
            return Some(Side::On);
        }
        let (whole, part) = (turn(from.x, to.x), turn(from.x, at.x));
        if whole == 0.0 {
            let between = from.y.min(to.y)..=from.y.max(to.y);
            return (part == 0.0 && between.contains(&at.y)).then_some(Side::On);
        }
        let within =
            if whole > 0.0 { (0.0..=whole).contains(&part) } else { (whole..=0.0).contains(&part) };
        if !within {
            return None;
        }
        let latitude = if part == 0.0 {
            from.y
        } else if part == whole {
            to.y
        } else {
            self.latitude_on(from, to, part)
        };
        // The end in the west counts, that in the east does not.
        let counts = part != whole.max(0.0);
        if (latitude - at.y).abs() <= ON_SIDE {
            Some(Side::On)
        } else if !counts {
            None
        } else if latitude > at.y {
            Some(Side::North)
        } else {
            Some(Side::South)
        }
    }

    /// The latitude at which the geodesic between two positions has turned so far from the first.
    fn latitude_on(self, from: Position, to: Position, turned: f64) -> f64 {
        let geodesic = self.geodesic();
        let (length, azimuth, _, _): (f64, f64, f64, f64) =
            geodesic.inverse(from.y, from.x, to.y, to.x);
        let (mut low, mut high) = (0.0, length);
        let mut latitude = from.y;
        for _ in 0..STEPS_MAX {
            let middle = (low + high) / 2.0;
            if middle <= low || middle >= high {
                break;
            }
            let (y, x): (f64, f64) = geodesic.direct(from.y, from.x, azimuth, middle);
            latitude = y;
            if turn(from.x, x).abs() < turned.abs() {
                low = middle;
            } else {
                high = middle;
            }
        }
        latitude
    }

    /// The least and the greatest longitudes and latitudes of a shape; `None` over the antimeridian or a pole.
    pub(crate) fn bounds(self, shape: &Shape) -> Option<[Position; 2]> {
        let [mut low, mut high] = shape.bounds()?;
        if high.x - low.x >= 180.0 {
            return None;
        }
        let mut bend = |line: &Vec<Position>| {
            for side in line.windows(2) {
                if let Some(latitude) = self.farthest(side[0], side[1]) {
                    low.y = low.y.min(latitude);
                    high.y = high.y.max(latitude);
                }
            }
        };
        let mut shapes = vec![shape];
        while let Some(shape) = shapes.pop() {
            match shape {
                Shape::Point(_) | Shape::MultiPoint(_) => {}
                Shape::LineString(line) => bend(line),
                Shape::Polygon(lines) | Shape::MultiLineString(lines) => {
                    lines.iter().for_each(&mut bend);
                }
                Shape::MultiPolygon(polygons) => polygons.iter().flatten().for_each(&mut bend),
                Shape::Collection(members) => shapes.extend(members),
            }
        }
        Some([low, high])
    }

    /// The latitude farthest from the equator that a geodesic has between its ends, when it has one.
    fn farthest(self, from: Position, to: Position) -> Option<f64> {
        let (_, first, last, _): (f64, f64, f64, f64) =
            self.geodesic().inverse(from.y, from.x, to.y, to.x);
        // It is where the geodesic goes due east or west.
        let northward = |azimuth: f64| azimuth.abs() < 90.0;
        if northward(first) == northward(last) {
            return None;
        }
        // The product of the sine of the azimuth and the cosine of the reduced latitude is the same all along.
        let reduced = ((1.0 - self.flattening()) * from.y.to_radians().tan()).atan();
        let least = (first.to_radians().sin() * reduced.cos()).abs().min(1.0);
        let latitude = (least.acos().tan() / (1.0 - self.flattening())).atan().to_degrees();
        Some(if northward(first) { latitude } else { -latitude })
    }
}

/// Where a side passes the meridian of a point.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    On,
    North,
    South,
}
