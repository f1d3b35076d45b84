//! Load generator: mysqlslap's and drizzleslap's options, and sysbench's OLTP workloads built in.
//!
//! `squall-slap -a` invents a schema and statements, `-q` runs given ones, `--workload` runs an OLTP mix on sysbench's tables, or
//! what flexAsynch does.

mod flexasync;
mod generate;
mod http;
mod oltp;
mod options;
mod random;
mod report;
mod slap;

use std::process::ExitCode;

use clap::Parser;
use sys::machine::ProcessorTimes;

fn main() -> ExitCode {
    let options = options::Options::parse();
    if options.machine {
        report::print_machine(None);
        return ExitCode::SUCCESS;
    }
    let before = ProcessorTimes::read();
    let run = match options.workload {
        Some(options::Workload::Flexasync) => flexasync::run,
        Some(_) => oltp::run,
        None => slap::run,
    };
    match options.check().and_then(|()| run(&options)) {
        Ok(()) => {
            if options.has_report() {
                report::print_machine(Some(before));
            }
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("squall-slap: {message}");
            ExitCode::FAILURE
        }
    }
}
