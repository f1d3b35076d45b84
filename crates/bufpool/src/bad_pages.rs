//! Pages that could not be read: each is said once in the error log, and listed.

use page::PageNo;
use sys::process::{Gravity, tell};
use sys::sync::Mutex;

/// Pages that are listed: where more are damaged, these say enough.
const LISTED_MAX: usize = 1000;

/// A page that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPage {
    /// Its number.
    pub number: u32,
    /// What was wrong.
    pub reason: String,
}

#[derive(Default)]
pub(crate) struct BadPages(Mutex<Vec<BadPage>>);

impl BadPages {
    #[cold]
    pub fn note(&self, no: PageNo, reason: &str) {
        {
            let mut known = self.0.lock();
            if known.iter().any(|page| page.number == no.0) || known.len() >= LISTED_MAX {
                return;
            }
            known.push(BadPage { number: no.0, reason: reason.to_owned() });
        }
        tell(
            Gravity::Error,
            &format!(
                "page {} of the file 'space' cannot be read: {reason}. CHECK TABLE says whether a table has it; everything else goes on. \
                 Restore the table from a backup, and check the device",
                no.0
            ),
        );
    }

    pub fn list(&self) -> Vec<BadPage> {
        self.0.lock().clone()
    }
}
