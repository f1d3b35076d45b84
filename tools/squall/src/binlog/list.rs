//! What log files hold.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::PathBuf;

use binlog::{Event, GtidSet, decode};

use super::{read, time};

/// A line for each file, and what is wrong with those that are damaged.
///
/// # Errors
/// A file cannot be read to its end: the text has the others too.
pub(super) fn run(files: &[PathBuf]) -> Result<String, String> {
    let mut text = String::new();
    let mut is_well = true;
    for path in files {
        let (mut version, mut server_id, mut transactions, mut bytes) = (String::new(), 0, 0, 0);
        let (mut first, mut last) = (0, 0);
        let mut gtids = GtidSet::default();
        let read = read::file(path, &mut |place, header, body| {
            bytes = place.end;
            let event = decode(header.kind, body).map_err(|error| format!("{place}: {error}"))?;
            if let Event::FormatDescription(format) = event {
                version = String::from_utf8_lossy(format.server_version).into_owned();
                server_id = header.server_id;
            } else if let Event::Gtid(event) = event {
                transactions += 1;
                let seconds = u64::from(header.timestamp) * 1_000_000;
                let micros = event.immediate_commit_timestamp;
                last = if micros == 0 { seconds } else { micros };
                first = if first == 0 { last } else { first };
                if let Some(gtid) = event.gtid {
                    gtids.add(gtid.uuid, &gtid.tag, gtid.number);
                }
            }
            Ok(ControlFlow::Continue(()))
        });
        let name = path.display();
        let _ = write!(
            text,
            "{name}: {bytes} bytes, server {server_id} ({version}), {transactions} transactions"
        );
        if transactions > 0 {
            let _ = write!(text, ", {} to {} UTC", time::text(first), time::text(last));
            let _ = write!(text, ", {}", gtids.to_string().replace('\n', ""));
        }
        text.push('\n');
        if let Err(error) = read {
            is_well = false;
            let _ = writeln!(text, "{error}");
        }
    }
    if is_well { Ok(text) } else { Err(text) }
}
