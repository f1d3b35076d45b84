//! The latch under the model checker; pages through eviction, flush and torn writes.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

#[cfg(loom)]
mod model {
    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU64, Ordering};
    use sys::model::{check, is_caught};

    use crate::Latch;
    use crate::dirty::DirtySet;

    #[test]
    fn a_latch_without_its_fences_is_caught() {
        for rule in ["fence after locking", "fence before validating"] {
            assert!(is_caught("tests::model::a_validated_read_is_one_state", rule), "{rule}");
        }
    }

    #[test]
    fn a_validated_read_is_one_state() {
        loom::model(|| {
            let page = Arc::new((Latch::new(), AtomicU64::new(0), AtomicU64::new(0)));
            let writer = Arc::clone(&page);
            let thread = loom::thread::spawn(move || {
                let version = writer.0.version();
                if writer.0.upgrade(version) {
                    writer.1.store(1, Ordering::Relaxed);
                    writer.2.store(1, Ordering::Relaxed);
                    writer.0.unlock_exclusive();
                }
            });
            if let Some(version) = page.0.try_version() {
                let left = page.1.load(Ordering::Relaxed);
                let right = page.2.load(Ordering::Relaxed);
                if page.0.validate(version) {
                    assert_eq!(left, right);
                }
            }
            thread.join().unwrap();
        });
    }

    #[test]
    fn exclusive_excludes() {
        loom::model(|| {
            let page = Arc::new((Latch::new(), AtomicU64::new(0)));
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    let page = Arc::clone(&page);
                    loom::thread::spawn(move || {
                        if page.0.try_lock_exclusive() {
                            let value = page.1.load(Ordering::Relaxed);
                            page.1.store(value + 1, Ordering::Relaxed);
                            page.0.unlock_exclusive();
                            1
                        } else {
                            0
                        }
                    })
                })
                .collect();
            let done: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
            assert_eq!(page.1.load(Ordering::Relaxed), done);
        });
    }

    #[test]
    fn a_sleeper_that_does_not_look_again_is_caught() {
        assert!(is_caught("tests::model::whoever_parks_is_woken", "park looks again"));
    }

    #[test]
    fn a_look_that_does_not_look_again_is_caught() {
        assert!(is_caught("tests::model::a_change_below_the_ceiling_is_seen", "look again"));
    }

    /// A frame with a mark left over gets a change concurrent with two scans: the one with a ceiling above its ticket sees it.
    #[test]
    fn a_change_below_the_ceiling_is_seen() {
        check(|| {
            let state = Arc::new((DirtySet::new(1), AtomicU64::new(0), AtomicU64::new(0)));
            state.0.mark(0);
            let writer = Arc::clone(&state);
            let thread = loom::thread::spawn(move || {
                writer.1.store(1, Ordering::Release);
                writer.0.mark(0);
                writer.2.fetch_add(1, Ordering::AcqRel);
            });
            for _ in 0..2 {
                let ceiling = state.2.load(Ordering::Acquire);
                let mut seen = false;
                state.0.each(|| 1, |_| state.1.load(Ordering::Acquire), |_, _| seen = true);
                assert!(seen || ceiling == 0);
            }
            thread.join().unwrap();
        });
    }

    #[test]
    fn a_page_that_moves_beside_a_scan_is_caught() {
        let rule = "no scan while a page moves";
        assert!(is_caught("tests::model::a_change_that_moves_is_seen", rule));
    }

    /// A change moves from frame 1 to frame 0 beside a scan, which sees it in one of the two.
    #[test]
    fn a_change_that_moves_is_seen() {
        check(|| {
            let changes = [0, 7].map(sys::sync::atomic::AtomicU64::new);
            let state = Arc::new((DirtySet::new(2), changes));
            state.0.mark(1);
            let mover = Arc::clone(&state);
            let thread = loom::thread::spawn(move || mover.0.carry(&mover.1[1], &mover.1[0], 0));
            for _ in 0..2 {
                let mut seen = 0;
                let oldest = |frame: u32| state.1[frame as usize].load(Ordering::Acquire);
                state.0.each(|| 2, oldest, |_, ticket| seen = ticket);
                assert_eq!(seen, 7);
            }
            thread.join().unwrap();
        });
    }

    /// Two writers and a reader that all wait: no thread may sleep for ever, and the reader sees whole changes.
    #[test]
    fn whoever_parks_is_woken() {
        check(|| {
            let page = Arc::new((Latch::new(), AtomicU64::new(0), AtomicU64::new(0)));
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    let page = Arc::clone(&page);
                    loom::thread::spawn(move || {
                        page.0.lock_exclusive();
                        for word in [&page.1, &page.2] {
                            word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                        }
                        page.0.unlock_exclusive();
                    })
                })
                .collect();
            page.0.lock_shared();
            assert_eq!(page.1.load(Ordering::Relaxed), page.2.load(Ordering::Relaxed));
            page.0.unlock_shared();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(page.1.load(Ordering::Relaxed), 2);
        });
    }
}

