//! The model by itself.

use sys::entropy::SplitMix;

use super::{Change, Look, Settled, State, Timeline};

#[test]
fn changes_keep_unique_keys_and_references() {
    let (mut random, mut state) = (SplitMix::new(1), State::new());
    let (mut failed, mut done) = (0, 0);
    for number in 0..5000 {
        let before = state.clone();
        match Change::draw(&mut random, number, false).apply(&mut state) {
            Ok(affected) => done += affected,
            Err(_) => {
                failed += 1;
                assert_eq!(state, before, "a statement that fails does nothing");
            }
        }
        let mut unique: Vec<u32> = state.items.values().map(|item| item.u).collect();
        unique.sort_unstable();
        assert!(unique.windows(2).all(|pair| pair[0] < pair[1]), "{unique:?}");
        assert!(state.notes.values().all(|note| state.items.contains_key(&note.item)));
    }
    assert!(failed > 300 && done > 3000, "{failed} {done}");
}

#[test]
fn a_reader_sees_one_state_of_those_that_can_be() {
    let state = |version| State { version, ..State::new() };
    let mut timeline = Timeline::new(state(0));
    timeline.begin(state(1));
    let rows = Look::Version.rows(1, &state(1));
    let seen = timeline.numbers().filter(|at| timeline.shows(*at, 1, Look::Version, &rows));
    let seen: Vec<usize> = seen.collect();
    assert_eq!(seen, [1]);
    timeline.see(&seen);
    assert_eq!(timeline.settle(|there| there.version == 0), Settled::Lost);
    assert!(!timeline.withdraw(), "a reader saw what was never committed");
    timeline.begin(state(2));
    assert_eq!(timeline.settle(|there| there.version == 2), Settled::Committed);
    timeline.begin(state(3));
    assert_eq!(timeline.settle(|there| there.version == 1), Settled::Neither);
}
