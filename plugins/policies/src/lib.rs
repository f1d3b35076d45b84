//! Policies that deny schemas, tables and connections beyond what privileges say: `simple_user_policy` and `regex_policy`.

mod regex_policy;
mod simple_user_policy;

pub use regex_policy::RegexPolicy;
pub use simple_user_policy::SimpleUserPolicy;
