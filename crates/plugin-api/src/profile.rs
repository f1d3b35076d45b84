//! The slot for PROFILE: how the measurements of a statement that ran are shown.

use errors::Result;
use types::Value;

use crate::information::ProcessView;
use crate::result::ColumnMeta;

/// A part of the work of a statement: a phase, an operator, a wait, a statement of a program that it ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileFrame {
    /// What was done.
    pub name: String,
    /// Its time, that of its parts included.
    pub nanos: u64,
    /// Rows that it gave, of all loops.
    pub rows: Option<u64>,
    /// How often it was done; 0 for an operator that never ran.
    pub loops: u64,
    /// What it consists of.
    pub parts: Vec<ProfileFrame>,
}

impl ProfileFrame {
    /// The time that none of its parts took.
    pub fn own_nanos(&self) -> u64 {
        let parts: u64 = self.parts.iter().map(|part| part.nanos).sum();
        self.nanos.saturating_sub(parts)
    }
}

/// A result set: its columns and its rows.
pub type ProfileRows = (Vec<ColumnMeta>, Vec<Vec<Value>>);

/// Shows profiles of statements.
pub trait ProfilePrinter: Send + Sync {
    /// Checks a format before its statement runs.
    ///
    /// # Errors
    /// 1210: there is none of this name.
    fn check(&self, format: Option<&str>) -> Result<()>;
    /// The result of PROFILE.
    ///
    /// # Errors
    /// As `check`.
    fn show(&self, profile: &ProfileFrame, format: Option<&str>) -> Result<ProfileRows>;
    /// Begins a profile of a connection.
    fn connection(&self) -> Box<dyn ConnectionProfile>;
}

/// The profile of a connection that is looked at again and again, at even intervals.
pub trait ConnectionProfile {
    /// What the connection does now; `None`: it runs nothing.
    fn look(&mut self, connection: Option<&ProcessView>);
    /// Its profile: statements and below them the operators and waits of their threads. `nanos` have passed since it began, and loops are looks.
    fn end(self: Box<Self>, nanos: u64) -> ProfileFrame;
}
