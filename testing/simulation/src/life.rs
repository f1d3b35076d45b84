//! A life of the server, from its start to an end that the seed decides.

use std::sync::Arc;
use std::time::Duration;

use sys::entropy::SplitMix;
use sys::simulation::change_faults;
use sys::threads::{Thread, spawn};

use crate::clients::{Changer, Session, Stop, Worker, lists, transfers};
use crate::model;
use crate::plan::{Fault, Plan};
use crate::verify;
use crate::world::{Bell, World};
use crate::{DATA, Server};

/// Simulated time that a start may take, and the work of all clients.
const START_MAX: Duration = Duration::from_secs(600);
const WORK_MAX: Duration = Duration::from_secs(2000);
/// Between two looks whether a server is up.
const ATTEMPT: Duration = Duration::from_millis(5);

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// By SHUTDOWN, when all clients have done their work.
    Clean,
    /// Power fails.
    Power,
    /// The process dies.
    Kill,
}

/// How a life ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// As planned.
    AsPlanned,
    /// The server ended by itself, with this exit code.
    ByItself(String),
}

/// A life.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    pub number: u32,
    pub end: End,
    /// It ends so long after its beginning, or a little after so many statements.
    after: Duration,
    statements: u64,
    linger: Duration,
    options: Vec<String>,
    seed: u64,
}

impl Life {
    /// The life of this number of a run.
    pub fn draw(plan: &Plan, number: u32) -> Life {
        let mut random = SplitMix::new(plan.seed.wrapping_mul(1009).wrapping_add(number.into()));
        let ends = [(Fault::Power, End::Power), (Fault::Kill, End::Kill)];
        let mut ends: Vec<End> = ends
            .iter()
            .filter(|(fault, _)| plan.faults.contains(fault))
            .flat_map(|(_, end)| [*end; 3])
            .collect();
        ends.push(End::Clean);
        let drawn = ends[random.below(ends.len() as u64) as usize];
        // The last one ends well, and everything is compared.
        let end = if number + 1 == plan.lives { End::Clean } else { drawn };
        let all = u64::from(plan.clients) * u64::from(plan.statements);
        let (statements, linger) = match end {
            End::Clean => (u64::MAX, Duration::ZERO),
            End::Power | End::Kill => {
                (1 + random.below(all.max(1)), Duration::from_micros(random.below(3000)))
            }
        };
        // Some lives end while the server starts, and recovers.
        let is_early = end != End::Clean && number > 0 && random.below(4) == 0;
        let after = match is_early {
            true => Duration::from_micros(random.below(60_000)),
            false => Duration::MAX,
        };
        let pool = [6, 8, 16][random.below(3) as usize];
        let mut options =
            vec![format!("--datadir={DATA}"), format!("--innodb-buffer-pool-size={pool}M")];
        if plan.seed.is_multiple_of(5) {
            options.push("--log-bin".to_owned());
        }
        Life { number, end, after, statements, linger, options, seed: random.next_u64() }
    }
}

/// Lives it, on a thread of the simulated machine.
pub(crate) fn live(world: &Arc<World>, life: &Life) -> Ended {
    {
        let mut known = world.know();
        (known.is_over, known.is_calm, known.files_fail) = (false, false, false);
        (known.statements_left, known.space_is_short_until) = (life.statements, Duration::ZERO);
        known.working = 0;
        known.counts.lives += 1;
    }
    let began = sys::clock::monotonic();
    let server = Server::begin(life.options.clone());
    let bell = Bell::new();
    if life.number > 0 {
        let (theirs, seed) = (world.clone(), life.seed);
        drop(spawn("trouble", move || crate::trouble::make(&theirs, seed)));
    }
    match wait_for_start(world, life, &server, began) {
        Start::IsUp => {}
        Start::LifeIsOver => return Ended::AsPlanned,
        Start::Ended(code) => return Ended::ByItself(code),
    }
    if prepare(world, &bell, life).is_err() {
        return finish(&server);
    }
    let threads = start_clients(world, &bell, life);
    if let Some(ended) = wait_for_work(world, &server, &bell) {
        return ended;
    }
    if life.end != End::Clean {
        sys::threads::sleep(life.linger);
        return Ended::AsPlanned;
    }
    world.know().is_calm = true;
    threads.into_iter().for_each(Thread::join);
    calm_down();
    let checked = verify::at_end_of_life(world, &bell);
    if checked.is_ok() && !server.join() {
        world.violate("a shutdown succeeds", "the server's exit code says that it failed");
    }
    Ended::AsPlanned
}

