//! Timings of a test.

use std::io::Write;

use sys::machine::{Machine, ProcessorTimes};

use crate::options::Options;

/// Prints what of this machine the figures depend on; after a run also the time that a hypervisor took from it since `before`.
pub fn print_machine(before: Option<Option<ProcessorTimes>>) {
    println!("Machine of squall-slap");
    for (name, fact) in Machine::read().lines() {
        println!("\t{name}: {fact}");
    }
    if let Some(before) = before {
        println!("\tStolen during the run: {}", stolen(before, ProcessorTimes::read()));
    }
}

fn stolen(before: Option<ProcessorTimes>, after: Option<ProcessorTimes>) -> String {
    let (Some(before), Some(after)) = (before, after) else {
        return "absent: the kernel does not show processor times".into();
    };
    match after.stolen_percent_since(&before) {
        Some(percent) => format!("{percent:.1} % of the processors' time"),
        None => "absent: the run was shorter than a tick".into(),
    }
}

/// Results of all iterations of one test.
pub struct Report<'a> {
    pub options: &'a Options,
    pub engine: Option<&'a str>,
    pub clients: u64,
    /// Statements of each client.
    pub statements_per_client: u64,
    pub seconds: Vec<f64>,
    pub statements: u64,
    pub errors: u64,
}

impl Report<'_> {
    /// Prints it, as text or CSV.
    ///
    /// # Errors
    /// The CSV file cannot be written.
    pub fn print(&self) -> std::io::Result<()> {
        if self.options.silent {
            return Ok(());
        }
        let total: f64 = self.seconds.iter().sum();
        let average = total / self.seconds.len().max(1) as f64;
        let least = self.seconds.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.seconds.iter().copied().fold(0.0, f64::max);
        let engine = self.engine.unwrap_or("");
        if let Some(file) = &self.options.csv {
            let line = format!(
                "{engine},{},{average:.3},{least:.3},{most:.3},{},{}\n",
                self.options.label, self.clients, self.statements_per_client
            );
            if file == "-" {
                return std::io::stdout().write_all(line.as_bytes());
            }
            let mut file = std::fs::OpenOptions::new().append(true).create(true).open(file)?;
            return file.write_all(line.as_bytes());
        }
        println!("Benchmark");
        if !engine.is_empty() {
            println!("\tRunning for engine {engine}");
        }
        println!("\tAverage number of seconds to run all queries: {average:.3} seconds");
        println!("\tMinimum number of seconds to run all queries: {least:.3} seconds");
        println!("\tMaximum number of seconds to run all queries: {most:.3} seconds");
        println!("\tNumber of clients running queries: {}", self.clients);
        println!("\tAverage number of queries per client: {}", self.statements_per_client);
        println!("\tQueries per second: {:.0}", self.statements as f64 / total.max(1e-9));
        if self.errors > 0 || self.options.info {
            println!("\tErrors: {}", self.errors);
        }
        if self.options.info {
            println!("\tStatements: {}, in seconds: {total:.3}", self.statements);
        }
        println!();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_a_percentage_or_named_as_absent() {
        let times = |stolen, all| Some(ProcessorTimes { stolen, all });
        assert_eq!(stolen(times(10, 100), times(25, 300)), "7.5 % of the processors' time");
        assert_eq!(stolen(times(10, 100), times(10, 300)), "0.0 % of the processors' time");
        assert!(stolen(times(10, 100), times(10, 100)).starts_with("absent: the run"));
        assert!(stolen(None, times(10, 100)).starts_with("absent: the kernel"));
    }
}
