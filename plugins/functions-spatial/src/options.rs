//! The options argument of functions that read and write texts and WKB: `axis-order=long-lat`.

use errors::{Error, ErrorCode, Result};
use types::geometry::ReferenceSystem;

/// Most bytes of an unknown option that a message shows.
const SHOWN_MAX: usize = 64;

/// The first coordinate in external formats.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum AxisOrder {
    /// As the reference system defines.
    #[default]
    OfSystem,
    /// Longitude.
    LongLat,
    /// Latitude.
    LatLong,
}

impl AxisOrder {
    /// Reads the options of function `name`.
    ///
    /// # Errors
    /// 3558, 3559, 3560, 3564.
    pub(crate) fn read(name: &str, options: &str) -> Result<AxisOrder> {
        let mut order = None;
        if options.trim().is_empty() {
            return Ok(AxisOrder::OfSystem);
        }
        for (end, at) in [(false, 0), (true, options.trim_end().len() - 1)] {
            let found = options.as_bytes()[at];
            if matches!(found, b',' | b'=') {
                let code = match end {
                    false => ErrorCode::INVALID_OPTION_START_CHARACTER,
                    true => ErrorCode::INVALID_OPTION_END_CHARACTER,
                };
                return Err(Error::with(code, &[&name, &char::from(found)]));
            }
        }
        for pair in options.split(',') {
            let no_pair =
                || Error::with(ErrorCode::INVALID_OPTION_KEY_VALUE_PAIR, &[&shown(pair), &name]);
            let pair_of = pair.split_once('=').filter(|(_, value)| !value.contains('='));
            let (key, value) = pair_of.ok_or_else(no_pair)?;
            let (key, value) = (key.trim(), value.trim());
            if key.is_empty() || value.is_empty() {
                return Err(no_pair());
            }
            if !key.eq_ignore_ascii_case("axis-order") {
                return Err(Error::with(ErrorCode::INVALID_OPTION_KEY, &[&shown(key), &name]));
            }
            if order.is_some() {
                return Err(Error::with(ErrorCode::DUPLICATE_OPTION_KEY, &[&key, &name]));
            }
            order = Some(match value.to_ascii_lowercase().as_str() {
                "long-lat" => AxisOrder::LongLat,
                "lat-long" => AxisOrder::LatLong,
                "srid-defined" => AxisOrder::OfSystem,
                _ => {
                    let code = ErrorCode::INVALID_OPTION_VALUE;
                    return Err(Error::with(code, &[&shown(value), &key, &name]));
                }
            });
        }
        Ok(order.unwrap_or_default())
    }

    /// Whether the external coordinates are in the other order than the stored ones.
    pub(crate) fn swaps(self, system: &ReferenceSystem) -> bool {
        match self {
            AxisOrder::OfSystem => system.swaps_axes(),
            AxisOrder::LongLat => false,
            AxisOrder::LatLong => system.is_geographic(),
        }
    }
}

fn shown(text: &str) -> &str {
    let end = text.floor_char_boundary(SHOWN_MAX);
    &text[..end]
}
