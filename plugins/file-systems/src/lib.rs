//! The space of the file systems that the server writes to: `data_dictionary.FILE_SYSTEMS`, and warnings in the error log when one is nearly full.

mod table;
mod watch;

use std::sync::Arc;

use plugin_api::{Plugin, PluginInfo, Registrar};

/// The plugin.
#[derive(Debug)]
pub struct FileSystems;

impl Plugin for FileSystems {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("file_systems", "Space of the file systems that the server writes to.")
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.information_table(Arc::new(table::FileSystemTable::default()));
        registrar.job(Arc::new(watch::Watch));
    }
}

/// What directories are used for, and the variables that name them.
const PLACES: &[(&str, &str)] =
    &[("data", "datadir"), ("temporary files", "tmpdir"), ("log archive", "log_archive_directory")];

/// How full a file system is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fill {
    /// Below the first threshold.
    Ample,
    /// From 90 % on.
    Low,
    /// From 95 % on.
    VeryLow,
    /// Nothing is left, or a part of the server's reserve is missing.
    Full,
}

impl Fill {
    fn of(free: u64, total: u64) -> Fill {
        let used = total.saturating_sub(free);
        let is_above = |percent: u64| used.saturating_mul(100) >= total.saturating_mul(percent);
        match total {
            0 => Fill::Ample,
            _ if free == 0 => Fill::Full,
            _ if is_above(95) => Fill::VeryLow,
            _ if is_above(90) => Fill::Low,
            _ => Fill::Ample,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Fill::Ample => "OK",
            Fill::Low => "90 PERCENT",
            Fill::VeryLow => "95 PERCENT",
            Fill::Full => "FULL",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_states_follow_the_used_share() {
        let states: Vec<Fill> =
            [100, 11, 10, 6, 5, 1, 0].iter().map(|free| Fill::of(*free, 100)).collect();
        let expected = [
            Fill::Ample,
            Fill::Ample,
            Fill::Low,
            Fill::Low,
            Fill::VeryLow,
            Fill::VeryLow,
            Fill::Full,
        ];
        assert_eq!(states, expected);
        assert_eq!(Fill::of(0, 0), Fill::Ample);
    }
}
