//! What of LOAD DATA is not built.

use errors::{Error, Result, bail};
use syntax::ast::{LoadData, LoadSource};

/// Refuses what LOAD DATA does not take.
///
/// # Errors
/// 1083, 1235: LOAD DATA does not take it.
pub fn refuse_unbuilt(load: &LoadData) -> Result<()> {
    if load.source != LoadSource::File || load.bulk || load.compression.is_some() {
        return Err(Error::not_supported("LOAD DATA from URLs and bulk loading"));
    }
    let format = &load.format;
    let long = |part: &Option<Box<[u8]>>| part.as_ref().is_some_and(|bytes| bytes.len() > 1);
    if long(&format.fields_enclosed_by) || long(&format.fields_escaped_by) {
        bail!(WRONG_FIELD_TERMINATORS);
    }
    let empty = |part: &Option<Box<[u8]>>, default: bool| {
        part.as_ref().map_or(default, |bytes| bytes.is_empty())
    };
    if empty(&format.fields_terminated_by, false) && empty(&format.fields_enclosed_by, true) {
        return Err(Error::not_supported("LOAD DATA with fields of fixed size"));
    }
    Ok(())
}
