//! The known spatial reference systems: numbers, names and parameters of the EPSG dataset, in `epsg.tsv`. Its text is read where a system
//! is asked for: all definitions together take 5 MB.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{LazyLock, OnceLock};

/// The meaning of a reference system's coordinates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Axes {
    /// Lengths on a plane, x before y.
    Plane {
        /// Metres of a length.
        metres: f64,
    },
    /// Degrees on an ellipsoid.
    Degrees {
        /// Half of the longer axis, metres.
        semi_major: f64,
        /// `1 / flattening`; the flattening is the relative difference of the half axes. 0 for a sphere.
        inverse_flattening: f64,
        /// Whether latitudes come before longitudes outside of the server.
        latitude_first: bool,
    },
}

/// A spatial reference system.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceSystem {
    /// Its number.
    pub srid: u32,
    /// Its name.
    pub name: String,
    /// An organization that assigned a number, and that number.
    pub organization: Option<(String, u32)>,
    /// Its axes.
    pub axes: Axes,
    /// Its well-known text.
    pub definition: String,
    /// What a user says about it.
    pub description: Option<String>,
}

impl ReferenceSystem {
    /// Whether it measures in degrees.
    pub fn is_geographic(&self) -> bool {
        matches!(self.axes, Axes::Degrees { .. })
    }

    /// Metres of a length on it: of its unit on a plane; functions measure an ellipsoid in metres.
    pub fn metres(&self) -> f64 {
        match self.axes {
            Axes::Plane { metres } => metres,
            Axes::Degrees { .. } => 1.0,
        }
    }

    /// Whether coordinates have the other order outside of the server: stored ones have the longitude first.
    pub fn swaps_axes(&self) -> bool {
        matches!(self.axes, Axes::Degrees { latitude_first: true, .. })
    }
}

/// The organization of all systems but 0.
const EPSG: &str = "EPSG";
/// The unit of degrees in the dataset.
const DEGREE: &str = "9122";

/// The dataset: a row a line, whose first fields are its kind and its number.
static TEXT: &str = include_str!("epsg.tsv");

/// The fields of a row after its kind and number.
type Row = Vec<&'static str>;

/// The dataset by kind and number.
struct Dataset {
    rows: HashMap<(&'static str, &'static str), Row>,
    /// By number.
    systems: Vec<Listed>,
}

/// A system of the dataset.
struct Listed {
    srid: u32,
    kind: &'static str,
    /// `srid` as the dataset writes it.
    number: &'static str,
    /// What was asked for stays.
    kept: OnceLock<Option<ReferenceSystem>>,
}

/// What is known of a geographic system.
struct Geographic {
    definition: String,
    axes: Axes,
    is_deprecated: Option<&'static str>,
}

impl Dataset {
    fn read() -> Dataset {
        let (mut rows, mut systems) = (HashMap::new(), Vec::new());
        for line in TEXT.lines().filter(|line| !line.starts_with('#')) {
            let mut fields = line.split('\t');
            let (Some(kind), Some(number)) = (fields.next(), fields.next()) else { continue };
            let row: Row = fields.collect();
            let is_system = kind == "projected" || kind == "geographic" && row[4] == DEGREE;
            if is_system && let Ok(srid) = number.parse() {
                systems.push(Listed { srid, kind, number, kept: OnceLock::new() });
            }
            rows.insert((kind, number), row);
        }
        Dataset { rows, systems }
    }

    fn row(&self, kind: &'static str, number: &'static str) -> Option<&Row> {
        self.rows.get(&(kind, number))
    }

    /// A list of a definition: its name, its numbers and the reference to its number in the dataset.
    fn list(&self, keyword: &str, kind: &'static str, number: &'static str) -> Option<String> {
        let row = self.row(kind, number)?;
        let rest: String = row[1..].iter().map(|field| format!(",{field}")).collect();
        Some(format!("{keyword}[\"{}\"{rest},{}]", row[0], authority(number)))
    }

