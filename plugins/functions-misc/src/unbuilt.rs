//! Functions that the reference has and that are not built: a call answers 1235 naming it, rather than that it does not exist.

use errors::Error;
use plugin_api::kit::scalar;
use plugin_api::{Arity, ScalarFunction};

/// A list of such functions. A macro, since a bind function is a plain function and each must know its name.
macro_rules! unbuilt {
    ($($name:literal)*) => {
        &[$(scalar($name, Arity::at_least(0), concat!($name, "(...)\nNot built."), |_, _| {
            Err(Error::not_supported($name))
        })),*]
    };
}

#[rustfmt::skip]
pub(crate) const FUNCTIONS: &[ScalarFunction] = unbuilt! {
    "EXTRACTVALUE" "UPDATEXML" "STATEMENT_DIGEST" "STATEMENT_DIGEST_TEXT" "ROLES_GRAPHML" "ICU_VERSION"
    "VALIDATE_PASSWORD_STRENGTH" "SOURCE_POS_WAIT" "MASTER_POS_WAIT" "WAIT_FOR_EXECUTED_GTID_SET"
    "MBRCONTAINS" "MBRCOVEREDBY" "MBRCOVERS" "MBRDISJOINT" "MBREQUALS" "MBRINTERSECTS" "MBROVERLAPS" "MBRTOUCHES"
    "MBRWITHIN" "ST_AREA" "ST_BUFFER" "ST_BUFFER_STRATEGY" "ST_CENTROID" "ST_CONTAINS" "ST_CONVEXHULL" "ST_CROSSES"
    "ST_DIFFERENCE" "ST_DISJOINT" "ST_DISTANCE" "ST_DISTANCE_SPHERE" "ST_EQUALS" "ST_FRECHETDISTANCE"
    "ST_HAUSDORFFDISTANCE" "ST_INTERSECTION" "ST_INTERSECTS" "ST_ISSIMPLE" "ST_ISVALID" "ST_LENGTH"
    "ST_LINEINTERPOLATEPOINT" "ST_LINEINTERPOLATEPOINTS" "ST_MAKEENVELOPE" "ST_OVERLAPS" "ST_POINTATDISTANCE"
    "ST_SIMPLIFY" "ST_SYMDIFFERENCE" "ST_TOUCHES" "ST_TRANSFORM" "ST_UNION" "ST_VALIDATE" "ST_WITHIN"
};
