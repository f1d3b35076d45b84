//! What other harnesses share with the runner of SQL scripts: a server of their own.

mod server;

pub use server::Server;
