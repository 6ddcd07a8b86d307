//! `alluvium-papers figure`: published figures reproduced at this machine's scale, as numbers and as drawings.
//!
//! Each figure is a function from [`Scale`] to a [`Figure`], in a file named after its paper and number.

mod chart;
mod figure;
#[cfg(target_os = "linux")]
mod flushes;
mod leveldb;
mod lim_3_6;
mod lim_4_10;
mod lim_4_12;
mod lim_4_14;
mod lim_4_15;
mod lim_4_9;
mod lim_ect;
mod lim_table_3_4;
mod mica;
mod mica_5_10;
mod mica_5_11;
mod mica_5_12;
mod mica_5_13;
mod mica_5_14;
mod mica_5_16;
mod mica_net;
mod mica_table_5_1;
#[cfg(target_os = "linux")]
mod nvmcached;
mod popularity;
mod replay;
mod scale;
mod silt_10;
mod silt_8;
mod skimpy_11;
mod skimpy_13;
mod skimpy_4;
mod skimpy_8;
mod skimpy_9;
mod skimpy_table_2;
mod skimpy_trace;
mod slb;
mod slb_2_11;
mod slb_2_12;
mod slb_2_7;
mod slb_2_8;
mod slim_9;
mod stored;
mod traces;
mod wu;
mod wu_3_10;
mod wu_3_13;
mod wu_3_14;
mod wu_3_15;
mod wu_3_5;
mod wu_3_7;
mod wu_4_11;
mod wu_4_13;
mod wu_4_5;
mod wu_4_7;
#[cfg(target_os = "linux")]
mod wu_5_1;
#[cfg(target_os = "linux")]
mod wu_5_3;
#[cfg(target_os = "linux")]
mod wu_5_5;
#[cfg(target_os = "linux")]
mod wu_5_6;
#[cfg(target_os = "linux")]
mod wu_5_8;
mod wu_table_3_1;
mod wu_table_3_2;
mod zexpander;

use std::path::PathBuf;

use alluvium_bench::{BenchError, Measurement, Report};
use serde_json::Value;

pub use figure::{Axis, Figure, Origin, Panel, Published, Series};
pub use scale::Scale;

