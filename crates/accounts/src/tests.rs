//! Statements about accounts against catalogs built by hand.

use std::sync::Arc;

use catalog::{
    Account, AccountName, CatalogSnapshot, CatalogView, Edit, EffectivePrivileges, PrivilegeSet,
};
use errors::{Diagnostics, ErrorCode, Result};
use plugin_api::Registry;

use crate::{AccountChange, AccountStatement, PasswordRules, PrivilegeChecks, parse_account};

/// A catalog, and the account that acts in it.
struct World {
    catalog: CatalogSnapshot,
    own: AccountName,
    diagnostics: Diagnostics,
}

impl World {
    /// root@localhost with all privileges, and `u`@`%` without any.
    fn new() -> World {
        let mut world = World {
            catalog: CatalogSnapshot::default(),
            own: AccountName::new("root", "localhost"),
            diagnostics: Diagnostics::new(64),
        };
        let root = Account { name: world.own.clone(), ..Account::default() };
        let user = Account { name: AccountName::new("u", "%"), ..Account::default() };
        for account in [root.with_all_privileges(), user] {
            world.catalog.apply(&Edit::PutAccount(account)).expect("an account");
        }
        world
    }

    fn act_as(&mut self, user: &str) {
        self.own = AccountName::new(user, "%");
    }

    fn with<T>(&mut self, run: impl FnOnce(&mut AccountStatement<'_>) -> T) -> T {
        let view =
            CatalogView { snapshot: Arc::new(self.catalog.clone()), ..CatalogView::default() };
        let privileges: EffectivePrivileges = self.catalog.accounts().effective(&self.own, &[]);
        run(&mut AccountStatement {
            own: &self.own,
            client_host: None,
            privileges: &privileges,
            view: &view,
            schema: None,
            registry: &Registry::default(),
            rules: PasswordRules {
                history: 0,
                reuse_days: 0,
                require_current: false,
                random_chars: 20,
            },
            now_micros: 1,
            must_change_password: false,
            diagnostics: &mut self.diagnostics,
        })
    }

    /// Runs a statement and applies its changes.
    fn run(&mut self, text: &str) -> Result<AccountChange> {
        let parsed = syntax::parse_one(text, &syntax::ParseOptions::default());
        let statement = parsed.expect(text).0;
        let change = self.with(|accounts| accounts.run(&statement))?;
        for edit in &change.edits {
            self.catalog.apply(edit)?;
        }
        Ok(change)
    }

    fn refusal(&mut self, text: &str) -> ErrorCode {
        self.run(text).expect_err(text).code()
    }

    fn account(&self, user: &str) -> Account {
        let known = self.catalog.accounts().get(&AccountName::new(user, "%"));
        Account::clone(known.expect(user))
    }
}

#[test]
fn a_grant_needs_the_privileges_that_it_grants() {
    let mut world = World::new();
    world.run("GRANT SELECT ON s.* TO u").expect("root may");
    let held = world.account("u").schemas.get("s").copied();
    assert_eq!(held, Some(PrivilegeSet::SELECT));
    world.act_as("u");
    // It holds SELECT, but not with GRANT OPTION.
    assert_eq!(world.refusal("GRANT SELECT ON s.* TO u"), ErrorCode::DBACCESS_DENIED_ERROR);
    world.own = AccountName::new("root", "localhost");
    world.run("GRANT SELECT ON s.* TO u WITH GRANT OPTION").expect("root may");
    world.act_as("u");
    world.run("GRANT SELECT ON s.* TO u").expect("it may hand it on");
    assert_eq!(world.refusal("GRANT INSERT ON s.* TO u"), ErrorCode::DBACCESS_DENIED_ERROR);
}

#[test]
fn a_revoke_of_a_missing_grant_warns_under_if_exists() {
    let mut world = World::new();
    let missing = world.refusal("REVOKE SELECT ON s.* FROM u");
    assert_eq!(missing, ErrorCode::NONEXISTING_GRANT);
    world.run("REVOKE IF EXISTS SELECT ON s.* FROM u").expect("only a warning");
    assert_eq!(world.diagnostics.warning_count(), 1);
}

#[test]
fn a_dropped_role_is_revoked_from_its_accounts() {
    let mut world = World::new();
    world.run("CREATE ROLE r").expect("a role");
    world.run("GRANT r TO u").expect("granted");
    world.run("SET DEFAULT ROLE r TO u").expect("by default");
    assert_eq!(world.account("u").default_roles, [AccountName::new("r", "%")]);
    let change = world.run("DROP ROLE r").expect("dropped");
    assert_eq!(change.forgotten, [AccountName::new("r", "%")]);
    let user = world.account("u");
    assert!(user.roles.is_empty() && user.default_roles.is_empty());
}

#[test]
fn a_renamed_account_is_reported_under_both_names() {
    let mut world = World::new();
    let change = world.run("RENAME USER u TO v").expect("renamed");
    assert_eq!(change.renamed, [(AccountName::new("u", "%"), AccountName::new("v", "%"))]);
    assert_eq!(world.account("v").name, AccountName::new("v", "%"));
    assert_eq!(world.refusal("RENAME USER u TO w"), ErrorCode::CANNOT_USER);
}

#[test]
fn only_granted_roles_become_active() {
    let mut world = World::new();
    world.run("CREATE ROLE r").expect("a role");
    world.act_as("u");
    let choose = |accounts: &mut AccountStatement<'_>| {
        let parsed = syntax::parse_one("SET ROLE r", &syntax::ParseOptions::default());
        match parsed.expect("SET ROLE").0 {
            syntax::Statement::SetRole(choice) => accounts.roles_to_activate(&choice),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(world.with(choose).expect_err("not granted").code(), ErrorCode::ROLE_NOT_GRANTED);
    world.own = AccountName::new("root", "localhost");
    world.run("GRANT r TO u").expect("granted");
    world.act_as("u");
    assert_eq!(world.with(choose).expect("granted"), [AccountName::new("r", "%")]);
}

#[test]
fn refusals_name_the_missing_privilege() {
    let mut world = World::new();
    world.act_as("u");
    assert_eq!(world.refusal("CREATE USER w"), ErrorCode::SPECIFIC_ACCESS_DENIED_ERROR);
    world.with(|accounts| {
        let on_schema = accounts.require_on_schema("s", PrivilegeSet::EVENT);
        assert_eq!(on_schema.expect_err("none").code(), ErrorCode::DBACCESS_DENIED_ERROR);
        let on_table = accounts.require_on_table("s", "t", PrivilegeSet::ALTER);
        let refused = on_table.expect_err("none");
        assert!(refused.message().contains("ALTER command denied to user 'u'@'%' for table 't'"));
        let dynamic = accounts.require_dynamic("ROLE_ADMIN").expect_err("none");
        assert!(dynamic.message().contains("SUPER or ROLE_ADMIN"));
    });
}

#[test]
fn names_are_read_with_and_without_quotes() {
    assert_eq!(parse_account("'a'@'h'"), AccountName::new("a", "h"));
    assert_eq!(parse_account("a@b@h"), AccountName::new("a@b", "h"));
    assert_eq!(parse_account("a"), AccountName::new("a", "%"));
}
