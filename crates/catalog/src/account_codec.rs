//! Stored form of accounts. Documented in docs/format/dictionary.md; tags never change their meaning.

use errors::Result;

use crate::fields::{Field, FieldWriter, damaged, nested_fields, object_fields};
use crate::{
    Account, AccountName, EarlierPassword, LockTime, PrivilegeSet, RoleGrant, RoutineKind,
    TableGrant, TlsRequirement,
};

/// A pair of texts: first 1, second 2, number 3.
fn pair_writer(first: &str, second: &str, number: u64) -> FieldWriter {
    let mut out = FieldWriter::nested();
    out.text(1, first);
    out.text(2, second);
    out.number(3, number);
    out
}

fn read_triple(bytes: &[u8]) -> Result<(Box<str>, Box<str>, u64)> {
    let mut triple = (Box::from(""), Box::from(""), 0);
    for field in nested_fields(bytes)? {
        match field.tag {
            1 => triple.0 = field.text()?.into(),
            2 => triple.1 = field.text()?.into(),
            3 => triple.2 = field.number()?,
            _ => {}
        }
    }
    Ok(triple)
}

/// An account: user 1, host 2, plugin 3, secret 4, locked 5, expired 6, TLS kind 7, TLS texts 8, global 9, dynamic 10,
/// schema 11, table 12, role 13, default role 14, attribute 15, limit 16, password changed 17, is role 18, proxy 19, routine 20,
/// lifetime 21, history 22, reuse 23, require current 24 (each one more than the number, so that absent is DEFAULT), attempts 25,
/// lock time 26 (all bits: UNBOUNDED), second secret 27, earlier password 28 (since 1, secret 2),
/// restriction 29.
pub(crate) fn write_account(account: &Account) -> Vec<u8> {
    let mut out = FieldWriter::object();
    out.text(1, &account.name.user);
    out.text(2, &account.name.host);
    out.text(3, &account.plugin);
    out.bytes(4, &account.authentication_string);
    out.flag(5, account.locked);
    out.flag(6, account.password_expired);
    match &account.tls {
        TlsRequirement::None => {}
        TlsRequirement::Ssl => out.number(7, 1),
        TlsRequirement::X509 => out.number(7, 2),
        TlsRequirement::Specified { subject, issuer, cipher } => {
            out.number(7, 3);
            for text in [subject, issuer, cipher] {
                out.bytes(8, text.as_bytes());
            }
        }
    }
    out.number(9, account.global.bits());
    for (name, grantable) in &account.dynamic {
        out.nest(10, pair_writer(name, "", u64::from(*grantable)));
    }
    for (schema, set) in &account.schemas {
        out.nest(11, pair_writer(schema, "", set.bits()));
    }
    for ((schema, table), grant) in &account.tables {
        let mut nested = pair_writer(schema, table, grant.table.bits());
        for (column, set) in &grant.columns {
            nested.nest(4, pair_writer(column, "", set.bits()));
        }
        out.nest(12, nested);
    }
    for grant in &account.roles {
        out.nest(13, pair_writer(&grant.role.user, &grant.role.host, u64::from(grant.admin)));
    }
    for role in &account.default_roles {
        out.nest(14, pair_writer(&role.user, &role.host, 0));
    }
    out.text(15, &account.attribute);
    for limit in account.limits {
        out.bytes(16, &limit.to_le_bytes());
    }
    out.number(17, account.password_changed_micros as u64);
    out.flag(18, account.is_role);
    for (proxied, grantable) in &account.proxies {
        out.nest(19, pair_writer(&proxied.user, &proxied.host, u64::from(*grantable)));
    }
    for ((schema, kind, name), set) in &account.routines {
        let mut nested = pair_writer(schema, name, set.bits());
        nested.flag(4, *kind == RoutineKind::Function);
        nested.flag(5, *kind == RoutineKind::Library);
        out.nest(20, nested);
    }
    write_passwords(&mut out, account);
    for (schema, set) in account.restrictions.iter() {
        out.nest(29, pair_writer(schema, "", set.bits()));
    }
    out.finish()
}

pub(crate) fn read_account(bytes: &[u8]) -> Result<Account> {
    let mut account = Account::default();
    let mut tls_kind = 0;
    let mut tls_texts: Vec<Box<str>> = Vec::new();
    let mut limits = 0;
    for field in object_fields(bytes)? {
        match field.tag {
            1 => account.name.user = field.text()?.into(),
            2 => account.name.host = field.text()?.into(),
            3 => account.plugin = field.text()?.into(),
            4 => account.authentication_string = field.bytes.to_vec(),
            5 => account.locked = field.flag()?,
            6 => account.password_expired = field.flag()?,
            7 => tls_kind = field.number()?,
            8 => tls_texts.push(field.text()?.into()),
            9 => account.global = PrivilegeSet::from_bits(field.number()?),
            10 => {
                let (name, _, grantable) = read_triple(field.bytes)?;
                account.dynamic.insert(name, grantable != 0);
            }
            11 => {
                let (schema, _, bits) = read_triple(field.bytes)?;
                account.schemas.insert(schema, PrivilegeSet::from_bits(bits));
            }
            12 => {
                let (key, grant) = read_table_grant(field.bytes)?;
                account.tables.insert(key, grant);
            }
            13 => {
                let (user, host, admin) = read_triple(field.bytes)?;
                let role = AccountName { user, host };
                account.roles.push(RoleGrant { role, admin: admin != 0 });
            }
            14 => {
                let (user, host, _) = read_triple(field.bytes)?;
                account.default_roles.push(AccountName { user, host });
            }
            15 => account.attribute = field.text()?.into(),
            16 => {
                if let Some(limit) = account.limits.get_mut(limits) {
                    *limit = field.number()?;
                }
                limits += 1;
            }
            17 => account.password_changed_micros = field.number()? as i64,
            18 => account.is_role = field.flag()?,
            19 => {
                let (user, host, grantable) = read_triple(field.bytes)?;
                account.proxies.insert(AccountName { user, host }, grantable != 0);
            }
            20 => {
                let (key, privileges) = read_routine_grant(field.bytes)?;
                account.routines.insert(key, privileges);
            }
            21..=28 => read_passwords(&mut account, &field)?,
            29 => {
                let (schema, _, bits) = read_triple(field.bytes)?;
                account.restrictions.add(&schema, PrivilegeSet::from_bits(bits));
            }
            _ => {}
        }
    }
    account.tls = tls_requirement(tls_kind, &tls_texts)?;
    Ok(account)
}

