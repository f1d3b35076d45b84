//! Printed statements: `cargo xtask fuzz` lets coverage guide it. `__fuzz__` keeps what it starts from.

use syntax::{ParseErrorKind, ParseOptions, parse_bytes, parse_one};

/// What parses prints to a text that parses to the same.
#[test]
fn statements() {
    bolero::check!().with_iterations(500).for_each(|text: &[u8]| {
        let options = ParseOptions::default();
        let Ok((tree, _)) = parse_bytes(text, &options) else { return };
        let Some(printed) = crate::print_statement(&tree, &Default::default()) else { return };
        // Bytes that are not UTF-8.
        if printed.contains('\u{fffd}') {
            return;
        }
        match parse_one(&printed, &options) {
            Ok((again, _)) => assert_eq!(again, tree, "{printed}"),
            Err(error) if error.kind == ParseErrorKind::TooDeep => {}
            Err(error) => panic!("{printed} / {error}"),
        }
    });
}