#[cfg(not(loom))]
mod pages {
    use std::sync::Arc;

    use page::{Kind, PageMut, PageNo};
    use sys::disk::{Disk, OpenMode};
    use sys::entropy::SplitMix;
    use sys::sim::SimDisk;

    use crate::{Pool, PoolConfig};

    const CONFIG: PoolConfig = PoolConfig {
        page_bytes: 1024,
        frames: 32,
        frames_max: 32,
        pages_max: 10_000,
        doublewrite: true,
        reserve_pages: 0,
    };

    fn open(disk: &SimDisk) -> Pool {
        let file = disk.open("data", OpenMode::OrCreate).unwrap();
        let doublewrite = disk.open("doublewrite", OpenMode::OrCreate).unwrap();
        disk.sync_dir().unwrap();
        Pool::restore_torn(&*file, &*doublewrite, CONFIG.page_bytes).unwrap();
        Pool::new(CONFIG, file, doublewrite).unwrap()
    }

    #[test]
    fn without_doublewrite_pages_are_written_once() {
        let disk = SimDisk::new();
        let file = disk.open("data", OpenMode::OrCreate).unwrap();
        let doublewrite = disk.open("doublewrite", OpenMode::OrCreate).unwrap();
        let config = PoolConfig { doublewrite: false, ..CONFIG };
        let pool = Pool::new(config, file.clone(), doublewrite.clone()).unwrap();
        put(&pool, 3, 7, 1).unwrap();
        assert_eq!(pool.flush(10, u64::MAX).unwrap(), 1);
        assert_eq!(doublewrite.size_bytes().unwrap(), 0);
        assert_eq!(file.size_bytes().unwrap(), 4 * 1024);
    }

    fn put(pool: &Pool, no: u32, value: u64, lsn: u64) -> std::io::Result<()> {
        let guard = pool.create(PageNo(no))?;
        let mut ops = Vec::new();
        let mut edit = PageMut::new(guard.words(), &mut ops, 0);
        edit.format(PageNo(no), Kind::Blob, 0, 0);
        for offset in 0..100 {
            edit.write_body(offset * 8, &value.to_le_bytes());
        }
        guard.mark_dirty(lsn);
        PageMut::set_lsn(guard.words(), lsn);
        Ok(())
    }

    #[test]
    fn more_pages_than_frames() {
        let disk = SimDisk::new();
        let pool = open(&disk);
        for no in 1..200 {
            put(&pool, no, u64::from(no) * 3, 1).unwrap();
        }
        for no in (1..200).rev() {
            let page = pool.shared(PageNo(no)).unwrap();
            assert_eq!(
                page.page().words()[8].load(std::sync::atomic::Ordering::Relaxed),
                u64::from(no) * 3
            );
        }
        assert!(pool.stats().evictions > 0 && pool.optimistic(PageNo(500)).is_err());
    }

    /// B15: holds every lock of the pool that a use of a resident page could wait for.
    #[test]
    fn a_resident_page_is_read_and_changed_while_every_mutex_of_the_pool_is_held() {
        let pool = Arc::new(open(&SimDisk::new()));
        put(&pool, 1, 7, 1).unwrap();
        let _writer = pool.writer.lock();
        let _aside = pool.aside.lock();
        let _look = pool.marks.look.lock();
        let _service = (pool.service.needs_frames.lock(), pool.service.ahead.lock());
        let _free: Vec<_> = pool.partitions.iter().map(|part| part.free.lock()).collect();
        let (done, is_done) = std::sync::mpsc::channel();
        let other = Arc::clone(&pool);
        let thread = std::thread::spawn(move || {
            assert!(other.optimistic(PageNo(1)).unwrap().validate());
            other.exclusive(PageNo(1)).unwrap().mark_dirty(2);
            drop(other.shared(PageNo(1)).unwrap());
            done.send(()).unwrap();
        });
        // A limit for the failure case only: the thread would wait for a lock held here.
        is_done.recv_timeout(std::time::Duration::from_secs(60)).expect("nothing to wait for");
        thread.join().unwrap();
    }

