//! `partial_revokes`: REVOKE on a schema restricts global privileges, and who grants hands its own restrictions on.

use catalog::{Account, Accounts, PrivilegeSet, Restrictions};
use errors::{Result, bail};

use crate::statement::AccountStatement;

/// What REVOKE on a schema does to the privileges of an account.
pub(crate) struct SchemaRevoke {
    /// Taken from the privileges on the schema.
    pub(crate) removed: PrivilegeSet,
    /// Global privileges that hold there no longer.
    pub(crate) restricted: PrivilegeSet,
}

impl AccountStatement<'_> {
    /// Whether `partial_revokes` is on.
    pub(crate) fn restricts(&self) -> bool {
        self.accounts().rules().literal_schemas
    }

    /// Takes global privileges and their restrictions.
    ///
    /// # Errors
    /// 3879 when one of them holds in a schema where it does not for the session's account.
    pub(crate) fn take_global(&self, account: &mut Account, set: PrivilegeSet) -> Result<()> {
        self.check_reach(account, set)?;
        account.global = account.global.without(set);
        account.restrictions.keep(account.global);
        debug_assert!(account.global.contains(account.restrictions.anywhere()));
        Ok(())
    }

    /// 3879 unless the account is restricted wherever the session's account is.
    pub(crate) fn check_reach(&self, account: &Account, set: PrivilegeSet) -> Result<()> {
        for (schema, restricted) in self.privileges.restrictions().iter() {
            let reached = account.global.without(account.restrictions.on(schema));
            if reached.intersects(restricted & set) {
                bail!(DB_ACCESS_DENIED, self.own.user, self.own.host, schema);
            }
        }
        Ok(())
    }

    /// Gives privileges on a schema: where global ones are restricted the restriction ends.
    pub(crate) fn give_on_schema(account: &mut Account, schema: Box<str>, set: PrivilegeSet) {
        let lifted = account.restrictions.on(&schema) & set;
        account.restrictions.lift(&schema, lifted);
        let rest = set.without(lifted);
        if lifted.is_empty() || !rest.is_empty() {
            *account.schemas.entry(schema).or_default() |= rest;
        }
    }

    /// What a REVOKE on a schema has to take; `None` when the account does not have it.
    pub(crate) fn revoke_on_schema(
        &self,
        account: &Account,
        schema: &str,
        set: PrivilegeSet,
    ) -> Option<SchemaRevoke> {
        let held = account.schemas.get(schema).copied();
        if !self.restricts() {
            let removed = held? & set;
            return Some(SchemaRevoke { removed, restricted: PrivilegeSet::NONE });
        }
        let of_schema = held.unwrap_or_default();
        let takes_all = set.contains(PrivilegeSet::ALL_SCHEMA) && held.is_some();
        if !takes_all && !(account.global | of_schema).contains(set) {
            return None;
        }
        let removed = of_schema & set;
        Some(SchemaRevoke { removed, restricted: (account.global & set).without(removed) })
    }
}

/// Gives global privileges with these restrictions; what the account already had stays as it was.
pub(crate) fn give_global(account: &mut Account, set: PrivilegeSet, lent: &Restrictions) {
    let mut lent = lent.clone();
    lent.keep(set);
    account.restrictions.merge(account.global, set, &lent);
    for (schema, held) in &account.schemas {
        account.restrictions.lift(schema, *held);
    }
    account.global |= set;
}

/// The value of `partial_revokes`.
///
/// # Errors
/// 3896: it cannot be switched off while an account has a restriction.
pub(crate) fn check_partial_revokes(accounts: &Accounts, on: bool) -> Result<()> {
    if !on && accounts.iter().any(|account| !account.restrictions.is_empty()) {
        bail!(PARTIAL_REVOKES_EXIST);
    }
    Ok(())
}
