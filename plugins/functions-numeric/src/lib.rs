//! Numeric functions: arithmetic, rounding, powers and logarithms, trigonometry, number bases, comparison, random numbers.
//!
//! Works on numbers only; the caller's coercions convert strings.

mod base;
mod bits;
mod compare;
mod format;
mod math;
mod random;
mod rounding;
mod sign;

use plugin_api::{Plugin, PluginInfo, Registrar, ScalarFunction};

/// The family.
#[derive(Clone, Copy, Debug, Default)]
pub struct NumericFunctions;

/// Short name of the family.
pub type Numeric = NumericFunctions;

impl Plugin for NumericFunctions {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("functions_numeric", "Numeric functions.")
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        for function in functions() {
            registrar.function(function);
        }
    }
}

/// All functions of the family.
fn functions() -> impl Iterator<Item = ScalarFunction> {
    let families: [&[ScalarFunction]; 8] = [
        sign::FUNCTIONS,
        rounding::FUNCTIONS,
        math::FUNCTIONS,
        base::FUNCTIONS,
        bits::FUNCTIONS,
        compare::FUNCTIONS,
        format::FUNCTIONS,
        random::FUNCTIONS,
    ];
    families.into_iter().flat_map(|family| family.to_vec())
}
