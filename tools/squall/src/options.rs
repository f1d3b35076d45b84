//! Command line. Option names are the `mysql` client's.

use std::path::PathBuf;

use clap::{ArgAction, Parser, ValueEnum};
use client::{Encryption, Framing, Target};

/// Form of a result set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table with lines around it.
    Table,
    /// One column a line.
    Vertical,
    /// Tab-separated, escaped, as `mysql --batch`.
    Tsv,
    /// Comma-separated (RFC 4180).
    Csv,
    /// One JSON object a line.
    Json,
}

#[derive(Clone, Debug, Parser)]
#[command(
    about = "Client for Squall and MySQL servers",
    after_help = "Other uses: squall import, squall binlog, squall restore, squall admin, squall plugin, squall cluster, squall docs; each has --help",
    disable_help_flag = true
)]
pub struct Options {
    #[arg(short = '?', long, action = ArgAction::Help, help = "Print help")]
    help: Option<bool>,
    /// Schema to use.
    pub database: Option<String>,
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
    /// Password; prompted for when the option has no value. SQUALL_PASSWORD works too.
    #[arg(short, long, num_args = 0..=1, require_equals = true, default_missing_value = "?", env = "SQUALL_PASSWORD")]
    pub password: Option<String>,
    /// Log in with an expired password even in batch mode, to set a new one.
    #[arg(long)]
    pub connect_expired_password: bool,
    /// Do not encrypt.
    #[arg(long)]
    pub skip_ssl: bool,
    /// Compress the connection when the server can.
    #[arg(short = 'C', long)]
    pub compress: bool,
    /// Run these statements and exit.
    #[arg(short, long)]
    pub execute: Option<String>,
    /// Read statements from standard input without prompting.
    #[arg(short = 'B', long)]
    pub batch: bool,
    /// Form of results; a table on a terminal, TSV otherwise.
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Tables even in batch mode.
    #[arg(short = 't', long)]
    pub table: bool,
    /// One column a line.
    #[arg(short = 'E', long)]
    pub vertical: bool,
    /// No captions.
    #[arg(short = 'N', long)]
    pub skip_column_names: bool,
    /// Continue after errors in a batch.
    #[arg(short, long)]
    pub force: bool,
    /// Program that shows long results.
    #[arg(long, env = "PAGER")]
    pub pager: Option<String>,
}

impl Options {
    /// How to log in.
    pub fn login(&self, password: &str) -> client::Options {
        let target = match &self.socket {
            Some(path) => Target::Socket(path.clone()),
            None => Target::Tcp(self.host.clone(), self.port),
        };
        client::Options {
            target,
            user: self.user.clone(),
            password: password.to_owned(),
            database: self.database.clone(),
            tls: match self.skip_ssl {
                true => Encryption::Off,
                false => Encryption::Preferred,
            },
            framings: if self.compress { vec![Framing::Zlib, Framing::Plain] } else { Vec::new() },
            // A script would only fail at its first statement.
            expired_passwords: self.connect_expired_password
                || (self.execute.is_none() && !self.batch),
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
