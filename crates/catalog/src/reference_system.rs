//! Spatial reference systems that `CREATE SPATIAL REFERENCE SYSTEM` made.

use errors::Result;
use types::geometry::{ReferenceSystem, axes_of};

use crate::fields::{FieldWriter, damaged, object_fields};

/// Number 1, name 2, definition 3, organization 4, its number 5 (one larger), whether there is a description 6, description 7.
pub(crate) fn write_system(system: &ReferenceSystem) -> Vec<u8> {
    let mut out = FieldWriter::object();
    out.number(1, system.srid.into());
    out.text(2, &system.name);
    out.text(3, &system.definition);
    if let Some((organization, number)) = &system.organization {
        out.text(4, organization);
        out.number(5, u64::from(*number) + 1);
    }
    out.flag(6, system.description.is_some());
    out.text(7, system.description.as_deref().unwrap_or_default());
    out.finish()
}

/// # Errors
/// Not such an object, or a definition that this version cannot use.
pub(crate) fn read_system(bytes: &[u8]) -> Result<ReferenceSystem> {
    let (mut srid, mut name, mut definition) = (0, String::new(), String::new());
    let (mut organization, mut number, mut description) = (String::new(), 0_u64, None::<String>);
    for field in object_fields(bytes)? {
        match field.tag {
            1 => srid = field.narrow()?,
            2 => name = field.text()?.to_owned(),
            3 => definition = field.text()?.to_owned(),
            4 => organization = field.text()?.to_owned(),
            5 => number = field.number()?,
            6 if field.flag()? => {
                description.get_or_insert_default();
            }
            7 => description = Some(field.text()?.to_owned()),
            _ => {}
        }
    }
    let number = number.checked_sub(1).and_then(|number| u32::try_from(number).ok());
    let organization = number.map(|number| (organization, number));
    let axes = axes_of(&definition).map_err(|_| damaged())?;
    Ok(ReferenceSystem { srid, name, organization, axes, definition, description })
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::geometry::reference_system;

    #[test]
    fn systems_are_read_as_they_were_written() {
        let known = reference_system(4326).unwrap();
        let plain = ReferenceSystem { srid: 990_001, name: "a".into(), ..known.clone() };
        let none =
            ReferenceSystem { organization: None, description: Some("".into()), ..plain.clone() };
        let full = ReferenceSystem {
            organization: Some(("o".into(), u32::MAX)),
            description: Some("d".into()),
            ..plain.clone()
        };
        for system in [plain, none, full] {
            assert_eq!(read_system(&write_system(&system)).unwrap(), system);
        }
    }
}
