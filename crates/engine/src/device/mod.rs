//! The performance figures of the device, measured once and stored with the database.
//!
//! [`calibrate`] measures and [`write()`]s them; the planner [`read()`]s them. The file is small, checksummed and
//! replaced atomically. A database without it is planned for a device like that of [`DeviceFigures::default`].

mod file;

use std::path::Path;
use std::time::Duration;

use alluvium_io::calibrate::{DeviceProbe, measure_device};
use alluvium_io::{FileStorage, IoOptions, OpenMode, Storage};

pub use alluvium_model::planner::{DeviceFigures, ReadRate};
pub use file::{parse, to_bytes};

use crate::error::{IoContext, Result};

/// The file with the figures, in the directory of a database.
pub const DEVICE: &str = "DEVICE";
/// The file while it is written.
const DEVICE_NEW: &str = "DEVICE.new";
/// The file used for measuring; removed afterwards.
const DEVICE_PROBE: &str = "DEVICE.probe";

/// Whether `name` is that of the file or of one used while making it.
pub(crate) fn is_file_name(name: &str) -> bool {
    [DEVICE, DEVICE_NEW, DEVICE_PROBE].contains(&name)
}

/// The figures stored in `storage`, or `None` if nothing was measured.
pub fn read(storage: &dyn Storage) -> Result<Option<DeviceFigures>> {
    let names = storage.list().context(|| "listing the database directory".to_owned())?;
    if !names.iter().any(|name| name == DEVICE) {
        return Ok(None);
    }
    let file = storage.open(DEVICE, OpenMode::Read).context(|| format!("opening {DEVICE}"))?;
    let len = file.len().context(|| format!("measuring {DEVICE}"))?;
    // One byte more than a sound file has is enough to see that the file is not sound.
    let mut bytes = vec![0; len.min(file::LEN_MAX as u64 + 1) as usize];
    let read = file.read_at(&mut bytes, 0).context(|| format!("reading {DEVICE}"))?;
    bytes.truncate(read);
    parse(DEVICE, &bytes).map(Some)
}

/// The figures stored in the directory `path`, or `None` if nothing was measured.
pub fn read_directory(path: &Path) -> Result<Option<DeviceFigures>> {
    read(&storage(path)?)
}

/// Stores the figures in `storage`, durably and atomically: after a crash either the old or the new file exists.
pub fn write(storage: &dyn Storage, figures: &DeviceFigures) -> Result<()> {
    let context = || format!("writing {DEVICE}");
    remove_if_there(storage, DEVICE_NEW)?;
    let file = storage.open(DEVICE_NEW, OpenMode::Create).context(context)?;
    file.write_at(&to_bytes(figures), 0).context(context)?;
    file.sync().context(context)?;
    storage.sync_directory().context(context)?;
    storage.rename(DEVICE_NEW, DEVICE).context(context)?;
    storage.sync_directory().context(context)
}

/// Measures the device under `storage` for some `duration` and stores the figures there.
///
/// Writes and removes a file of at most a gibibyte. Nothing else should use the device meanwhile.
pub fn calibrate(storage: &dyn Storage, duration: Duration) -> Result<DeviceFigures> {
    remove_if_there(storage, DEVICE_PROBE)?;
    let probe = DeviceProbe::new(DEVICE_PROBE, duration);
    let rates = measure_device(storage, &probe).context(|| "measuring the device".to_owned())?;
    // Whole numbers are represented exactly as text, and no rate is measured more precisely.
    let whole = |rate: f64| rate.round().max(1.0);
    let read_rate = |(in_flight, reads_per_s): &(usize, f64)| ReadRate {
        in_flight: *in_flight as u32,
        reads_per_s: whole(*reads_per_s),
    };
    let figures = DeviceFigures {
        reads: rates.reads.iter().map(read_rate).collect(),
        write_bytes_per_s: whole(rates.write_bytes_per_s),
        read_bytes_per_s: whole(rates.read_bytes_per_s),
        syncs_per_s: whole(rates.syncs_per_s),
    };
    write(storage, &figures)?;
    Ok(figures)
}

/// Measures the device under the directory `path`, which is created if it does not exist: see [`calibrate`].
pub fn calibrate_directory(path: &Path, duration: Duration) -> Result<DeviceFigures> {
    let storage = FileStorage::create(path, IoOptions::default());
    calibrate(&storage.context(|| format!("creating {}", path.display()))?, duration)
}

fn storage(path: &Path) -> Result<FileStorage> {
    FileStorage::open(path, IoOptions::default()).context(|| format!("opening directory {}", path.display()))
}

fn remove_if_there(storage: &dyn Storage, name: &str) -> Result<()> {
    let names = storage.list().context(|| "listing the database directory".to_owned())?;
    if names.iter().any(|there| there == name) {
        storage.remove(name).context(|| format!("removing {name}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alluvium_io::{FaultPlan, SimulatedStorage};

    fn figures(syncs_per_s: f64) -> DeviceFigures {
        DeviceFigures { syncs_per_s, ..DeviceFigures::default() }
    }

    #[test]
    fn a_crash_leaves_the_old_figures_or_the_new_ones() {
        for seed in 0..8 {
            for crash_at in 0..12 {
                let storage = SimulatedStorage::new(seed);
                write(&storage, &figures(1.0)).unwrap();
                storage
                    .set_faults(FaultPlan { crash_before_operation: Some(crash_at), ..FaultPlan::default() });
                let is_written = write(&storage, &figures(2.0)).is_ok();
                storage.crash();
                let kept = read(&storage.reopen()).unwrap().unwrap();
                assert!(
                    kept == figures(2.0) || !is_written && kept == figures(1.0),
                    "seed {seed}, {crash_at}"
                );
            }
        }
    }

    #[test]
    fn a_device_is_measured_and_its_file_goes_away() {
        let storage = SimulatedStorage::new(3);
        assert_eq!(read(&storage).unwrap(), None);
        let measured = calibrate(&storage, Duration::from_millis(40)).unwrap();
        measured.validate().unwrap();
        assert_eq!(read(&storage).unwrap(), Some(measured));
        assert_eq!(storage.list().unwrap(), [DEVICE]);
    }
}
