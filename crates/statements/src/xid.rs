//! The names of XA branches.

use stdx::bytes::Reader;
use syntax::ast::Xid;

/// The name by which engines know a branch: format (8 bytes, lowest first), length of the first part (1), both parts.
pub fn name_of(xid: &Xid) -> Vec<u8> {
    let mut name = xid.format.to_le_bytes().to_vec();
    name.push(xid.gtrid.len() as u8);
    name.extend_from_slice(&xid.gtrid);
    name.extend_from_slice(&xid.bqual);
    name
}

/// A branch's identifier as statements write it; the format only when it is not the usual one.
pub fn as_written(xid: &Xid) -> String {
    let quoted = |part: &[u8]| {
        let is_plain = part.iter().all(|byte| matches!(byte, b' '..=b'~') && *byte != b'\'');
        match is_plain {
            true => format!("'{}'", String::from_utf8_lossy(part)),
            false => part.iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02X}")),
        }
    };
    let first = quoted(&xid.gtrid);
    match (&*xid.bqual, xid.format) {
        ([], 1) => first,
        (second, 1) => format!("{first},{}", quoted(second)),
        (second, format) => format!("{first},{},{format}", quoted(second)),
    }
}

/// The branch that has a name.
pub fn xid_of(name: &[u8]) -> Option<Xid> {
    let mut reader = Reader::new(name);
    let format = reader.u64()?;
    let length = usize::from(reader.u8()?);
    let (gtrid, bqual) = reader.rest().split_at_checked(length)?;
    Some(Xid { gtrid: gtrid.into(), bqual: bqual.into(), format })
}
