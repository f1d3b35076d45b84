//! Accounts and what they may do.

use errors::Result;
use plugin_api::{AccountView, InfoFilter, InformationContext};
use types::Value;

use crate::Emit;
use crate::row::yes_no;

/// `'user'@'host'`.
fn grantee(account: &AccountView) -> Value {
    Value::text(&format!("'{}'@'{}'", account.user, account.host))
}

/// `USER_PRIVILEGES`.
pub fn user_privileges(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for account in ctx.accounts() {
        let usage = ["USAGE".to_owned()];
        let names = if account.privileges.is_empty() { &usage[..] } else { &account.privileges };
        for name in names {
            let row = [grantee(&account), Value::text("def"), Value::text(name)];
            emit(&[row.as_slice(), &[yes_no(account.grant_option)]].concat())?;
        }
    }
    Ok(())
}

/// `SCHEMA_PRIVILEGES`.
pub fn schema_privileges(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for account in ctx.accounts() {
        for (schema, names) in &account.schema_privileges {
            for name in names.iter().filter(|name| *name != "GRANT OPTION") {
                emit(&[
                    grantee(&account),
                    Value::text("def"),
                    Value::text(schema),
                    Value::text(name),
                    yes_no(names.iter().any(|name| name == "GRANT OPTION")),
                ])?;
            }
        }
    }
    Ok(())
}

/// `TABLE_PRIVILEGES`.
pub fn table_privileges(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for account in ctx.accounts() {
        for (schema, table, names) in &account.table_privileges {
            for name in names.iter().filter(|name| *name != "GRANT OPTION") {
                emit(&[
                    grantee(&account),
                    Value::text("def"),
                    Value::text(schema),
                    Value::text(table),
                    Value::text(name),
                    yes_no(names.iter().any(|name| name == "GRANT OPTION")),
                ])?;
            }
        }
    }
    Ok(())
}

/// Privileges in the order of `mysql.user`'s columns after Host and User; `GRANT OPTION` stands among them.
const USER_COLUMNS: &[&str] = &[
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "CREATE",
    "DROP",
    "RELOAD",
    "SHUTDOWN",
    "PROCESS",
    "FILE",
    "GRANT OPTION",
    "REFERENCES",
    "INDEX",
    "ALTER",
    "SHOW DATABASES",
    "SUPER",
    "CREATE TEMPORARY TABLES",
    "LOCK TABLES",
    "EXECUTE",
    "REPLICATION SLAVE",
    "REPLICATION CLIENT",
    "CREATE VIEW",
    "SHOW VIEW",
    "CREATE ROUTINE",
    "ALTER ROUTINE",
    "CREATE USER",
    "EVENT",
    "TRIGGER",
    "CREATE TABLESPACE",
];

/// Likewise for `mysql.db`.
const DB_COLUMNS: &[&str] = &[
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "CREATE",
    "DROP",
    "GRANT OPTION",
    "REFERENCES",
    "INDEX",
    "ALTER",
    "CREATE TEMPORARY TABLES",
    "LOCK TABLES",
    "CREATE VIEW",
    "SHOW VIEW",
    "CREATE ROUTINE",
    "ALTER ROUTINE",
    "EXECUTE",
    "EVENT",
    "TRIGGER",
];

fn flag(truth: bool) -> Value {
    Value::text(if truth { "Y" } else { "N" })
}

/// `mysql.user`.
pub fn user(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    for account in ctx.accounts() {
        let has = |name: &str| match name {
            "GRANT OPTION" => account.grant_option,
            name => account.privileges.iter().any(|held| held == name),
        };
        let mut row = vec![Value::text(&account.host), Value::text(&account.user)];
        row.extend(USER_COLUMNS.iter().map(|name| flag(has(name))));
        // ssl_type, ssl_cipher, x509_issuer, x509_subject, then the four resource limits.
        row.extend(std::iter::repeat_n(Value::text(""), 4));
        row.extend(std::iter::repeat_n(Value::UInt(0), 4));
        row.push(Value::text(&account.plugin));
        row.push(Value::text(&account.authentication_string));
        row.extend([flag(false), Value::Null, Value::Null, flag(account.locked)]);
        row.extend([flag(has("CREATE ROLE")), flag(has("DROP ROLE"))]);
        row.extend(std::iter::repeat_n(Value::Null, 4));
        emit(&row)?;
    }
    Ok(())
}

/// `mysql.db`.
pub fn db(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    for account in ctx.accounts() {
        for (schema, names) in &account.schema_privileges {
            let mut row =
                vec![Value::text(&account.host), Value::text(schema), Value::text(&account.user)];
            let has = |name: &str| names.iter().any(|held| held == name);
            row.extend(DB_COLUMNS.iter().map(|name| flag(has(name))));
            emit(&row)?;
        }
    }
    Ok(())
}
