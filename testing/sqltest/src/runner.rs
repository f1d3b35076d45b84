//! Runs one script: connections, background statements, comparison, update.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use client::{Connection, Encryption, Failure, Options, Target};

use crate::answer::{View, ask, error_line};
use crate::script::{Item, Mode, USER, parse, print};

/// The answer of a background statement that waits for others, and the time limit for it when the server does not report the wait.
const WAITS: &str = "waits";
const BLOCKED_AFTER: Duration = Duration::from_millis(300);
/// Interval between checks whether such a statement waits, and the number of consecutive checks that must confirm it.
const LOOK_EVERY: Duration = Duration::from_millis(3);
const LOOKS: usize = 3;
/// How long any answer is waited for.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// A connection with the thread that talks on it.
struct Client {
    connection_id: u32,
    statements: Sender<(String, View)>,
    answers: Receiver<String>,
}

/// The login options of the next statement's connection, from `# @login`.
#[derive(Clone, Copy, Default)]
struct Login {
    /// Opens the connection again if it exists.
    reconnect: bool,
    /// As a client that can handle an expired password.
    expired: bool,
}

impl Client {
    /// Returns the server's error as the second result when the login fails.
    fn connect(
        address: &str,
        name: &str,
        login: Login,
    ) -> Result<std::result::Result<Client, String>, String> {
        let is_user = name.starts_with(USER);
        let (user, password) = match is_user {
            true => name.split_once(':').unwrap_or((name, "")),
            false => ("root", ""),
        };
        let schema = (!is_user).then_some("test");
        let options = Options {
            password: password.into(),
            expired_passwords: login.expired,
            ..options(address, user, schema)?
        };
        let mut connection = match Connection::open(&options) {
            Ok(connection) => connection,
            Err(Failure::Server(error)) if is_user => return Ok(Err(error_line(&error))),
            Err(error) => return Err(format!("cannot connect to {address}: {error}")),
        };
        let connection_id = connection.connection_id;
        let (statements, requests) = channel::<(String, View)>();
        let (replies, answers) = channel();
        std::thread::spawn(move || {
            while let Ok((sql, view)) = requests.recv() {
                if replies.send(ask(&mut connection, &sql, &view)).is_err() {
                    return;
                }
            }
        });
        Ok(Ok(Client { connection_id, statements, answers }))
    }

    fn answer(&self, within: Duration) -> Option<String> {
        self.answers.recv_timeout(within).ok()
    }

    /// The answer of a statement that must or may wait: `WAITS` once `admin` sees it wait.
    fn answer_or_wait(&self, admin: &mut Connection) -> String {
        let deadline = Instant::now() + BLOCKED_AFTER;
        let mut seen = 0;
        while seen < LOOKS && Instant::now() < deadline {
            if let Some(answer) = self.answer(LOOK_EVERY) {
                return answer;
            }
            seen = if waits(admin, self.connection_id) { seen + 1 } else { 0 };
        }
        WAITS.into()
    }
}

/// Whether the server lists connection `id` as waiting for others.
fn waits(admin: &mut Connection, id: u32) -> bool {
    let sql = format!(
        "SELECT 'waits' FROM information_schema.processlist WHERE id = {id} \
         AND (state LIKE 'Waiting%' OR state LIKE 'User %') UNION ALL \
         SELECT 'waits' FROM information_schema.innodb_trx \
         WHERE trx_mysql_thread_id = {id} AND trx_state = 'LOCK WAIT'"
    );
    ask(admin, &sql, &View::default()).lines().any(|line| line == WAITS)
}

fn open(address: &str, user: &str, schema: Option<&str>) -> Result<Connection, String> {
    Connection::open(&options(address, user, schema)?)
        .map_err(|error| format!("cannot connect to {address}: {error}"))
}

fn options(address: &str, user: &str, schema: Option<&str>) -> Result<Options, String> {
    let (host, port) = address.rsplit_once(':').ok_or("the server's address is host:port")?;
    let port = port.parse().map_err(|_| "the port is not a number")?;
    Ok(Options {
        target: Target::Tcp(host.into(), port),
        user: user.into(),
        password: String::new(),
        database: schema.map(str::to_owned),
        tls: Encryption::Off,
        framings: Vec::new(),
        expired_passwords: false,
    })
}

