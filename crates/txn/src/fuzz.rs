//! Decoders on any bytes: `cargo xtask fuzz` lets coverage guide them. `__fuzz__` keeps what they start from.

use crate::checkpoint::{parse, parse_names, parse_subjects, seal};

/// The file of unsettled transactions, with the checksum that it would need.
#[test]
fn unsettled() {
    bolero::check!().with_iterations(1_000).for_each(|bytes: &[u8]| {
        let _ = parse(bytes);
        let mut image = [&[0; 4], bytes].concat();
        seal(&mut image);
        if let Some(all) = parse(&image) {
            assert!(all.iter().map(|one| one.bytes.len()).sum::<usize>() <= bytes.len());
        }
        let _ = parse_subjects(bytes);
        if let Some(names) = parse_names(bytes) {
            assert!(names.len() <= bytes.len());
        }
    });
}
