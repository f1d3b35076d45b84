//! The slot for statements that change the cluster that a storage engine belongs to: ALTER CLUSTER, and EXPLAIN of it.

use engine_api::CancelToken;
use errors::Result;

/// A step of a change, as EXPLAIN shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterStep {
    /// The node that it is about; `None`: the whole cluster.
    pub node: Option<String>,
    /// What is done, in words.
    pub action: String,
    /// Whether statements go on meanwhile.
    pub is_online: bool,
    /// How long it takes.
    pub seconds: f64,
}

/// Changes a cluster. `change` is what follows ALTER CLUSTER.
pub trait ClusterControl: Send + Sync {
    /// The dynamic privilege that the change needs.
    ///
    /// # Errors
    /// 1064 for another text.
    fn privilege(&self, change: &str) -> Result<&'static str>;
    /// The steps of the change; nothing is done.
    ///
    /// # Errors
    /// The cluster cannot be asked, or would refuse.
    fn explain(&self, change: &str) -> Result<Vec<ClusterStep>>;
    /// Does the change. A statement that is killed leaves it to the server, which goes on.
    ///
    /// # Errors
    /// A step failed; 1235 for what the cluster cannot do.
    fn run(&self, change: &str, cancel: &CancelToken) -> Result<()>;
}