    fn geographic(&self, number: &'static str) -> Option<Geographic> {
        let row = self.row("geographic", number)?;
        let [name, datum, way, meridian, unit, axes, ..] = row[..] else { return None };
        let [datum_name, ellipsoid] = self.row("datum", datum)?[..] else { return None };
        let [_, semi_major, flattening] = self.row("ellipsoid", ellipsoid)?[..] else {
            return None;
        };
        let way = match way {
            "" => String::new(),
            way => format!(",TOWGS84[{way}]"),
        };
        let definition = format!(
            "GEOGCS[\"{name}\",DATUM[\"{datum_name}\",{}{way},{}],{},{},{},{}]",
            self.list("SPHEROID", "ellipsoid", ellipsoid)?,
            authority(datum),
            self.list("PRIMEM", "meridian", meridian)?,
            self.list("UNIT", "unit", unit)?,
            self.row("axes", axes)?[0],
            authority(number)
        );
        let axes = Axes::Degrees {
            semi_major: semi_major.parse().ok()?,
            inverse_flattening: flattening.parse().ok()?,
            latitude_first: self.row("axes", axes)?[0].starts_with("AXIS[\"Lat\""),
        };
        Some(Geographic { definition, axes, is_deprecated: row.get(6).copied() })
    }

    fn projected(&self, number: &'static str) -> Option<(String, Axes)> {
        let row = self.row("projected", number)?;
        let [name, of, method, values, unit, axes, ..] = row[..] else { return None };
        let [method_name, parameters] = self.row("method", method)?[..] else { return None };
        let of = self.geographic(of)?.definition;
        let mut text =
            format!("PROJCS[\"{name}\",{of},PROJECTION[\"{method_name}\",{}]", authority(method));
        for (parameter, value) in parameters.split(' ').zip(values.split(' ')) {
            let name = self.row("parameter", parameter)?[0];
            // Writing to a string does not fail.
            let _ = write!(text, ",PARAMETER[\"{name}\",{value},{}]", authority(parameter));
        }
        let metres = self.row("unit", unit)?[1].parse().ok()?;
        let (unit, axes) = (self.list("UNIT", "unit", unit)?, self.row("axes", axes)?[0]);
        let _ = write!(text, ",{unit},{axes},{}]", authority(number));
        Some((text, Axes::Plane { metres }))
    }

    /// A system, from the rows of the dataset.
    fn system(&self, listed: &Listed) -> Option<ReferenceSystem> {
        let (srid, kind, number) = (listed.srid, listed.kind, listed.number);
        let row = self.row(kind, number)?;
        let (definition, axes, deprecated) = match kind {
            "projected" => {
                let (definition, axes) = self.projected(number)?;
                (definition, axes, row.get(6).copied())
            }
            _ => {
                let geographic = self.geographic(number)?;
                (geographic.definition, geographic.axes, geographic.is_deprecated)
            }
        };
        Some(ReferenceSystem {
            srid,
            name: match deprecated {
                None => row[0].to_owned(),
                Some(_) => format!("{} ({srid} deprecated)", row[0]),
            },
            organization: Some((EPSG.to_owned(), srid)),
            axes,
            definition,
            description: deprecated.map(describe),
        })
    }
}

/// Since when a system is deprecated, and what to use: a version, and the number of another system if there is one.
fn describe(deprecated: &str) -> String {
    let (version, other) = deprecated.split_once(' ').unwrap_or((deprecated, ""));
    let since = format!("Deprecated since EPSG Dataset {version}.");
    match other {
        "" => since,
        other => format!("{since} Superseded by SRID {other}."),
    }
}

/// The reference to the number of an object in the dataset.
fn authority(number: &str) -> String {
    format!("AUTHORITY[\"{EPSG}\",\"{number}\"]")
}

fn dataset() -> &'static Dataset {
    static DATASET: LazyLock<Dataset> = LazyLock::new(Dataset::read);
    &DATASET
}

/// The plane without a name.
fn plane() -> &'static ReferenceSystem {
    static PLANE: LazyLock<ReferenceSystem> = LazyLock::new(|| ReferenceSystem {
        srid: 0,
        name: String::new(),
        organization: None,
        axes: Axes::Plane { metres: 1.0 },
        definition: String::new(),
        description: None,
    });
    &PLANE
}

/// All known systems, by number, each made anew.
pub fn reference_systems() -> impl Iterator<Item = ReferenceSystem> {
    let known = dataset();
    let named = known.systems.iter().filter_map(|listed| known.system(listed));
    std::iter::once(plane().clone()).chain(named)
}

/// The numbers of all known systems but 0.
pub fn reference_system_numbers() -> impl Iterator<Item = u32> {
    dataset().systems.iter().map(|listed| listed.srid)
}

/// The system with this number. It stays in memory.
pub fn reference_system(srid: u32) -> Option<&'static ReferenceSystem> {
    if srid == 0 {
        return Some(plane());
    }
    let known = dataset();
    let place = known.systems.binary_search_by_key(&srid, |listed| listed.srid).ok()?;
    let listed = &known.systems[place];
    listed.kept.get_or_init(|| known.system(listed)).as_ref()
}
