//! What a plugin keeps for its functions.

use std::sync::Arc;

/// Something that a plugin keeps for its functions.
pub type SharedState = Arc<dyn std::any::Any + Send + Sync>;
