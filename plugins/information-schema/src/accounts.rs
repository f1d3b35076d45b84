//! Accounts and their privileges.

use errors::Result;
use plugin_api::{
    AccountView, ColumnPrivilegesView, InfoFilter, InformationContext, RoutinePrivilegesView,
    SchemaPrivilegesView, TablePrivilegesView,
};
use types::Value;

use crate::row::{Emit, time, yes_no};

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
        let dynamic = &account.dynamic_privileges;
        let is_dynamic = |name: &String| dynamic.iter().any(|known| known.name == *name);
        let mut rows: Vec<(&str, bool)> = Vec::new();
        for name in account.privileges.iter().filter(|name| !is_dynamic(name)) {
            rows.push((name, account.grant_option));
        }
        if rows.is_empty() {
            rows.push(("USAGE", account.grant_option));
        }
        rows.extend(dynamic.iter().map(|held| (held.name.as_str(), held.grantable)));
        for (name, grantable) in rows {
            let row = [grantee(&account), Value::text("def"), Value::text(name)];
            emit(&[row.as_slice(), &[yes_no(grantable)]].concat())?;
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
        for SchemaPrivilegesView { schema, names } in &account.schema_privileges {
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

/// `COLUMN_PRIVILEGES`.
pub fn column_privileges(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for account in ctx.accounts() {
        for ColumnPrivilegesView { schema, table, column, names } in &account.column_privileges {
            for name in names {
                emit(&[
                    grantee(&account),
                    Value::text("def"),
                    Value::text(schema),
                    Value::text(table),
                    Value::text(column),
                    Value::text(name),
                    yes_no(holds_grant_option(&account, schema, table)),
                ])?;
            }
        }
    }
    Ok(())
}

/// WITH GRANT OPTION on a table: columns have no separate one.
fn holds_grant_option(account: &AccountView, schema: &str, table: &str) -> bool {
    let mut tables = account.table_privileges.iter();
    tables.any(|known| {
        known.schema == schema
            && known.table == table
            && known.names.iter().any(|name| name == "GRANT OPTION")
    })
}

/// `TABLE_PRIVILEGES`.
pub fn table_privileges(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for account in ctx.accounts() {
        for TablePrivilegesView { schema, table, names } in &account.table_privileges {
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

/// Privileges in the order of `mysql.user`'s columns after Host and User; `GRANT OPTION` is one of them.
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
    for account in ctx.stored_accounts() {
        let has = |name: &str| match name {
            "GRANT OPTION" => account.grant_option,
            name => account.privileges.iter().any(|held| held == name),
        };
        let mut row = vec![Value::text(&account.host), Value::text(&account.user)];
        row.extend(USER_COLUMNS.iter().map(|name| flag(has(name))));
        // ssl_type, ssl_cipher, x509_issuer, x509_subject, then the four resource limits.
        row.push(Value::text(account.tls));
        row.extend(std::iter::repeat_n(Value::text(""), 3));
        row.extend(account.limits.map(Value::UInt));
        row.push(Value::text(&account.plugin));
        row.push(Value::text(&account.authentication_string));
        let expired = flag(account.password_expired);
        let number = |number: Option<u64>| number.map_or(Value::Null, Value::UInt);
        // The columns are as narrow as the reference's, for any length of the option.
        let small = |days: Option<u64>| number(days.map(|days| days.min(u16::MAX.into())));
        let changed = time(account.password_changed_micros);
        row.extend([expired, changed, number(account.password_lifetime), flag(account.locked)]);
        row.extend([flag(has("CREATE ROLE")), flag(has("DROP ROLE"))]);
        row.extend([small(account.password_history), small(account.password_reuse_days)]);
        row.push(account.password_require_current.map_or(Value::Null, flag));
        row.push(match account.user_attributes.is_empty() {
            true => Value::Null,
            false => Value::text(&account.user_attributes),
        });
        emit(&row)?;
    }
    Ok(())
}

/// `mysql.password_history`.
pub fn password_history(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for account in ctx.stored_accounts() {
        for earlier in &account.earlier_passwords {
            let since = types::DateTime::from_unix_micros(earlier.since_micros);
            emit(&[
                Value::text(&account.host),
                Value::text(&account.user),
                Value::DateTime(since.unwrap_or(types::DateTime::ZERO)),
                Value::text(&earlier.secret),
            ])?;
        }
    }
    Ok(())
}

/// `mysql.db`.
pub fn db(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    for account in ctx.stored_accounts() {
        for SchemaPrivilegesView { schema, names } in &account.schema_privileges {
            let mut row =
                vec![Value::text(&account.host), Value::text(schema), Value::text(&account.user)];
            let has = |name: &str| names.iter().any(|held| held == name);
            row.extend(DB_COLUMNS.iter().map(|name| flag(has(name))));
            emit(&row)?;
        }
    }
    Ok(())
}

/// Names as the SET columns of the grant tables have them: `Select,Insert`.
pub(crate) fn set_text(names: &[String]) -> Value {
    let mut names: Vec<&String> = names.iter().collect();
    names.sort_by_key(|name| DB_COLUMNS.iter().position(|known| known == name));
    names.dedup();
    let words = names.into_iter().map(|name| match name.as_str() {
        "GRANT OPTION" => "Grant".to_owned(),
        name => name
            .split(' ')
            .enumerate()
            .map(|(position, word)| match position {
                0 => word[..1].to_owned() + &word[1..].to_lowercase(),
                _ => word.to_lowercase(),
            })
            .collect::<Vec<_>>()
            .join(" "),
    });
    Value::text(&words.collect::<Vec<_>>().join(","))
}

/// `mysql.tables_priv`.
pub fn tables_priv(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for account in ctx.stored_accounts() {
        for TablePrivilegesView { schema, table, names } in &account.table_privileges {
            let columns = account.column_privileges.iter();
            let of_table = columns.filter(|held| held.schema == *schema && held.table == *table);
            let of_columns: Vec<String> =
                of_table.flat_map(|held| held.names.iter().cloned()).collect();
            emit(&[
                Value::text(&account.host),
                Value::text(schema),
                Value::text(&account.user),
                Value::text(table),
                Value::text(""),
                Value::DateTime(types::DateTime::ZERO),
                set_text(names),
                set_text(&of_columns),
            ])?;
        }
    }
    Ok(())
}

/// `mysql.columns_priv`.
pub fn columns_priv(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for account in ctx.stored_accounts() {
        for ColumnPrivilegesView { schema, table, column, names } in &account.column_privileges {
            emit(&[
                Value::text(&account.host),
                Value::text(schema),
                Value::text(&account.user),
                Value::text(table),
                Value::text(column),
                Value::DateTime(types::DateTime::ZERO),
                set_text(names),
            ])?;
        }
    }
    Ok(())
}

/// `USER_ATTRIBUTES`.
pub fn user_attributes(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for account in ctx.accounts() {
        let attribute = match account.attribute.is_empty() {
            true => Value::Null,
            false => Value::text(&account.attribute),
        };
        emit(&[Value::text(&account.user), Value::text(&account.host), attribute])?;
    }
    Ok(())
}

/// `mysql.procs_priv`.
pub fn procs_priv(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    for account in ctx.stored_accounts() {
        for RoutinePrivilegesView { schema, kind, routine, names } in &account.routine_privileges {
            emit(&[
                Value::text(&account.host),
                Value::text(schema),
                Value::text(&account.user),
                Value::text(routine),
                Value::text(kind),
                Value::text(""),
                routine_set_text(names),
                Value::DateTime(types::DateTime::ZERO),
            ])?;
        }
    }
    Ok(())
}

/// Names as `Proc_priv` has them.
pub(crate) fn routine_set_text(names: &[String]) -> Value {
    let held = |word: &(&str, &'static str)| names.iter().any(|name| name == word.0);
    let words =
        [("EXECUTE", "Execute"), ("ALTER ROUTINE", "Alter Routine"), ("GRANT OPTION", "Grant")];
    let shown: Vec<_> = words.into_iter().filter(held).map(|(_, word)| word).collect();
    Value::text(&shown.join(","))
}

/// `mysql.role_edges`: from role to account.
pub fn role_edges(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    for account in ctx.stored_accounts() {
        for grant in &account.roles {
            emit(&[
                Value::text(&grant.role.host),
                Value::text(&grant.role.user),
                Value::text(&account.host),
                Value::text(&account.user),
                flag(grant.admin),
            ])?;
        }
    }
    Ok(())
}

/// `mysql.proxies_priv`: the accounts that may act as others.
pub fn proxies_priv(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for account in ctx.stored_accounts() {
        for proxy in &account.proxies {
            emit(&[
                Value::text(&account.host),
                Value::text(&account.user),
                Value::text(&proxy.host),
                Value::text(&proxy.user),
                Value::Int(i64::from(proxy.grantable)),
                Value::text(""),
                Value::DateTime(types::DateTime::ZERO),
            ])?;
        }
    }
    Ok(())
}

/// `mysql.default_roles`.
pub fn default_roles(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for account in ctx.stored_accounts() {
        for role in &account.default_roles {
            emit(&[
                Value::text(&account.host),
                Value::text(&account.user),
                Value::text(&role.host),
                Value::text(&role.user),
            ])?;
        }
    }
    Ok(())
}

/// `mysql.global_grants`: dynamic privileges.
pub fn global_grants(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for account in ctx.stored_accounts() {
        for held in &account.dynamic_privileges {
            emit(&[
                Value::text(&account.user),
                Value::text(&account.host),
                Value::text(&held.name),
                flag(held.grantable),
            ])?;
        }
    }
    Ok(())
}