/// Nothing goes wrong any more.
fn calm_down() {
    sys::simulation::fill_disks(None);
    change_faults(|faults| {
        let wall_offset_secs = faults.wall_offset_secs;
        *faults = sys::simulation::Faults { wall_offset_secs, ..Default::default() };
    });
}

fn finish(server: &Server) -> Ended {
    server.ended().map_or(Ended::AsPlanned, Ended::ByItself)
}

enum Start {
    IsUp,
    LifeIsOver,
    Ended(String),
}

fn wait_for_start(world: &World, life: &Life, server: &Server, began: Duration) -> Start {
    loop {
        let age = sys::clock::monotonic().saturating_sub(began);
        match server.is_up() {
            _ if age >= life.after => return Start::LifeIsOver,
            Ok(true) => return Start::IsUp,
            Err(code) => return Start::Ended(code),
            Ok(false) if age > START_MAX => {
                world.violate("a server starts", format!("it is not up after {age:?}"));
                return Start::LifeIsOver;
            }
            Ok(false) => sys::threads::sleep(ATTEMPT.min(life.after.saturating_sub(age))),
        }
    }
}

/// The first log-in of a life goes over the socket (over TCP the password would be encrypted by a key that no seed decides); in the first life it makes
/// the tables.
fn prepare(world: &Arc<World>, bell: &Bell, life: &Life) -> Result<(), Stop> {
    let mut session = Session::new("first", world, bell, life.seed);
    session.connect_over_socket()?;
    if life.number == 0 {
        session.must("CREATE DATABASE d")?;
        session.must("USE d")?;
        let tables = model::TABLES.into_iter().chain([lists::TABLE, transfers::TABLE]);
        for sql in tables {
            session.must(sql)?;
        }
        session.must(&transfers::rows())?;
        for owner in 0..world.plan.clients {
            Worker::create(&mut session, owner)?;
        }
    }
    world.know().statements_left = life.statements;
    Ok(())
}

fn start_clients(world: &Arc<World>, bell: &Bell, life: &Life) -> Vec<Thread> {
    let mut threads = Vec::new();
    let seed = |number: u32| life.seed.wrapping_add(u64::from(number) * 7919);
    for number in 0..world.plan.clients {
        let name = format!("client {number}");
        let worker = Worker::new(Session::new(&name, world, bell, seed(number)), number);
        world.know().working += 1;
        threads.push(spawn(&name, move || worker.work()).expect("a thread"));
    }
    let session = Session::new("changer", world, bell, seed(world.plan.clients));
    if Changer::has_work(&session) {
        world.know().working += 1;
        let changer = Changer::new(session);
        threads.push(spawn("changer", move || changer.work()).expect("a thread"));
    }
    threads
}

/// Waits until the life is to end. An end that nobody planned is returned.
fn wait_for_work(world: &World, server: &Server, bell: &Bell) -> Option<Ended> {
    const LOOK: Duration = Duration::from_millis(50);
    let began = sys::clock::monotonic();
    loop {
        {
            let known = world.know();
            if known.is_over {
                return Some(Ended::AsPlanned);
            }
            if known.working == 0 || known.statements_left == 0 {
                return None;
            }
        }
        if let Some(code) = server.ended() {
            return Some(Ended::ByItself(code));
        }
        if sys::clock::monotonic().saturating_sub(began) > WORK_MAX {
            let working = world.know().working;
            world.violate("clients come to their end", format!("{working} still work"));
            return Some(Ended::AsPlanned);
        }
        bell.wait(LOOK);
    }
}
