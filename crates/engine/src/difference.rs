//! Differences that turn a later version of a row's body into an earlier one: `docs/format/wal.md`, differences.

use stdx::bytes::{Reader, put_short_blob, put_varint};

/// Equal bytes between two runs that cost less than the head of another piece.
const GAP_BYTES: usize = size_of::<u32>();

/// Length of the common beginning.
#[inline]
fn equal_front(one: &[u8], other: &[u8]) -> usize {
    let length = one.len().min(other.len());
    let (ones, _) = one[..length].as_chunks::<8>();
    let (others, _) = other[..length].as_chunks::<8>();
    let start = ones.iter().zip(others).take_while(|(a, b)| a == b).count() * 8;
    let rest = one[start..length].iter().zip(&other[start..length]);
    start + rest.take_while(|(a, b)| a == b).count()
}

/// Length of the common end.
#[inline]
fn equal_back(one: &[u8], other: &[u8]) -> usize {
    let length = one.len().min(other.len());
    let (_, ones) = one[one.len() - length..].as_rchunks::<8>();
    let (_, others) = other[other.len() - length..].as_rchunks::<8>();
    let end = ones.iter().rev().zip(others.iter().rev()).take_while(|(a, b)| a == b).count() * 8;
    let rest = one[..one.len() - end].iter().rev().zip(other[..other.len() - end].iter().rev());
    end + rest.take_while(|(a, b)| a == b).count()
}

/// The end of the run of different bytes that starts at `at`; `None` if it extends to the end of one of the two.
#[inline]
fn run_end(old: &[u8], new: &[u8], at: usize) -> Option<usize> {
    let mut windows = at;
    while let (Some(a), Some(b)) = (old[windows..].first_chunk(), new[windows..].first_chunk()) {
        let different = u32::from_le_bytes(*a) ^ u32::from_le_bytes(*b);
        // No run of equal bytes begins before the last difference in the window.
        let equal = different.leading_zeros() as usize / 8;
        if equal == GAP_BYTES {
            return Some(windows);
        }
        windows += GAP_BYTES - equal;
    }
    None
}

/// Appends the difference that turns `new` into `old`.
pub(crate) fn write_difference(old: &[u8], new: &[u8], out: &mut Vec<u8>) {
    let front = equal_front(old, new);
    let back = equal_back(&old[front..], &new[front..]);
    let (old, new) = (&old[front..old.len() - back], &new[front..new.len() - back]);
    let (mut at, mut copied) = (0, front);
    while at < old.len().max(new.len()) {
        let end = run_end(old, new, at);
        let (old_end, new_end) = end.map_or((old.len(), new.len()), |end| (end, end));
        put_varint(out, copied as u64);
        put_varint(out, (new_end - at) as u64);
        put_short_blob(out, &old[at..old_end]);
        let Some(end) = end else { return };
        copied = equal_front(&old[end..], &new[end..]);
        at = end + copied;
    }
}

/// Applies `difference` to `new` and appends the result. `None` when it is damaged.
pub(crate) fn apply_difference(difference: &[u8], new: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (mut reader, mut rest) = (Reader::new(difference), new);
    while !reader.is_empty() {
        let (copied, removed) = (reader.varint()?, reader.varint()?);
        let (same, tail) = rest.split_at_checked(usize::try_from(copied).ok()?)?;
        out.extend_from_slice(same);
        rest = tail.get(usize::try_from(removed).ok()?..)?;
        out.extend_from_slice(reader.short_blob()?);
    }
    out.extend_from_slice(rest);
    Some(())
}

#[cfg(test)]
mod tests;
