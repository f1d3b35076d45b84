//! Command line.

use std::path::PathBuf;

use clap::{ArgAction, Parser, ValueEnum};
use client::{Connection, Encryption, Framing, Target};

/// Kind of the auto-generated statements.
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

/// How to reach the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    /// By host and port.
    Tcp,
    /// By `--socket`.
    Socket,
    /// MySQL's protocol over TCP or the socket, whichever is given.
    Mysql,
    /// The JSON server's `POST /1.0/sql`: workloads of one statement only.
    Http,
}

/// Whether to encrypt, in mysqlslap's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "UPPER")]
pub enum SslMode {
    /// Never.
    Disabled,
    /// When the server can.
    Preferred,
    /// Or else fail.
    Required,
}

/// A compression method of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Algorithm {
    /// zlib.
    Zlib,
    /// zstd.
    Zstd,
    /// Not at all.
    Uncompressed,
}

/// Columns of the generated table: `N`, or `N:I` with I of them indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    pub count: u32,
    pub indexed: u32,
}

/// BLOB columns: `N`, `N:LENGTH` or `N:MIN/MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlobColumns {
    pub count: u32,
    pub min: usize,
    pub max: usize,
}

/// Longest generated BLOB.
const BLOB_LENGTH_MAX: usize = 1 << 26;

fn columns(text: &str) -> Result<Columns, String> {
    let number = |text: &str| text.parse().map_err(|_| format!("{text} is not a number"));
    let (count, indexed) = match text.split_once(':') {
        None => (number(text)?, 0),
        Some((count, indexed)) => (number(count)?, number(indexed)?),
    };
    if indexed > count {
        return Err(format!("{indexed} indexes on {count} columns"));
    }
    Ok(Columns { count, indexed })
}

fn blob_columns(text: &str) -> Result<BlobColumns, String> {
    let number = |text: &str| text.parse::<usize>().map_err(|_| format!("{text} is not a number"));
    let (count, lengths) = match text.split_once(':') {
        None => (text, None),
        Some((count, lengths)) => (count, Some(lengths)),
    };
    let count = count.parse().map_err(|_| format!("{count} is not a number"))?;
    let (min, max) = match lengths.map(|lengths| (lengths, lengths.split_once('/'))) {
        None => (CHAR_LENGTH, CHAR_LENGTH),
        Some((length, None)) => (number(length)?, number(length)?),
        Some((_, Some((min, max)))) => (number(min)?, number(max)?),
    };
    if min > max || max > BLOB_LENGTH_MAX {
        return Err(format!("lengths must be in order and at most {BLOB_LENGTH_MAX}"));
    }
    Ok(BlobColumns { count, min, max })
}

/// Length of generated character values.
pub const CHAR_LENGTH: usize = 128;

/// sysbench's OLTP workloads, and one of MySQL Cluster's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Workload {
    Select1,
    #[value(alias = "oltp_point_select")]
    PointSelect,
    #[value(alias = "oltp_read_only")]
    ReadOnly,
    #[value(alias = "oltp_read_write")]
    ReadWrite,
    #[value(alias = "oltp_write_only")]
    WriteOnly,
    #[value(alias = "oltp_update_index")]
    UpdateIndex,
    #[value(alias = "oltp_update_non_index")]
    UpdateNonIndex,
    #[value(alias = "oltp_insert")]
    Insert,
    #[value(alias = "oltp_delete")]
    Delete,
    #[value(alias = "select_random_points")]
    RandomPoints,
    #[value(alias = "select_random_ranges")]
    RandomRanges,
    /// Inserts, reads, updates and deletes `--table-size` rows by key, like flexAsynch; `--engine` names the engine.
    Flexasync,
}

impl Workload {
    /// Whether a transaction of the workload is one statement.
    pub fn is_one_statement(self) -> bool {
        match self {
            Workload::Select1
            | Workload::PointSelect
            | Workload::UpdateIndex
            | Workload::UpdateNonIndex
            | Workload::Insert
            | Workload::Delete
            | Workload::RandomPoints
            | Workload::Flexasync
            | Workload::RandomRanges => true,
            Workload::ReadOnly | Workload::ReadWrite | Workload::WriteOnly => false,
        }
    }
}

