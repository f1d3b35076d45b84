//! The profile of a connection from looks at the thread that runs its statements.

use plugin_api::{ConnectionProfile, ProcessView, ProfileFrame};

use crate::sample::Taker;

/// Frames at most; what has no frame any more belongs to the one above.
const FRAMES_MAX: usize = 16_384;

/// The looks so far, each counted in all frames of its stack.
#[derive(Default)]
pub(crate) struct Looks {
    taker: Taker,
    whole: ProfileFrame,
    frames: usize,
}

impl ConnectionProfile for Looks {
    fn look(&mut self, connection: Option<&ProcessView>) {
        match connection.and_then(|view| Some((view, self.taker.take(view, 0)?))) {
            Some((view, sample)) => {
                let text = &*sample.digest.text;
                let statement = if text.is_empty() { view.command } else { text };
                self.count(statement, &sample.stack);
            }
            None => self.count("idle", ""),
        }
    }

    fn end(self: Box<Self>, nanos: u64) -> ProfileFrame {
        let mut whole = self.whole;
        whole.name = "connection".to_owned();
        whole.parts.sort_by_key(|statement| std::cmp::Reverse(statement.loops));
        let looks = whole.loops.max(1);
        give_time(&mut whole, nanos, looks);
        whole
    }
}

impl Looks {
    fn count(&mut self, statement: &str, stack: &str) {
        let mut frame = &mut self.whole;
        frame.loops += 1;
        let below = stack.split(';').filter(|name| !name.is_empty());
        for name in std::iter::once(statement).chain(below) {
            let at = match frame.parts.iter().position(|part| part.name == name) {
                Some(at) => at,
                None if self.frames >= FRAMES_MAX => return,
                None => {
                    self.frames += 1;
                    frame.parts.push(ProfileFrame { name: name.to_owned(), ..Default::default() });
                    frame.parts.len() - 1
                }
            };
            frame = &mut frame.parts[at];
            frame.loops += 1;
        }
    }
}

/// Each look stands for the same part of the time.
fn give_time(frame: &mut ProfileFrame, nanos: u64, looks: u64) {
    let own = u128::from(nanos) * u128::from(frame.loops) / u128::from(looks);
    frame.nanos = u64::try_from(own).unwrap_or(u64::MAX);
    frame.parts.iter_mut().for_each(|part| give_time(part, nanos, looks));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_share_the_time_evenly() {
        let mut looks = Box::<Looks>::default();
        looks.look(None);
        looks.count("SELECT ?", "Query;Scan");
        looks.count("SELECT ?", "Query;Scan;wait: row lock");
        looks.count("SELECT ?", "optimize");
        let whole = looks.end(4_000);
        let shown = |frame: &ProfileFrame| (frame.name.clone(), frame.nanos, frame.loops);
        assert_eq!(shown(&whole), ("connection".into(), 4_000, 4));
        let statement = &whole.parts[0];
        assert_eq!(shown(statement), ("SELECT ?".into(), 3_000, 3));
        assert_eq!(shown(&whole.parts[1]), ("idle".into(), 1_000, 1));
        let scan = &statement.parts[0].parts[0];
        assert_eq!((shown(scan), scan.own_nanos()), (("Scan".into(), 2_000, 2), 1_000));
    }

    #[test]
    fn frames_have_a_bound() {
        let mut looks = Looks::default();
        for number in 0..=FRAMES_MAX {
            looks.count(&number.to_string(), "");
        }
        assert_eq!(
            (looks.whole.parts.len(), looks.whole.loops),
            (FRAMES_MAX, FRAMES_MAX as u64 + 1)
        );
    }
}
