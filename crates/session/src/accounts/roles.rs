//! Roles: CREATE, DROP, SET ROLE, SET DEFAULT ROLE.

use catalog::{Account, AccountName, Edit, PrivilegeSet};
use errors::{ErrorCode, Result, bail};
use plugin_api::{OkInfo, ResultSink};
use syntax::ast::{CreateFlags, RoleChoice, UserName};

use super::{failed, unknown};
use crate::server::DEFAULT_METHOD;
use crate::session::Session;

impl Session {
    /// CREATE ROLE.
    pub(crate) fn create_roles(
        &mut self,
        flags: CreateFlags,
        roles: &[UserName],
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        if !self.privileges.global().contains(PrivilegeSet::CREATE_ROLE) {
            self.require_global(PrivilegeSet::CREATE_USER)?;
        }
        let accounts = self.accounts();
        let mut edits = Vec::new();
        let mut refused = Vec::new();
        for role in roles {
            let name = self.account_name(role)?;
            if accounts.get(&name).is_some() && !flags.or_replace {
                if flags.if_not_exists {
                    let shown = format!("'{}'@'{}'", name.user, name.host);
                    self.working.note(ErrorCode::USER_ALREADY_EXISTS, &[&shown]);
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
        self.commit_accounts(&edits, sink)
    }

    /// DROP ROLE.
    pub(crate) fn drop_roles(
        &mut self,
        if_exists: bool,
        roles: &[UserName],
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        if !self.privileges.global().contains(PrivilegeSet::DROP_ROLE) {
            self.require_global(PrivilegeSet::CREATE_USER)?;
        }
        self.drop_accounts("DROP ROLE", if_exists, roles, sink)
    }

    /// Roles that a choice means for an account.
    pub(super) fn chosen_roles(
        &self,
        account: &Account,
        choice: &RoleChoice,
    ) -> Result<Vec<AccountName>> {
        let granted = || account.roles.iter().map(|grant| grant.role.clone());
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

    /// SET ROLE.
    pub(crate) fn set_role(
        &mut self,
        choice: &RoleChoice,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let accounts = self.accounts();
        let account = accounts.get(&self.account).cloned().unwrap_or_default();
        self.active_roles = self.chosen_roles(&account, choice)?;
        self.refresh_privileges();
        self.describe_roles();
        self.send_ok(sink, OkInfo::default())
    }

    /// SET DEFAULT ROLE.
    pub(crate) fn set_default_role(
        &mut self,
        choice: &RoleChoice,
        users: &[UserName],
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let accounts = self.accounts();
        let mut edits = Vec::new();
        for user in users {
            let name = self.account_name(user)?;
            if name != self.account {
                self.require_global(PrivilegeSet::CREATE_USER)?;
            }
            let known = accounts.get(&name).ok_or_else(|| unknown(&name))?;
            let mut account = Account::clone(known);
            account.default_roles = self.chosen_roles(&account, choice)?;
            edits.push(Edit::PutAccount(account));
        }
        self.commit_accounts(&edits, sink)
    }
}
