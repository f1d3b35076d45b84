//! The parameters of data nodes that SQL may change.

use std::sync::LazyLock;

use errors::{Error, Result};

/// A line for each: name, number, form, least and greatest value, what must restart.
const TABLE: &str = include_str!("parameters.txt");

/// What a new value needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Restart {
    /// Each data node, one at a time.
    Node,
    /// Likewise, without what it has on disk: it gets its rows from its partner.
    Initial,
    /// All at once: the cluster is down meanwhile.
    System,
}

/// A parameter.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    /// Its number in the configuration.
    pub(super) key: u32,
    /// Its value has 64 bits.
    pub(super) is_wide: bool,
    is_switch: bool,
    least: u64,
    greatest: u64,
    pub(super) restart: Restart,
}

static PARAMETERS: LazyLock<Vec<Parameter>> =
    LazyLock::new(|| TABLE.lines().filter_map(parameter).collect());

fn parameter(line: &'static str) -> Option<Parameter> {
    let words: Vec<&'static str> = line.split(' ').collect();
    let [name, key, form, least, greatest, restart] = words[..] else { return None };
    Some(Parameter {
        name,
        key: key.parse().ok()?,
        is_wide: form == "long",
        is_switch: form == "bool",
        least: least.parse().ok()?,
        greatest: greatest.parse().ok()?,
        restart: match restart {
            "node" => Restart::Node,
            "initial" => Restart::Initial,
            _ => Restart::System,
        },
    })
}

/// The parameter of this name.
pub(super) fn find(name: &str) -> Option<&'static Parameter> {
    PARAMETERS.iter().find(|parameter| parameter.name.eq_ignore_ascii_case(name))
}

/// The parameter with this number.
pub(super) fn by_key(key: u32) -> Option<&'static Parameter> {
    PARAMETERS.iter().find(|parameter| parameter.key == key)
}

impl Parameter {
    /// The value of a text: `64M`, `4GB`, `TRUE`. `None`: it is none of this parameter.
    ///
    /// # Errors
    /// 1235: no cluster can change it while it runs.
    pub(super) fn read(&self, text: &str) -> Result<Option<u64>> {
        if self.restart == Restart::System {
            return Err(Error::not_supported(format!(
                "ALTER CLUSTER SET {}, which a cluster takes only when all of it is started anew",
                self.name
            )));
        }
        let value = if self.is_switch { switch(text) } else { number(text) };
        Ok(value.filter(|value| (self.least..=self.greatest).contains(value)))
    }

    /// A value as people write it.
    pub(super) fn shown(&self, value: u64) -> String {
        if self.is_switch {
            return if value == 0 { "FALSE" } else { "TRUE" }.to_owned();
        }
        for (unit, letter) in [(1 << 30, 'G'), (1 << 20, 'M'), (1 << 10, 'K')] {
            if value > 0 && value.is_multiple_of(unit) {
                return format!("{}{letter}", value / unit);
            }
        }
        value.to_string()
    }
}

fn switch(text: &str) -> Option<u64> {
    match text.to_ascii_uppercase().as_str() {
        "1" | "TRUE" | "ON" | "YES" => Some(1),
        "0" | "FALSE" | "OFF" | "NO" => Some(0),
        _ => None,
    }
}

fn number(text: &str) -> Option<u64> {
    let upper = text.to_ascii_uppercase();
    let digits = upper.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &upper[digits.len()..] {
        "" => 1,
        "K" | "KB" => 1 << 10,
        "M" | "MB" => 1 << 20,
        "G" | "GB" => 1 << 30,
        "T" | "TB" => 1 << 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_parameter() {
        assert_eq!(PARAMETERS.len(), TABLE.lines().count());
        assert!(PARAMETERS.iter().all(|parameter| parameter.least <= parameter.greatest));
        let memory = find("DATAMEMORY").expect("a parameter");
        assert!(memory.is_wide && memory.restart == Restart::Node && by_key(112) == Some(memory));
        assert_eq!(find("NoOfFragmentLogFiles").map(|p| p.restart), Some(Restart::Initial));
        assert_eq!(find("NoOfReplicas").map(|p| p.restart), Some(Restart::System));
    }

    #[test]
    fn values_have_units() {
        let memory = find("DataMemory").expect("a parameter");
        for (text, value) in [("192M", 192 << 20), ("4gb", 4 << 30), ("1048576", 1 << 20)] {
            assert_eq!(memory.read(text).expect("may change"), Some(value));
        }
        assert_eq!(
            (memory.shown(192 << 20), memory.shown(1_000_001)),
            ("192M".into(), "1000001".into())
        );
        assert_eq!(memory.read("1").expect("may change"), None, "too little");
        let switch = find("StopOnError").expect("a parameter");
        assert_eq!(switch.read("on").expect("may change"), Some(1));
        assert_eq!(switch.read("2").expect("may change"), None);
    }
}
