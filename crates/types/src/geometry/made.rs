//! Reference systems that users define by a well-known text.

use std::ops::Deref;
use std::sync::Arc;

use super::wkt::{Item, Node};
use super::{Axes, ReferenceSystem, reference_system};

/// A reference system in use.
#[derive(Clone, Debug)]
pub enum KnownSystem {
    /// One that is always there.
    BuiltIn(&'static ReferenceSystem),
    /// One that a user defined.
    Made(Arc<ReferenceSystem>),
}

impl KnownSystem {
    /// The built-in system with this number.
    pub fn built_in(srid: u32) -> Option<KnownSystem> {
        reference_system(srid).map(KnownSystem::BuiltIn)
    }
}

impl Deref for KnownSystem {
    type Target = ReferenceSystem;

    fn deref(&self) -> &ReferenceSystem {
        match self {
            KnownSystem::BuiltIn(system) => system,
            KnownSystem::Made(system) => system,
        }
    }
}

/// What is wrong with the well-known text of a reference system.
#[derive(Clone, Debug, PartialEq)]
pub enum DefinitionFault {
    /// It is none.
    Malformed,
    /// The axes of a geographic system, by their directions.
    Axes(String, String),
    /// Half of the longer axis is not positive.
    SemiMajor,
    /// The inverse flattening is neither 0 nor more than 1.
    InverseFlattening,
    /// The unit of angles is not positive.
    AngularUnit,
    /// The prime meridian is not between the meridians of 180 degrees.
    PrimeMeridian,
    /// The projection needs this parameter: its name and its number in the EPSG dataset.
    Parameter(&'static str, u32),
    /// What functions here do not compute with.
    NotBuilt(&'static str),
}

/// Radians of a degree, as definitions write it, and how far from it a number may be.
const DEGREE: f64 = std::f64::consts::PI / 180.0;
const DEGREE_SLACK: f64 = 1e-12;

/// The axes that a definition gives.
///
/// # Errors
/// It is no definition, or one that means nothing, or one that is not supported.
pub fn axes_of(definition: &str) -> Result<Axes, DefinitionFault> {
    let node = Node::read(definition).ok_or(DefinitionFault::Malformed)?;
    match node.keyword {
        keyword if keyword.eq_ignore_ascii_case("GEOGCS") => geographic(&node, true),
        keyword if keyword.eq_ignore_ascii_case("PROJCS") => projected(&node),
        _ => Err(DefinitionFault::Malformed),
    }
}

/// A list begins with a name.
fn is_named(node: &Node<'_>) -> bool {
    matches!(node.items.first(), Some(Item::Text(_)))
}

/// The named list with this keyword.
fn part<'n, 'a>(node: &'n Node<'a>, keyword: &str) -> Result<&'n Node<'a>, DefinitionFault> {
    node.one(keyword).filter(|part| is_named(part)).ok_or(DefinitionFault::Malformed)
}

/// The number of a named list.
fn number(node: &Node<'_>) -> Result<f64, DefinitionFault> {
    node.numbers().next().ok_or(DefinitionFault::Malformed)
}

/// The directions of both axes; `None` without axes.
fn directions<'a>(node: &Node<'a>) -> Result<Option<[&'a str; 2]>, DefinitionFault> {
    let direction = |axis: &Node<'a>| {
        let [Item::Text(_), Item::Word(direction)] = axis.items[..] else {
            return Err(DefinitionFault::Malformed);
        };
        Ok(direction)
    };
    let axes: Vec<&str> = node.all("AXIS").map(direction).collect::<Result<_, _>>()?;
    match axes[..] {
        [] => Ok(None),
        [first, second] => Ok(Some([first, second])),
        _ => Err(DefinitionFault::Malformed),
    }
}

/// The geographic system. As the base of a projection it may have no axes, and any angles and meridian: coordinates are lengths.
fn geographic(node: &Node<'_>, is_whole: bool) -> Result<Axes, DefinitionFault> {
    if !is_named(node) {
        return Err(DefinitionFault::Malformed);
    }
    let spheroid = part(part(node, "DATUM")?, "SPHEROID")?;
    let mut numbers = spheroid.numbers();
    let (Some(semi_major), Some(inverse_flattening)) = (numbers.next(), numbers.next()) else {
        return Err(DefinitionFault::Malformed);
    };
    let meridian = number(part(node, "PRIMEM")?)?;
    let unit = number(part(node, "UNIT")?)?;
    let directions = directions(node)?;
    if is_whole && directions.is_none() {
        return Err(DefinitionFault::Malformed);
    }
    let latitude_first =
        directions.map_or(Ok(true), |directions| latitude_first(directions, is_whole))?;
    let exceeds = |number: f64, least: f64| number.is_finite() && number > least;
    if !exceeds(semi_major, 0.0) {
        return Err(DefinitionFault::SemiMajor);
    }
    if inverse_flattening != 0.0 && !exceeds(inverse_flattening, 1.0) {
        return Err(DefinitionFault::InverseFlattening);
    }
    if !exceeds(unit, 0.0) {
        return Err(DefinitionFault::AngularUnit);
    }
    let half = std::f64::consts::PI / unit;
    if !(meridian > -half && meridian <= half + DEGREE_SLACK) {
        return Err(DefinitionFault::PrimeMeridian);
    }
    if !is_whole {
        return Ok(Axes::Degrees { semi_major, inverse_flattening, latitude_first });
    }
    if (unit - DEGREE).abs() > DEGREE_SLACK {
        return Err(DefinitionFault::NotBuilt("angles other than degrees"));
    }
    Ok(Axes::Degrees { semi_major, inverse_flattening, latitude_first })
}

/// Whether the latitude is the first of these axes.
fn latitude_first([first, second]: [&str; 2], is_whole: bool) -> Result<bool, DefinitionFault> {
    let is_one_of = |direction: &str, words: [&str; 2]| {
        words.iter().any(|word| direction.eq_ignore_ascii_case(word))
    };
    let is_latitude = |direction| is_one_of(direction, ["NORTH", "SOUTH"]);
    let is_longitude = |direction| is_one_of(direction, ["EAST", "WEST"]);
    let known =
        is_latitude(first) && is_longitude(second) || is_longitude(first) && is_latitude(second);
    if !known {
        let upper = |direction: &str| direction.to_ascii_uppercase();
        return Err(DefinitionFault::Axes(upper(first), upper(second)));
    }
    if is_whole && [first, second].iter().any(|direction| is_one_of(direction, ["SOUTH", "WEST"])) {
        return Err(DefinitionFault::NotBuilt("axes to the south or to the west"));
    }
    Ok(is_latitude(first))
}

fn projected(node: &Node<'_>) -> Result<Axes, DefinitionFault> {
    if !is_named(node) {
        return Err(DefinitionFault::Malformed);
    }
    geographic(node.one("GEOGCS").ok_or(DefinitionFault::Malformed)?, false)?;
    let projection = part(node, "PROJECTION")?;
    let unit = number(part(node, "UNIT")?)?;
    directions(node)?;
    for (name, code) in projection.code().map_or(&[][..], parameters_of) {
        let given = |parameter: &Node<'_>| parameter.code() == Some(*code);
        if !node.all("PARAMETER").any(given) {
            return Err(DefinitionFault::Parameter(name, *code));
        }
    }
    Ok(Axes::Plane { metres: unit })
}

/// Names and numbers of the parameters that a projection needs, by its number in the EPSG dataset.
fn parameters_of(method: u32) -> &'static [(&'static str, u32)] {
    const LATITUDE: (&str, u32) = ("latitude_of_origin", 8801);
    const LONGITUDE: (&str, u32) = ("central_meridian", 8802);
    const SCALE: (&str, u32) = ("scale_factor", 8805);
    const EAST: (&str, u32) = ("false_easting", 8806);
    const NORTH: (&str, u32) = ("false_northing", 8807);
    const PARALLEL: (&str, u32) = ("standard_parallel_1", 8823);
    const CENTER: [(&str, u32); 3] =
        [("latitude_of_center", 8811), ("longitude_of_center", 8812), ("azimuth", 8813)];
    const GRID: (&str, u32) = ("rectified_grid_angle", 8814);
    const SCALE_LINE: (&str, u32) = ("scale_factor", 8815);
    match method {
        1024 | 9806 | 9811 | 9818 | 9820 => &[LATITUDE, LONGITUDE, EAST, NORTH],
        9801 | 9804 | 9807 | 9808 | 9809 => &[LATITUDE, LONGITUDE, SCALE, EAST, NORTH],
        9802 | 9803 | 9822 => &[
            ("latitude_of_origin", 8821),
            ("central_meridian", 8822),
            PARALLEL,
            ("standard_parallel_2", 8824),
            ("false_easting", 8826),
            ("false_northing", 8827),
        ],
        9805 => &[PARALLEL, LONGITUDE, EAST, NORTH],
        9812 => &[CENTER[0], CENTER[1], CENTER[2], GRID, SCALE_LINE, EAST, NORTH],
        9813 => &[CENTER[0], CENTER[1], CENTER[2], SCALE_LINE, EAST, NORTH],
        9815 => &[
            CENTER[0],
            CENTER[1],
            CENTER[2],
            GRID,
            SCALE_LINE,
            ("false_easting", 8816),
            ("false_northing", 8817),
        ],
        9829 => &[("standard_parallel", 8832), ("longitude_of_center", 8833), EAST, NORTH],
        9830 => &[
            ("standard_parallel", 8832),
            ("longitude_of_center", 8833),
            ("false_easting", 8826),
            ("false_northing", 8827),
        ],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::reference_systems;

    fn geographic(spheroid: &str, rest: &str) -> String {
        format!("GEOGCS[\"x\",DATUM[\"y\",SPHEROID[\"z\",{spheroid}]],{rest}]")
    }

    #[test]
    fn built_in_systems_are_what_their_definitions_say() {
        for system in reference_systems().skip(1) {
            assert_eq!(axes_of(&system.definition), Ok(system.axes), "{}", system.srid);
        }
    }

    #[test]
    fn faults_have_names() {
        let rest = "PRIMEM[\"p\",0],UNIT[\"degree\",0.017453292519943278]";
        let axes = "AXIS[\"a\",EAST],AXIS[\"b\",NORTH]";
        let whole = geographic("100,0", &format!("{rest},{axes}"));
        let Ok(Axes::Degrees { latitude_first, .. }) = axes_of(&whole) else { panic!("{whole}") };
        assert!(!latitude_first);
        for (text, fault) in [
            ("x".to_owned(), DefinitionFault::Malformed),
            (geographic("100,0", rest), DefinitionFault::Malformed),
            (geographic("-1,0", &format!("{rest},{axes}")), DefinitionFault::SemiMajor),
            (geographic("1,1", &format!("{rest},{axes}")), DefinitionFault::InverseFlattening),
            (whole.replace("0.01745", "-0.01745"), DefinitionFault::AngularUnit),
            (whole.replace("\"p\",0", "\"p\",200"), DefinitionFault::PrimeMeridian),
            (
                whole.replace("EAST", "NORTH"),
                DefinitionFault::Axes("NORTH".to_owned(), "NORTH".to_owned()),
            ),
        ] {
            assert_eq!(axes_of(&text), Err(fault), "{text}");
        }
    }
}
