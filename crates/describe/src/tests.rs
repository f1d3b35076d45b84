//! Accounts and definitions as statements.

use std::collections::BTreeMap;

use catalog::{
    Account, AccountName, CatalogSnapshot, Column, ColumnDefault, Edit, PrivilegeSet, RoleGrant,
    TableGrant,
};
use types::{DataType, FixedOffset, TypeKind, Value};

use crate::show_create::constant_text;
use crate::{SecretForm, create_user_statement, grant_statements, with_roles};

fn account(user: &str) -> Account {
    Account { name: AccountName::new(user, "%"), ..Account::default() }
}

#[test]
fn grants_are_listed_from_the_widest_to_the_narrowest() {
    let mut anna = account("anna");
    anna.global = PrivilegeSet::SELECT | PrivilegeSet::GRANT_OPTION;
    anna.dynamic.insert("BACKUP_ADMIN".into(), false);
    anna.schemas.insert("s".into(), PrivilegeSet::ALL_SCHEMA);
    let columns = BTreeMap::from([("c".into(), PrivilegeSet::SELECT)]);
    let grant = TableGrant { table: PrivilegeSet::INSERT, columns };
    anna.tables.insert(("s".into(), "t`x".into()), grant);
    for (user, admin) in [("boss", true), ("clerk", false)] {
        anna.roles.push(RoleGrant { role: AccountName::new(user, "%"), admin });
    }
    assert_eq!(
        grant_statements(&anna),
        [
            "GRANT SELECT ON *.* TO `anna`@`%` WITH GRANT OPTION",
            "GRANT BACKUP_ADMIN ON *.* TO `anna`@`%`",
            "GRANT ALL PRIVILEGES ON `s`.* TO `anna`@`%`",
            "GRANT SELECT (`c`), INSERT ON `s`.`t``x` TO `anna`@`%`",
            "GRANT `clerk`@`%` TO `anna`@`%`",
            "GRANT `boss`@`%` TO `anna`@`%` WITH ADMIN OPTION",
        ]
    );
    assert_eq!(grant_statements(&account("nobody")), ["GRANT USAGE ON *.* TO `nobody`@`%`"]);
}

#[test]
fn roles_bring_their_privileges_and_those_of_their_roles() {
    let (anna, mut outer, mut inner) = (account("anna"), account("outer"), account("inner"));
    outer.global = PrivilegeSet::SELECT;
    // A circle ends.
    for (role, granted) in [(&mut outer, "inner"), (&mut inner, "outer")] {
        role.roles.push(RoleGrant { role: AccountName::new(granted, "%"), admin: false });
    }
    inner.global = PrivilegeSet::INSERT;
    let mut catalog = CatalogSnapshot::default();
    for one in [&anna, &outer, &inner] {
        catalog.apply(&Edit::PutAccount(one.clone())).expect("valid");
    }
    let merged = with_roles(catalog.accounts(), &anna, &[AccountName::new("outer", "%")]);
    assert!(merged.global.contains(PrivilegeSet::SELECT | PrivilegeSet::INSERT));
    assert_eq!(merged.name, anna.name);
}

#[test]
fn an_account_is_created_as_it_is() {
    let mut anna = account("an'na");
    anna.plugin = "caching_sha2_password".into();
    anna.limits[3] = 2;
    anna.locked = true;
    assert_eq!(
        create_user_statement(&anna, SecretForm::Text),
        "CREATE USER `an'na`@`%` IDENTIFIED WITH 'caching_sha2_password' REQUIRE NONE WITH \
         MAX_USER_CONNECTIONS 2 PASSWORD EXPIRE DEFAULT ACCOUNT LOCK PASSWORD HISTORY DEFAULT \
         PASSWORD REUSE INTERVAL DEFAULT PASSWORD REQUIRE CURRENT DEFAULT"
    );
}

#[test]
fn timestamps_are_shown_in_the_zone_of_the_session() {
    let at = types::DateTime::from_unix_micros(3_600_000_000).expect("in range");
    let column = |kind| Column {
        name: "c".into(),
        ty: DataType::new(kind, 19, 0),
        stored: Some(0),
        default: ColumnDefault::Constant(Value::DateTime(at)),
        on_update_now: None,
        auto_increment: false,
        generated: None,
        invisible: false,
        comment: String::new(),
        collation_written: false,
        histogram: None,
        placement: catalog::Placement::default(),
        history: catalog::ColumnHistory::Kept,
    };
    let zone = FixedOffset::parse("+02:00").expect("an offset");
    let text = |kind| constant_text(&column(kind), &Value::DateTime(at), &zone);
    assert_eq!(text(TypeKind::Timestamp), "1970-01-01 03:00:00");
    assert_eq!(text(TypeKind::DateTime), "1970-01-01 01:00:00");
}

#[test]
fn secrets_that_are_no_text_are_written_in_hexadecimal() {
    let mut anna = account("anna");
    anna.plugin = "caching_sha2_password".into();
    let mut shown = |secret: &[u8], form| {
        anna.authentication_string = secret.into();
        let text = create_user_statement(&anna, form);
        text.split_once(" AS ").and_then(|(_, rest)| rest.split(' ').next()).map(str::to_owned)
    };
    assert_eq!(shown(b"$A'\\", SecretForm::Text).as_deref(), Some("'$A\\'\\\\'"));
    assert_eq!(shown(b"$A'\\", SecretForm::Hex).as_deref(), Some("'$A\\'\\\\'"));
    assert_eq!(shown(b"$A'\\", SecretForm::AnyMode).as_deref(), Some("0x2441275C"));
    assert_eq!(shown(b"*AB", SecretForm::AnyMode).as_deref(), Some("'*AB'"));
    assert_eq!(shown(b"$A\x01", SecretForm::Hex).as_deref(), Some("0x244101"));
    assert_eq!(shown(b"\xff\0", SecretForm::Text).as_deref(), Some("0xFF00"));
}
