//! Texts: round trips, and robustness against any input.

use proptest::prelude::*;
use types::geometry::{DEPTH_MAX, Shape};

use crate::{from_text, text};

fn written(shape: &Shape) -> String {
    let mut out = Vec::new();
    text::write(shape, &mut out);
    String::from_utf8(out).unwrap()
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text: Vec<u8>) {
        let _ = from_text::parse(&text);
    }

    #[test]
    fn what_is_read_is_written(words in prop::collection::vec(
        prop::sample::select(vec![
            "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "GEOMETRYCOLLECTION", "EMPTY", "(", ")", "(", ")", ",",
            " 1 2", "0 0,0 1,1 1,0 0", "-1.5e3 .5", "+", "e", "nan", " ",
        ]),
        0..12,
    )) {
        if let Some(shape) = from_text::parse(words.concat().as_bytes()) {
            let text = written(&shape);
            prop_assert_eq!(from_text::parse(text.as_bytes()), Some(shape), "{}", text);
        }
    }
}

#[test]
fn depth_is_bounded() {
    let nested = |depth: usize| {
        format!(
            "{}GEOMETRYCOLLECTION EMPTY{}",
            "GEOMETRYCOLLECTION(".repeat(depth),
            ")".repeat(depth)
        )
    };
    let deepest = from_text::parse(nested(DEPTH_MAX - 1).as_bytes()).unwrap();
    assert_eq!(deepest.depth(), DEPTH_MAX);
    assert_eq!(from_text::parse(nested(DEPTH_MAX).as_bytes()), None);
    assert_eq!(from_text::parse(nested(1_000_000).as_bytes()), None);
}
