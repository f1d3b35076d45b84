//! Roles: CREATE, DROP, SET ROLE, SET DEFAULT ROLE.

use catalog::{Account, AccountName, Edit, PrivilegeSet};
use errors::{ErrorCode, Result, bail};
use syntax::ast::{CreateFlags, RoleChoice, UserName};

use crate::PrivilegeChecks;
use crate::logins::DEFAULT_METHOD;
use crate::statement::{AccountChange, AccountStatement, failed, unknown};

impl AccountStatement<'_> {
    /// CREATE ROLE.
    pub(crate) fn create_roles(
        &mut self,
        flags: CreateFlags,
        roles: &[UserName],
    ) -> Result<AccountChange> {
        self.require_role_change(PrivilegeSet::CREATE_ROLE)?;
        let accounts = self.accounts();
        let mut edits = Vec::new();
        let mut refused = Vec::new();
        for role in roles {
            let name = self.account_name(role)?;
            if accounts.get(&name).is_some() && !flags.or_replace {
                if flags.if_not_exists {
                    let shown = format!("'{}'@'{}'", name.user, name.host);
                    self.diagnostics.note(ErrorCode::USER_ALREADY_EXISTS, &[&shown]);
                } else {
                    refused.push(name);
                }
                continue;
            }
            edits.push(Edit::PutAccount(Account {
                name,
                plugin: DEFAULT_METHOD.into(),
                locked: true,
                password_expired: true,
                is_role: true,
                ..Account::default()
            }));
        }
        if !refused.is_empty() {
            return Err(failed("CREATE ROLE", &refused));
        }
        Ok(edits.into())
    }

    /// DROP ROLE.
    pub(crate) fn drop_roles(
        &mut self,
        if_exists: bool,
        roles: &[UserName],
    ) -> Result<AccountChange> {
        self.require_role_change(PrivilegeSet::DROP_ROLE)?;
        self.drop_accounts("DROP ROLE", if_exists, roles)
    }

    /// The roles that a SET ROLE choice selects for an account.
    pub(crate) fn chosen_roles(
        &self,
        account: &Account,
        choice: &RoleChoice,
    ) -> Result<Vec<AccountName>> {
        let accounts = self.accounts();
        let all = accounts.roles_of(account);
        let granted = || all.iter().cloned();
        Ok(match choice {
            RoleChoice::Default => account.default_roles.clone(),
            RoleChoice::None => Vec::new(),
            RoleChoice::All => granted().collect(),
            RoleChoice::AllExcept(except) => {
                let except: Vec<AccountName> =
                    except.iter().map(|role| self.account_name(role)).collect::<Result<_>>()?;
                granted().filter(|role| !except.contains(role)).collect()
            }
            RoleChoice::Roles(roles) => {
                let mut chosen = Vec::with_capacity(roles.len());
                for role in roles {
                    let role = self.account_name(role)?;
                    if !granted().any(|known| known == role) {
                        let whom = &account.name;
                        bail!(ROLE_NOT_GRANTED, role.user, role.host, whom.user, whom.host);
                    }
                    chosen.push(role);
                }
                chosen
            }
        })
    }

    /// SET ROLE: the roles that become active.
    ///
    /// # Errors
    /// 3530 for a role that is not granted.
    pub fn roles_to_activate(&self, choice: &RoleChoice) -> Result<Vec<AccountName>> {
        let account = self.accounts().get(self.own).cloned().unwrap_or_default();
        self.chosen_roles(&account, choice)
    }

    /// SET DEFAULT ROLE.
    pub(crate) fn set_default_role(
        &mut self,
        choice: &RoleChoice,
        users: &[UserName],
    ) -> Result<AccountChange> {
        let accounts = self.accounts();
        let mut edits = Vec::new();
        for user in users {
            let name = self.account_name(user)?;
            if name != *self.own {
                self.require_global(PrivilegeSet::CREATE_USER)?;
            }
            let known = accounts.get(&name).ok_or_else(|| unknown(&name))?;
            let mut account = Account::clone(known);
            account.default_roles = self.chosen_roles(&account, choice)?;
            edits.push(Edit::PutAccount(account));
        }
        Ok(edits.into())
    }
}
