//! Columns of geometries, and reference systems.

use errors::Result;
use plugin_api::{InfoFilter, InformationContext, TableDetail};
use types::geometry::reference_system;
use types::{TypeKind, Value};

use crate::row::{Emit, catalog, optional, optional_number};
use crate::tables::visit_tables;

/// `ST_GEOMETRY_COLUMNS`.
pub fn columns(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let detail = TableDetail::Definition;
    visit_tables(ctx, filter, "table_schema", "table_name", detail, &mut |table| {
        for column in table.columns.iter().filter(|column| column.ty.kind == TypeKind::Geometry) {
            let srid = column.ty.spatial.srid;
            emit(&[
                catalog(),
                Value::text(&table.schema),
                Value::text(&table.name),
                Value::text(&column.name),
                optional(srid.and_then(reference_system).map(|system| system.name.as_str())),
                optional_number(srid.map(u64::from)),
                Value::text(&column.column_type),
            ])?;
        }
        Ok(())
    })
}

/// `ST_SPATIAL_REFERENCE_SYSTEMS`.
pub fn reference_systems(
    _: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    types::geometry::reference_systems().iter().try_for_each(|system| {
        let organization = Some(system.organization).filter(|name| !name.is_empty());
        emit(&[
            Value::text(&system.name),
            Value::UInt(system.srid.into()),
            optional(organization),
            optional_number(organization.map(|_| system.srid.into())),
            Value::text(&system.definition),
            Value::Null,
        ])
    })
}
