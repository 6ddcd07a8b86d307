//! A row of the table: what each engine reached in one work, and what we aim at.

use super::contest::Results;
use super::kind::Kind;
use super::tally::Tally;

/// What is printed of a work.
pub struct Row {
    pub name: String,
    pub unit: Unit,
    pub cells: Results<Cell>,
    pub target: Target,
}

/// What a figure means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Thousands of operations per second.
    KiloOperations,
    /// Megabytes per second.
    MegabytesPerSecond,
    /// Megabytes of disk: less is better.
    Megabytes,
    /// Microseconds: less is better.
    Microseconds,
}

/// What one engine reached.
#[derive(Clone, Debug)]
pub struct Cell {
    pub figure: f64,
    /// Read requests per operation, as the engine counts them.
    pub reads: Option<f64>,
    /// Bytes per operation that the system read from devices.
    pub read_bytes: Option<f64>,
    /// More about it, for people.
    pub note: String,
}

/// What we aim at.
pub struct Target {
    pub text: String,
    /// Whether it was reached; `None` if that was not measured.
    pub is_met: Option<bool>,
}

impl Unit {
    pub fn name(self) -> &'static str {
        match self {
            Self::KiloOperations => "K/s",
            Self::MegabytesPerSecond => "MB/s",
            Self::Megabytes => "MB",
            Self::Microseconds => "µs",
        }
    }

    pub fn less_is_better(self) -> bool {
        matches!(self, Self::Megabytes | Self::Microseconds)
    }
}

impl Cell {
    /// A rate in thousands per second, with reads.
    pub fn rate(tally: &Tally) -> Self {
        let (reads, read_bytes) = (tally.requests_each(), tally.bytes_each());
        Self { figure: tally.rate() / 1e3, reads, read_bytes, note: String::new() }
    }

    /// A figure that reads have nothing to do with.
    pub fn plain(figure: f64) -> Self {
        Self { figure, reads: None, read_bytes: None, note: String::new() }
    }

    /// The same, with a note.
    pub fn with_note(self, note: String) -> Self {
        Self { note, ..self }
    }
}

impl Target {
    /// None was set.
    pub fn none() -> Self {
        Self { text: "–".to_owned(), is_met: None }
    }

    /// A target, and whether Alluvium's cell reaches it.
    pub fn of(text: impl Into<String>, cells: &Results<Cell>, is_met: impl Fn(&Cell) -> bool) -> Self {
        Self { text: text.into(), is_met: ours(cells).map(is_met) }
    }

    /// To be ahead of all peers.
    pub fn best(unit: Unit, cells: &Results<Cell>) -> Self {
        let is_met = ours(cells).zip(best_peer(unit, cells, |_| true)).map(|(ours, (_, best))| {
            if unit.less_is_better() { ours.figure <= best.figure } else { ours.figure >= best.figure }
        });
        Self { text: "ahead of all peers".to_owned(), is_met }
    }
}

impl Row {
    /// A row of rates.
    pub fn of_rates(name: impl Into<String>, tallies: &Results<Tally>) -> Self {
        let cells = tallies.iter().map(|(kind, tally)| (*kind, Cell::rate(tally))).collect();
        Self { name: name.into(), unit: Unit::KiloOperations, cells, target: Target::none() }
    }

    /// The same row, with a target for Alluvium's cell.
    pub fn with_target(mut self, text: impl Into<String>, is_met: impl Fn(&Cell) -> bool) -> Self {
        self.target = Target::of(text, &self.cells, is_met);
        self
    }

    /// What to say about it at the end.
    pub fn verdict(&self) -> String {
        let standing = match ours(&self.cells) {
            Some(ours) => self.standing(ours),
            None => "without Alluvium".to_owned(),
        };
        let target = match (self.target.is_met, self.target.text.as_str()) {
            (Some(true), text) => format!("target met ({text})"),
            (Some(false), text) => format!("TARGET MISSED ({text})"),
            (None, "–") => "no target".to_owned(),
            (None, text) => format!("target not measured ({text})"),
        };
        format!("{}: {standing}; {target}", self.name)
    }
}

impl Row {
    /// Our place beside the best peer, and if that reads through the page cache, beside the best of the others.
    fn standing(&self, ours: &Cell) -> String {
        let Some(best) = best_peer(self.unit, &self.cells, |_| true) else {
            return "without a peer".to_owned();
        };
        let mut text = self.beside(ours, best);
        if best.0.uses_page_cache()
            && let Some(held) = best_peer(self.unit, &self.cells, |kind| !kind.uses_page_cache())
        {
            text += &format!(" ({})", self.beside(ours, held));
        }
        text
    }

    fn beside(&self, ours: &Cell, (kind, peer): (Kind, &Cell)) -> String {
        let (ratio, title) = (ours.figure / peer.figure, kind.title());
        let advantage = if self.unit.less_is_better() { ratio.recip() } else { ratio };
        match advantage {
            _ if !advantage.is_finite() => format!("not comparable with {title}"),
            _ if advantage >= 1.0 => format!("ahead of {title} by {advantage:.2} times"),
            _ => format!("behind {title} by {:.2} times", advantage.recip()),
        }
    }
}

/// Alluvium's cell.
pub fn ours(cells: &Results<Cell>) -> Option<&Cell> {
    cells.iter().find(|(kind, _)| *kind == Kind::Alluvium).map(|(_, cell)| cell)
}

/// The best cell of another engine.
fn best_peer(unit: Unit, cells: &Results<Cell>, is_meant: impl Fn(Kind) -> bool) -> Option<(Kind, &Cell)> {
    let is_peer = |kind: Kind| kind != Kind::Alluvium && is_meant(kind);
    let peers = cells.iter().filter(|(kind, cell)| is_peer(*kind) && cell.figure.is_finite());
    let by_figure = |left: &&(Kind, Cell), right: &&(Kind, Cell)| left.1.figure.total_cmp(&right.1.figure);
    let best = if unit.less_is_better() { peers.min_by(by_figure) } else { peers.max_by(by_figure) };
    best.map(|(kind, cell)| (*kind, cell))
}

#[cfg(all(test, feature = "stores"))]
mod tests {
    use super::*;

    fn row(unit: Unit, ours: f64, lmdb: f64, fjall: f64) -> Row {
        let kinds = [(Kind::Alluvium, ours), (Kind::Lmdb, lmdb), (Kind::Fjall, fjall)];
        let cells = kinds.map(|(kind, figure)| (kind, Cell::plain(figure))).into();
        Row { name: "row".to_owned(), unit, cells, target: Target::none() }
    }

    #[test]
    fn verdicts_name_the_best_peer() {
        let rates =
            row(Unit::KiloOperations, 10.0, 5.0, 2.0).with_target("≥ 20", |cell| cell.figure >= 20.0);
        assert_eq!(rates.verdict(), "row: ahead of lmdb* by 2.00 times; TARGET MISSED (≥ 20)");
        let bytes = row(Unit::Megabytes, 10.0, 5.0, 2.0);
        assert_eq!(bytes.verdict(), "row: behind fjall* by 5.00 times; no target");
        assert_eq!(Target::best(Unit::Megabytes, &bytes.cells).is_met, Some(false));
        assert_eq!(Target::best(Unit::KiloOperations, &rates.cells).is_met, Some(true));
    }
}