fn tls_requirement(kind: u64, texts: &[Box<str>]) -> Result<TlsRequirement> {
    Ok(match (kind, texts) {
        (0, _) => TlsRequirement::None,
        (1, _) => TlsRequirement::Ssl,
        (2, _) => TlsRequirement::X509,
        (3, [subject, issuer, cipher]) => TlsRequirement::Specified {
            subject: subject.clone(),
            issuer: issuer.clone(),
            cipher: cipher.clone(),
        },
        _ => return Err(damaged()),
    })
}

type RoutineKey = (Box<str>, RoutineKind, Box<str>);

fn read_routine_grant(bytes: &[u8]) -> Result<(RoutineKey, PrivilegeSet)> {
    let (schema, name, bits) = read_triple(bytes)?;
    let mut kind = RoutineKind::Procedure;
    for field in nested_fields(bytes)? {
        match field.tag {
            4 if field.flag()? => kind = RoutineKind::Function,
            5 if field.flag()? => kind = RoutineKind::Library,
            _ => {}
        }
    }
    Ok(((schema, kind, name), PrivilegeSet::from_bits(bits)))
}

type TableKey = (Box<str>, Box<str>);

fn read_table_grant(bytes: &[u8]) -> Result<(TableKey, TableGrant)> {
    let mut key: TableKey = (Box::from(""), Box::from(""));
    let mut grant = TableGrant::default();
    for field in nested_fields(bytes)? {
        match field.tag {
            1 => key.0 = field.text()?.into(),
            2 => key.1 = field.text()?.into(),
            3 => grant.table = PrivilegeSet::from_bits(field.number()?),
            4 => {
                let (column, _, bits) = read_triple(field.bytes)?;
                grant.columns.insert(column, PrivilegeSet::from_bits(bits));
            }
            _ => {}
        }
    }
    Ok((key, grant))
}

fn write_passwords(out: &mut FieldWriter, account: &Account) {
    let policy = &account.password_policy;
    let plus_one = |number: Option<u64>| number.map_or(0, |number| number + 1);
    out.number(21, plus_one(policy.lifetime_days.map(u64::from)));
    out.number(22, plus_one(policy.history.map(u64::from)));
    out.number(23, plus_one(policy.reuse_days.map(u64::from)));
    out.number(24, plus_one(policy.require_current.map(u64::from)));
    out.number(25, policy.failed_logins_max.into());
    match policy.lock_time {
        LockTime::Days(days) => out.number(26, days.into()),
        LockTime::Unbounded => out.number(26, u64::MAX),
    }
    if !account.second_secret.is_empty() {
        out.bytes(27, &account.second_secret);
    }
    for earlier in &account.earlier_passwords {
        let mut nested = FieldWriter::nested();
        nested.number(1, earlier.since_micros as u64);
        nested.bytes(2, &earlier.secret);
        out.nest(28, nested);
    }
}

fn read_passwords(account: &mut Account, field: &Field<'_>) -> Result<()> {
    let policy = &mut account.password_policy;
    let less_one = || field.number()?.checked_sub(1).ok_or_else(damaged);
    match field.tag {
        21 => policy.lifetime_days = Some(narrow(less_one()?)?),
        22 => policy.history = Some(narrow(less_one()?)?),
        23 => policy.reuse_days = Some(narrow(less_one()?)?),
        24 => policy.require_current = Some(less_one()? != 0),
        25 => policy.failed_logins_max = field.narrow()?,
        26 => {
            policy.lock_time = match field.number()? {
                u64::MAX => LockTime::Unbounded,
                days => LockTime::Days(narrow(days)?),
            }
        }
        27 => account.second_secret = field.bytes.to_vec(),
        _ => {
            let mut earlier = EarlierPassword::default();
            for nested in nested_fields(field.bytes)? {
                match nested.tag {
                    1 => earlier.since_micros = nested.number()? as i64,
                    2 => earlier.secret = nested.bytes.to_vec(),
                    _ => {}
                }
            }
            account.earlier_passwords.push(earlier);
        }
    }
    Ok(())
}

fn narrow<T: TryFrom<u64>>(number: u64) -> Result<T> {
    T::try_from(number).map_err(|_| damaged())
}
