//! Servers that `CREATE SERVER` describes: where tables of another server would be found.

use std::sync::Arc;

use errors::Result;

use crate::fields::{FieldWriter, object_fields};

/// A described server. Every text may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForeignServer {
    /// Name as created; servers' names compare without regard to case.
    pub name: Arc<str>,
    /// FOREIGN DATA WRAPPER.
    pub wrapper: Arc<str>,
    /// HOST.
    pub host: Arc<str>,
    /// DATABASE.
    pub database: Arc<str>,
    /// USER.
    pub user: Arc<str>,
    /// PASSWORD, in clear as the reference keeps it.
    pub password: Arc<str>,
    /// SOCKET.
    pub socket: Arc<str>,
    /// OWNER.
    pub owner: Arc<str>,
    /// PORT; 0 for none.
    pub port: u32,
}

impl ForeignServer {
    /// Whether it has this name.
    pub fn is_named(&self, name: &str) -> bool {
        self.name.to_lowercase() == name.to_lowercase()
    }
}

/// Name 1, wrapper 2, host 3, database 4, user 5, password 6, socket 7, owner 8, port 9.
pub(crate) fn write_server(server: &ForeignServer) -> Vec<u8> {
    let mut out = FieldWriter::object();
    out.text(1, &server.name);
    out.text(2, &server.wrapper);
    out.text(3, &server.host);
    out.text(4, &server.database);
    out.text(5, &server.user);
    out.text(6, &server.password);
    out.text(7, &server.socket);
    out.text(8, &server.owner);
    out.number(9, server.port.into());
    out.finish()
}

pub(crate) fn read_server(bytes: &[u8]) -> Result<ForeignServer> {
    let mut server = ForeignServer::default();
    for field in object_fields(bytes)? {
        match field.tag {
            1 => server.name = field.text()?.into(),
            2 => server.wrapper = field.text()?.into(),
            3 => server.host = field.text()?.into(),
            4 => server.database = field.text()?.into(),
            5 => server.user = field.text()?.into(),
            6 => server.password = field.text()?.into(),
            7 => server.socket = field.text()?.into(),
            8 => server.owner = field.text()?.into(),
            9 => server.port = field.narrow()?,
            _ => {}
        }
    }
    Ok(server)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_read_as_they_were_written() {
        let full = ForeignServer {
            name: "Hub".into(),
            wrapper: "mysql".into(),
            host: "h".into(),
            database: "d".into(),
            user: "u".into(),
            password: "p".into(),
            socket: "/s".into(),
            owner: "o".into(),
            port: 3306,
        };
        for server in [ForeignServer { name: "s".into(), ..ForeignServer::default() }, full] {
            assert_eq!(read_server(&write_server(&server)).unwrap(), server);
        }
    }
}
