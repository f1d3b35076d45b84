//! Meaning of CREATE and DROP SPATIAL REFERENCE SYSTEM.

use std::sync::Arc;

use catalog::{CatalogSnapshot, Edit};
use errors::{Error, ErrorCode, Result, bail, err};
use syntax::ast::CreateSpatialReferenceSystem;
use types::geometry::{
    DefinitionFault, ReferenceSystem, axes_of, reference_system, reference_systems,
};

use crate::servers::IfExists;

/// Characters of the attributes.
const NAME_MAX: usize = 80;
const ORGANIZATION_MAX: usize = 256;
const DEFINITION_MAX: usize = 4096;
const DESCRIPTION_MAX: usize = 2048;

/// Numbers that the reference keeps for itself, with a warning.
const RESERVED: [(u32, u32); 3] =
    [(0, 32_767), (60_000_000, 69_999_999), (2_000_000_000, 2_147_483_647)];

/// What a statement changes, and what it has to say.
#[derive(Debug, Default)]
pub struct SystemChange {
    /// Of the catalog.
    pub edit: Option<Edit>,
    /// Not an error.
    pub warning: Option<Error>,
}

/// CREATE SPATIAL REFERENCE SYSTEM.
///
/// # Errors
/// 1062, 1235 for a built-in number, 1525, 1690, 3517, 3518, 3708 to 3712, 3714, 3716, 3718, 3736 to 3740.
pub fn create_reference_system(
    statement: &CreateSpatialReferenceSystem,
    snapshot: &CatalogSnapshot,
) -> Result<SystemChange> {
    const STATEMENT: &str = "CREATE SPATIAL REFERENCE SYSTEM";
    let (name, definition) = check_attributes(statement)?;
    let srid = checked_number(statement.srid, STATEMENT)?;
    let organization = match &statement.organization {
        Some((organization, number)) => {
            let number = u32::try_from(*number)
                .map_err(|_| err!(DATA_OUT_OF_RANGE, "IDENTIFIED BY", STATEMENT))?;
            Some((organization.to_string(), number))
        }
        None => None,
    };
    if is_known(snapshot, srid) {
        if statement.flags.if_not_exists {
            let warning = Some(err!(WARN_SRS_ID_ALREADY_EXISTS, srid));
            return Ok(SystemChange { edit: None, warning });
        }
        if !statement.flags.or_replace {
            bail!(SRS_ID_ALREADY_EXISTS, srid);
        }
    }
    let axes = axes_of(definition).map_err(|fault| refusal(srid, fault))?;
    check_changeable(snapshot, srid)?;
    check_unique(snapshot, srid, name, organization.as_ref())?;
    let system = ReferenceSystem {
        srid,
        name: name.to_owned(),
        organization,
        axes,
        definition: definition.to_owned(),
        description: statement.description.as_deref().map(str::to_owned),
    };
    Ok(SystemChange {
        edit: Some(Edit::PutReferenceSystem(Arc::new(system))),
        warning: reserved(srid),
    })
}

/// DROP SPATIAL REFERENCE SYSTEM.
///
/// # Errors
/// 1235 for a built-in number, 1690, 3548, 3714, 3716.
pub fn drop_reference_system(
    srid: u64,
    is_there: IfExists,
    snapshot: &CatalogSnapshot,
) -> Result<SystemChange> {
    let srid = checked_number(srid, "DROP SPATIAL REFERENCE SYSTEM")?;
    if !is_known(snapshot, srid) {
        return match is_there {
            IfExists::Written => {
                Ok(SystemChange { edit: None, warning: Some(err!(WARN_SRS_NOT_FOUND, srid)) })
            }
            IfExists::Absent => Err(err!(SRS_NOT_FOUND, srid)),
        };
    }
    check_changeable(snapshot, srid)?;
    Ok(SystemChange { edit: Some(Edit::DropReferenceSystem(srid)), warning: reserved(srid) })
}

fn is_known(snapshot: &CatalogSnapshot, srid: u32) -> bool {
    snapshot.reference_systems().contains_key(&srid) || reference_system(srid).is_some()
}

fn checked_number(srid: u64, statement: &str) -> Result<u32> {
    match u32::try_from(srid) {
        Ok(0) => Err(err!(CANT_MODIFY_SRID_0)),
        Ok(srid) => Ok(srid),
        Err(_) => Err(err!(DATA_OUT_OF_RANGE, "SRID", statement)),
    }
}

