//! Units of length.

use errors::{Error, ErrorCode, Result};
use plugin_api::{
    InfoColumn, InfoFilter, InformationContext, InformationTable, TableDefinition, kit,
    table_definitions,
};
use types::Value;
use types::geometry::ReferenceSystem;

/// `ST_UNITS_OF_MEASURE`.
const DEFINITION: &str = "\
[information_schema.ST_UNITS_OF_MEASURE]
UNIT_NAME VarChar 255 collation=utf8mb4_0900_ai_ci
UNIT_TYPE VarChar 7 collation=utf8mb4_0900_ai_ci
CONVERSION_FACTOR Double 22 decimals=31
DESCRIPTION VarChar 255 collation=utf8mb4_0900_ai_ci
";

/// Names and metres of the units, as the reference lists them.
const UNITS: &[(&str, f64)] = &[
    ("British chain (Benoit 1895 A)", 20.1167824),
    ("British chain (Benoit 1895 B)", 20.116782494375872),
    ("British chain (Sears 1922 truncated)", 20.116756),
    ("British chain (Sears 1922)", 20.116765121552632),
    ("British foot (1865)", 0.30480083333333335),
    ("British foot (1936)", 0.3048007491),
    ("British foot (Benoit 1895 A)", 0.3047997333333333),
    ("British foot (Benoit 1895 B)", 0.30479973476327077),
    ("British foot (Sears 1922 truncated)", 0.30479933333333337),
    ("British foot (Sears 1922)", 0.3047994715386762),
    ("British link (Benoit 1895 A)", 0.201167824),
    ("British link (Benoit 1895 B)", 0.2011678249437587),
    ("British link (Sears 1922 truncated)", 0.20116756),
    ("British link (Sears 1922)", 0.2011676512155263),
    ("British yard (Benoit 1895 A)", 0.9143992),
    ("British yard (Benoit 1895 B)", 0.9143992042898124),
    ("British yard (Sears 1922 truncated)", 0.914398),
    ("British yard (Sears 1922)", 0.9143984146160287),
    ("centimetre", 0.01),
    ("chain", 20.1168),
    ("Clarke's chain", 20.1166195164),
    ("Clarke's foot", 0.3047972654),
    ("Clarke's link", 0.201166195164),
    ("Clarke's yard", 0.9143917962),
    ("fathom", 1.8288),
    ("foot", 0.3048),
    ("German legal metre", 1.0000135965),
    ("Gold Coast foot", 0.3047997101815088),
    ("Indian foot", 0.30479951024814694),
    ("Indian foot (1937)", 0.30479841),
    ("Indian foot (1962)", 0.3047996),
    ("Indian foot (1975)", 0.3047995),
    ("Indian yard", 0.9143985307444408),
    ("Indian yard (1937)", 0.91439523),
    ("Indian yard (1962)", 0.9143988),
    ("Indian yard (1975)", 0.9143985),
    ("kilometre", 1000.0),
    ("link", 0.201168),
    ("metre", 1.0),
    ("millimetre", 0.001),
    ("nautical mile", 1852.0),
    ("Statute mile", 1609.344),
    ("US survey chain", 20.11684023368047),
    ("US survey foot", 0.30480060960121924),
    ("US survey link", 0.2011684023368047),
    ("US survey mile", 1609.3472186944375),
    ("yard", 0.9144),
];

/// The unit in which a length is wanted.
#[derive(Clone, Copy)]
pub(crate) struct Unit {
    /// Metres of the unit of the reference system.
    own: f64,
    /// Metres of the wanted one.
    wanted: f64,
}

impl Unit {
    /// A length of the reference system in the wanted unit.
    pub(crate) fn of(self, length: f64) -> f64 {
        length * (self.own / self.wanted)
    }
}

/// The unit that an argument names, or else that of the reference system.
///
/// # Errors
/// 3882 in a reference system without a unit, 3902 for an unknown unit.
pub(crate) fn wanted(name: &str, unit: Option<&Value>, system: &ReferenceSystem) -> Result<Unit> {
    let Some(unit) = unit else { return Ok(Unit { own: 1.0, wanted: 1.0 }) };
    let unit = kit::text(unit);
    if system.srid == 0 {
        let code = ErrorCode::GEOMETRY_IN_UNKNOWN_LENGTH_UNIT;
        return Err(Error::with(code, &[&name, &unit]));
    }
    let known = UNITS.iter().find(|(known, _)| known.eq_ignore_ascii_case(&unit));
    let known = known.ok_or_else(|| Error::with(ErrorCode::UNIT_NOT_FOUND, &[&unit]))?;
    Ok(Unit { own: system.metres(), wanted: known.1 })
}

/// The table of the units.
pub(crate) struct Units(TableDefinition);

impl Units {
    /// It, if its definition can be read.
    pub(crate) fn table() -> Option<Units> {
        table_definitions(DEFINITION).pop().map(Units)
    }
}

impl InformationTable for Units {
    fn schema(&self) -> &'static str {
        self.0.schema
    }

    fn name(&self) -> &'static str {
        self.0.name
    }

    fn columns(&self) -> &[InfoColumn] {
        &self.0.columns
    }

    fn rows(
        &self,
        _: &dyn InformationContext,
        _: &InfoFilter,
        emit: &mut dyn FnMut(&[Value]) -> Result<()>,
    ) -> Result<()> {
        UNITS.iter().try_for_each(|(name, metres)| {
            emit(&[
                Value::text(name),
                Value::text("LINEAR"),
                Value::Double(*metres),
                Value::text(""),
            ])
        })
    }
}
