//! Checks that an account has the privileges that a plan needs.

use ::accounts::PrivilegeChecks;
use binder::{PrivilegeKind, RequiredPrivilege};
use catalog::{AccountName, View};
use errors::{Result, bail};

use crate::planned::Planned;
use crate::session::Session;
use statements::plan_privileges::check_privilege;

impl Session {
    /// Checks that the account has the privileges that the plan needs.
    pub(crate) fn check_plan_privileges(&self, planned: &Planned) -> Result<()> {
        if self.server.hooks.restricts() {
            self.check_plan_allowed(planned)?;
        }
        if self.privileges.everywhere().contains(planned.privilege_mask)
            && planned.privileges.iter().all(|needed| needed.definer.is_none())
        {
            return Ok(());
        }
        let view = self.view();
        let shown = |name: &AccountName| self.shown_host(name).to_owned();
        for needed in &planned.privileges {
            match &needed.definer {
                None => check_privilege(&shown, &view, (&self.privileges, &self.account), needed)?,
                Some(definer) => {
                    let (user, host) = definer.rsplit_once('@').unwrap_or((definer, "%"));
                    let name = AccountName::new(user, host);
                    let accounts = view.snapshot.accounts().clone();
                    if accounts.get(&name).is_none() {
                        bail!(NO_SUCH_USER, name.user, name.host);
                    }
                    let effective = accounts.effective(&name, &[]);
                    check_privilege(&shown, &view, (&effective, &name), needed)?;
                }
            }
        }
        Ok(())
    }
}

/// Checks that the session's account may do this to a view as such.
pub(crate) fn check_on_view(session: &Session, kind: PrivilegeKind, view: &View) -> Result<()> {
    let (schema, table) = (view.schema.clone(), view.name.clone());
    let needed = RequiredPrivilege { schema, table, columns: Vec::new(), kind, definer: None };
    let own = (&*session.privileges, &session.account);
    check_privilege(&|name| session.shown_host(name).to_owned(), &session.view(), own, &needed)
}
