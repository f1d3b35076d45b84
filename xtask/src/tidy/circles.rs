//! Files of a crate that import each other in a cycle: none of them can be read or moved without the others. `cargo xtask circles` prints
//! them, with the imports that form the cycle.

use std::collections::{BTreeMap, BTreeSet};

use super::imports::{self, Imports};
use super::ratchet::{Better, Ratchet};
use super::source::{self, Source};
use crate::layers::workspace;
use crate::run;

/// Files that may form a circle.
const TARGET: u64 = 8;
/// Imports printed as those whose removal helps most.
const CUTS: usize = 12;

/// The imports of one crate.
struct Graph<'a> {
    krate: &'a str,
    sources: Vec<&'a Source>,
    imports: Imports,
}

/// Edges between files.
type Edges = BTreeSet<(usize, usize)>;

impl Graph<'_> {
    fn edges(&self) -> Edges {
        self.imports.keys().copied().collect()
    }

    /// Path of a file inside the crate's `src`.
    fn file(&self, file: usize) -> &str {
        let name = &self.sources[file].name;
        name.split_once("/src/").map_or(name.as_str(), |(_, inside)| inside)
    }
}

fn graphs(sources: &[Source]) -> Vec<Graph<'_>> {
    let mut by_crate: BTreeMap<&str, Vec<&Source>> = BTreeMap::new();
    for source in sources {
        by_crate.entry(&source.krate).or_default().push(source);
    }
    let graph = |(krate, sources): (_, Vec<_>)| {
        let imports = imports::of_crate(&sources);
        Graph { krate, sources, imports }
    };
    by_crate.into_iter().map(graph).collect()
}

/// The circles of a graph, largest first, each sorted.
fn circles(edges: &Edges) -> Vec<Vec<usize>> {
    let reachable: BTreeMap<usize, BTreeSet<usize>> = edges
        .iter()
        .map(|(from, _)| *from)
        .collect::<BTreeSet<usize>>()
        .into_iter()
        .map(|file| (file, reached_from(file, edges)))
        .collect();
    let reaches =
        |from: usize, to: usize| reachable.get(&from).is_some_and(|files| files.contains(&to));
    let mut circles: Vec<Vec<usize>> = Vec::new();
    for file in reachable.keys().copied().filter(|file| reaches(*file, *file)) {
        match circles.iter_mut().find(|c| reaches(c[0], file) && reaches(file, c[0])) {
            Some(circle) => circle.push(file),
            None => circles.push(vec![file]),
        }
    }
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

/// The files to which `file` leads over one edge or more.
fn reached_from(file: usize, edges: &Edges) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut pending = vec![file];
    while let Some(from) = pending.pop() {
        for (_, to) in edges.range((from, 0)..=(from, usize::MAX)) {
            if reached.insert(*to) {
                pending.push(*to);
            }
        }
    }
    reached
}

/// The largest circle of each crate.
pub fn ratchets(sources: &[Source]) -> Vec<Ratchet> {
    let ratchet = |graph: Graph| {
        let largest = circles(&graph.edges()).into_iter().next().unwrap_or_default();
        Ratchet {
            name: format!("circle.{}", graph.krate.split('/').next_back().unwrap_or_default()),
            better: Better::Lower,
            value: largest.len() as u64,
            target: TARGET,
            places: largest.iter().map(|file| graph.file(*file).to_owned()).collect(),
        }
    };
    graphs(sources).into_iter().map(ratchet).collect()
}

/// Prints the circles of the crates named in `only`, or the sizes of all.
///
/// # Errors
/// A file is not Rust, or a crate is not there.
pub fn print(only: &[String]) -> Result<(), String> {
    let root = run::root();
    let mut sources = Vec::new();
    for krate in workspace()? {
        let product = krate.folder.starts_with("crates/") || krate.folder.starts_with("plugins/");
        if product && (only.is_empty() || only.contains(&krate.name)) {
            sources.extend(source::of_crate(&root, &krate.folder)?);
        }
    }
    if sources.is_empty() {
        return Err(format!("no crate {}", only.join(", ")));
    }
    for graph in graphs(&sources) {
        let found = circles(&graph.edges());
        let sizes: Vec<String> = found.iter().map(|circle| circle.len().to_string()).collect();
        if !found.is_empty() || !only.is_empty() {
            println!("{:<30} {}", graph.krate, sizes.join(" "));
        }
        if !only.is_empty() {
            found.iter().for_each(|circle| print_circle(&graph, circle));
        }
    }
    Ok(())
}

