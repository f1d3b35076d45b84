//! How many of each thing a process makes: decided here, by the processors that it may use, so that no part of it guesses.

use std::sync::OnceLock;

use super::Topology;
use crate::model;

/// What the numbers of threads and of parts of shared structures follow from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Processors that may work at a time, at least 1: those that the process may use, or fewer if a quota gives no more time.
    pub processors: usize,
    /// Cores with such a processor, at least 1 and at most as many as processors.
    pub cores: usize,
    /// Nodes near whose memory the process may run, at least 1.
    pub nodes: usize,
}

/// This process's, once somebody has asked.
static HERE: OnceLock<Sizes> = OnceLock::new();

impl Sizes {
    /// On a simulated machine, and under a model.
    pub(crate) const SIMULATED: Sizes = Sizes { processors: 2, cores: 2, nodes: 1 };

    /// The real process's: read when first asked for, and the same from then on.
    pub(crate) fn of_process() -> Sizes {
        *HERE.get_or_init(|| match Topology::read() {
            // Where /sys is hidden, the standard library knows the number.
            hidden if hidden.usable().next().is_none() => {
                let processors = std::thread::available_parallelism();
                Sizes::of_count(processors.map_or(1, std::num::NonZero::get))
            }
            topology => Sizes::of(&topology),
        })
    }

    /// Whether somebody has asked: from then on it is too late to bind the process to other processors.
    pub(crate) fn are_decided() -> bool {
        HERE.get().is_some()
    }

    /// For a machine.
    pub fn of(topology: &Topology) -> Sizes {
        let usable = topology.usable().count().max(1);
        let processors = topology.quota.map_or(usable, |quota| quota.clamp(1, usable));
        Sizes {
            processors,
            cores: topology.usable_cores().clamp(1, processors),
            nodes: topology.usable_nodes().len().clamp(1, processors),
        }
    }

    /// For so many processors of which nothing else is known.
    fn of_count(processors: usize) -> Sizes {
        Sizes { processors, cores: processors, nodes: 1 }
    }

    /// Lanes to which threads append, each thread to one: a power of two, one for each processor as far as that goes.
    pub fn lanes(&self) -> usize {
        const LANES_MAX: usize = 64;
        self.processors.min(LANES_MAX).next_power_of_two()
    }

    /// Parts of a pool that threads take from, at most `most` of them: two for each processor, and as many for each node, to which they belong in turn.
    pub fn partitions(&self, most: usize) -> usize {
        let wanted = (self.processors * 2).min(most).max(1);
        if wanted < self.nodes { wanted } else { wanted / self.nodes * self.nodes }
    }

    /// Parts of counters and queues that threads share by number: a power of two, `least` or, on larger machines, one for each processor.
    pub fn shards(&self, least: usize) -> usize {
        const SHARDS_MAX: usize = 1024;
        self.processors.min(SHARDS_MAX).max(model::sized(least, 2)).next_power_of_two()
    }

    /// Writes of one file to have under way at a time.
    pub fn flights(&self) -> usize {
        self.processors.clamp(2, 4)
    }

    /// Threads that wait for pages most of their time.
    pub fn waiting_workers(&self) -> usize {
        const FOR_EACH: usize = 4;
        self.processors * FOR_EACH
    }

    /// Threads that help others with large work, all together.
    pub fn helpers(&self) -> usize {
        self.processors * 2
    }
}
