//! The four figures of MySQL Cluster's benchmark flexAsynch, through SQL: rows inserted, read, updated and deleted by key, over so many connections.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use client::{Connection, Failure};
use types::Value;

use crate::options::Options;

/// The phases: their names and statements. `?` are the values of [`values`].
const PHASES: [(&str, &str); 4] = [
    ("insert", "INSERT INTO flexasync (id, c1, c2, c3) VALUES (?, ?, ?, ?)"),
    ("read", "SELECT c1, c2, c3 FROM flexasync WHERE id = ?"),
    ("update", "UPDATE flexasync SET c1 = c1 + 1 WHERE id = ?"),
    ("delete", "DELETE FROM flexasync WHERE id = ?"),
];
/// Tries of a statement that ends with a deadlock, a time-out or a temporary error of the cluster.
const TRIES: u64 = 100;

/// Runs the four phases for each number of connections.
///
/// # Errors
/// The server cannot be reached, or a statement fails.
pub fn run(options: &Options) -> Result<(), String> {
    let engines = match options.engine.as_slice() {
        [] => vec![String::new()],
        engines => engines.iter().map(|engine| format!(" ENGINE={engine}")).collect(),
    };
    for engine in &engines {
        for connections in &options.concurrency {
            let table = Table { options, engine, connections: (*connections).max(1) };
            table.run()?;
        }
    }
    Ok(())
}

struct Table<'a> {
    options: &'a Options,
    engine: &'a str,
    connections: u64,
}

/// What one phase did, all connections together.
#[derive(Default)]
struct Done {
    rows: AtomicU64,
    retries: AtomicU64,
}

/// The values for row `id` in a phase.
fn values(phase: usize, id: u64) -> Vec<Value> {
    let id = Value::Int(id as i64);
    match phase {
        0 => vec![id, Value::Int(0), Value::text("first"), Value::text("second")],
        _ => vec![id],
    }
}

/// The rows of connection `number`: from the first to before the second.
fn share(number: u64, connections: u64, rows: u64) -> (u64, u64) {
    let at = |number: u64| (u128::from(rows) * u128::from(number) / u128::from(connections)) as u64;
    (at(number), at(number + 1))
}

impl Table<'_> {
    fn run(&self) -> Result<(), String> {
        let (schema, rows) = (&self.options.create_schema, self.options.table_size);
        let mut admin = self.options.open(None).map_err(|error| error.to_string())?;
        let create = format!(
            "CREATE TABLE `{schema}`.flexasync (id BIGINT UNSIGNED PRIMARY KEY, c1 BIGINT UNSIGNED, c2 VARCHAR(40), c3 VARCHAR(40)){}",
            self.engine
        );
        let drop = format!("DROP TABLE IF EXISTS `{schema}`.flexasync");
        for sql in [&format!("CREATE SCHEMA IF NOT EXISTS `{schema}`"), &drop, &create] {
            admin.query(sql.as_bytes(), &mut ()).map_err(|error| error.to_string())?;
        }
        let done: [Done; 4] = Default::default();
        // One more than there are connections: this thread takes the times.
        let barrier = Barrier::new(self.connections as usize + 1);
        let outcome: Result<Vec<f64>, String> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..self.connections)
                .map(|number| {
                    let (done, barrier) = (&done, &barrier);
                    scope.spawn(move || self.work(number, done, barrier))
                })
                .collect();
            let mut seconds = Vec::new();
            for _ in PHASES {
                barrier.wait();
                let started = Instant::now();
                barrier.wait();
                seconds.push(started.elapsed().as_secs_f64());
            }
            for worker in workers {
                let result = worker.join().map_err(|_| "a connection panicked".to_owned())?;
                result.map_err(|error| error.to_string())?;
            }
            Ok(seconds)
        });
        let seconds = outcome?;
        admin.query(drop.as_bytes(), &mut ()).map_err(|error| error.to_string())?;
        for (((name, _), done), seconds) in PHASES.iter().zip(&done).zip(seconds) {
            let (did, retries) =
                (done.rows.load(Ordering::Relaxed), done.retries.load(Ordering::Relaxed));
            if did != rows {
                return Err(format!("{name}: {did} rows instead of {rows}"));
            }
            println!(
                "flexasync{}: {} connections, {name}: {:.0} rows/s, {retries} retries",
                self.engine,
                self.connections,
                did as f64 / seconds.max(1e-9)
            );
        }
        Ok(())
    }

    /// Runs the phases of a connection. It takes part in every barrier even after an error: others wait for it.
    fn work(&self, number: u64, done: &[Done; 4], barrier: &Barrier) -> client::Result<()> {
        let mut connection = self.options.open(Some(&self.options.create_schema));
        let mut outcome = Ok(());
        for (phase, done) in done.iter().enumerate() {
            barrier.wait();
            if let (Ok(connection), Ok(())) = (&mut connection, &outcome) {
                outcome = self.phase(connection, number, phase, done);
            }
            barrier.wait();
        }
        connection.and(outcome)
    }

    fn phase(
        &self,
        connection: &mut Connection,
        number: u64,
        phase: usize,
        done: &Done,
    ) -> client::Result<()> {
        let (first, end) = share(number, self.connections, self.options.table_size);
        let statement = connection.prepare(PHASES[phase].1.as_bytes())?;
        let (mut rows, mut retries) = (0u64, 0u64);
        let at_once = self.options.pipeline;
        let mut id = first;
        while id < end {
            let next = (id + at_once).min(end);
            let batch: Vec<_> = (id..next).map(|id| (statement, values(phase, id))).collect();
            let sent = match batch.as_slice() {
                [(statement, values)] => connection.execute(*statement, values, &mut ()).map(drop),
                batch => connection.execute_pipelined(batch, &mut ()).map(drop),
            };
            match sent {
                Ok(()) => rows += next - id,
                Err(Failure::Server(error))
                    if matches!(error.code().0, 1205 | 1213 | 1297)
                        && at_once == 1
                        && retries < TRIES =>
                {
                    retries += 1;
                    continue;
                }
                Err(error) => return Err(error),
            }
            id = next;
        }
        done.rows.fetch_add(rows, Ordering::Relaxed);
        done.retries.fetch_add(retries, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_one_connection() {
        for (connections, rows) in [(1, 10), (3, 10), (64, 10_000_000_000_000), (7, 3)] {
            let mut next = 0;
            for number in 0..connections {
                let (first, end) = share(number, connections, rows);
                assert_eq!(first, next, "connection {number} of {connections}");
                next = end;
            }
            assert_eq!(next, rows);
        }
    }

    #[test]
    fn counts_have_sixty_four_bits() {
        let done = Done::default();
        done.rows.fetch_add(10_000_000_000_000, Ordering::Relaxed);
        done.rows.fetch_add(1, Ordering::Relaxed);
        assert_eq!(done.rows.into_inner(), 10_000_000_000_001);
        assert_eq!(values(1, 10_000_000_000_000), [Value::Int(10_000_000_000_000)]);
    }
}
