//! The known spatial reference systems.

/// The meaning of a reference system's coordinates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Axes {
    /// Lengths on a plane, x before y.
    Plane,
    /// Degrees on an ellipsoid, latitude before longitude.
    Degrees {
        /// Half of the longer axis, metres.
        semi_major: f64,
        /// `1 / flattening`; the flattening is the relative difference of the half axes.
        inverse_flattening: f64,
    },
}

/// A spatial reference system.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReferenceSystem {
    /// Its number.
    pub srid: u32,
    /// Its name.
    pub name: &'static str,
    /// The organization that assigned the number; empty for none.
    pub organization: &'static str,
    /// Its axes.
    pub axes: Axes,
    /// Its well-known text.
    pub definition: &'static str,
}

impl ReferenceSystem {
    /// Whether it measures in degrees.
    pub fn is_geographic(&self) -> bool {
        matches!(self.axes, Axes::Degrees { .. })
    }
}

/// The well-known text of a system in degrees on an ellipsoid.
macro_rules! geographic {
    ($name:literal, $srid:literal, $datum:literal, $ellipsoid:literal, $axis:literal, $flattening:literal) => {
        concat!(
            "GEOGCS[\"",
            $name,
            "\",DATUM[\"",
            $datum,
            "\",SPHEROID[\"",
            $ellipsoid,
            "\",",
            $axis,
            ",",
            $flattening,
            "]],PRIMEM[\"Greenwich\",0],UNIT[\"degree\",0.017453292519943278],",
            "AXIS[\"Lat\",NORTH],AXIS[\"Lon\",EAST],AUTHORITY[\"EPSG\",\"",
            $srid,
            "\"]]"
        )
    };
}

/// All known systems, by number. The geographic ones have their latitude first.
pub const SRS_LIST: &[ReferenceSystem] = &[
    ReferenceSystem { srid: 0, name: "", organization: "", axes: Axes::Plane, definition: "" },
    ReferenceSystem {
        srid: 3857,
        name: "WGS 84 / Pseudo-Mercator",
        organization: "EPSG",
        axes: Axes::Plane,
        definition: concat!(
            "PROJCS[\"WGS 84 / Pseudo-Mercator\",",
            geographic!(
                "WGS 84",
                "4326",
                "World Geodetic System 1984",
                "WGS 84",
                "6378137",
                "298.257223563"
            ),
            ",PROJECTION[\"Popular Visualisation Pseudo Mercator\"],UNIT[\"metre\",1],",
            "AXIS[\"X\",EAST],AXIS[\"Y\",NORTH],AUTHORITY[\"EPSG\",\"3857\"]]"
        ),
    },
    ReferenceSystem {
        srid: 4258,
        name: "ETRS89",
        organization: "EPSG",
        axes: GRS_1980,
        definition: geographic!(
            "ETRS89",
            "4258",
            "European Terrestrial Reference System 1989",
            "GRS 1980",
            "6378137",
            "298.257222101"
        ),
    },
    ReferenceSystem {
        srid: 4269,
        name: "NAD83",
        organization: "EPSG",
        axes: GRS_1980,
        definition: geographic!(
            "NAD83",
            "4269",
            "North American Datum 1983",
            "GRS 1980",
            "6378137",
            "298.257222101"
        ),
    },
    ReferenceSystem {
        srid: 4326,
        name: "WGS 84",
        organization: "EPSG",
        axes: Axes::Degrees { semi_major: 6_378_137.0, inverse_flattening: 298.257_223_563 },
        definition: geographic!(
            "WGS 84",
            "4326",
            "World Geodetic System 1984",
            "WGS 84",
            "6378137",
            "298.257223563"
        ),
    },
];

const GRS_1980: Axes =
    Axes::Degrees { semi_major: 6_378_137.0, inverse_flattening: 298.257_222_101 };

/// The system with this number.
pub fn reference_system(srid: u32) -> Option<&'static ReferenceSystem> {
    SRS_LIST.iter().find(|known| known.srid == srid)
}