#[derive(Clone, Debug, Parser)]
#[command(about = "Load generator for MySQL-compatible servers", version, disable_help_flag = true)]
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
    /// Encrypt connections: the same as --ssl-mode=PREFERRED.
    #[arg(long)]
    pub ssl: bool,
    /// Whether to encrypt connections.
    #[arg(long, value_enum, ignore_case = true, default_value = "DISABLED")]
    pub ssl_mode: SslMode,
    /// Compress the connection, by any method of the server.
    #[arg(short = 'C', long)]
    pub compress: bool,
    /// Ways to compress, best first: a comma-separated list.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub compression_algorithms: Vec<Algorithm>,
    /// Level of zstd.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=22))]
    pub zstd_compression_level: u8,
    /// `sql_mode` of the connections.
    #[arg(long)]
    pub sql_mode: Option<String>,
    /// How to reach the server.
    #[arg(long, value_enum, ignore_case = true, default_value = "mysql")]
    pub protocol: Protocol,
    /// Statement that each connection runs first.
    #[arg(long)]
    pub init_command: Option<String>,
    /// Character set of the connections.
    #[arg(long)]
    pub default_character_set: Option<String>,
    /// Print totals at the end.
    #[arg(short = 'T', long, visible_alias = "debug-info")]
    pub info: bool,

    /// Generate a table and statements.
    #[arg(short = 'a', long)]
    pub auto_generate_sql: bool,
    /// AUTO_INCREMENT primary key in the generated table.
    #[arg(long)]
    pub auto_generate_sql_add_autoincrement: bool,
    /// Statements that each client runs; 0 for those of `--number-of-queries` or all once.
    #[arg(long, default_value_t = 0)]
    pub auto_generate_sql_execute_number: u64,
    /// GUID primary key in the generated table.
    #[arg(long)]
    pub auto_generate_sql_guid_primary: bool,
    /// Kind of the auto-generated statements.
    #[arg(long, value_enum, default_value = "mixed")]
    pub auto_generate_sql_load_type: LoadType,
    /// Secondary indexes in the generated table.
    #[arg(long, default_value_t = 0)]
    pub auto_generate_sql_secondary_indexes: u32,
    /// Different statements to generate for reading and updating.
    #[arg(long, default_value_t = 10)]
    pub auto_generate_sql_unique_query_number: u64,
    /// Different statements to generate for writing.
    #[arg(long, default_value_t = 10)]
    pub auto_generate_sql_unique_write_number: u64,
    /// Rows that are inserted before the load starts.
    #[arg(long, default_value_t = 100)]
    pub auto_generate_sql_write_number: u64,
    /// Columns of the SELECTs instead of `*`.
    #[arg(long)]
    pub auto_generate_sql_select_columns: Option<String>,
    /// Continue forever.
    #[arg(long)]
    pub burnin: bool,
    /// Commit after this many statements; 0 for autocommit.
    #[arg(long, default_value_t = 0)]
    pub commit: u64,
    /// Number of concurrent clients; a comma-separated list runs one after the other.
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
    /// Engine of auto-generated tables; a comma-separated list runs one after the other.
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
    /// Print what of this machine the figures depend on, and exit.
    #[arg(long)]
    pub machine: bool,
    /// Keep the schema afterwards.
    #[arg(long)]
    pub no_drop: bool,
    /// BLOB columns of the generated table: N, N:LENGTH or N:MIN/MAX.
    #[arg(long, default_value = "0", value_parser = blob_columns)]
    pub number_blob_cols: BlobColumns,
    /// VARCHAR columns of the generated table: N, or N:I with I of them indexed.
    #[arg(short = 'x', long, default_value = "1", value_parser = columns)]
    pub number_char_cols: Columns,
    /// INT columns of the generated table: N, or N:I with I of them indexed.
    #[arg(short = 'y', long, default_value = "1", value_parser = columns)]
    pub number_int_cols: Columns,
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
    /// Seed of the random numbers.
    #[arg(long, default_value_t = 1)]
    pub set_random_seed: u64,
    /// Print nothing.
    #[arg(short, long)]
    pub silent: bool,
    /// Seconds to run for, instead of a number of statements.
    #[arg(long, default_value_t = 0)]
    pub timer_length: u64,
    /// Print more; repeat for the statements.
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,

    /// Run this workload: on sysbench's tables, or on its own one.
    #[arg(long, value_enum)]
    pub workload: Option<Workload>,
    /// Tables of the workload.
    #[arg(long, default_value_t = 4)]
    pub tables: u64,
    /// Rows of each of them.
    #[arg(long, default_value_t = 100_000)]
    pub table_size: u64,
    /// Create and fill the tables first.
    #[arg(long)]
    pub prepare: bool,
    /// Drop the tables afterwards.
    #[arg(long)]
    pub cleanup: bool,
    /// Statements that a client sends before it reads the first answer: workloads of one statement only.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub pipeline: u64,
    /// Send statements as text instead of preparing them.
    #[arg(long)]
    pub text: bool,
    /// Append the id of every row whose insert was acknowledged to this file: these rows must survive a crash.
    #[arg(long)]
    pub acknowledged: Option<PathBuf>,
}

impl Options {
    /// Checks that the parser cannot make.
    ///
    /// # Errors
    /// Options that contradict each other.
    pub fn check(&self) -> Result<(), String> {
        if self.protocol == Protocol::Socket && self.socket.is_none() {
            return Err("--protocol=socket needs --socket".into());
        }
        if self.auto_generate_sql_guid_primary && self.auto_generate_sql_add_autoincrement {
            return Err("the table has one primary key: a GUID or AUTO_INCREMENT".into());
        }
        self.check_workload()
    }

