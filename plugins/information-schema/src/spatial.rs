//! Columns of geometries, and reference systems.

use errors::Result;
use plugin_api::{InfoFilter, InformationContext, TableDetail};
use types::geometry::{ReferenceSystem, reference_system};
use types::{TypeKind, Value};

use crate::row::{Emit, catalog, optional, optional_number};
use crate::tables::visit_tables;

/// `ST_GEOMETRY_COLUMNS`.
pub fn columns(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let made = ctx.made_reference_systems();
    let name_of = |srid: u32| match reference_system(srid) {
        Some(system) => Some(system.name.as_str()),
        None => made.iter().find(|system| system.srid == srid).map(|system| system.name.as_str()),
    };
    let detail = TableDetail::Definition;
    visit_tables(ctx, filter, "table_schema", "table_name", detail, &mut |table| {
        for column in table.columns.iter().filter(|column| column.ty.kind == TypeKind::Geometry) {
            let srid = column.ty.spatial.srid;
            emit(&[
                catalog(),
                Value::text(&table.schema),
                Value::text(&table.name),
                Value::text(&column.name),
                optional(srid.and_then(name_of)),
                optional_number(srid.map(u64::from)),
                Value::text(&column.column_type),
            ])?;
        }
        Ok(())
    })
}

/// `ST_SPATIAL_REFERENCE_SYSTEMS`.
pub fn reference_systems(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let made = ctx.made_reference_systems();
    let mut made: Vec<&ReferenceSystem> = made.iter().map(|system| &**system).collect();
    made.sort_by_key(|system| system.srid);
    let mut made = made.into_iter().peekable();
    let mut show = |system: &ReferenceSystem| {
        let organization = system.organization.as_ref();
        emit(&[
            Value::text(&system.name),
            Value::UInt(system.srid.into()),
            optional(organization.map(|(name, _)| name.as_str())),
            optional_number(organization.map(|(_, number)| u64::from(*number))),
            Value::text(&system.definition),
            optional(system.description.as_deref()),
        ])
    };
    for built_in in types::geometry::reference_systems() {
        while let Some(before) = made.next_if(|system| system.srid < built_in.srid) {
            show(before)?;
        }
        show(&built_in)?;
    }
    made.try_for_each(show)
}
