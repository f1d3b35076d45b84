//! Policies that deny schemas, tables and connections beyond what privileges say: `simple_user_policy` and `regex_policy`; and
//! `connection_control`, which slows guesses of passwords down; `mysql_firewall`, which allows an account only recorded statements; `validate_password`, which refuses weak
//! passwords.

mod connection_control;
mod firewall;
mod regex_policy;
mod simple_user_policy;
mod validate_password;

use plugin_api::RunningJob;

pub use connection_control::ConnectionControl;
pub use firewall::SqlFirewall;
pub use regex_policy::RegexPolicy;
pub use simple_user_policy::SimpleUserPolicy;
pub use validate_password::ValidatePassword;

/// What a plugin's job leaves behind that only reads its file at the start.
struct NothingRuns;

impl RunningJob for NothingRuns {
    fn stop(self: Box<Self>) {}
}
