//! Load by connections on a running server.
//!
//! `cargo run --profile fast -p mysql-protocol --example connects -- PORT PID [RATE [SECONDS [ATTACKERS [USER PASSWORD]]]]`:
//! RATE log-ins a second for SECONDS, while ATTACKERS connections never finish theirs. With a password the account is logged
//! in once through TLS first, so that the rest is quick where its method needs that.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "an example")]

#[path = "../tests/client/mod.rs"]
mod client;
#[path = "../tests/storm/mod.rs"]
mod storm;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use client::{Client, Options};
use storm::{Cuts, HalfOpen, Load, run, usage};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, process, ..] = &arguments[..] else {
        return Err("PORT PID [RATE [SECONDS [ATTACKERS [USER PASSWORD]]]]".into());
    };
    let number =
        |at: usize, default: u64| arguments.get(at).map_or(Ok(default), |text| text.parse::<u64>());
    let (rate, seconds, attackers) = (number(2, 2000)?, number(3, 30)?, number(4, 0)?);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse()?));
    let user = arguments.get(5).map_or("root", String::as_str);
    let password = arguments.get(6).map_or("", String::as_str);
    let options = |tls| Options {
        user,
        password,
        tls,
        plugin: "caching_sha2_password",
        ..Options::default()
    };
    if !password.is_empty() {
        let refused = Client::connect(address, &options(true)).err();
        refused.map_or(Ok(()), |refused| Err(refused.message))?;
    }
    let show = |when: &str| {
        let (threads, memory_kib) = usage(process);
        println!("{when}: {threads} threads, {} MiB", memory_kib / 1024);
    };
    show("before");
    let attack = (attackers > 0).then(|| HalfOpen::start(address, attackers as usize));
    std::thread::sleep(Duration::from_secs(if attackers > 0 { 2 } else { 0 }));
    let figures = run(&Load {
        address,
        options: options(false),
        rate: u32::try_from(rate)?,
        time: Duration::from_secs(seconds),
        workers: 16,
    });
    show("at the end");
    let rate = figures.served as f64 / figures.elapsed.as_secs_f64();
    println!("{rate:.0} connections/s, {figures:?}");
    let cuts = attack.map(HalfOpen::stop);
    if let Some(Cuts { opened, cut, oldest }) = cuts {
        println!("{opened} attacks, {cut} cut, the oldest after {oldest:?}");
    }
    std::thread::sleep(Duration::from_secs(15));
    show("15 s later");
    Ok(())
}
