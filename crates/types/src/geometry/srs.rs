//! The known spatial reference systems: numbers, names and parameters of the EPSG dataset.

use std::fmt::Write;
use std::sync::LazyLock;

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

/// An ellipsoid: its number, name, half of the longer axis, inverse flattening.
type Ellipsoid = (u32, &'static str, &'static str, &'static str);

const AIRY: Ellipsoid = (7001, "Airy 1830", "6377563.396", "299.3249646");
const BESSEL: Ellipsoid = (7004, "Bessel 1841", "6377397.155", "299.1528128");
const CGCS: Ellipsoid = (1024, "CGCS2000", "6378137", "298.257222101");
const CLARKE: Ellipsoid = (7008, "Clarke 1866", "6378206.4", "294.9786982138982");
const GRS_1980: Ellipsoid = (7019, "GRS 1980", "6378137", "298.257222101");
const INTERNATIONAL: Ellipsoid = (7022, "International 1924", "6378388", "297");
const WGS_72: Ellipsoid = (7043, "WGS 72", "6378135", "298.26");
const WGS_84: Ellipsoid = (7030, "WGS 84", "6378137", "298.257223563");

/// A system of latitudes and longitudes.
struct Geographic {
    srid: u32,
    name: &'static str,
    datum: (u32, &'static str),
    ellipsoid: Ellipsoid,
    /// The seven parameters of the way to WGS 84: metres, arc seconds, millionths; empty where none are known.
    to_wgs_84: &'static str,
}

const fn geographic(
    srid: u32,
    name: &'static str,
    datum: (u32, &'static str),
    ellipsoid: Ellipsoid,
    to_wgs_84: &'static str,
) -> Geographic {
    Geographic { srid, name, datum, ellipsoid, to_wgs_84 }
}

/// No way at all: the datum is that of WGS 84 within a metre.
const SAME: &str = "0,0,0,0,0,0,0";

#[rustfmt::skip]
const GEOGRAPHIC: &[Geographic] = &[
    geographic(4148, "Hartebeesthoek94", (6148, "Hartebeesthoek94"), WGS_84, SAME),
    geographic(4149, "CH1903", (6149, "CH1903"), BESSEL, "660.077,13.551,369.344,-0.804816,-0.577692,-0.952236,5.66"),
    geographic(4150, "CH1903+", (6150, "CH1903+"), BESSEL, "674.374,15.056,405.346,0,0,0,0"),
    geographic(4167, "NZGD2000", (6167, "New Zealand Geodetic Datum 2000"), GRS_1980, SAME),
    geographic(4171, "RGF93", (6171, "Reseau Geodesique Francais 1993"), GRS_1980, SAME),
    geographic(4230, "ED50", (6230, "European Datum 1950"), INTERNATIONAL, "-157.89,-17.16,-78.41,2.118,2.697,-1.434,-5.38"),
    geographic(4258, "ETRS89", (6258, "European Terrestrial Reference System 1989"), GRS_1980, SAME),
    geographic(4267, "NAD27", (6267, "North American Datum 1927"), CLARKE, "-32.3841359,180.4090461,120.8442577,-2.1545854,-0.1498782,0.5742915,8.1049164"),
    geographic(4269, "NAD83", (6269, "North American Datum 1983"), GRS_1980, "1,1,-1,0,0,0,0"),
    geographic(4272, "NZGD49", (6272, "New Zealand Geodetic Datum 1949"), INTERNATIONAL, "59.47,-5.04,187.44,0.47,-0.1,1.024,-4.5993"),
    geographic(4277, "OSGB 1936", (6277, "OSGB 1936"), AIRY, "446.448,-125.157,542.06,0.15,0.247,0.842,-20.489"),
    geographic(4283, "GDA94", (6283, "Geocentric Datum of Australia 1994"), GRS_1980, SAME),
    geographic(4289, "Amersfoort", (6289, "Amersfoort"), BESSEL, "565.4171,50.3319,465.5524,-0.398957388243134,0.343987817378283,-1.87740163998045,4.0725"),
    geographic(4301, "Tokyo", (6301, "Tokyo"), BESSEL, "-147,506,687,0,0,0,0"),
    geographic(4312, "MGI", (6312, "Militar-Geographische Institut"), BESSEL, "577.326,90.129,463.919,5.137,1.474,5.297,2.4232"),
    geographic(4313, "Belge 1972", (6313, "Reseau National Belge 1972"), INTERNATIONAL, "-106.8686,52.2978,-103.7239,0.3366,-0.457,1.8422,-1.2747"),
    geographic(4314, "DHDN", (6314, "Deutsches Hauptdreiecksnetz"), BESSEL, "598.1,73.7,418.2,0.202,0.045,-2.455,6.7"),
    geographic(4322, "WGS 72", (6322, "World Geodetic System 1972"), WGS_72, "0,0,4.5,0,0,0.554,0.219"),
    geographic(4326, "WGS 84", (6326, "World Geodetic System 1984"), WGS_84, ""),
    geographic(4490, "China Geodetic Coordinate System 2000", (1043, "China 2000"), CGCS, ""),
    geographic(4612, "JGD2000", (6612, "Japanese Geodetic Datum 2000"), GRS_1980, SAME),
    geographic(4619, "SWEREF99", (6619, "SWEREF99"), GRS_1980, SAME),
    geographic(4674, "SIRGAS 2000", (6674, "Sistema de Referencia Geocentrico para las AmericaS 2000"), GRS_1980, SAME),
    geographic(7844, "GDA2020", (1168, "Geocentric Datum of Australia 2020"), GRS_1980, SAME),
];

/// A way to project: its number, name, and the numbers and names of its parameters.
type Method = (u32, &'static str, &'static [(u32, &'static str)]);

const FALSE_EAST: (u32, &str) = (8806, "False easting");
const FALSE_NORTH: (u32, &str) = (8807, "False northing");
const LATITUDE: (u32, &str) = (8801, "Latitude of natural origin");
const LONGITUDE: (u32, &str) = (8802, "Longitude of natural origin");
const SCALE: (u32, &str) = (8805, "Scale factor at natural origin");
/// Parameters of a projection that touches at one place.
const OF_ORIGIN: &[(u32, &str)] = &[LATITUDE, LONGITUDE, SCALE, FALSE_EAST, FALSE_NORTH];
/// Parameters of a projection with two true parallels.
const OF_PARALLELS: &[(u32, &str)] = &[
    (8821, "Latitude of false origin"),
    (8822, "Longitude of false origin"),
    (8823, "Latitude of 1st standard parallel"),
    (8824, "Latitude of 2nd standard parallel"),
    (8826, "Easting at false origin"),
    (8827, "Northing at false origin"),
];

const PSEUDO_MERCATOR: Method = (
    1024,
    "Popular Visualisation Pseudo Mercator",
    &[LATITUDE, LONGITUDE, FALSE_EAST, FALSE_NORTH],
);
const LAMBERT: Method = (9802, "Lambert Conic Conformal (2SP)", OF_PARALLELS);
const MERCATOR: Method = (9804, "Mercator (variant A)", OF_ORIGIN);
const TRANSVERSE: Method = (9807, "Transverse Mercator", OF_ORIGIN);
const STEREOGRAPHIC: Method = (9809, "Oblique Stereographic", OF_ORIGIN);
const OBLIQUE_MERCATOR: Method = (
    9815,
    "Hotine Oblique Mercator (variant B)",
    &[
        (8811, "Latitude of projection centre"),
        (8812, "Longitude of projection centre"),
        (8813, "Azimuth of initial line"),
        (8814, "Angle from Rectified to Skew Grid"),
        (8815, "Scale factor on initial line"),
        (8816, "Easting at projection centre"),
        (8817, "Northing at projection centre"),
    ],
);
const AZIMUTHAL: Method =
    (9820, "Lambert Azimuthal Equal Area", &[LATITUDE, LONGITUDE, FALSE_EAST, FALSE_NORTH]);
const ALBERS: Method = (9822, "Albers Equal Area", OF_PARALLELS);
const POLAR: Method = (
    9829,
    "Polar Stereographic (variant B)",
    &[
        (8832, "Latitude of standard parallel"),
        (8833, "Longitude of origin"),
        FALSE_EAST,
        FALSE_NORTH,
    ],
);

/// A system of lengths on a plane.
struct Projected<'a> {
    srid: u32,
    name: &'a str,
    /// The number of the geographic system.
    of: u32,
    method: Method,
    parameters: &'a [&'a str],
    /// Names and directions of both axes.
    axes: &'a str,
}

const fn projected<'a>(
    srid: u32,
    name: &'a str,
    of: u32,
    method: Method,
    parameters: &'a [&'a str],
    axes: &'a str,
) -> Projected<'a> {
    Projected { srid, name, of, method, parameters, axes }
}

const EAST_NORTH: &str = r#"AXIS["E",EAST],AXIS["N",NORTH]"#;
const NORTH_EAST: &str = r#"AXIS["N",NORTH],AXIS["E",EAST]"#;
const X_EAST: &str = r#"AXIS["X",EAST],AXIS["Y",NORTH]"#;
const X_NORTH: &str = r#"AXIS["X",NORTH],AXIS["Y",EAST]"#;
const X_SOUTH: &str = r#"AXIS["X",SOUTH],AXIS["Y",SOUTH]"#;

#[rustfmt::skip]
const PROJECTED: &[Projected<'static>] = &[
    projected(2056, "CH1903+ / LV95", 4150, OBLIQUE_MERCATOR, &["46.9524055555556", "7.43958333333333", "90", "90", "1", "2600000", "1200000"], EAST_NORTH),
    projected(2154, "RGF93 / Lambert-93", 4171, LAMBERT, &["46.5", "3", "49", "44", "700000", "6600000"], X_EAST),
    projected(2180, "ETRS89 / Poland CS92", 4258, TRANSVERSE, &["0", "19", "0.9993", "500000", "-5300000"], r#"AXIS["x",NORTH],AXIS["y",EAST]"#),
    projected(2193, "NZGD2000 / New Zealand Transverse Mercator 2000", 4167, TRANSVERSE, &["0", "173", "0.9996", "1600000", "10000000"], NORTH_EAST),
    projected(3006, "SWEREF99 TM", 4619, TRANSVERSE, &["0", "15", "0.9996", "500000", "0"], NORTH_EAST),
    projected(3031, "WGS 84 / Antarctic Polar Stereographic", 4326, POLAR, &["-71", "0", "0", "0"], r#"AXIS["E",NORTH],AXIS["N",NORTH]"#),
    projected(3034, "ETRS89-extended / LCC Europe", 4258, LAMBERT, &["52", "10", "35", "65", "4000000", "2800000"], NORTH_EAST),
    projected(3035, "ETRS89-extended / LAEA Europe", 4258, AZIMUTHAL, &["52", "10", "4321000", "3210000"], r#"AXIS["Y",NORTH],AXIS["X",EAST]"#),
    projected(3067, "ETRS89 / TM35FIN(E,N)", 4258, TRANSVERSE, &["0", "27", "0.9996", "500000", "0"], EAST_NORTH),
    projected(3395, "WGS 84 / World Mercator", 4326, MERCATOR, &["0", "0", "1", "0", "0"], EAST_NORTH),
    projected(3413, "WGS 84 / NSIDC Sea Ice Polar Stereographic North", 4326, POLAR, &["70", "-45", "0", "0"], X_SOUTH),
    projected(3577, "GDA94 / Australian Albers", 4283, ALBERS, &["0", "132", "-18", "-36", "0", "0"], EAST_NORTH),
    projected(3832, "WGS 84 / PDC Mercator", 4326, MERCATOR, &["0", "150", "1", "0", "0"], EAST_NORTH),
    projected(3857, "WGS 84 / Pseudo-Mercator", 4326, PSEUDO_MERCATOR, &["0", "0", "0", "0"], X_EAST),
    projected(3995, "WGS 84 / Arctic Polar Stereographic", 4326, POLAR, &["71", "0", "0", "0"], X_SOUTH),
    projected(5070, "NAD83 / Conus Albers", 4269, ALBERS, &["23", "-96", "29.5", "45.5", "0", "0"], X_EAST),
    projected(21781, "CH1903 / LV03", 4149, OBLIQUE_MERCATOR, &["46.9524055555556", "7.43958333333333", "90", "90", "1", "600000", "200000"], r#"AXIS["Y",EAST],AXIS["X",NORTH]"#),
    projected(27700, "OSGB 1936 / British National Grid", 4277, TRANSVERSE, &["49", "-2", "0.9996012717", "400000", "-100000"], EAST_NORTH),
    projected(28992, "Amersfoort / RD New", 4289, STEREOGRAPHIC, &["52.1561605555556", "5.38763888888889", "0.9999079", "155000", "463000"], X_EAST),
    projected(31370, "Belge 1972 / Belgian Lambert 72", 4313, LAMBERT, &["90", "4.36748666666667", "51.1666672333333", "49.8333339", "150000.013", "5400088.438"], X_EAST),
    projected(31466, "DHDN / 3-degree Gauss-Kruger zone 2", 4314, TRANSVERSE, &["0", "6", "1", "2500000", "0"], X_NORTH),
    projected(31467, "DHDN / 3-degree Gauss-Kruger zone 3", 4314, TRANSVERSE, &["0", "9", "1", "3500000", "0"], X_NORTH),
    projected(31468, "DHDN / 3-degree Gauss-Kruger zone 4", 4314, TRANSVERSE, &["0", "12", "1", "4500000", "0"], X_NORTH),
    projected(31469, "DHDN / 3-degree Gauss-Kruger zone 5", 4314, TRANSVERSE, &["0", "15", "1", "5500000", "0"], X_NORTH),
];

/// Zones of six degrees of the universal transverse Mercator projection: the geographic system, the name, what is added to the zone to
/// make its number, the first and the last zone, the letter of the hemisphere, the false northing.
type Zones = (u32, &'static str, u32, u32, u32, &'static str, &'static str);

const SOUTHERN: &str = "10000000";
const NORTHERN: &str = "0";

#[rustfmt::skip]
const ZONES: &[Zones] = &[
    (4230, "ED50 / UTM", 23000, 28, 38, "N", NORTHERN),
    (4258, "ETRS89 / UTM", 25800, 28, 37, "N", NORTHERN),
    (4267, "NAD27 / UTM", 26700, 1, 22, "N", NORTHERN),
    (4269, "NAD83 / UTM", 26900, 1, 23, "N", NORTHERN),
    (4283, "GDA94 / MGA", 28300, 48, 58, "", SOUTHERN),
    (4322, "WGS 72 / UTM", 32200, 1, 60, "N", NORTHERN),
    (4322, "WGS 72 / UTM", 32300, 1, 60, "S", SOUTHERN),
    (4326, "WGS 84 / UTM", 32600, 1, 60, "N", NORTHERN),
    (4326, "WGS 84 / UTM", 32700, 1, 60, "S", SOUTHERN),
    (4674, "SIRGAS 2000 / UTM", 31954, 11, 22, "N", NORTHERN),
    (4674, "SIRGAS 2000 / UTM", 31960, 17, 25, "S", SOUTHERN),
    (7844, "GDA2020 / MGA", 7800, 46, 59, "", SOUTHERN),
];

/// The reference to the number of an object in the dataset.
fn authority(number: u32) -> String {
    format!("AUTHORITY[\"{EPSG}\",\"{number}\"]")
}

impl Geographic {
    fn definition(&self) -> String {
        let (code, ellipsoid, semi_major, flattening) = self.ellipsoid;
        let spheroid =
            format!("SPHEROID[\"{ellipsoid}\",{semi_major},{flattening},{}]", authority(code));
        let way = match self.to_wgs_84 {
            "" => String::new(),
            way => format!(",TOWGS84[{way}]"),
        };
        let (code, datum) = self.datum;
        format!(
            "GEOGCS[\"{}\",DATUM[\"{datum}\",{spheroid}{way},{}],PRIMEM[\"Greenwich\",0,{}],\
             UNIT[\"degree\",0.017453292519943278,{}],AXIS[\"Lat\",NORTH],AXIS[\"Lon\",EAST],{}]",
            self.name,
            authority(code),
            authority(8901),
            authority(9122),
            authority(self.srid)
        )
    }

    fn system(&self) -> ReferenceSystem {
        let (_, _, semi_major, flattening) = self.ellipsoid;
        let number = |text: &str| text.parse().unwrap_or(f64::NAN);
        let (semi_major, inverse_flattening) = (number(semi_major), number(flattening));
        ReferenceSystem {
            srid: self.srid,
            name: self.name.to_owned(),
            organization: Some((EPSG.to_owned(), self.srid)),
            axes: Axes::Degrees { semi_major, inverse_flattening, latitude_first: true },
            definition: self.definition(),
            description: None,
        }
    }
}

impl Projected<'_> {
    fn system(&self, of: &Geographic) -> ReferenceSystem {
        let (code, method, names) = self.method;
        let mut definition = format!(
            "PROJCS[\"{}\",{},PROJECTION[\"{method}\",{}]",
            self.name,
            of.definition(),
            authority(code)
        );
        for ((code, name), number) in names.iter().zip(self.parameters) {
            // Writing to a string does not fail.
            let _ = write!(definition, ",PARAMETER[\"{name}\",{number},{}]", authority(*code));
        }
        let (unit, own) = (authority(9001), authority(self.srid));
        let _ = write!(definition, ",UNIT[\"metre\",1,{unit}],{},{own}]", self.axes);
        ReferenceSystem {
            srid: self.srid,
            name: self.name.to_owned(),
            organization: Some((EPSG.to_owned(), self.srid)),
            axes: Axes::Plane { metres: 1.0 },
            definition,
            description: None,
        }
    }
}

fn all() -> Vec<ReferenceSystem> {
    let mut systems = vec![ReferenceSystem {
        srid: 0,
        name: String::new(),
        organization: None,
        axes: Axes::Plane { metres: 1.0 },
        definition: String::new(),
        description: None,
    }];
    for of in GEOGRAPHIC {
        systems.push(of.system());
        let own = PROJECTED.iter().filter(|projected| projected.of == of.srid);
        systems.extend(own.map(|projected| projected.system(of)));
        for (_, family, numbers, first, last, hemisphere, north) in
            ZONES.iter().filter(|zones| zones.0 == of.srid)
        {
            for zone in *first..=*last {
                let name = format!("{family} zone {zone}{hemisphere}");
                let middle = (6 * i64::from(zone) - 183).to_string();
                let parameters = ["0", middle.as_str(), "0.9996", "500000", north];
                let zone =
                    projected(numbers + zone, &name, of.srid, TRANSVERSE, &parameters, EAST_NORTH);
                systems.push(zone.system(of));
            }
        }
    }
    systems.sort_by_key(|system| system.srid);
    systems
}

/// All known systems, by number. The geographic ones have their latitude first.
pub fn reference_systems() -> &'static [ReferenceSystem] {
    static SYSTEMS: LazyLock<Vec<ReferenceSystem>> = LazyLock::new(all);
    &SYSTEMS
}

/// The system with this number.
pub fn reference_system(srid: u32) -> Option<&'static ReferenceSystem> {
    let systems = reference_systems();
    let place = systems.binary_search_by_key(&srid, |system| system.srid);
    place.ok().map(|place| &systems[place])
}