    /// B17: readers, writers, the page writer and a checkpoint beside a pool that grows and shrinks all the time.
    #[test]
    fn pages_are_whole_and_checkpoints_right_while_the_pool_changes_its_size() {
        use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
        const PAGES: u32 = 600;
        let config = PoolConfig { frames: 1500, frames_max: 4000, ..CONFIG };
        let disk = SimDisk::new();
        let file = disk.open("data", OpenMode::OrCreate).unwrap();
        let doublewrite = disk.open("doublewrite", OpenMode::OrCreate).unwrap();
        let pool = Arc::new(Pool::new(config, file, doublewrite).unwrap());
        (1..PAGES).for_each(|no| put(&pool, no, 0, 1).unwrap());
        pool.flush(PAGES as usize, u64::MAX).unwrap();
        // One value for each page; each writer has pages of its own.
        let tickets = Arc::new(AtomicU64::new(2));
        let over = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for writer in 0..2 {
            let (pool, tickets, over) = (pool.clone(), tickets.clone(), over.clone());
            threads.push(std::thread::spawn(move || {
                let (mut random, mut newest) = (SplitMix::new(writer), vec![0; PAGES as usize]);
                while !over.load(Ordering::Relaxed) {
                    let no = 1 + (random.below(u64::from(PAGES) / 2 - 1) * 2 + writer) as u32;
                    let seen = {
                        let shared = pool.shared(PageNo(no)).unwrap();
                        shared.page().words()[8].load(Ordering::Relaxed)
                    };
                    assert_eq!(seen, newest[no as usize], "page {no} lost a change");
                    let ticket = tickets.fetch_add(1, Ordering::AcqRel);
                    put(&pool, no, ticket, ticket).unwrap();
                    newest[no as usize] = ticket;
                }
            }));
        }
        for _ in 0..2 {
            let (pool, over) = (pool.clone(), over.clone());
            threads.push(std::thread::spawn(move || {
                let mut random = SplitMix::new(9);
                while !over.load(Ordering::Relaxed) {
                    let no = 1 + random.below(u64::from(PAGES) - 1) as u32;
                    let look = pool.optimistic(PageNo(no)).unwrap();
                    let words = look.page().words();
                    let (first, last) =
                        (words[8].load(Ordering::Relaxed), words[107].load(Ordering::Relaxed));
                    assert!(!look.validate() || first == last);
                }
            }));
        }
        {
            let (pool, over) = (pool.clone(), over.clone());
            threads.push(std::thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    pool.flush(20, u64::MAX).unwrap();
                }
            }));
        }
        let mut random = SplitMix::new(5);
        for round in 0..200 {
            let frames =
                if round % 2 == 0 { 40 + random.below(300) } else { 800 + random.below(3000) };
            if pool.wants_size(frames as usize * CONFIG.page_bytes) {
                pool.resize(|| false);
            }
            let state = pool.resize_state();
            assert_eq!((state.frames, state.is_running), (frames as usize, false));
            assert!(pool.stats().used_frames <= frames, "{:?}", pool.stats());
        }
        over.store(true, Ordering::Relaxed);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        // Every frame is in one place: as many pages as there are frames can be in the pool at once.
        pool.wants_size(100 * CONFIG.page_bytes);
        pool.resize(|| false);
        let _held: Vec<_> = (1..=100).map(|no| pool.shared(PageNo(no)).unwrap()).collect();
        assert_eq!(pool.stats().used_frames, 100);
        assert!(pool.optimistic(PageNo(101)).is_err(), "no frame is there twice");
    }

    /// A change that left its frame unseen would let the checkpoint pass it.
    #[test]
    fn a_dirty_page_that_moves_stays_the_oldest_change() {
        let config = PoolConfig { frames: 200, frames_max: 200, ..CONFIG };
        let disk = SimDisk::new();
        let file = disk.open("data", OpenMode::OrCreate).unwrap();
        let doublewrite = disk.open("doublewrite", OpenMode::OrCreate).unwrap();
        let pool = Pool::new(config, file, doublewrite).unwrap();
        (1..=150).for_each(|no| put(&pool, no, 1, u64::from(1000 - no)).unwrap());
        pool.flush(1, u64::MAX).unwrap();
        assert_eq!(pool.oldest_change(5000), 851);
        assert!(pool.wants_size(160 * CONFIG.page_bytes));
        pool.resize(|| false);
        assert_eq!(pool.oldest_change(5000), 851);
        assert_eq!(pool.dirty_frames(), 149);
        assert!(pool.wants_size(60 * CONFIG.page_bytes));
        pool.resize(|| false);
        assert_eq!(pool.stats().frames, 60);
        for no in 1..=150 {
            let page = pool.shared(PageNo(no)).unwrap();
            assert_eq!(page.page().words()[8].load(std::sync::atomic::Ordering::Relaxed), 1);
        }
    }

    /// A page that is held for long keeps its frame: a wish for more ends the wait, and the frames that left are back.
    #[test]
    fn a_step_that_cannot_end_is_called_off() {
        let config = PoolConfig { frames: 64, frames_max: 64, ..CONFIG };
        let disk = SimDisk::new();
        let file = disk.open("data", OpenMode::OrCreate).unwrap();
        let doublewrite = disk.open("doublewrite", OpenMode::OrCreate).unwrap();
        let pool = Arc::new(Pool::new(config, file, doublewrite).unwrap());
        (1..=64).for_each(|no| put(&pool, no, 1, 1).unwrap());
        pool.flush(64, u64::MAX).unwrap();
        // Taken for a page that is not there yet: as by a thread that reads.
        let others: Vec<_> = (0..64).map(|_| pool.take_frame().unwrap()).collect();
        let (taken, others): (Vec<u32>, Vec<u32>) = others.iter().partition(|frame| **frame == 63);
        others.into_iter().for_each(|frame| pool.give_back_frame(frame));
        let aim = 32;
        assert!(pool.wants_size(aim * CONFIG.page_bytes));
        let other = Arc::clone(&pool);
        let thread = std::thread::spawn(move || other.resize(|| false));
        while pool.resize_state().frames != aim {
            std::thread::yield_now();
        }
        assert!(!pool.wants_size(64 * CONFIG.page_bytes), "the one that is at it sees it");
        thread.join().unwrap();
        assert_eq!(pool.resize_state().frames, 64);
        taken.into_iter().for_each(|frame| pool.give_back_frame(frame));
        let _held: Vec<_> = (1..=64).map(|no| pool.shared(PageNo(no)).unwrap()).collect();
        assert_eq!(pool.stats().used_frames, 64);
    }

    #[test]
    fn a_smaller_pool_gives_its_memory_back() {
        const LARGE: usize = 64 << 20;
        const SMALL: usize = 8 << 20;
        let page_bytes = 16384;
        let config = PoolConfig {
            page_bytes,
            frames: LARGE / page_bytes,
            frames_max: 2 * LARGE / page_bytes,
            ..CONFIG
        };
        let disk = SimDisk::new();
        let file = disk.open("data", OpenMode::OrCreate).unwrap();
        let doublewrite = disk.open("doublewrite", OpenMode::OrCreate).unwrap();
        let pool = Pool::new(config, file, doublewrite).unwrap();
        for no in 1..(LARGE / page_bytes) as u32 {
            drop(pool.create(PageNo(no)).unwrap());
        }
        let full = sys::process::resident_bytes();
        assert!(pool.wants_size(SMALL));
        pool.resize(|| false);
        let small = sys::process::resident_bytes();
        assert!(full - small > (LARGE - SMALL) as u64 * 9 / 10, "{full} {small}");
        assert!(pool.wants_size(LARGE + SMALL));
        pool.resize(|| false);
        pool.wants_size(usize::MAX);
        assert_eq!(
            pool.resize_state().target,
            2 * LARGE / page_bytes,
            "no more than has addresses"
        );
    }

    #[test]
    fn no_page_stays_torn_after_a_crash() {
        for seed in 0..150 {
            let disk = SimDisk::new();
            let pool = open(&disk);
            for no in 1..20 {
                put(&pool, no, 1, 1).unwrap();
            }
            pool.flush(100, u64::MAX).unwrap();
            let mut random = SplitMix::new(seed);
            disk.crash_after(random.below(60));
            for round in 2..100 {
                let done = (1..20).try_for_each(|no| put(&pool, no, round, round));
                if done.is_err() || pool.flush(100, u64::MAX).is_err() {
                    break;
                }
            }
            let pool = open(&disk.after_crash(seed));
            for no in 1..20 {
                pool.optimistic(PageNo(no)).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            }
        }
    }

    #[test]
    fn readers_never_see_half_a_change() {
        let pool = Arc::new(open(&SimDisk::new()));
        put(&pool, 1, 0, 1).unwrap();
        let writer = Arc::clone(&pool);
        let thread = std::thread::spawn(move || {
            for value in 1..3000 {
                put(&writer, 1, value, value).unwrap();
            }
        });
        let mut seen = 0;
        while seen < 2999 {
            let look = pool.optimistic(PageNo(1)).unwrap();
            let words = look.page().words();
            let (first, last) = (&words[8], &words[107]);
            let first = first.load(std::sync::atomic::Ordering::Relaxed);
            let last = last.load(std::sync::atomic::Ordering::Relaxed);
            if look.validate() {
                assert!(first == last && first >= seen);
                seen = first;
            }
        }
        thread.join().unwrap();
    }
}

