//! `MYSQL_FIREWALL_USERS` and `MYSQL_FIREWALL_WHITELIST` of `information_schema`.

use std::sync::Arc;

use plugin_api::{InfoColumn, InformationTable, SessionServices, SessionTable, TableDefinition};
use types::{CollationId, DataType, TypeKind, Value};

use crate::firewall::profiles::{Profile, RULE_BYTES_MAX};
use crate::firewall::{ADMIN, Firewall, profile_name};

/// Characters of an account's name, and of a mode's.
const ACCOUNT_LENGTH: u32 = 288;
const MODE_LENGTH: u32 = 16;

/// Makes the rows of a profile.
type Rows = fn(&str, &Profile) -> Vec<Vec<Value>>;

pub(crate) fn all(firewall: &Arc<Firewall>) -> [Arc<dyn InformationTable>; 2] {
    let text = |length| DataType::varchar(length, CollationId::UTF8MB3_GENERAL_CI);
    let rule = DataType::new(TypeKind::Text, RULE_BYTES_MAX as u32, 0);
    let rule = DataType { collation: CollationId::UTF8MB4_0900_AI_CI, ..rule };
    let users = |account: &str, profile: &Profile| {
        vec![vec![Value::text(account), Value::text(profile.mode.name())]]
    };
    let rules = |account: &str, profile: &Profile| {
        let row = |rule: &String| vec![Value::text(account), Value::text(rule)];
        profile.rules.iter().map(row).collect()
    };
    [
        table(firewall, "MYSQL_FIREWALL_USERS", ("MODE", text(MODE_LENGTH)), users),
        table(firewall, "MYSQL_FIREWALL_WHITELIST", ("RULE", rule), rules),
    ]
}

/// A table with a row of each visible profile or rule.
fn table(
    firewall: &Arc<Firewall>,
    name: &'static str,
    second: (&'static str, DataType),
    rows: Rows,
) -> Arc<dyn InformationTable> {
    let account = DataType::varchar(ACCOUNT_LENGTH, CollationId::UTF8MB3_GENERAL_CI);
    let columns = vec![
        InfoColumn { name: "USERHOST", ty: account.with_nullable(false) },
        InfoColumn { name: second.0, ty: second.1.with_nullable(false) },
    ];
    let definition = TableDefinition { schema: "information_schema", name, columns };
    let firewall = firewall.clone();
    let of_session = move |session: &dyn SessionServices| visible_rows(&firewall, session, rows);
    Arc::new(SessionTable::new(definition, of_session))
}

/// Rows of all profiles for who may set them, else of the own one: rules say what an application asks.
fn visible_rows(firewall: &Firewall, session: &dyn SessionServices, rows: Rows) -> Vec<Vec<Value>> {
    let own = profile_name(&session.current_user()).unwrap_or_default();
    let sees_all = session.has_privilege(ADMIN);
    let found = firewall.with_profiles(session, |profiles| {
        let visible = profiles.iter().filter(|(account, _)| sees_all || **account == own);
        Ok(visible.flat_map(|(account, profile)| rows(account, profile)).collect())
    });
    found.unwrap_or_default()
}
