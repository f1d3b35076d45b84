//! Timings of a test.

use std::io::Write;

use crate::options::Options;

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