#[cfg(not(any(loom, shuttle)))]
mod contention {
    use std::time::Duration;

    use sys::lock_stats::{self, Kind};
    use sys::sync::Arc;
    use sys::waits::{self, Wait};

    use crate::latch::Latch;

    const THREADS: usize = 8;
    const TIME: Duration = Duration::from_millis(400);

    /// Latches a few pages over and over, as scans do that also change them; returns the explained and the elapsed time.
    fn scan(pages: &[Latch]) -> (Duration, Duration) {
        let slot = waits::slot();
        let before = waits::thread(slot).unwrap();
        let queued_before = sys::clock::thread_run_queue(before.thread_id).unwrap();
        let start = sys::clock::monotonic();
        while sys::clock::monotonic() - start < TIME {
            for (at, page) in pages.iter().enumerate() {
                if at == 0 {
                    page.lock_exclusive();
                    page.unlock_exclusive();
                } else {
                    page.lock_shared();
                    page.unlock_shared();
                }
            }
        }
        let elapsed = sys::clock::monotonic() - start;
        let after = waits::thread(slot).unwrap();
        let queued = sys::clock::thread_run_queue(after.thread_id).unwrap() - queued_before;
        let waited = after.totals.since(&before.totals).of(Wait::Latch).nanos;
        let run = after.cpu.unwrap() - before.cpu.unwrap();
        (run + queued + Duration::from_nanos(waited), elapsed)
    }

    /// A profiler of locks once showed no wait at all while half of the processors' time went into unlocking.
    #[test]
    fn runs_spins_and_waits_explain_the_time_of_threads_that_fight_for_pages() {
        lock_stats::set(true);
        let pages: Arc<Vec<Latch>> = Arc::new((0..3).map(|_| Latch::new()).collect());
        let (sender, results) = std::sync::mpsc::channel();
        for _ in 0..THREADS {
            let (pages, sender) = (pages.clone(), sender.clone());
            sys::threads::spawn("scan", move || sender.send(scan(&pages)).unwrap()).unwrap();
        }
        drop(sender);
        let sums = results
            .iter()
            .fold((Duration::ZERO, Duration::ZERO), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        lock_stats::set(false);
        assert!(sums.0.as_secs_f64() >= 0.95 * sums.1.as_secs_f64(), "{sums:?}");
        let latches = lock_stats::all().into_iter().find(|one| one.kind == Kind::Latch).unwrap();
        assert!(latches.acquires > 1000 && latches.waits > 0, "{latches:?}");
        assert!(latches.spin_nanos + latches.wait_nanos > 0, "{latches:?}");
        assert!(latches.unlock_wakes == 0 || latches.unlock_nanos > 0, "{latches:?}");
    }
}
