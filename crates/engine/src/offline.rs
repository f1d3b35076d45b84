//! Checking an engine's files while no server uses them: every page, every table as CHECK TABLE does it, the owner of each page, the log and the
//! small files.
//!
//! Files left by a crash are recovered first, on a disk that does not pass the changes on; so a directory after a crash and a backup can be checked too, with the
//! same code that a server uses.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use btree::{check_tree_with, visit_blob};
use engine_api::{CancelToken, Engine, EngineError, EngineResult};
use page::{PageNo, verify};
use sys::disk::{Disk, OpenMode};
use wal::{Checkpoint, CheckpointFile, Follower, replay_bytes};

use crate::backup::manifest::{MANIFEST, SPACE};
use crate::backup::restore::verify_files;
use crate::check::{blobs_of, dictionary_blobs};
use crate::config::EngineConfig;
use crate::engine::DurableEngine;
use crate::error::io_error;
use crate::identity::require_key;
use crate::shared::Shared;

/// Bytes read at a time.
const CHUNK_BYTES: usize = 1 << 20;
/// Where a page names its tree (docs/format/page.md).
const TREE: std::ops::Range<usize> = 56..64;

/// Messages of the check while it runs.
#[derive(Debug)]
pub enum CheckNews<'a> {
    /// The progress of a step.
    Progress {
        /// The current step.
        step: &'static str,
        /// Units done.
        done: u64,
        /// Units in all.
        total: u64,
    },
    /// Something is wrong.
    Finding {
        /// The table or file.
        place: &'a str,
        /// A fault; the text names the page.
        text: &'a str,
    },
    /// A remark that is not damage.
    Note(&'a str),
}

/// The figures of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Pages.
    pub pages: u64,
    /// Tables.
    pub tables: u64,
    /// Things that are wrong.
    pub findings: u64,
}

struct Check<'t> {
    disk: Arc<dyn Disk>,
    tell: &'t mut dyn FnMut(CheckNews<'_>),
    checked: Checked,
}

/// A bit for each page.
struct Marks(Vec<u64>);

impl Marks {
    /// True when the page was not marked yet.
    fn mark(&mut self, no: PageNo) -> bool {
        let (at, bit) = (no.0 as usize / 64, 1 << (no.0 % 64));
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        let is_new = self.0[at] & bit == 0;
        self.0[at] |= bit;
        is_new
    }

