//! How close the storage comes to the raw device, in turns within one run:
//! `cargo run --release -p alluvium-io --example device_rate -- DIRECTORY [FILE_MIB] [ROUNDS] [SECONDS_PER_TURN]`.

use std::io::Result;
use std::time::Duration;

use alluvium_io::calibrate::{
    RandomReads, Rate, RawFiles, RawMethod, measure_raw_reads, measure_read_batches, measure_reads,
    measure_sync_appends,
};
use alluvium_io::{AlignedBuffer, DeviceCounters, File, FileStorage, IoOptions, OpenMode, Storage, Usage};

const NAME: &str = "device-rate.data";

/// The name of a way, and one turn of measuring it.
type Way<'a> = (String, Box<dyn Fn(&RandomReads) -> Result<Rate> + 'a>);

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().unwrap_or_else(|| ".".to_owned());
    let mut number = |default: u64| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (file_bytes, rounds, seconds) = (number(2048) << 20, number(5), number(2));

    let ring = FileStorage::open(&directory, IoOptions::default())?;
    let threads = FileStorage::open(&directory, IoOptions { uring: Usage::Never, ..IoOptions::default() })?;
    println!("{}: {}, {}", directory, ring.describe(), threads.describe());
    write_file(&ring, file_bytes)?;
    let path = ring.path().join(NAME);
    let raw = RawFiles::open([&path])?;
    let file = ring.open(NAME, OpenMode::Read)?;

    let (storage, opened): (&dyn Storage, &dyn File) = (&ring, &*file);
    for in_flight in [1, 32] {
        let mut ways: Vec<Way<'_>> = vec![
            ("raw io_uring".into(), Box::new(|reads| measure_raw_reads(&raw, reads, RawMethod::Uring))),
            ("raw threads".into(), Box::new(|reads| measure_raw_reads(&raw, reads, RawMethod::Threads))),
            ("pipeline, io_uring".into(), Box::new(|reads| measure_reads(&ring, &*file, reads))),
            ("pipeline, threads".into(), Box::new(|reads| measure_reads(&threads, &*file, reads))),
        ];
        for batch in [in_flight, in_flight * 32] {
            ways.push((
                format!("batches of {batch}, io_uring"),
                Box::new(move |reads| measure_read_batches(storage, opened, batch, reads)),
            ));
        }
        let mut rates = vec![Vec::new(); ways.len()];
        for round in 0..rounds {
            let mut reads = RandomReads::new(in_flight, file_bytes, Duration::from_secs(seconds));
            reads.seed = round + 1;
            for ((_, measure), rates) in ways.iter().zip(&mut rates) {
                let before = DeviceCounters::of(&path);
                let rate = measure(&reads)?;
                let device_reads =
                    DeviceCounters::of(&path).zip(before).map(|(now, before)| now.since(&before).reads);
                rates.push((rate, device_reads));
            }
        }
        print_table(in_flight, &ways, &rates);
    }
    for round in 0..rounds {
        let rate =
            measure_sync_appends(&ring, "device-rate.log", 4096, 16 << 20, Duration::from_secs(seconds))?;
        println!(
            "sync appends, round {round}: {:.0}/s, p50 {:.0} us",
            rate.ops_per_s(),
            rate.latency_us(0.5)
        );
    }
    ring.remove(NAME)
}

/// Content that does not compress, so that no layer below has an easy life.
fn write_file(storage: &FileStorage, file_bytes: u64) -> Result<()> {
    let file = storage.open(NAME, OpenMode::Create)?;
    let mut chunk = AlignedBuffer::zeroed(1 << 20);
    let mut state = 1u64;
    for offset in (0..file_bytes).step_by(chunk.len()) {
        for word in chunk.chunks_exact_mut(8) {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            word.copy_from_slice(&(state ^ state >> 29).to_le_bytes());
        }
        file.write_at(&chunk, offset)?;
    }
    file.sync()
}

fn print_table(in_flight: usize, ways: &[Way<'_>], rates: &[Vec<(Rate, Option<u64>)>]) {
    println!("{in_flight} in flight: median of the rounds; ratio to the better raw way of the same round");
    let best_raw = |round: usize| rates[0][round].0.ops_per_s().max(rates[1][round].0.ops_per_s());
    for ((name, _), rates) in ways.iter().zip(rates) {
        let median = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let column = |get: &dyn Fn(&Rate) -> f64| median(rates.iter().map(|(rate, _)| get(rate)).collect());
        let ratio =
            rates.iter().enumerate().map(|(round, (rate, _))| rate.ops_per_s() / best_raw(round)).collect();
        let device = rates
            .iter()
            .map(|(rate, reads)| reads.map_or(f64::NAN, |reads| reads as f64 / rate.operations() as f64));
        println!(
            "  {name:28} {:8.0}/s  ratio {:.3}  p50 {:6.0} us  p99 {:6.0} us  p999 {:6.0} us  device reads/read {:.3}",
            column(&Rate::ops_per_s),
            median(ratio),
            column(&|rate| rate.latency_us(0.5)),
            column(&|rate| rate.latency_us(0.99)),
            column(&|rate| rate.latency_us(0.999)),
            median(device.collect()),
        );
    }
}