    fn check_workload(&self) -> Result<(), String> {
        if self.workload == Some(Workload::Flexasync) && self.protocol == Protocol::Http {
            return Err("--workload=flexasync does not speak HTTP".into());
        }
        let single = self.workload.is_some_and(Workload::is_one_statement);
        if self.protocol == Protocol::Http && !single {
            return Err("--protocol=http needs a --workload of one statement".into());
        }
        if self.protocol == Protocol::Http && (self.prepare || self.cleanup) {
            return Err("--protocol=http cannot fill or drop the tables: do that without it".into());
        }
        if self.pipeline > 1 && (!single || self.text || self.protocol == Protocol::Http) {
            let rule = "--pipeline needs a --workload of one prepared statement";
            return Err(rule.into());
        }
        Ok(())
    }

    /// Whether there is a report that people read.
    pub fn has_report(&self) -> bool {
        !self.silent && !self.only_print && self.csv.as_deref() != Some("-")
    }

    /// A connection on which the first statements have run.
    ///
    /// # Errors
    /// The server cannot be reached or refuses.
    pub fn open(&self, database: Option<&str>) -> client::Result<Connection> {
        let mut connection = Connection::open(&self.login(database))?;
        if let Some(name) = &self.default_character_set {
            connection.query(format!("SET NAMES {name}").as_bytes(), &mut ())?;
        }
        if let Some(mode) = &self.sql_mode {
            let mode = mode.replace('\\', "\\\\").replace('\'', "''");
            let sql = format!("SET SESSION sql_mode = '{mode}'");
            connection.query(sql.as_bytes(), &mut ())?;
        }
        if let Some(first) = &self.init_command {
            connection.query(first.as_bytes(), &mut ())?;
        }
        Ok(connection)
    }

    /// The log-in options, with or without a schema.
    pub fn login(&self, database: Option<&str>) -> client::Options {
        let target = match (&self.socket, self.protocol) {
            (Some(path), Protocol::Socket | Protocol::Mysql) => Target::Socket(path.clone()),
            (None, _) | (Some(_), Protocol::Tcp | Protocol::Http) => {
                Target::Tcp(self.host.clone(), self.port)
            }
        };
        client::Options {
            target,
            user: self.user.clone(),
            password: self.password.clone(),
            database: database.map(str::to_owned),
            tls: match self.ssl_mode {
                SslMode::Required => Encryption::Required,
                SslMode::Disabled if !self.ssl => Encryption::Off,
                SslMode::Preferred | SslMode::Disabled => Encryption::Preferred,
            },
            framings: self.framings(),
            expired_passwords: false,
        }
    }

    fn framings(&self) -> Vec<Framing> {
        let framing = |algorithm: &Algorithm| match algorithm {
            Algorithm::Zlib => Framing::Zlib,
            Algorithm::Zstd => Framing::Zstd(self.zstd_compression_level),
            Algorithm::Uncompressed => Framing::Plain,
        };
        if self.compression_algorithms.is_empty() && self.compress {
            return vec![Framing::Zlib, Framing::Plain];
        }
        self.compression_algorithms.iter().map(framing).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_numbers_and_sizes() {
        assert_eq!(columns("3:2"), Ok(Columns { count: 3, indexed: 2 }));
        assert!(columns("1:2").is_err() && columns("x").is_err());
        assert_eq!(blob_columns("2:10/20"), Ok(BlobColumns { count: 2, min: 10, max: 20 }));
        assert_eq!(blob_columns("2:9"), Ok(BlobColumns { count: 2, min: 9, max: 9 }));
        assert!(blob_columns("2:20/10").is_err() && blob_columns("2:0/999999999").is_err());
    }

    #[test]
    fn compression_is_asked_for_in_order() {
        let framings = |args: &[&str]| {
            Options::parse_from(std::iter::once(&"squall-slap").chain(args)).framings()
        };
        assert_eq!(framings(&[]), []);
        assert_eq!(framings(&["-C"]), [Framing::Zlib, Framing::Plain]);
        let both = ["--compression-algorithms=zstd,zlib", "--zstd-compression-level=7"];
        assert_eq!(framings(&both), [Framing::Zstd(7), Framing::Zlib]);
    }

    #[test]
    fn pipelines_and_http_take_one_statement() {
        let check = |args: &[&str]| {
            Options::parse_from(std::iter::once(&"squall-slap").chain(args)).check()
        };
        assert!(check(&["--workload=point_select", "--pipeline=8"]).is_ok());
        assert!(check(&["--workload=read_only", "--pipeline=8"]).is_err());
        assert!(check(&["--workload=point_select", "--text", "--pipeline=8"]).is_err());
        assert!(check(&["--workload=point_select", "--protocol=http"]).is_ok());
        assert!(check(&["--protocol=http"]).is_err());
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Options::command().debug_assert();
    }
}
