//! Accounts with their stored secrets, roles, and what is granted to them.

use super::dialect;
use super::report::Report;
use super::server::{Flavour, Server, quoted_name, quoted_text};
use super::state::State;

/// Accounts of servers themselves.
const OWN: [&str; 4] = ["mysql.sys", "mysql.session", "mysql.infoschema", "mariadb.sys"];

/// An account or a role.
#[derive(Clone, Debug)]
pub(super) struct Account {
    /// `` `user`@`host` ``
    name: String,
    /// CREATE USER or CREATE ROLE in MySQL's words, or why there is none.
    definition: Result<String, String>,
    /// Lines of SHOW GRANTS and what activates roles.
    grants: Vec<String>,
}

/// Reads all accounts but those that the target has for itself.
///
/// # Errors
/// The server's error: the account may not read `mysql.user`.
pub(super) fn read(source: &mut Server, report: &mut Report) -> Result<Vec<Account>, String> {
    let is_mariadb = source.flavour == Flavour::MariaDb;
    let list = match is_mariadb {
        true => "SELECT user, host, is_role FROM mysql.user ORDER BY is_role DESC, user, host",
        false => {
            source.run("SET print_identified_with_as_hex = ON")?;
            "SELECT user, host, 'N' FROM mysql.user ORDER BY user, host"
        }
    };
    let mut accounts = Vec::new();
    for row in source.rows(list)? {
        let (user, host, is_role) = (row[0].as_str(), row[1].as_str(), row[2] == "Y");
        if OWN.contains(&user) {
            continue;
        }
        let name = format!("{}@{}", quoted_name(user), quoted_name(host));
        if user == "root" {
            report.changed(format!("account {name}: the target's own root stays as it is"));
            continue;
        }
        accounts.push(match is_role {
            true => read_role(source, user)?,
            false => read_account(source, name)?,
        });
    }
    Ok(accounts)
}

fn read_role(source: &mut Server, role: &str) -> Result<Account, String> {
    let name = quoted_name(role);
    let shown = source.rows(&format!("SHOW GRANTS FOR {name}"))?;
    // It lists what the roles that are granted to it have, too.
    let own = format!(" TO {name}");
    let is_own = |line: &String| line.ends_with(&own) || line.contains(&format!("{own} WITH "));
    let grants = shown.into_iter().map(|mut row| row.remove(0)).filter(is_own).collect();
    Ok(Account { definition: Ok(format!("CREATE ROLE {name}")), name, grants })
}

fn read_account(source: &mut Server, name: String) -> Result<Account, String> {
    let text = source.cell(&format!("SHOW CREATE USER {name}"))?;
    let shown = source.rows(&format!("SHOW GRANTS FOR {name}"))?;
    let mut grants: Vec<String> = shown.into_iter().map(|mut row| row.remove(0)).collect();
    if source.flavour == Flavour::MariaDb {
        let grants = grants.iter().map(|line| dialect::grant(line)).collect();
        return Ok(Account { definition: dialect::account(&text), name, grants });
    }
    // A default role must have been granted.
    let (definition, roles) = without_default_roles(&text);
    grants.extend(roles.map(|roles| format!("SET DEFAULT ROLE {roles} TO {name}")));
    Ok(Account { definition: Ok(definition), name, grants })
}

/// CREATE USER without DEFAULT ROLE, and the roles.
fn without_default_roles(text: &str) -> (String, Option<String>) {
    const CLAUSE: &str = " DEFAULT ROLE ";
    let Some((before, after)) = text.split_once(CLAUSE) else { return (text.to_owned(), None) };
    let end = after.find(" REQUIRE ").unwrap_or(after.len());
    (format!("{before}{}", &after[end..]), Some(after[..end].to_owned()))
}

/// Makes the accounts, without privileges yet. One that the target has already, and the import did not make, stays as it is.
///
/// # Errors
/// The connection is lost; what the target refuses is in the report.
pub(super) fn make(
    target: &mut Server,
    accounts: Vec<Account>,
    state: &mut State,
    report: &mut Report,
) -> Result<Vec<Account>, String> {
    let there = target.rows("SELECT user, host FROM mysql.user")?;
    let there: Vec<_> = there
        .iter()
        .map(|row| format!("{}@{}", quoted_name(&row[0]), quoted_name(&row[1])))
        .collect();
    let mut made = Vec::new();
    for account in accounts {
        let name = match account.name.contains('@') {
            true => account.name.clone(),
            false => format!("{}@`%`", account.name),
        };
        let definition = match &account.definition {
            Ok(definition) => definition,
            Err(why) => {
                report.missing(format!("account {name}: {why}"));
                continue;
            }
        };
        if there.contains(&name) {
            if state.definition("account", &name).is_none() {
                report.missing(format!(
                    "account {name}: the target has one of this name, which stays as it is"
                ));
                continue;
            }
        } else {
            if let Err(error) = target.attempt(definition) {
                report.missing(format!("account {name}: {error}"));
                continue;
            }
            state.keep(target, "account", &name, "")?;
        }
        report.made("accounts and roles");
        made.push(account);
    }
    Ok(made)
}

