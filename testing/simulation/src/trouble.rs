//! What goes wrong in a life while clients work, at times that the seed decides.

use std::sync::Arc;
use std::time::Duration;

use sys::entropy::SplitMix;
use sys::simulation::{change_faults, cut_a_connection, fill_disks, stall_a_connection};

use crate::plan::Fault;
use crate::world::World;

/// Longest pause between two troubles.
const PAUSE_MICROS: u64 = 80_000;
/// After a disk has room again, statements may still fail for so long.
const GRACE: Duration = Duration::from_secs(3);
const DAY_SECONDS: u64 = 24 * 3600;

/// Those that come and go while the server runs.
const TROUBLES: [Fault; 8] = [
    Fault::ReadErrors,
    Fault::WriteErrors,
    Fault::SyncErrors,
    Fault::FullDisk,
    Fault::SlowDisk,
    Fault::Cut,
    Fault::SlowNetwork,
    Fault::Clock,
];

/// Makes trouble until the life is over or `is_calm`.
pub(crate) fn make(world: &Arc<World>, seed: u64) {
    let mut random = SplitMix::new(seed);
    let has = |fault: &Fault| world.has(*fault);
    let mut troubles: Vec<Fault> = TROUBLES.into_iter().filter(has).collect();
    // Failing files end most lives soon: some lives are without.
    if random.below(2) == 0 {
        let fails = [Fault::ReadErrors, Fault::WriteErrors, Fault::SyncErrors];
        troubles.retain(|fault| !fails.contains(fault));
    }
    if troubles.is_empty() {
        return;
    }
    loop {
        sleep(&mut random, PAUSE_MICROS);
        if world.know().is_calm || world.know().is_over {
            return;
        }
        let fault = troubles[random.below(troubles.len() as u64) as usize];
        world.log("trouble", format!("{:?} {fault:?}", sys::clock::monotonic()));
        cause(world, fault, &mut random);
    }
}

fn sleep(random: &mut SplitMix, micros: u64) {
    sys::threads::sleep(Duration::from_micros(random.below(micros)));
}

fn cause(world: &Arc<World>, fault: Fault, random: &mut SplitMix) {
    let rate = 1 + random.below(20);
    match fault {
        Fault::ReadErrors => {
            world.know().files_fail = true;
            change_faults(|faults| faults.failing_reads = rate);
            sleep(random, 20_000);
            change_faults(|faults| faults.failing_reads = 0);
        }
        Fault::WriteErrors => {
            world.know().files_fail = true;
            change_faults(|faults| faults.failing_writes = rate);
            sleep(random, 10_000);
            change_faults(|faults| faults.failing_writes = 0);
        }
        Fault::SyncErrors => {
            world.know().files_fail = true;
            change_faults(|faults| faults.failing_syncs = rate);
            sleep(random, 10_000);
            change_faults(|faults| faults.failing_syncs = 0);
        }
        Fault::FullDisk => {
            world.know().space_is_short_until = Duration::MAX;
            fill_disks(Some(random.below(12)));
            sleep(random, 300_000);
            fill_disks(None);
            world.know().space_is_short_until = sys::clock::monotonic() + GRACE;
        }
        Fault::SlowDisk => {
            let slowness = 2 + random.below(300) as u32;
            change_faults(|faults| faults.disk_slowness = slowness);
            sleep(random, 150_000);
            change_faults(|faults| faults.disk_slowness = 0);
        }
        Fault::Cut => {
            let _has_one = cut_a_connection();
        }
        Fault::SlowNetwork => {
            let slowness = 2 + random.below(500) as u32;
            let stalls = random.below(2) == 0;
            if stalls {
                let _has_one = stall_a_connection(Duration::from_micros(random.below(3_000_000)));
                return;
            }
            change_faults(|faults| faults.network_slowness = slowness);
            sleep(random, 200_000);
            change_faults(|faults| faults.network_slowness = 0);
        }
        Fault::Clock => {
            let by = [60, DAY_SECONDS, 400 * DAY_SECONDS][random.below(3) as usize];
            let offset = random.below(2 * by).cast_signed() - by.cast_signed();
            change_faults(|faults| faults.wall_offset_secs = offset);
        }
        Fault::Power | Fault::Kill | Fault::KillSession => {}
    }
}