fn print_circle(graph: &Graph, circle: &[usize]) {
    println!("\ncircle of {} files", circle.len());
    let inside = |from: &usize, to: &usize| circle.contains(from) && circle.contains(to);
    for file in circle {
        println!("  {}", graph.file(*file));
        for ((_, to), names) in graph.imports.range((*file, 0)..=(*file, usize::MAX)) {
            if inside(file, to) {
                println!("    -> {}: {}", graph.file(*to), short(names));
            }
        }
    }
    let edges: Edges = graph.edges().into_iter().filter(|(from, to)| inside(from, to)).collect();
    if circle.len() < 3 {
        return;
    }
    println!("  largest circle without the imports of one file by the others:");
    for (size, file) in without_imported(circle, &edges) {
        println!("    {size:>3} {}", graph.file(file));
    }
    println!("  largest circle without one import:");
    for (size, (from, to)) in without_edge(&edges) {
        let names = &graph.imports[&(from, to)];
        println!("    {size:>3} {} -> {}: {}", graph.file(from), graph.file(to), short(names));
    }
}

/// Last parts of the paths.
fn short(names: &BTreeSet<String>) -> String {
    let last = |name: &String| name.rsplit("::").next().unwrap_or_default().to_owned();
    let names: BTreeSet<String> = names.iter().map(last).collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

fn largest(edges: &Edges) -> usize {
    circles(edges).first().map_or(0, Vec::len)
}

/// For each file, the size of the largest circle left when no file imports it, smallest first.
fn without_imported(circle: &[usize], edges: &Edges) -> Vec<(usize, usize)> {
    let size = |file: usize| {
        let left = edges.iter().copied().filter(|(_, to)| *to != file).collect();
        (largest(&left), file)
    };
    let mut sizes: Vec<(usize, usize)> = circle.iter().copied().map(size).collect();
    sizes.sort_unstable();
    sizes.truncate(CUTS);
    sizes
}

/// For each edge, the size of the largest circle that is left without it, smallest first.
fn without_edge(edges: &Edges) -> Vec<(usize, (usize, usize))> {
    let size = |edge: (usize, usize)| {
        let left = edges.iter().copied().filter(|other| *other != edge).collect();
        (largest(&left), edge)
    };
    let mut sizes: Vec<_> = edges.iter().copied().map(size).collect();
    sizes.sort_unstable();
    sizes.truncate(CUTS);
    sizes
}

#[cfg(test)]
mod tests {
    use super::super::source::sample;
    use super::*;

    #[test]
    fn a_circle_is_found() {
        let sources = [
            sample("lib.rs", "mod a; mod b; mod c; mod d; pub use a::A;"),
            sample("a.rs", "use crate::b::B; use crate::d::D; pub struct A;"),
            sample("b.rs", "use crate::c::C; pub struct B;"),
            sample("c.rs", "use crate::A; pub struct C;"),
            sample("d.rs", "pub struct D;"),
        ];
        let found = ratchets(&sources);
        assert_eq!((found[0].name.as_str(), found[0].value), ("circle.a", 3));
        assert_eq!(found[0].places, ["a.rs", "b.rs", "c.rs"]);
    }

    #[test]
    fn two_circles_are_two() {
        let edges = Edges::from([(0, 1), (1, 0), (1, 2), (2, 3), (3, 4), (4, 2), (5, 5)]);
        assert_eq!(circles(&edges), vec![vec![2, 3, 4], vec![0, 1], vec![5]]);
        assert_eq!(without_edge(&edges)[0], (2, (2, 3)));
    }
}