/// Grants what the accounts had. A line that is refused is tried privilege by privilege.
pub(super) fn grant(target: &mut Server, accounts: &[Account], report: &mut Report) {
    // Roles first: what they are granted to may set them as default.
    let (roles, others): (Vec<_>, Vec<_>) = accounts
        .iter()
        .flat_map(|account| account.grants.iter().map(move |line| (account, line)))
        .partition(|(_, line)| line.starts_with("GRANT "));
    for (account, line) in roles.into_iter().chain(others) {
        let Err(error) = target.attempt(line) else {
            report.made("lines of grants");
            continue;
        };
        let parts = privileges(line);
        if parts.is_empty() {
            report.missing(format!("grant to {}: {line}: {error}", account.name));
            continue;
        }
        report.made("lines of grants");
        for (privilege, statement) in parts {
            if let Err(error) = target.attempt(&statement) {
                report.missing(format!("privilege {privilege} of {}: {error}", account.name));
            }
        }
    }
}

/// The privileges of a line, each with a statement that grants it alone; empty for a line of another kind.
fn privileges(line: &str) -> Vec<(&str, String)> {
    let split = line.strip_prefix("GRANT ").and_then(|rest| rest.split_once(" ON "));
    let Some((list, rest)) = split else { return Vec::new() };
    let (mut parts, mut depth, mut begin) = (Vec::new(), 0_i32, 0);
    for (at, c) in list.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(list[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(list[begin..].trim());
    let statement = |part| format!("GRANT {} ON {rest}", dialect::privilege(part));
    parts.into_iter().map(|part| (part, statement(part))).collect()
}

/// Where the import's account on the target stands in the way of none: accounts are compared by name.
pub(super) fn is_account(accounts: &[Account], user: &str) -> bool {
    let prefix = format!("{}@", quoted_name(user));
    accounts.iter().any(|account| account.name.starts_with(&prefix))
}

/// How the target says from where on it follows the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By the identifiers that it has.
    Identifiers,
    /// By MariaDB's.
    MariaDb,
    /// By a place in a file.
    Place,
}

/// The statement that lets the target follow the source from a place on.
pub(super) fn follow(
    host: Option<(&str, u16)>,
    user: &str,
    position: &super::snapshot::Position,
    way: Way,
) -> String {
    let (host, port) = host.unwrap_or(("HOST", 3306));
    let login = format!(
        "SOURCE_HOST = {}, SOURCE_PORT = {port}, SOURCE_USER = {}, SOURCE_PASSWORD = '...'",
        quoted_text(host),
        quoted_text(user)
    );
    match way {
        Way::Identifiers => format!(
            "SET GLOBAL gtid_purged = '{}';\nCHANGE REPLICATION SOURCE TO {login}, SOURCE_AUTO_POSITION = 1;\nSTART REPLICA;",
            position.gtids
        ),
        Way::MariaDb => format!(
            "CHANGE REPLICATION SOURCE TO {login}, SOURCE_AUTO_POSITION = 1, GTID_SLAVE_POS = {};\nSTART REPLICA;",
            quoted_text(&position.gtids)
        ),
        Way::Place => format!(
            "CHANGE REPLICATION SOURCE TO {login}, SOURCE_LOG_FILE = {}, SOURCE_LOG_POS = {};\nSTART REPLICA;",
            quoted_text(&position.file),
            position.offset
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_apart_into_privileges() {
        let parts = privileges("GRANT SELECT, INSERT (`a`, `b`), BINLOG MONITOR ON *.* TO `x`@`%`");
        let statements: Vec<_> = parts.iter().map(|(_, statement)| statement.as_str()).collect();
        assert_eq!(
            statements,
            [
                "GRANT SELECT ON *.* TO `x`@`%`",
                "GRANT INSERT (`a`, `b`) ON *.* TO `x`@`%`",
                "GRANT REPLICATION CLIENT ON *.* TO `x`@`%`"
            ]
        );
        assert!(privileges("GRANT `r` TO `x`@`%`").is_empty());
        let (text, roles) =
            without_default_roles("CREATE USER `a`@`%` DEFAULT ROLE `r`@`%`,`s`@`%` REQUIRE NONE");
        assert_eq!(text, "CREATE USER `a`@`%` REQUIRE NONE");
        assert_eq!(roles.as_deref(), Some("`r`@`%`,`s`@`%`"));
    }
}
