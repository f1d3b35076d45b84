//! Positions of points relative to lines and areas.

use geo::algorithm::coordinate_position::{CoordPos, CoordinatePosition};
use geo::{Coord, Intersects, LineString, Polygon};

use crate::planar::Planar;

/// Position of a point relative to a geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Inside,
    Boundary,
    Outside,
}

impl Place {
    /// The position relative to several areas, one of which may contain the point.
    pub(crate) fn of_areas(places: impl Iterator<Item = Place>) -> Place {
        let mut found = Place::Outside;
        for place in places {
            match place {
                Place::Inside => return Place::Inside,
                Place::Boundary => found = Place::Boundary,
                Place::Outside => {}
            }
        }
        found
    }
}

/// Position of a point relative to lines or areas on the plane; `None` for other geometries.
pub(crate) fn place(at: Coord<f64>, of: &Planar) -> Option<Place> {
    match of {
        Planar::LineString(line) => Some(on_lines(at, std::slice::from_ref(line))),
        Planar::MultiLineString(lines) => Some(on_lines(at, &lines.0)),
        Planar::Polygon(polygon) => Some(in_areas(at, std::slice::from_ref(polygon))),
        Planar::MultiPolygon(areas) => Some(in_areas(at, &areas.0)),
        _ => None,
    }
}

/// The boundary of lines is the set of ends that belong to an odd number of them. The library has a point where two end in neither.
fn on_lines(at: Coord<f64>, lines: &[LineString<f64>]) -> Place {
    let open = lines.iter().filter(|line| !line.is_closed());
    let ends = open.flat_map(|line| [line.0.first(), line.0.last()]).flatten();
    if ends.filter(|end| **end == at).count() % 2 == 1 {
        return Place::Boundary;
    }
    match lines.iter().any(|line| line.intersects(&at)) {
        true => Place::Inside,
        false => Place::Outside,
    }
}

/// The same holds where two areas touch.
pub(crate) fn in_areas(at: Coord<f64>, areas: &[Polygon<f64>]) -> Place {
    Place::of_areas(areas.iter().map(|area| match area.coordinate_position(&at) {
        CoordPos::Inside => Place::Inside,
        CoordPos::OnBoundary => Place::Boundary,
        CoordPos::Outside => Place::Outside,
    }))
}
