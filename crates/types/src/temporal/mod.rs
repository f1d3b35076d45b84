//! Dates, times and durations: packing, parsing, formatting, calendar arithmetic. Knows no session.

mod packed;

pub use packed::{Date, DateTime, MICROS_PER_DAY, MICROS_PER_SECOND, TIME_MAX_MICROS, Time};
