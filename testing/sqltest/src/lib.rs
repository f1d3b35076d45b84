//! Parts of the SQL script runner that other harnesses share: a server of their own.

mod server;

pub use server::Server;
