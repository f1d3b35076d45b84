//! Accounts as statements and information tables show them.

pub(crate) mod texts;
