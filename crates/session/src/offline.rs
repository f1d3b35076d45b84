//! `offline_mode`: only accounts that may administer connections are served.

use ::accounts::parse_account;
use catalog::{Accounts, EffectivePrivileges};
use errors::{Result, bail};

use crate::server::Server;
use crate::session::Session;

/// The privilege of those who stay.
const STAYS: &str = "CONNECTION_ADMIN";

impl Session {
    /// Refuses a log-in while the server is offline. The session must show its account already, so that either this sees the variable or
    /// `disconnect_users` the session.
    ///
    /// # Errors
    /// 3032.
    pub(crate) fn check_online(&self) -> Result<()> {
        let is_offline = self.server.globals.integer("offline_mode") == 1;
        if is_offline && !self.privileges.has_dynamic(STAYS) {
            bail!(SERVER_OFFLINE_MODE);
        }
        Ok(())
    }

    /// Who may set the variable.
    ///
    /// # Errors
    /// 1227.
    pub(crate) fn require_offline_admin(&self) -> Result<()> {
        if !self.privileges.has_dynamic(STAYS) {
            let needed = "SYSTEM_VARIABLES_ADMIN plus CONNECTION_ADMIN or SUPER";
            bail!(SPECIFIC_ACCESS_DENIED_ERROR, needed);
        }
        Ok(())
    }
}

/// Ends the sessions of all accounts that may not stay.
pub(crate) fn disconnect_users(server: &Server) {
    let snapshot = server.catalog.snapshot();
    let all_roles = server.globals.integer("activate_all_roles_on_login") == 1;
    let stays = |account: &str| {
        let effective = privileges_of(snapshot.accounts(), account, all_roles);
        effective.is_none_or(|privileges| privileges.has_dynamic(STAYS))
    };
    server.sessions.kill_accounts(&|account| !stays(account));
}

/// What an account may do after its log-in; `None` for those of the server itself.
fn privileges_of(
    accounts: &Accounts,
    account: &str,
    all_roles: bool,
) -> Option<EffectivePrivileges> {
    let known = accounts.get(&parse_account(account))?;
    Some(accounts.effective(&known.name, &accounts.roles_at_login(known, all_roles)))
}
