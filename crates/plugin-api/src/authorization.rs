//! The slot for authorization: plugins that deny objects to users whose privileges would allow them.

/// A session that wants to use an object.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// User of the account.
    pub user: &'a str,
    /// Host of the account.
    pub host: &'a str,
    /// It may administer connections (CONNECTION_ADMIN, SUPER).
    pub is_administrator: bool,
}

/// An object that a session wants to use or see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object<'a> {
    /// A schema.
    Schema(&'a str),
    /// A table or view: schema and name.
    Table(&'a str, &'a str),
    /// A connection of this user.
    Process(&'a str),
}

/// Denies objects.
pub trait Authorizer: Send + Sync {
    /// Its name.
    fn name(&self) -> &'static str;
    /// Whether it denies anything as things are. Asked when the plugin is loaded and after a change of a global variable.
    fn is_active(&self) -> bool {
        true
    }
    /// Whether it denies the object. What no authorizer denies is left to the privileges.
    fn denies(&self, subject: &Subject<'_>, object: &Object<'_>) -> bool;
}
