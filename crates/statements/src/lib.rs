//! What is known of a statement before a session runs it: its kind, its status counters, its time limit, its plan, and the caches of plans and texts.
//!
//! Knows no session.

pub mod deadline;
pub mod lifted;
pub mod placeholders;
pub mod plan_cache;
pub mod planned;
pub mod prepared_texts;
pub mod statement_kind;
pub mod status;
