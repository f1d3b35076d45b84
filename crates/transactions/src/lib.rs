//! A session's transactions: one in each engine that it uses, begun and ended together around its statements; XA branches; and what replies
//! tell of them.
//!
//! Knows no session.

mod report;
mod scope;
mod sharing;
#[cfg(test)]
mod tests;
mod transactions;
mod xa;

pub use report::{Situation, TransactionReport};
pub use scope::{Afterwards, Writable, isolation_name, to_wait_for};
pub use sharing::Shared;
pub use transactions::{Characteristics, Place, TransactionHome, Transactions};
pub use xa::{XaBranches, XaContext};
