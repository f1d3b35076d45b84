//! Command line.

use std::path::PathBuf;

use clap::{ArgAction, Parser, ValueEnum};
use client::Target;

/// What auto-generated statements do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LoadType {
    /// Half inserts, half scans.
    Mixed,
    /// Updates by primary key.
    Update,
    /// Inserts.
    Write,
    /// Reads by primary key.
    Key,
    /// Table scans.
    Read,
}

/// sysbench's OLTP workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Workload {
    Select1,
    PointSelect,
    ReadOnly,
    ReadWrite,
    WriteOnly,
    UpdateIndex,
    UpdateNonIndex,
    Insert,
    Delete,
    RandomPoints,
    RandomRanges,
}

#[derive(Clone, Debug, Parser)]
#[command(about = "Load generator for MySQL-compatible servers", disable_help_flag = true)]
pub struct Options {
    #[arg(short = '?', long, action = ArgAction::Help, help = "Print help")]
    help: Option<bool>,
    /// Server host.
    #[arg(short, long, default_value = "127.0.0.1")]
    pub host: String,
    /// Server port.
    #[arg(short = 'P', long, default_value_t = 3306)]
    pub port: u16,
    /// UNIX socket instead of host and port.
    #[arg(short = 'S', long)]
    pub socket: Option<PathBuf>,
    /// User.
    #[arg(short, long, default_value = "root")]
    pub user: String,
    /// Password.
    #[arg(short, long, default_value = "", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub password: String,
    /// Encrypt connections.
    #[arg(long)]
    pub ssl: bool,

    /// Invent a table and statements.
    #[arg(short = 'a', long)]
    pub auto_generate_sql: bool,
    /// AUTO_INCREMENT primary key in the invented table.
    #[arg(long)]
    pub auto_generate_sql_add_autoincrement: bool,
    /// Statements that each client runs; 0 for those of `--number-of-queries` or all once.
    #[arg(long, default_value_t = 0)]
    pub auto_generate_sql_execute_number: u64,
    /// GUID primary key in the invented table.
    #[arg(long)]
    pub auto_generate_sql_guid_primary: bool,
    /// What the invented statements do.
    #[arg(long, value_enum, default_value = "mixed")]
    pub auto_generate_sql_load_type: LoadType,
    /// Secondary indexes in the invented table.
    #[arg(long, default_value_t = 0)]
    pub auto_generate_sql_secondary_indexes: u32,
    /// Different statements to invent for reading and updating.
    #[arg(long, default_value_t = 10)]
    pub auto_generate_sql_unique_query_number: u64,
    /// Different statements to invent for writing.
    #[arg(long, default_value_t = 10)]
    pub auto_generate_sql_unique_write_number: u64,
    /// Rows that are inserted before the load starts.
    #[arg(long, default_value_t = 100)]
    pub auto_generate_sql_write_number: u64,
    /// Columns of the SELECTs instead of `*`.
    #[arg(long)]
    pub auto_generate_sql_select_columns: Option<String>,
    /// Go on for ever.
    #[arg(long)]
    pub burnin: bool,
    /// Commit after this many statements; 0 for autocommit.
    #[arg(long, default_value_t = 0)]
    pub commit: u64,
    /// Clients at once; a comma-separated list runs one after the other.
    #[arg(short, long, value_delimiter = ',', default_value = "1")]
    pub concurrency: Vec<u64>,
    /// Statements to create the tables, or a file of them.
    #[arg(long)]
    pub create: Option<String>,
    /// Schema to work in.
    #[arg(long, default_value = "mysqlslap")]
    pub create_schema: String,
    /// One line of comma-separated values for each test, to standard output or to this file.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub csv: Option<String>,
    /// Longest pause, milliseconds, before a client starts.
    #[arg(long, default_value_t = 0)]
    pub delayed_start: u64,
    /// Separates statements.
    #[arg(short = 'F', long, default_value = ";")]
    pub delimiter: String,
    /// Reconnect after this many statements; 0 for never.
    #[arg(long, default_value_t = 0)]
    pub detach: u64,
    /// Engine of invented tables; a comma-separated list runs one after the other.
    #[arg(short, long, value_delimiter = ',')]
    pub engine: Vec<String>,
    /// Go on after errors.
    #[arg(long)]
    pub ignore_sql_errors: bool,
    /// Times to run each test.
    #[arg(short, long, default_value_t = 1)]
    pub iterations: u64,
    /// Name of the test in the CSV.
    #[arg(long, default_value = "")]
    pub label: String,
    /// Leave the schema there afterwards.
    #[arg(long)]
    pub no_drop: bool,
    /// BLOB columns of the invented table.
    #[arg(long, default_value_t = 0)]
    pub number_blob_cols: u32,
    /// VARCHAR columns of the invented table.
    #[arg(short = 'x', long, default_value_t = 1)]
    pub number_char_cols: u32,
    /// INT columns of the invented table.
    #[arg(short = 'y', long, default_value_t = 1)]
    pub number_int_cols: u32,
    /// Statements over all clients; 0 for the given ones once each client.
    #[arg(long, default_value_t = 0)]
    pub number_of_queries: u64,
    /// Print the statements instead of running them.
    #[arg(long)]
    pub only_print: bool,
    /// Statements (or a file) after the load.
    #[arg(long)]
    pub post_query: Option<String>,
    /// Command line to run after the load.
    #[arg(long)]
    pub post_system: Option<String>,
    /// Statements (or a file) before the load.
    #[arg(long)]
    pub pre_query: Option<String>,
    /// Command line to run before the load.
    #[arg(long)]
    pub pre_system: Option<String>,
    /// Statements of the load, or a file of them; may be repeated.
    #[arg(short, long)]
    pub query: Vec<String>,
    /// Seed of everything random.
    #[arg(long, default_value_t = 1)]
    pub set_random_seed: u64,
    /// Print nothing.
    #[arg(short, long)]
    pub silent: bool,
    /// Seconds to run for, instead of a number of statements.
    #[arg(long, default_value_t = 0)]
    pub timer_length: u64,
    /// Say more; repeat for the statements.
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,

    /// Run this OLTP workload on sysbench's tables.
    #[arg(long, value_enum)]
    pub workload: Option<Workload>,
    /// Tables of the workload.
    #[arg(long, default_value_t = 4)]
    pub tables: u64,
    /// Rows of each of them.
    #[arg(long, default_value_t = 100_000)]
    pub table_size: u64,
    /// Make and fill the tables first.
    #[arg(long)]
    pub prepare: bool,
    /// Drop the tables afterwards.
    #[arg(long)]
    pub cleanup: bool,
    /// Send statements as text instead of preparing them.
    #[arg(long)]
    pub text: bool,
    /// Append the id of every row whose insert was acknowledged to this file: what must survive a crash.
    #[arg(long)]
    pub acknowledged: Option<PathBuf>,
}

impl Options {
    /// How to log in, with a schema or without.
    pub fn login(&self, database: Option<&str>) -> client::Options {
        let target = match &self.socket {
            Some(path) => Target::Socket(path.clone()),
            None => Target::Tcp(self.host.clone(), self.port),
        };
        client::Options {
            target,
            user: self.user.clone(),
            password: self.password.clone(),
            database: database.map(str::to_owned),
            tls: self.ssl,
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        super::Options::command().debug_assert();
    }
}