/// The name and the definition, when all attributes are in order.
fn check_attributes(statement: &CreateSpatialReferenceSystem) -> Result<(&str, &str)> {
    if let Some(attribute) = statement.repeated {
        bail!(SRS_MULTIPLE_ATTRIBUTE_DEFINITIONS, attribute);
    }
    if statement.srid == 0 {
        bail!(CANT_MODIFY_SRID_0);
    }
    let missing = |attribute: &str| err!(SRS_MISSING_MANDATORY_ATTRIBUTE, attribute);
    let name = statement.name.as_deref().ok_or_else(|| missing("NAME"))?;
    let definition = statement.definition.as_deref().ok_or_else(|| missing("DEFINITION"))?;
    let organization = statement.organization.as_ref().map(|(organization, _)| &**organization);
    check_text(name, ErrorCode::SRS_NAME_CANT_BE_EMPTY_OR_WHITESPACE)?;
    check_line("NAME", name, NAME_MAX)?;
    check_line("DEFINITION", definition, DEFINITION_MAX)?;
    if let Some(organization) = organization {
        check_text(organization, ErrorCode::SRS_ORGANIZATION_CANT_BE_EMPTY_OR_WHITESPACE)?;
        check_line("ORGANIZATION", organization, ORGANIZATION_MAX)?;
    }
    if let Some(description) = statement.description.as_deref() {
        check_line("DESCRIPTION", description, DESCRIPTION_MAX)?;
    }
    Ok((name, definition))
}

/// Spaces around a text look like none; a line feed is refused for itself.
fn check_text(text: &str, code: ErrorCode) -> Result<()> {
    let is_space = |character: char| character.is_whitespace() && character != '\n';
    match text.is_empty() || text.starts_with(is_space) || text.ends_with(is_space) {
        true => Err(Error::with(code, &[])),
        false => Ok(()),
    }
}

fn check_line(attribute: &str, text: &str, characters_max: usize) -> Result<()> {
    if text.contains('\n') {
        bail!(WRONG_VALUE, "argument contains not-allowed LF", text);
    }
    if text.chars().any(char::is_control) {
        bail!(SRS_INVALID_CHARACTER_IN_ATTRIBUTE, attribute);
    }
    if text.chars().count() > characters_max {
        bail!(SRS_ATTRIBUTE_STRING_TOO_LONG, attribute, characters_max);
    }
    Ok(())
}

/// # Errors
/// 1235 for a built-in system; 3716 while a column has it.
fn check_changeable(snapshot: &CatalogSnapshot, srid: u32) -> Result<()> {
    if snapshot.uses_reference_system(srid) {
        bail!(CANT_MODIFY_SRS_USED_BY_COLUMN, srid);
    }
    match reference_system(srid) {
        Some(_) => Err(Error::not_supported("changes of built-in spatial reference systems")),
        None => Ok(()),
    }
}

/// # Errors
/// 1062 for the name or the number of an organization that another system has.
fn check_unique(
    snapshot: &CatalogSnapshot,
    srid: u32,
    name: &str,
    organization: Option<&(String, u32)>,
) -> Result<()> {
    let made = snapshot.reference_systems().values().map(|system| (**system).clone());
    let others = reference_systems().chain(made).filter(|system| system.srid != srid);
    for other in others {
        if other.name.to_lowercase() == name.to_lowercase() {
            let entry = format!("1-{name}");
            bail!(DUP_ENTRY, entry, "st_spatial_reference_systems.SRS_NAME");
        }
        if let (Some((own, number)), Some((its, its_number))) = (organization, &other.organization)
            && number == its_number
            && own.to_lowercase() == its.to_lowercase()
        {
            let entry = format!("1-{own}-{number}");
            let key = "st_spatial_reference_systems.ORGANIZATION_AND_ID";
            bail!(DUP_ENTRY, entry, key);
        }
    }
    Ok(())
}

fn reserved(srid: u32) -> Option<Error> {
    let range = RESERVED.iter().find(|(first, last)| (*first..=*last).contains(&srid));
    range.map(|(first, last)| err!(WARN_RESERVED_SRID_RANGE, first, last))
}

fn refusal(srid: u32, fault: DefinitionFault) -> Error {
    match fault {
        DefinitionFault::Malformed => err!(SRS_PARSE_ERROR, srid),
        DefinitionFault::Axes(first, second) => {
            err!(SRS_GEOGRAPHIC_INVALID_AXES, srid, first, second)
        }
        DefinitionFault::SemiMajor => err!(SRS_INVALID_SEMI_MAJOR_AXIS),
        DefinitionFault::InverseFlattening => err!(SRS_INVALID_INVERSE_FLATTENING),
        DefinitionFault::AngularUnit => err!(SRS_INVALID_ANGULAR_UNIT),
        DefinitionFault::PrimeMeridian => err!(SRS_INVALID_PRIME_MERIDIAN),
        DefinitionFault::Parameter(name, number) => {
            err!(SRS_PROJ_PARAMETER_MISSING, srid, name, number)
        }
        DefinitionFault::NotBuilt(what) => {
            Error::not_supported(format!("spatial reference systems with {what}"))
        }
    }
}
