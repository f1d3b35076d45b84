//! Spatial functions. Values are read from their stored form (`types::geometry`) into a tree, and written back.
//!
//! A stored position has the longitude first; texts, WKB and `ST_X` of a geographic reference system have the latitude first. Code that
//! reads or writes those swaps the two.

mod argument;
mod buffer;
mod build;
mod check;
mod collect;
mod derived;
mod flat;
mod from_text;
mod from_wkb;
mod geodesic;
mod geographic;
mod geohash;
mod geojson;
mod grid;
mod measures;
mod members;
mod options;
mod overlay;
mod pair;
mod place;
mod planar;
mod properties;
mod relations;
#[cfg(test)]
mod tests;
mod text;
mod transform;
mod units;
mod validity;

use plugin_api::{Plugin, PluginInfo, Registrar, ScalarFunction};

/// The family.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpatialFunctions;

impl Plugin for SpatialFunctions {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("functions_spatial", "Spatial functions.")
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        for function in functions() {
            registrar.function(function);
        }
        for aggregate in collect::AGGREGATES {
            registrar.aggregate(aggregate.clone());
        }
        if let Some(units) = units::Units::table() {
            registrar.information_table(std::sync::Arc::new(units));
        }
    }
}

/// All functions of the family.
fn functions() -> impl Iterator<Item = ScalarFunction> {
    let families: [&[ScalarFunction]; 16] = [
        from_text::FUNCTIONS,
        from_wkb::FUNCTIONS,
        build::FUNCTIONS,
        text::FUNCTIONS,
        properties::FUNCTIONS,
        members::FUNCTIONS,
        geojson::FUNCTIONS,
        geohash::FUNCTIONS,
        measures::FUNCTIONS,
        relations::FUNCTIONS,
        relations::OF_RECTANGLES,
        validity::FUNCTIONS,
        derived::FUNCTIONS,
        overlay::FUNCTIONS,
        buffer::FUNCTIONS,
        transform::FUNCTIONS,
    ];
    families.into_iter().flat_map(|family| family.to_vec())
}
