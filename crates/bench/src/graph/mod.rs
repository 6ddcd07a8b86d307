//! `bench graph`: the edges of a real graph as items.
//!
//! An edge is an item. Its key consists of the numbers of its source and its destination, 8 bytes each; its value is
//! its position in the list. So the edges out of a vertex share a prefix of a semi-sorted keyspace. A map in memory
//! sees the same operations, and every answer must agree with it.

mod crates;
mod edges;

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::error::BenchError;
use crate::groups::{Groups, GroupsOptions, Work, key};
use crate::measurement::Measurement;
use crate::random::Random;
use crate::report::Report;
use edges::Edges;

/// Options of `bench graph`.
#[derive(Clone, Debug, clap::Args)]
pub struct GraphOptions {
    /// Edge list: lines `source destination [anything]`, separated by blanks, tabs or commas; `#` or `%` starts a
    /// comment
    #[arg(required_unless_present = "crates", conflicts_with = "crates")]
    pub input: Option<PathBuf>,
    /// Use Cargo's copy of the registry's index: crates, versions, dependencies and features
    #[arg(long)]
    pub crates: bool,
    /// What is done with it.
    #[command(flatten)]
    pub groups: GroupsOptions,
}

const SUBDIRECTORY: &str = "alluvium-bench-graph";
/// Number of a phase's operations per search or per vertex removed.
const OPERATIONS_EACH: u64 = 100;

/// The store, and the data from which operations are chosen.
struct Graph {
    groups: Groups,
    edges: Edges,
    vertices: u64,
    copies: u64,
    random: Random,
}

type Phase = fn(&mut Graph, u64) -> Result<Work, BenchError>;

/// Loads the edges, lists neighbours, looks up edges, searches two hops deep, adds and removes edges, and removes
/// vertices.
///
/// # Errors
/// An answer that differs from the map's is a wrong answer; input that is not a graph is [`BenchError::Input`].
pub fn run(options: &GraphOptions, report: &mut Report) -> Result<(), BenchError> {
    let edges = match &options.input {
        Some(path) => Edges::read(path)?,
        None => crates::edges_below(&crates::cargo_home().ok_or_else(|| {
            BenchError::Usage("neither CARGO_HOME nor HOME is set: set one of them".to_owned())
        })?)?,
    };
    let directory = report.directories().create(&options.groups.dir, SUBDIRECTORY)?;
    let groups = Groups::create(directory, "edges", &options.groups.plan, false)?;
    let edges_each = edges.as_slice().iter().collect::<BTreeSet<_>>().len() as u64;
    let vertices = edges.vertices() * options.groups.copies;
    let random = Random::new(options.groups.seed, 1);
    let mut graph = Graph { groups, edges, vertices, copies: options.groups.copies, random };
    let few = (options.groups.operations / OPERATIONS_EACH).max(1);
    let phases: [(&str, u64, Phase); 8] = [
        ("load", 1, Graph::load),
        ("neighbours", options.groups.operations, Graph::neighbours),
        ("has-edge", options.groups.operations, Graph::has_edge),
        ("has-no-edge", options.groups.operations, Graph::has_no_edge),
        ("two-hops", few, Graph::two_hops),
        ("add-remove", options.groups.operations, Graph::add_and_remove),
        ("remove-vertices", few, Graph::remove_vertices),
        ("check", 1, Graph::check),
    ];
    for (case, operations, phase) in phases {
        let before = graph.groups.before();
        let work = phase(&mut graph, operations)?;
        let mut measurement = Measurement::new("graph", case)
            .config("plan", options.groups.plan.clone())
            .config("copies", options.groups.copies)
            .config("vertices", graph.vertices)
            .config("lines", graph.edges.as_slice().len() as u64 * options.groups.copies)
            .config("edges", edges_each * options.groups.copies);
        if case == "two-hops" {
            measurement = measurement
                .metric("searches", operations)
                .metric("searches_per_s", operations as f64 / work.elapsed.as_secs_f64().max(1e-9));
        }
        report.add(graph.groups.measured(measurement, work, &before)?)?;
    }
    graph.groups.discard()
}

fn edge(source: u64, destination: u64) -> Vec<u8> {
    key(source, &destination.to_be_bytes())
}

/// The destination of the edge that has this key.
fn destination(key: &[u8]) -> Option<u64> {
    key.last_chunk().copied().map(u64::from_be_bytes)
}

impl Graph {
    fn load(&mut self, _: u64) -> Result<Work, BenchError> {
        let mut work = Work::default();
        for copy in 0..self.copies {
            let first = copy * self.edges.vertices();
            for (at, (source, destination)) in self.edges.as_slice().iter().enumerate() {
                let value = (at as u64).to_le_bytes().to_vec();
                self.groups.insert(edge(first + source, first + destination), value, &mut work)?;
            }
        }
        Ok(work)
    }