/// Runs the script `file` in a fresh schema `test`.
///
/// # Errors
/// The difference, or the reason why it cannot run.
pub fn run_file(file: &Path, address: &str, update: bool) -> Result<(), String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    let mut admin = open(address, "root", None)?;
    let fresh = ["DROP DATABASE IF EXISTS test", "CREATE DATABASE test"];
    for sql in fresh {
        admin.query(sql.as_bytes(), &mut ()).map_err(|error| format!("{sql}: {error}"))?;
    }
    let mut clients: BTreeMap<String, Client> = BTreeMap::new();
    let (mut view, mut login) = (View::default(), Login::default());
    let mut items = parse(&text);
    let mut differences = String::new();
    for item in &mut items {
        let Item::Step { connection, mode, sql, expected, .. } = item else {
            if let Item::Verbatim(line) = item {
                direct(line, &mut view, &mut login);
            }
            continue;
        };
        let login = std::mem::take(&mut login);
        let mut refused = None;
        if login.reconnect || !clients.contains_key(connection) {
            clients.remove(connection);
            match Client::connect(address, connection, login)? {
                Ok(client) => _ = clients.insert(connection.clone(), client),
                Err(error) => refused = Some(error),
            }
        }
        let watcher = match mode {
            _ if refused.is_some() => None,
            Mode::Background if update || expected == WAITS => Some(&mut admin),
            Mode::Stop => {
                let kill = format!("KILL QUERY {}", clients[connection].connection_id);
                admin
                    .query(kill.as_bytes(), &mut ())
                    .map_err(|error| format!("{kill}: {error}"))?;
                None
            }
            _ => None,
        };
        let next = View { plan: view.plan, ..View::default() };
        let shown = std::mem::replace(&mut view, next);
        let shown = View { plan: shown.plan && is_explain(sql), ..shown };
        let actual = match refused {
            Some(error) => error,
            None => step(&clients[connection], *mode, sql, shown, watcher),
        };
        if actual != *expected {
            if update {
                *expected = actual;
            } else {
                differences +=
                    &format!("  {sql}\n  expected:\n{expected}\n  answered:\n{actual}\n");
            }
        }
    }
    if update {
        std::fs::write(file, print(&items)).map_err(|error| error.to_string())?;
    }
    if differences.is_empty() { Ok(()) } else { Err(differences) }
}

/// Whether `@plans` applies to this statement.
fn is_explain(sql: &str) -> bool {
    sql.get(..7).is_some_and(|word| word.eq_ignore_ascii_case("EXPLAIN"))
}

/// Directives are in comments above a statement: `# @types @sort @columns @login @parameters one two`; `# @plans` applies to all that follow.
fn direct(line: &str, view: &mut View, login: &mut Login) {
    if let Some(comment) = line.strip_prefix("# ") {
        login.expired |= comment.split(' ').any(|word| word == "@login-expired");
        login.reconnect |= login.expired || comment.split(' ').any(|word| word == "@login");
        view.types |= comment.split(' ').any(|word| word == "@types");
        view.columns_only |= comment.split(' ').any(|word| word == "@columns");
        view.plan |= comment.split(' ').any(|word| word == "@plans");
        view.sorted |= comment.split(' ').any(|word| word == "@sort");
        let words = comment.split(' ').skip_while(|word| *word != "@parameters");
        view.parameters.extend(words.skip(1).map(str::to_owned));
    }
}

/// Sends a statement and waits for its answer with a generous time limit, unless it may wait for other statements: `watcher` reports whether it does.
fn step(
    client: &Client,
    mode: Mode,
    sql: &str,
    mut view: View,
    watcher: Option<&mut Connection>,
) -> String {
    const NONE: &str = "no answer";
    view.prepared = mode == Mode::Prepared;
    let is_new = !matches!(mode, Mode::Reap | Mode::Stop);
    if is_new && client.statements.send((sql.to_owned(), view)).is_err() {
        return NONE.into();
    }
    match watcher {
        Some(admin) => client.answer_or_wait(admin),
        None => client.answer(ANSWER_WITHIN).unwrap_or_else(|| NONE.into()),
    }
}
