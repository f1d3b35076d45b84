//! Reading and writing of stored values: round trips of random geometries, and robustness against any bytes.

use proptest::prelude::*;

use super::*;

fn position() -> impl Strategy<Value = Position> {
    (-1e3..1e3, -1e3..1e3).prop_map(|(x, y)| Position { x, y })
}

fn line() -> impl Strategy<Value = Vec<Position>> {
    prop::collection::vec(position(), 2..5)
}

fn ring() -> impl Strategy<Value = Vec<Position>> {
    prop::collection::vec(position(), 3..6).prop_map(|mut ring| {
        ring.push(ring[0]);
        ring
    })
}

fn rings() -> impl Strategy<Value = Vec<Vec<Position>>> {
    prop::collection::vec(ring(), 1..3)
}

fn shape() -> impl Strategy<Value = Shape> {
    let leaf = prop_oneof![
        position().prop_map(Shape::Point),
        line().prop_map(Shape::LineString),
        rings().prop_map(Shape::Polygon),
        prop::collection::vec(position(), 1..4).prop_map(Shape::MultiPoint),
        prop::collection::vec(line(), 1..3).prop_map(Shape::MultiLineString),
        prop::collection::vec(rings(), 1..3).prop_map(Shape::MultiPolygon),
    ];
    leaf.prop_recursive(4, 16, 4, |inner| {
        prop::collection::vec(inner, 0..4).prop_map(Shape::Collection)
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read(shape in shape(), srid: u32) {
        let geometry = Geometry { srid, shape };
        let bytes = geometry.to_bytes();
        prop_assert_eq!(Geometry::read(&bytes), Ok(geometry.clone()));
        prop_assert_eq!(Shape::read_wkb(&bytes[4..], WkbRules::Client), Ok(geometry.shape));
        for end in 0..bytes.len() {
            prop_assert!(Geometry::read(&bytes[..end]).is_err());
        }
    }

    #[test]
    fn changed_bytes_are_read_or_refused(shape in shape(), changes: Vec<(u16, u8)>) {
        let mut bytes = Geometry { srid: 0, shape }.to_bytes();
        let length = bytes.len();
        changes.iter().for_each(|(at, byte)| bytes[usize::from(*at) % length] = *byte);
        if let Ok(geometry) = Geometry::read(&bytes) {
            // No value has two forms, except for the bits of NaN.
            prop_assert_eq!(&geometry.to_bytes(), &bytes);
        }
        let _ = Shape::read_wkb(&bytes, WkbRules::Client);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        let _ = Geometry::read(&bytes);
        let _ = Shape::read_wkb(&bytes, WkbRules::Client);
    }
}

/// Collections nested to this depth.
fn nested(depth: usize) -> Vec<u8> {
    let mut bytes = vec![0; 4];
    for _ in 0..depth {
        bytes.extend_from_slice(&[1, 7, 0, 0, 0, 1, 0, 0, 0]);
    }
    bytes.extend_from_slice(&[1, 7, 0, 0, 0, 0, 0, 0, 0]);
    bytes
}

#[test]
fn depth_is_bounded() {
    let deepest = Geometry::read(&nested(DEPTH_MAX - 1)).unwrap();
    assert_eq!(deepest.shape.depth(), DEPTH_MAX);
    assert_eq!(Geometry::read(&nested(DEPTH_MAX)), Err(GeometryError::Invalid));
    assert_eq!(Geometry::read(&nested(1_000_000)), Err(GeometryError::Invalid));
}

#[test]
fn counts_are_no_promises() {
    for kind in 2..=7 {
        let mut bytes = vec![0, 0, 0, 0, 1, kind, 0, 0, 0];
        bytes.extend_from_slice(&u32::MAX.to_le_bytes());
        bytes.extend_from_slice(&[1; 64]);
        assert_eq!(Geometry::read(&bytes), Err(GeometryError::Invalid));
    }
}
