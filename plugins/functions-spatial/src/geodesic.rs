//! Measures on an ellipsoid and on a sphere.

use geographiclib_rs::{DirectGeodesic, Geodesic, InverseGeodesic, PolygonArea, Winding};
use types::geometry::{Axes, Position, ReferenceSystem};

/// Up to this angle in radians its cosine is too imprecise.
const ANGLE_SMALL: f64 = 0.01;

/// An ellipsoid of revolution.
#[derive(Clone, Copy)]
pub(crate) struct Ellipsoid {
    semi_major: f64,
    flattening: f64,
}

impl Ellipsoid {
    /// The ellipsoid of a geographic reference system.
    pub(crate) fn of(system: &ReferenceSystem) -> Option<Ellipsoid> {
        match system.axes {
            Axes::Plane { .. } => None,
            Axes::Degrees { semi_major, inverse_flattening: 0.0, .. } => {
                Some(Ellipsoid { semi_major, flattening: 0.0 })
            }
            Axes::Degrees { semi_major, inverse_flattening, .. } => {
                Some(Ellipsoid { semi_major, flattening: 1.0 / inverse_flattening })
            }
        }
    }

    /// Its geodesics.
    pub(crate) fn geodesic(self) -> Geodesic {
        Geodesic::new(self.semi_major, self.flattening)
    }

    /// The flattening.
    pub(crate) fn flattening(self) -> f64 {
        self.flattening
    }

    /// The radius of the sphere that approximates it.
    pub(crate) fn mean_radius(self) -> f64 {
        (2.0 * self.semi_major + self.semi_major * (1.0 - self.flattening)) / 3.0
    }

    /// The distance of two positions in metres by the approximation of Andoyer and Lambert, of the first order of the flattening, as the
    /// reference computes it: within some 1e-5 of the geodesic's length.
    pub(crate) fn distance(self, from: Position, to: Position) -> f64 {
        let (latitude, other) = (from.y.to_radians(), to.y.to_radians());
        let mut angle = angle(from, to);
        if angle > ANGLE_SMALL {
            // Rounds as the reference does.
            let longitudes = to.x.to_radians() - from.x.to_radians();
            let cosine =
                latitude.sin() * other.sin() + latitude.cos() * other.cos() * longitudes.cos();
            angle = cosine.clamp(-1.0, 1.0).acos();
        }
        if angle == 0.0 {
            return 0.0;
        }
        let (sum, difference) = (latitude.sin() + other.sin(), latitude.sin() - other.sin());
        let sine = angle.sin();
        // 1 - cos and 1 + cos, each precise where it is small.
        let below = 2.0 * (angle / 2.0).sin().powi(2);
        let above = 2.0 * (angle / 2.0).cos().powi(2);
        let near = (angle + 3.0 * sine) / below * difference * difference;
        // Between antipodes no path is the shortest; the limit along the equator.
        let far = if sum == 0.0 { 0.0 } else { (angle - 3.0 * sine) / above * sum * sum };
        self.semi_major * (angle - self.flattening / 4.0 * (near + far))
    }

    /// The position at a part of the geodesic between two others.
    pub(crate) fn between(self, from: Position, to: Position, part: f64) -> Position {
        let geodesic = self.geodesic();
        let (length, azimuth, _, _): (f64, f64, f64, f64) =
            geodesic.inverse(from.y, from.x, to.y, to.x);
        let (y, x): (f64, f64) = geodesic.direct(from.y, from.x, azimuth, part * length);
        Position { x, y }
    }

    /// The area of a polygon in square metres, its sides geodesics.
    pub(crate) fn area(self, rings: &[Vec<Position>]) -> f64 {
        let geodesic = self.geodesic();
        let ring_area = |ring: &Vec<Position>| {
            let mut area = PolygonArea::new(&geodesic, Winding::CounterClockwise);
            // The last position is the first.
            ring.iter().skip(1).for_each(|at| area.add_point(at.y, at.x));
            area.compute(true).1.abs()
        };
        let mut areas = rings.iter().map(ring_area);
        let exterior = areas.next().unwrap_or(0.0);
        exterior - areas.sum::<f64>()
    }
}

/// The angle between two positions, seen from the middle of a sphere, in radians.
fn angle(from: Position, to: Position) -> f64 {
    let [x1, y1, x2, y2] = [from.x, from.y, to.x, to.y].map(f64::to_radians);
    let (north, east) = (((y2 - y1) / 2.0).sin(), ((x2 - x1) / 2.0).sin());
    let square = north * north + y1.cos() * y2.cos() * east * east;
    2.0 * square.sqrt().min(1.0).asin()
}

/// The distance of two positions on a sphere.
pub(crate) fn on_sphere(from: Position, to: Position, radius: f64) -> f64 {
    radius * angle(from, to)
}
