//! Flame graphs: each frame is a box as wide as its share, on the box of the frame that called it. No scripts: the whole graph is text and boxes, and a box says
//! its whole name and share when the mouse is over it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::folded::Folded;

/// Nanoseconds in words.
fn millis(nanos: u64) -> String {
    format!("{}.{:03} ms", nanos / 1_000_000, nanos / 1_000 % 1_000)
}

const WIDTH: f64 = 1200.0;
const ROW: usize = 17;
const MARGIN: usize = 10;
/// Of a letter, about.
const LETTER_WIDTH: f64 = 6.6;
/// Narrower boxes are left out.
const WIDTH_MIN: f64 = 0.3;

#[derive(Default)]
struct Node {
    /// With those above it.
    count: u64,
    callees: BTreeMap<String, Node>,
}

impl Node {
    fn depth(&self) -> usize {
        1 + self.callees.values().map(Node::depth).max().unwrap_or(0)
    }
}

/// The graph of nanoseconds as an SVG document.
pub(crate) fn draw(folded: &Folded) -> String {
    draw_counts(folded, millis)
}

/// The graph of samples.
pub(crate) fn draw_samples(folded: &Folded) -> String {
    draw_counts(folded, |count| format!("{count} samples"))
}

fn draw_counts(folded: &Folded, amount: fn(u64) -> String) -> String {
    let mut root = Node::default();
    for (stack, count) in folded.stacks() {
        root.count += count;
        let mut node = &mut root;
        for name in stack.split(';') {
            node = node.callees.entry(name.to_owned()).or_default();
            node.count += count;
        }
    }
    let depth = root.depth();
    let height = depth * ROW + 2 * MARGIN;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"monospace\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    let whole = root.count.max(1);
    let mut drawing = Drawing { out: &mut out, amount, whole, depth };
    drawing.row("all", &root, 0, 0);
    out.push_str("</svg>\n");
    out
}

struct Drawing<'a> {
    out: &'a mut String,
    /// A count in words.
    amount: fn(u64) -> String,
    whole: u64,
    /// Rows in all.
    depth: usize,
}

impl Drawing<'_> {
    fn scaled(&self, count: u64) -> f64 {
        (WIDTH - 2.0 * MARGIN as f64) * count as f64 / self.whole as f64
    }

    /// A frame that begins after `before`, and those that it called above it.
    fn row(&mut self, name: &str, node: &Node, level: usize, before: u64) {
        let width = self.scaled(node.count);
        if width < WIDTH_MIN {
            return;
        }
        let x = MARGIN as f64 + self.scaled(before);
        let y = MARGIN + (self.depth - 1 - level) * ROW;
        let percent = node.count as f64 * 100.0 / self.whole as f64;
        let (whole_name, amount) = (escaped(name), (self.amount)(node.count));
        let (colour, height) = (colour(name), ROW - 1);
        let _always = writeln!(
            self.out,
            "<g><title>{whole_name} ({amount}, {percent:.1}%)</title><rect x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"{height}\" rx=\"2\" fill=\"{colour}\"/>{}</g>",
            label(name, (x, y), width)
        );
        let mut start = before;
        for (name, callee) in &node.callees {
            self.row(name, callee, level + 1, start);
            start += callee.count;
        }
    }
}

/// As much of a name as fits its box.
fn label(name: &str, (x, y): (f64, usize), width: f64) -> String {
    let fits = ((width - 6.0) / LETTER_WIDTH).max(0.0) as usize;
    if fits < 3 {
        return String::new();
    }
    let shown = match name.chars().count() <= fits {
        true => name.to_owned(),
        false => name.chars().take(fits - 2).chain("..".chars()).collect(),
    };
    let (x, y) = (x + 3.0, y + ROW - 5);
    format!("<text x=\"{x:.1}\" y=\"{y}\">{}</text>", escaped(&shown))
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            letter if letter.is_control() => out.push(' '),
            letter => out.push(letter),
        }
    }
    out
}

/// Warm colours for work, a cold one for waits; the same for a name each time.
fn colour(name: &str) -> String {
    let hash =
        name.bytes().fold(0_u32, |hash, byte| hash.wrapping_mul(16_777_619) ^ u32::from(byte));
    let (red, green, blue) = match name.starts_with("wait: ") {
        true => (90 + hash % 30, 140 + hash / 31 % 40, 210 + hash / 997 % 40),
        false => (205 + hash % 50, 100 + hash / 53 % 110, 40 + hash / 997 % 40),
    };
    format!("#{red:02x}{green:02x}{blue:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_has_a_box_for_each_frame_and_is_well_formed() {
        let mut folded = Folded::default();
        folded.add("Query;Filter: (a < 5 & b)", 3_000_000);
        folded.add("Query;Filter: (a < 5 & b);Table scan on t", 1_000_000);
        folded.add("Query;too small", 1);
        let graph = draw(&folded);
        assert_eq!(graph.matches("<g>").count(), 4, "{graph}");
        assert_eq!(graph.matches("</g>").count(), 4);
        assert!(graph.contains("<title>Filter: (a &lt; 5 &amp; b) (4.000 ms, 100.0%)</title>"));
        assert!(graph.contains("<title>Table scan on t (1.000 ms, 25.0%)</title>"));
        assert!(graph.starts_with("<svg ") && graph.ends_with("</svg>\n"));
    }

    #[test]
    fn an_empty_profile_is_an_empty_graph() {
        let graph = draw(&Folded::default());
        assert!(graph.starts_with("<svg ") && !graph.contains("<g>"));
    }
}
