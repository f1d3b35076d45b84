//! `simple_user_policy`: a user sees the schema of his own name, the information schemas, and his own connections. Administrators see all.

use std::sync::Arc;

use plugin_api::{Authorizer, Object, Plugin, PluginInfo, Registrar, Subject};

/// Schemas of facts about the server: their tables show what the account may see.
const OPEN_SCHEMAS: [&str; 3] = ["information_schema", "performance_schema", "data_dictionary"];

/// The plugin.
#[derive(Debug)]
pub struct SimpleUserPolicy;

impl Plugin for SimpleUserPolicy {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("simple_user_policy", "A user sees only the schema of his own name.")
            .on_request()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.authorizer(Arc::new(Policy));
    }
}

struct Policy;

fn is_open(user: &str, schema: &str) -> bool {
    schema == user || OPEN_SCHEMAS.iter().any(|open| open.eq_ignore_ascii_case(schema))
}

impl Authorizer for Policy {
    fn name(&self) -> &'static str {
        "simple_user_policy"
    }

    fn denies(&self, subject: &Subject<'_>, object: &Object<'_>) -> bool {
        if subject.is_administrator {
            return false;
        }
        match object {
            Object::Schema(schema) | Object::Table(schema, _) => !is_open(subject.user, schema),
            Object::Process(owner) => *owner != subject.user,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_the_schema_of_their_name_and_administrators_all() {
        let denies = |user: &str, is_administrator: bool, object: Object<'_>| {
            Policy.denies(&Subject { user, host: "%", is_administrator }, &object)
        };
        assert!(!denies("ann", false, Object::Schema("ann")));
        assert!(denies("ann", false, Object::Schema("bob")));
        assert!(denies("ann", false, Object::Schema("mysql")));
        assert!(!denies("ann", false, Object::Schema("INFORMATION_SCHEMA")));
        assert!(!denies("ann", false, Object::Table("ann", "t")));
        assert!(denies("ann", false, Object::Process("bob")));
        assert!(!denies("root", true, Object::Table("bob", "t")));
    }
}
