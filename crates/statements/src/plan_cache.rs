//! Compiled statements shared by all sessions, found by their normalised text and everything else that a plan depends on.
//!
//! A hit writes nothing shared: readers load a shard's map, and count in their own session's memory (`FrontCache`). Bounded in
//! bytes; a clock hand evicts entries that were not used since its last round.

use std::sync::Arc;

use arc_swap::ArcSwap;
use hashbrown::HashMap;
use plugin_api::{ColumnMeta, HistorySettings, PlanCacheView};
use syntax::LiteralSpan;
use sys::sync::Mutex;
use sys::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use types::DataType;
use variables::Settings;

use crate::planned::Planned;

/// Shards, so that insertions copy little.
const SHARDS: usize = 64;
/// The change of a limit that is followed at once.
const LIMIT_STEP_BYTES: usize = 1 << 20;
/// Entries of a session's own front.
const FRONT_SLOTS: usize = 8;
/// Hits that a front counts before it adds them to the shared entry.
const FRONT_HITS: u32 = 64;

/// Everything that a plan depends on besides the catalog version, which is checked separately.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanKey {
    /// Digest of the text, literals lifted, under the server's secret seed.
    pub digest: u128,
    /// Types of the lifted literals, hashed.
    pub types: u64,
    pub schema: Option<Arc<str>>,
    /// Settings of the session that reach a plan.
    pub settings: PlanSettings,
}

/// Settings of a session that reach a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PlanSettings {
    pub sql_mode: u64,
    pub collation: u16,
    pub div_precision_increment: u8,
    pub safe_updates: bool,
    pub cascades_fire_triggers: bool,
    pub group_concat_max_len: u64,
    pub max_allowed_packet: u64,
    pub max_join_size: Option<u64>,
    pub history: HistorySettings,
}

/// The context that a cached plan was made in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanContext {
    pub database: Option<Arc<str>>,
    pub settings: PlanSettings,
}

impl PlanSettings {
    /// Settings that plans depend on.
    #[inline]
    pub fn of(settings: &Settings) -> PlanSettings {
        PlanSettings {
            sql_mode: settings.sql_mode.0,
            collation: settings.collation_connection.id.0,
            div_precision_increment: settings.div_precision_increment,
            safe_updates: settings.sql_safe_updates,
            cascades_fire_triggers: settings.cascades_fire_triggers,
            group_concat_max_len: settings.group_concat_max_len,
            max_allowed_packet: settings.max_allowed_packet,
            max_join_size: settings.max_join_size,
            history: settings.history,
        }
    }
}

impl PlanKey {
    fn hash(&self) -> u64 {
        let settings = self.settings.sql_mode ^ u64::from(self.settings.collation) << 40;
        let seed = (self.digest as u64) ^ stdx::mix(self.types ^ settings);
        match &self.schema {
            Some(schema) => stdx::hash_bytes(seed, schema.as_bytes()),
            None => stdx::mix(seed),
        }
    }
}

/// A cached plan.
pub struct Entry {
    key: PlanKey,
    /// One of the texts that it serves: digests may collide, so texts are compared before a plan is shared.
    text: Box<[u8]>,
    literals: Box<[LiteralSpan]>,
    planned: Arc<Planned>,
    bytes: usize,
    hits: AtomicU64,
    nanos: AtomicU64,
    used: AtomicBool,
}

/// A text and the literals lifted out of it.
pub struct LiftedText<'a> {
    pub text: &'a [u8],
    pub literals: &'a [LiteralSpan],
}

impl Entry {
    fn fits(&self, key: &PlanKey, text: &LiftedText<'_>) -> bool {
        self.key == *key && syntax::same_shape(&self.text, &self.literals, text.text, text.literals)
    }
}

type Shard = HashMap<u64, Arc<Entry>>;

/// The shared cache.
pub struct PlanCache {
    shards: Vec<ArcSwap<Shard>>,
    writer: Mutex<usize>,
    bytes: AtomicUsize,
    limit_bytes: AtomicUsize,
}

impl PlanCache {
    pub fn new(limit_bytes: usize) -> PlanCache {
        PlanCache {
            shards: (0..SHARDS).map(|_| ArcSwap::from_pointee(Shard::new())).collect(),
            writer: Mutex::new(0),
            bytes: AtomicUsize::new(0),
            limit_bytes: AtomicUsize::new(limit_bytes),
        }
    }

    fn shard(&self, hash: u64) -> &ArcSwap<Shard> {
        &self.shards[hash as usize % SHARDS]
    }

    fn find(&self, hash: u64, key: &PlanKey, text: &LiftedText<'_>) -> Option<Arc<Entry>> {
        let shard = self.shard(hash).load();
        let entry = shard.get(&hash).filter(|entry| entry.fits(key, text))?;
        // Written only when the hand has cleared it, not at every hit.
        if !entry.used.load(Ordering::Relaxed) {
            entry.used.store(true, Ordering::Relaxed);
        }
        Some(entry.clone())
    }

    /// Adds a plan, in place of an older one of the same text.
    pub fn insert(&self, key: PlanKey, text: &LiftedText<'_>, planned: Arc<Planned>) {
        let bytes = text.text.len() + size_of_val(text.literals) + planned.bytes();
        if bytes > self.limit_bytes.load(Ordering::Relaxed) / 4 {
            return;
        }
        let hash = key.hash();
        let entry = Arc::new(Entry {
            key,
            text: text.text.into(),
            literals: text.literals.into(),
            planned,
            bytes,
            hits: AtomicU64::new(0),
            nanos: AtomicU64::new(0),
            used: AtomicBool::new(true),
        });
        let mut hand = self.writer.lock();
        let mut map = Shard::clone(&self.shard(hash).load());
        let replaced = map.insert(hash, entry).map_or(0, |old| old.bytes);
        self.shard(hash).store(Arc::new(map));
        let total = self.bytes.load(Ordering::Relaxed) + bytes - replaced;
        self.bytes.store(total, Ordering::Relaxed);
        self.evict(&mut hand);
    }