/// Options of `figure`.
#[derive(Clone, Debug, clap::Args)]
pub struct FigureOptions {
    /// Figures by paper and number, for example lim-4.9; `all` for every one
    #[arg(required_unless_present = "list")]
    figures: Vec<String>,
    /// List the figures, and run none
    #[arg(long)]
    list: bool,
    /// Directory for FIGURE.json and FIGURE.svg; created if missing
    #[arg(long, default_value = "alluvium-paper")]
    out: PathBuf,
    /// Maximum keys that are simulated or measured; curves of models extend beyond. 10 million take some ten seconds
    /// per point
    #[arg(long, default_value_t = 10_000_000)]
    simulated_keys_max: u64,
    /// Maximum items of a store that is loaded for a figure, next to FIGURE.json; 4 million take about a minute
    #[arg(long, default_value_t = 4_000_000)]
    stored_items_max: u64,
    /// Seed of simulated keys and requests
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

type Draw = fn(&Scale) -> Result<Figure, BenchError>;

/// Every figure, by paper and number.
const FIGURES: &[(&str, Draw)] = &[
    ("lim-3.6", lim_3_6::draw),
    ("lim-table-3.4", lim_table_3_4::draw),
    ("lim-4.9", lim_4_9::draw),
    ("lim-4.10", lim_4_10::draw),
    ("lim-4.12", lim_4_12::draw),
    ("lim-4.14", lim_4_14::draw),
    ("lim-4.15", lim_4_15::draw),
    ("mica-5.10", mica_5_10::draw),
    ("mica-5.11", mica_5_11::draw),
    ("mica-5.12", mica_5_12::draw),
    ("mica-5.13", mica_5_13::draw),
    ("mica-5.14", mica_5_14::draw),
    ("mica-5.16", mica_5_16::draw),
    ("mica-table-5.1", mica_table_5_1::draw),
    ("silt-8", silt_8::draw),
    ("silt-10", silt_10::draw),
    ("skimpy-4", skimpy_4::draw),
    ("skimpy-8", skimpy_8::draw),
    ("skimpy-9", skimpy_9::draw),
    ("skimpy-10", skimpy_9::draw_dedup),
    ("skimpy-11", skimpy_11::draw),
    ("skimpy-12", skimpy_11::draw_dedup),
    ("skimpy-13", skimpy_13::draw),
    ("skimpy-14", skimpy_13::draw_gets),
    ("skimpy-table-2", skimpy_table_2::draw),
    ("slb-2.7", slb_2_7::draw),
    ("slb-2.8", slb_2_8::draw),
    ("slb-2.11", slb_2_11::draw),
    ("slb-2.12", slb_2_12::draw),
    ("slim-9", slim_9::draw),
    ("wu-3.5", wu_3_5::draw),
    ("wu-3.7", wu_3_7::draw),
    ("wu-3.10", wu_3_10::draw),
    ("wu-3.12", wu_3_10::draw_misses),
    ("wu-3.13", wu_3_13::draw),
    ("wu-3.14", wu_3_14::draw),
    ("wu-3.15", wu_3_15::draw),
    ("wu-4.5", wu_4_5::draw),
    ("wu-4.7", wu_4_7::draw),
    ("wu-4.11", wu_4_11::draw),
    ("wu-4.13", wu_4_13::draw),
    #[cfg(target_os = "linux")]
    ("wu-5.1", wu_5_1::draw),
    #[cfg(target_os = "linux")]
    ("wu-5.3", wu_5_3::draw),
    #[cfg(target_os = "linux")]
    ("wu-5.5", wu_5_5::draw),
    #[cfg(target_os = "linux")]
    ("wu-5.6", wu_5_6::draw),
    #[cfg(target_os = "linux")]
    ("wu-5.7", wu_5_6::draw_threads),
    #[cfg(target_os = "linux")]
    ("wu-5.8", wu_5_8::draw),
    ("wu-table-3.1", wu_table_3_1::draw),
    ("wu-table-3.2", wu_table_3_2::draw),
];

/// Runs the requested figures, writes each as numbers and as a drawing, and reports what can be compared with the
/// paper.
///
/// # Errors
/// An unknown figure, before any is run; a directory that cannot be written.
pub fn run(options: &FigureOptions, report: &mut Report) -> Result<(), BenchError> {
    if options.list {
        for (id, _) in FIGURES {
            report.add(Measurement::new("paper", id))?;
        }
        return Ok(());
    }
    let chosen = choose(&options.figures)?;
    std::fs::create_dir_all(&options.out)?;
    let scale = Scale {
        simulated_keys_max: options.simulated_keys_max,
        stored_items_max: options.stored_items_max,
        directory: options.out.clone(),
        directories: report.directories().clone(),
        seed: options.seed,
    };
    let mut verdicts = String::new();
    for draw in chosen {
        let figure = draw(&scale)?;
        let numbers = serde_json::to_vec_pretty(&figure).map_err(std::io::Error::from)?;
        std::fs::write(options.out.join(format!("{}.json", figure.id)), numbers)?;
        std::fs::write(options.out.join(format!("{}.svg", figure.id)), chart::svg(&figure)?)?;
        report.add(measurement(&figure, &scale))?;
        verdicts += &figure.verdict();
        report.conclude(verdicts.clone());
    }
    Ok(())
}

fn choose(names: &[String]) -> Result<Vec<Draw>, BenchError> {
    let mut chosen = Vec::new();
    for name in names {
        let matching = FIGURES.iter().filter(|(id, _)| *id == name || name == "all");
        let before = chosen.len();
        chosen.extend(matching.map(|&(_, draw)| draw));
        if chosen.len() == before {
            let known: Vec<&str> = FIGURES.iter().map(|(id, _)| *id).collect();
            return Err(BenchError::Usage(format!("no figure {name}; there are {}", known.join(", "))));
        }
    }
    Ok(chosen)
}

/// The paper's numbers compared with ours, and how far simulations are from models. The name of a paper's number ends
/// in `_published`.
fn measurement(figure: &Figure, scale: &Scale) -> Measurement {
    let mut measurement = Measurement::new("paper", figure.id)
        .config("simulated_keys_max", scale.simulated_keys_max)
        .config("stored_items_max", scale.stored_items_max)
        .config("seed", scale.seed);
    if let Some(deviation) = figure.deviation_max() {
        measurement = measurement.metric("simulation_to_model_deviation_max", deviation);
    }
    for published in &figure.published {
        measurement.metrics.insert(published.name.clone(), published.ours.into());
        if let Some(stated) = published.published {
            measurement.metrics.insert(format!("{}_published", published.name), Value::from(stated));
        }
    }
    measurement
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws every second figure. Most of the time they compute, so the tests run beside each other.
    fn figures_are_drawn_and_simulations_are_near_models(first: usize) {
        let directory = tempfile::tempdir().unwrap();
        let scale = Scale {
            simulated_keys_max: 200_000,
            stored_items_max: 40_000,
            directory: directory.path().to_owned(),
            directories: alluvium_bench::WorkDirectories::default(),
            seed: 7,
        };
        for (id, draw) in FIGURES.iter().skip(first).step_by(2) {
            let figure = draw(&scale).unwrap();
            assert_eq!(figure.id, *id);
            assert!(figure.panels.iter().all(|panel| !panel.series.is_empty()), "{id}");
            for series in figure.panels.iter().flat_map(|panel| &panel.series) {
                assert!(series.points.iter().all(|(x, y)| x.is_finite() && y.is_finite()), "{id}");
                assert!(series.points.is_sorted_by(|a, b| a.0 < b.0), "{id} {}", series.name);
            }
            // The smallest stores, in which a level has only a few tables, are hardest to model.
            assert!(figure.deviation_max().is_none_or(|deviation| deviation < 0.1), "{id}");
            let drawing = chart::svg(&figure).unwrap();
            assert!(drawing.starts_with("<svg") && drawing.trim_end().ends_with("</svg>"), "{id}");
        }
    }

    #[test]
    fn figures_are_drawn() {
        figures_are_drawn_and_simulations_are_near_models(0);
    }

    #[test]
    fn the_other_figures_are_drawn() {
        figures_are_drawn_and_simulations_are_near_models(1);
    }

    #[test]
    fn an_unknown_figure_is_refused_by_name() {
        let error = choose(&["lim-4.9".to_owned(), "lim-9.9".to_owned()]).unwrap_err();
        assert!(error.to_string().contains("no figure lim-9.9; there are lim-3.6"), "{error}");
        assert_eq!(choose(&["all".to_owned()]).unwrap().len(), FIGURES.len());
    }
}