    fn note(&mut self, no: PageNo) {
        let _was_new = self.mark(no);
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

/// Checks the files on `disk`, which is written to: it should be a copy, or a disk that does not pass writes on. `config` gives the memory
/// to use.
///
/// # Errors
/// The files cannot be read at all. Faults in them are reported and counted.
pub fn check_files(
    disk: Arc<dyn Disk>,
    config: &EngineConfig,
    tell: &mut dyn FnMut(CheckNews<'_>),
) -> EngineResult<Checked> {
    require_key(&*disk).map_err(io_error)?;
    let mut check = Check { disk, tell, checked: Checked::default() };
    check.run(config)?;
    Ok(check.checked)
}

fn text_of(error: EngineError) -> String {
    error.into_error(&CancelToken::new()).message().to_owned()
}

impl Check<'_> {
    fn find(&mut self, place: &str, text: &str) {
        self.checked.findings += 1;
        (self.tell)(CheckNews::Finding { place, text });
    }

    fn note(&mut self, text: &str) {
        (self.tell)(CheckNews::Note(text));
    }

    fn run(&mut self, config: &EngineConfig) -> EngineResult<()> {
        if self.disk.list().map_err(io_error)?.iter().any(|name| name == MANIFEST)
            && let Err(error) = verify_files(&*self.disk)
        {
            self.find(MANIFEST, &error.to_string());
        }
        let Some(checkpoint) = self.check_checkpoint().map_err(io_error)? else { return Ok(()) };
        self.check_log(&checkpoint, config).map_err(io_error)?;
        let page_bytes = checkpoint.page_bytes as usize;
        let config = EngineConfig { page_bytes, background: false, ..config.clone() };
        (self.tell)(CheckNews::Progress { step: "recovery", done: 0, total: 1 });
        let engine = match DurableEngine::open(self.disk.clone(), config, |_| {}) {
            Ok(engine) => engine,
            Err(error) => {
                self.find("recovery", &text_of(error));
                return self.check_pages(page_bytes, &HashMap::new());
            }
        };
        // Rolls back, purges and writes everything, so that the check reads the file's final state.
        if let Err(error) = engine.tick().and_then(|()| engine.shutdown()) {
            self.find("recovery", &text_of(error));
        }
        let shared = engine.shared();
        let names = self.check_tables(shared)?;
        self.check_pages(page_bytes, &names)
    }

    fn check_checkpoint(&mut self) -> io::Result<Option<Checkpoint>> {
        let checkpoint = match CheckpointFile::open(&*self.disk) {
            Ok((_, checkpoint)) => checkpoint,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => None,
            Err(error) => return Err(error),
        };
        match (checkpoint, CheckpointFile::damaged_blocks(&*self.disk)?) {
            (None, _) => {
                self.find("checkpoint", "no block of the file is whole: the files cannot be opened")
            }
            (Some(_), 0) => {}
            (Some(_), _) => self.note(
                "checkpoint: one of two blocks is not whole, as after a crash while it was written",
            ),
        }
        Ok(checkpoint)
    }

    /// Before a checkpoint was stored, the log was on disk up to its `next_ticket` (X7).
    fn check_log(&mut self, checkpoint: &Checkpoint, config: &EngineConfig) -> io::Result<()> {
        let total = replay_bytes(&*self.disk, checkpoint.position)?;
        let block_bytes = config.log.block_bytes;
        let mut log = Follower::new(self.disk.clone(), checkpoint.position, block_bytes);
        let mut done = 0;
        while let Some(batches) = log.next(None)? {
            done += batches.bytes.len() as u64;
            (self.tell)(CheckNews::Progress { step: "log", done, total });
        }
        if log.high() < checkpoint.next_ticket {
            let place = wal::segment_name(log.place().segment);
            let offset = log.place().offset;
            let text = format!(
                "damaged at byte {offset}: the log ends before the last checkpoint, commits are lost"
            );
            self.find(&place, &text);
        }
        Ok(())
    }

    /// Every table as CHECK TABLE does it, and that each page is held once. Returns the names of trees.
    fn check_tables(&mut self, shared: &Shared) -> EngineResult<HashMap<u64, String>> {
        let mut names = HashMap::from([(shared.dictionary.tree.id, "(dictionary)".to_owned())]);
        let tables = match shared.dictionary.all() {
            Ok(tables) => tables,
            Err(error) => {
                self.find("(dictionary)", &text_of(error));
                return Ok(names);
            }
        };
        let mut marks = Marks(Vec::new());
        marks.mark(PageNo::META);
        let before = self.checked.findings;
        self.hold_dictionary(shared, &mut marks);
        let total = tables.len() as u64;
        for (table, done) in tables.iter().zip(0..) {
            (self.tell)(CheckNews::Progress { step: "tables", done, total });
            let name = table.def.name.clone();
            for stored in table.trees() {
                let index = table.def.index(stored.index).map_or("(rows)", |index| &index.name);
                names.insert(stored.tree.id, format!("{name}, index {index}"));
            }
            let wrong = crate::check::check_table(shared, table, &CancelToken::new())
                .unwrap_or_else(|error| vec![text_of(error)]);
            wrong.iter().for_each(|text| self.find(&name, text));
            // The pages of a table that cannot be walked are unknown.
            if wrong.is_empty() {
                let mut twice = Vec::new();
                let held = hold(shared, table, &mut |no| {
                    if !marks.mark(no) {
                        twice.push(no);
                    }
                });
                for no in twice {
                    self.find(&name, &format!("page {} is held by something else too", no.0));
                }
                if let Err(error) = held {
                    self.find(&name, &text_of(error));
                }
            }
            self.checked.tables += 1;
        }
        self.check_free_list(shared, &mut marks).map_err(io_error)?;
        if self.checked.findings == before {
            let (count, _) = btree::pages_in_use(&shared.system.pool).map_err(io_error)?;
            let lost = count.saturating_sub(marks.count());
            if lost > 0 {
                self.note(&format!(
                    "{lost} pages are held by nothing: room that crashes lost, no data"
                ));
            }
        }
        Ok(names)
    }

    fn hold_dictionary(&mut self, shared: &Shared, marks: &mut Marks) {
        let pool = &shared.system.pool;
        let held = check_tree_with(pool, shared.dictionary.tree, &mut |no| marks.note(no));
        match held {
            Ok(shape) => shape.wrong.iter().for_each(|text| self.find("(dictionary)", text)),
            Err(error) => return self.find("(dictionary)", &error.to_string()),
        }
        let blobs = dictionary_blobs(shared, &mut |blob| {
            visit_blob(pool, blob.first, blob.length as usize, &mut |no| marks.note(no))
        });
        if let Err(error) = blobs {
            self.find("(dictionary)", &text_of(error));
        }
    }

    fn check_free_list(&mut self, shared: &Shared, marks: &mut Marks) -> io::Result<()> {
        const PLACE: &str = "(free list)";
        let pool = &shared.system.pool;
        let (_, expected) = btree::pages_in_use(pool)?;
        let (mut next, mut count) = (pool.shared(PageNo::META)?.page().link(), 0);
        while next != PageNo::META {
            let page = match pool.shared(next) {
                Ok(page) => page,
                Err(error) => {
                    self.find(PLACE, &error.to_string());
                    return Ok(());
                }
            };
            if page.page().kind() != page::Kind::Free {
                self.find(PLACE, &format!("page {} is on the list and not free", next.0));
                return Ok(());
            }
            if !marks.mark(next) {
                self.find(
                    PLACE,
                    &format!("page {} is on the list and held by something else", next.0),
                );
                return Ok(());
            }
            count += 1;
            next = page.page().link();
        }
        if count != expected {
            self.find(PLACE, &format!("{count} pages on the list, {expected} in the meta page"));
        }
        Ok(())
    }

    /// Checksum, number and kind of every page of the file.
    fn check_pages(&mut self, page_bytes: usize, names: &HashMap<u64, String>) -> EngineResult<()> {
        let file = self.disk.open(SPACE, OpenMode::Existing).map_err(io_error)?;
        let total = file.size_bytes().map_err(io_error)? / page_bytes as u64;
        let mut chunk = vec![0; CHUNK_BYTES.max(page_bytes)];
        let mut next = 0;
        while next < total {
            let count = (total - next).min((chunk.len() / page_bytes) as u64);
            let images = &mut chunk[..count as usize * page_bytes];
            file.read_at(images, next * page_bytes as u64).map_err(io_error)?;
            for (image, no) in images.chunks_exact(page_bytes).zip(next..) {
                // Unused space at the file's end.
                if verify(image, PageNo(no as u32)) || image.iter().all(|byte| *byte == 0) {
                    continue;
                }
                let tree = u64::from_le_bytes(image[TREE].try_into().unwrap_or([0; 8]));
                let place =
                    names.get(&tree).map_or("(value out of line, or unknown)", String::as_str);
                self.find(place, &format!("page {no} is damaged"));
            }
            next += count;
            self.checked.pages = next;
            (self.tell)(CheckNews::Progress { step: "pages", done: next, total });
        }
        Ok(())
    }
}

/// Shows every page that a table holds.
fn hold(
    shared: &Shared,
    table: &crate::table::Table,
    on_page: &mut dyn FnMut(PageNo),
) -> EngineResult<()> {
    let pool = &shared.system.pool;
    for stored in table.trees() {
        check_tree_with(pool, stored.tree, on_page).map_err(io_error)?;
    }
    blobs_of(shared, table, &mut |blob| visit_blob(pool, blob.first, blob.length as usize, on_page))
}