    /// Moves the hand until the cache is within its limit. Two rounds suffice: the first clears every mark.
    fn evict(&self, hand: &mut usize) {
        let limit = self.limit_bytes.load(Ordering::Relaxed);
        for _ in 0..2 * SHARDS {
            if self.bytes.load(Ordering::Relaxed) <= limit {
                return;
            }
            *hand = (*hand + 1) % SHARDS;
            let mut map = Shard::clone(&self.shards[*hand].load());
            let mut freed = 0;
            map.retain(|_, entry| {
                let keep = entry.used.swap(false, Ordering::Relaxed);
                freed += if keep { 0 } else { entry.bytes };
                keep
            });
            self.shards[*hand].store(Arc::new(map));
            let total = self.bytes.load(Ordering::Relaxed).saturating_sub(freed);
            self.bytes.store(total, Ordering::Relaxed);
        }
    }

    /// A plan, without a session's own slots.
    pub fn get(&self, key: &PlanKey, text: &LiftedText<'_>) -> Option<Arc<Planned>> {
        self.find(key.hash(), key, text).map(|entry| entry.planned.clone())
    }

    /// Whether plans must be evicted before new ones can be added.
    #[inline]
    pub fn is_crowded(&self) -> bool {
        let limit = self.limit_bytes.load(Ordering::Relaxed);
        self.bytes.load(Ordering::Relaxed) > limit / 8 * 7
    }

    /// Follows a limit that changes continuously, in large steps.
    pub fn set_limit_if_far(&self, limit_bytes: usize) {
        let present = self.limit_bytes.load(Ordering::Relaxed);
        if present.abs_diff(limit_bytes) > LIMIT_STEP_BYTES {
            self.set_limit(limit_bytes);
        }
    }

    pub fn set_limit(&self, limit_bytes: usize) {
        self.limit_bytes.store(limit_bytes, Ordering::Relaxed);
        let mut hand = self.writer.lock();
        self.evict(&mut hand);
    }

    /// Drops every plan: none is of use after a change of the loaded plugins.
    pub fn clear(&self) {
        let _hand = self.writer.lock();
        self.shards.iter().for_each(|shard| shard.store(Arc::default()));
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// Each entry, as information tables see it.
    pub fn view(&self) -> Vec<PlanCacheView> {
        let mut rows = Vec::new();
        for shard in &self.shards {
            for entry in shard.load().values() {
                rows.push(PlanCacheView {
                    schema: entry.key.schema.as_deref().unwrap_or("").to_owned(),
                    text: String::from_utf8_lossy(&entry.text).into_owned(),
                    hits: entry.hits.load(Ordering::Relaxed),
                    bytes: entry.bytes as u64,
                    nanoseconds: entry.nanos.load(Ordering::Relaxed),
                });
            }
        }
        rows
    }
}

/// A plan as a session uses it. The outer count is the session's own, so that using a plan writes nothing shared.
pub type LocalPlan = stdx::LocalArc<Planned>;

/// What a statement takes and gives, known before it runs.
#[derive(Default)]
pub struct Described {
    /// Types of its parameters.
    pub parameters: Vec<DataType>,
    /// Its result's columns.
    pub columns: Vec<ColumnMeta>,
    /// The plan that says so.
    pub plan: Option<LocalPlan>,
}

impl Described {
    /// What a plan says.
    pub fn of(plan: LocalPlan) -> Described {
        Described {
            parameters: plan.parameters.clone(),
            columns: plan.program.columns().to_vec(),
            plan: Some(plan),
        }
    }
}

struct FrontSlot {
    hash: u64,
    entry: Arc<Entry>,
    local: LocalPlan,
    hits: u32,
}

/// The plans that a session used last.
#[derive(Default)]
pub struct FrontCache {
    slots: [Option<FrontSlot>; FRONT_SLOTS],
}

impl FrontCache {
    /// Looks in the session's own slots, then in the shared cache.
    #[inline]
    pub fn find(
        &mut self,
        cache: &PlanCache,
        key: &PlanKey,
        text: &LiftedText<'_>,
    ) -> Option<LocalPlan> {
        let hash = key.hash();
        let slot = &mut self.slots[hash as usize % FRONT_SLOTS];
        if let Some(own) = slot
            && own.hash == hash
            && own.entry.fits(key, text)
        {
            own.hits += 1;
            if own.hits >= FRONT_HITS {
                own.write_back_hits();
            }
            return Some(own.local.clone());
        }
        let entry = cache.find(hash, key, text)?;
        let local = Arc::new(entry.planned.clone());
        let new = FrontSlot { hash, entry, local: local.clone(), hits: 1 };
        if let Some(mut old) = slot.replace(new) {
            old.write_back_hits();
        }
        Some(local)
    }

    /// Forgets the session's slot for a plan that is out of date.
    pub fn forget(&mut self, key: &PlanKey) {
        let hash = key.hash();
        self.slots[hash as usize % FRONT_SLOTS] = None;
    }
}

impl FrontSlot {
    fn write_back_hits(&mut self) {
        self.entry.hits.fetch_add(u64::from(self.hits), Ordering::Relaxed);
        self.entry.used.store(true, Ordering::Relaxed);
        self.hits = 0;
    }
}

impl Drop for FrontCache {
    fn drop(&mut self) {
        for slot in self.slots.iter_mut().flatten() {
            slot.write_back_hits();
        }
    }
}