    /// All vertices are equally likely, whether or not they have outgoing edges.
    fn neighbours(&mut self, operations: u64) -> Result<Work, BenchError> {
        let mut work = Work::default();
        for _ in 0..operations {
            self.groups.list(self.random.below(self.vertices), &mut work)?;
        }
        Ok(work)
    }

    fn has_edge(&mut self, operations: u64) -> Result<Work, BenchError> {
        let mut work = Work::default();
        for _ in 0..operations {
            let Some(edge) = self.any_edge() else { break };
            self.groups.get(&edge, &mut work)?;
        }
        Ok(work)
    }

    /// Looks up absent edges of vertices that have outgoing edges.
    fn has_no_edge(&mut self, operations: u64) -> Result<Work, BenchError> {
        let mut work = Work::default();
        for _ in 0..operations {
            let source = self.any_source();
            let absent = edge(source, self.vertices + self.random.below(self.vertices));
            self.groups.get(&absent, &mut work)?;
        }
        Ok(work)
    }

    /// Lists the neighbours of a vertex and of each of them.
    fn two_hops(&mut self, searches: u64) -> Result<Work, BenchError> {
        let mut work = Work::default();
        for _ in 0..searches {
            let start = self.any_source();
            let mut reached = BTreeSet::from([start]);
            let mut last = vec![start];
            for _ in 0..2 {
                let mut next = Vec::new();
                for vertex in last {
                    let neighbours = self.groups.list(vertex, &mut work)?;
                    let ends = neighbours.iter().filter_map(|(key, _)| destination(key));
                    next.extend(ends.filter(|end| reached.insert(*end)));
                }
                last = next;
            }
        }
        Ok(work)
    }

    /// Alternately adds an edge between any two vertices and removes another.
    fn add_and_remove(&mut self, operations: u64) -> Result<Work, BenchError> {
        let mut work = Work::default();
        for turn in 0..operations {
            if turn.is_multiple_of(2) {
                let (source, end) = (self.random.below(self.vertices), self.random.below(self.vertices));
                self.groups.insert(edge(source, end), turn.to_le_bytes().to_vec(), &mut work)?;
            } else if let Some(edge) = self.any_edge() {
                self.groups.remove(&edge, &mut work)?;
            }
        }
        Ok(work)
    }

    fn remove_vertices(&mut self, vertices: u64) -> Result<Work, BenchError> {
        let mut work = Work::default();
        for _ in 0..vertices {
            let source = self.any_source();
            self.groups.remove_group(source, &mut work)?;
        }
        Ok(work)
    }

    fn check(&mut self, _: u64) -> Result<Work, BenchError> {
        let mut work = Work::default();
        self.groups.check_all(&mut work)?;
        Ok(work)
    }

    /// An edge that was loaded; if it is gone, the next one in the order of numbers.
    fn any_edge(&mut self) -> Option<Vec<u8>> {
        let at = self.random.below(self.edges.as_slice().len() as u64) as usize;
        let first = self.random.below(self.copies) * self.edges.vertices();
        let (source, destination) = self.edges.as_slice()[at];
        self.groups.key_near(&edge(first + source, first + destination)).cloned()
    }

    /// A vertex with outgoing edges; the more it has, the more likely it is chosen.
    fn any_source(&mut self) -> u64 {
        let edge = self.any_edge();
        edge.and_then(|edge| edge.first_chunk().copied()).map_or(0, u64::from_be_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_graph_is_loaded_searched_changed_and_removed() {
        let work = tempfile::tempdir().unwrap();
        let input = work.path().join("edges");
        let lines = (0..60_u64).flat_map(|source| (0..source).map(move |end| format!("{source} {end}\n")));
        // A line that appears twice is one edge.
        std::fs::write(&input, lines.chain(["7 3\n".to_owned()]).collect::<String>()).unwrap();
        let options = GraphOptions {
            input: Some(input),
            crates: false,
            groups: GroupsOptions {
                copies: 2,
                operations: 400,
                plan: "semi-sorted".to_owned(),
                seed: 1,
                dir: work.path().to_owned(),
            },
        };
        let mut report = Report::new(false);
        run(&options, &mut report).unwrap();
        let metric = |case: usize, name: &str| report.measurements()[case].metrics[name].clone();
        assert_eq!(report.measurements().len(), 8);
        let created = &report.measurements()[0].config;
        assert_eq!((&created["edges"], &created["lines"]), (&(60 * 59).into(), &(60 * 59 + 2).into()));
        assert_eq!(metric(2, "items"), 400, "edges that are there are found");
        assert_eq!(metric(3, "items"), 0, "edges that are not there are not");
        assert!(!work.path().join(SUBDIRECTORY).exists());
    }
}
