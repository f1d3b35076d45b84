//! SQL text made at run time.
