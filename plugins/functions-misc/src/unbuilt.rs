//! Functions of the reference that are not implemented: a call returns error 1235 with the name, instead of an unknown-function error.

use errors::Error;
use plugin_api::kit::scalar;
use plugin_api::{Arity, ScalarFunction};

/// A list of such functions. A macro, since a bind function is a plain function and each must contain its name.
macro_rules! unbuilt {
    ($($name:literal)*) => {
        &[$(scalar($name, Arity::at_least(0), concat!($name, "(...)\nNot built."), |_, _| {
            Err(Error::not_supported($name))
        })),*]
    };
}

#[rustfmt::skip]
pub(crate) const FUNCTIONS: &[ScalarFunction] = unbuilt! {
    "ST_BUFFER" "ST_BUFFER_STRATEGY" "ST_TRANSFORM"
};
