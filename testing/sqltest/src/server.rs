//! A separate squalld, with its own port and folder.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long the server may take until it accepts connections.
const START_WITHIN: Duration = Duration::from_secs(60);

/// A running server; it stops when this value is dropped.
pub struct Server {
    child: Child,
    port: u16,
    folder: PathBuf,
}

impl Server {
    /// Starts `program`.
    ///
    /// # Errors
    /// It does not start or does not accept connections in time.
    pub fn start(program: &Path, options: &[String]) -> Result<Server, String> {
        Server::start_command(|_| Command::new(program), options)
    }

    /// Starts the command that `command` builds for the server's folder: `program` under a tool that watches it.
    ///
    /// # Errors
    /// As `start`.
    pub fn start_command(
        command: impl FnOnce(&Path) -> Command,
        options: &[String],
    ) -> Result<Server, String> {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.map_err(|error| error.to_string())?.port();
        let folder =
            std::env::temp_dir().join(format!("squall-sqltest-{}-{port}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let log = std::fs::File::create(folder.join("log")).map_err(|error| error.to_string())?;
        let mut command = command(&folder);
        let child = command
            .arg(format!("--datadir={}", folder.join("data").display()))
            .arg(format!("--port={port}"))
            .arg(format!("--socket={}", folder.join("s").display()))
            .arg("--insecure-root")
            .args(options)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        let mut server = Server { child, port, folder };
        server.wait()?;
        Ok(server)
    }

    /// Its process id, for memory and processor time.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// The folder of its data and its log; it is deleted with this value.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The TCP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `host:port`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Whether who listens there begins as a server does: another program may have got the port in between.
    fn greets(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return false };
        // Four bytes of the packet's header, and the protocol's version.
        let mut greeting = [0; 5];
        stream.set_read_timeout(Some(Duration::from_secs(10))).is_ok()
            && stream.read_exact(&mut greeting).is_ok()
            && greeting[4] == 10
    }

    fn wait(&mut self) -> Result<(), String> {
        let started = Instant::now();
        while started.elapsed() < START_WITHIN {
            if self.greets() {
                return Ok(());
            }
            if self.child.try_wait().ok().flatten().is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        Err(format!("the server did not start:\n{log}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
