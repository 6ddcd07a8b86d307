//! The Python package: built in virtual environments below `target`, and tested in a fresh one.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell;

/// Asks Python whether it is new enough and can make virtual environments.
const IS_SUITABLE: &str = "import sys, venv; sys.exit(sys.version_info < (3, 11))";

/// The library that [`unwind`] makes.
const UNWIND: &str = "gcc_unwind";

/// What the tests need beside the package; the package names them as its extra `test`, too.
const TEST_PACKAGES: [&str; 6] = ["pytest", "numpy", "pyarrow", "pandas", "polars", "datasketch>=2,<3"];

/// What the tests of the connectors need beside that; the package names them as extras, too.
const CONNECTOR_PACKAGES: [&str; 4] =
    ["pyspark>=4,<5", "ray[data]>=2.40", "dask[dataframe]>=2024.8", "pandas"];

/// The targets of wheels, and what zig calls them with the C library of manylinux2014.
const WHEEL_TARGETS: [(&str, &str); 2] = [
    ("x86_64-unknown-linux-gnu", "x86_64-linux-gnu.2.17"),
    ("aarch64-unknown-linux-gnu", "aarch64-linux-gnu.2.17"),
];

/// Builds the wheel, installs it into a fresh virtual environment and runs its tests there. Skipped with a message if
/// there is no suitable Python, or nothing to install packages from.
///
/// With `connectors`, the environment is one that stays, with Spark, Ray and Dask; without these, their tests are
/// skipped. The profile is that of tests, since optimizing would take longer than the tests themselves.
pub fn test(connectors: bool) -> Result<(), String> {
    let Some(tools) = tools(&["maturin"])? else { return Ok(()) };
    let wheels = directory("wheels");
    build(&tools, &wheels, &["build", "--quiet", "--profile", "dev"], &[])?;
    let wheel = only_wheel(&wheels)?;
    if !connectors {
        return test_wheel(&wheel);
    }
    let kept = Environment::kept("connectors")?;
    match kept.install(&TEST_PACKAGES)? && kept.install(&CONNECTOR_PACKAGES)? {
        true => kept.test(&wheel),
        false => Ok(()),
    }
}

/// Installs a wheel into a fresh virtual environment and runs the tests there.
fn test_wheel(wheel: &str) -> Result<(), String> {
    let fresh = Environment::made("test")?;
    if fresh.install(&TEST_PACKAGES)? { fresh.test(wheel) } else { Ok(()) }
}

/// Builds the wheels for all targets, and the source distribution, into `target/python/dist`, and tests the wheel of
/// this machine.
pub fn wheels() -> Result<(), String> {
    let Some(tools) = tools(&["maturin[zig]"])? else {
        return Err("there is no suitable Python, or no package index".to_owned());
    };
    let dist = directory("dist");
    build(&tools, &dist, &["sdist"], &[])?;
    for (target, zig_target) in WHEEL_TARGETS {
        let unwind = unwind(&tools, target, zig_target)?;
        let unwind = unwind.display().to_string();
        let mut arguments = vec!["build", "--quiet", "--release", "--zig", "--target", target];
        arguments.extend(["--compatibility", "manylinux2014"]);
        // What follows is for the compiler.
        let library = format!("dylib={UNWIND}");
        build(&tools, &dist, &arguments, &["--", "-L", &unwind, "-l", &library])?;
    }
    println!("python: the wheels and the source distribution are in {}", dist.display());
    let entries = std::fs::read_dir(&dist).map_err(|error| error.to_string())?;
    let mut wheels = entries.flatten().map(|entry| entry.path().display().to_string());
    let ending = format!("_{}.whl", std::env::consts::ARCH);
    wheels.find(|wheel| wheel.ends_with(&ending)).map_or(Ok(()), |wheel| test_wheel(&wheel))
}

/// A library with the names of libgcc's unwinding, for the linker. With it, the library of the package takes unwinding
/// from libgcc at run time, as the C library does; zig would link its own, LLVM's. Until Python 3.13, a thread that
/// returns to an interpreter that has ended is ended by the C library, which unwinds it: two kinds of unwinding in one
/// thread crash the process.
fn unwind(tools: &Environment, target: &str, zig_target: &str) -> Result<PathBuf, String> {
    let directory = directory(&format!("unwind-{target}"));
    std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    let library = directory.join(format!("lib{UNWIND}.so")).display().to_string();
    let options = ["-shared", "-fPIC", "-nostdlib", "-Wl,-soname,libgcc_s.so.1"];
    let mut arguments = vec!["-m", "ziglang", "cc", "-target", zig_target];
    arguments.extend(options);
    arguments.extend(["-o", &library, "crates/xtask/src/python/unwind.c"]);
    tools.run("zig cc", &arguments)?;
    Ok(directory)
}

/// A virtual environment with the packages that build ours; `None`, with a message, if that is not possible here.
fn tools(packages: &[&str]) -> Result<Option<Environment>, String> {
    let suitable =
        Command::new("python3").args(["-c", IS_SUITABLE]).status().is_ok_and(|status| status.success());
    if !suitable {
        println!("python: skipped, no python3 of version 3.11 or newer with venv here");
        return Ok(None);
    }
    let tools = Environment::kept("tools")?;
    Ok(tools.install(packages)?.then_some(tools))
}

/// Runs maturin, which puts what it builds into `out` alone.
fn build(tools: &Environment, out: &Path, arguments: &[&str], last: &[&str]) -> Result<(), String> {
    let programs = tools.path.join("bin");
    let mut command = shell::program(&programs.join("maturin"));
    // Where maturin looks for zig.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(programs).chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(all).map_err(|error| error.to_string())?);
    command.current_dir(shell::root().join("crates/python")).args(arguments).arg("--out").arg(out).args(last);
    shell::run_command(&format!("maturin {}", arguments.join(" ")), command)
}

/// An empty directory below `target/python`.
fn directory(name: &str) -> PathBuf {
    let path = shell::root().join("target/python").join(name);
    // It may be absent.
    let _ = std::fs::remove_dir_all(&path);
    path
}

fn only_wheel(directory: &Path) -> Result<String, String> {
    let entries = std::fs::read_dir(directory).map_err(|error| error.to_string())?;
    let mut wheels = entries.flatten().map(|entry| entry.path().display().to_string());
    match (wheels.next(), wheels.next()) {
        (Some(wheel), None) => Ok(wheel),
        _ => Err(format!("{} should have one wheel", directory.display())),
    }
}

/// A virtual environment below `target/python`.
struct Environment {
    path: PathBuf,
}

impl Environment {
    /// One that stays from call to call.
    fn kept(name: &str) -> Result<Self, String> {
        let path = shell::root().join("target/python").join(name);
        match path.join("bin/python").exists() {
            true => Ok(Self { path }),
            false => Self::made(name),
        }
    }

    /// A new one.
    fn made(name: &str) -> Result<Self, String> {
        let path = directory(name);
        let mut command = shell::command("python3 -m venv");
        command.arg(&path);
        shell::run_command("python3 -m venv", command)?;
        Ok(Self { path })
    }

    /// Installs packages from the index; says so and returns `false` if it can't.
    fn install(&self, packages: &[&str]) -> Result<bool, String> {
        let mut command = self.python();
        command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        command.args(packages);
        let status = command.status().map_err(|error| format!("cannot start pip: {error}"))?;
        if !status.success() {
            println!("python: skipped, pip can't install {} here", packages.join(", "));
        }
        Ok(status.success())
    }

    /// Installs a wheel and runs the tests.
    fn test(&self, wheel: &str) -> Result<(), String> {
        let install = ["-m", "pip", "install", "--quiet", "--no-deps", "--force-reinstall", wheel];
        self.run("install the wheel", &install)?;
        // Not from the sources: what is tested is what was installed.
        let tests = ["-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "crates/python/tests"];
        self.run("tests of the package", &tests)
    }

    fn run(&self, name: &str, arguments: &[&str]) -> Result<(), String> {
        let mut command = self.python();
        command.args(arguments);
        shell::run_command(name, command)
    }

    fn python(&self) -> Command {
        let mut command = shell::program(&self.path.join("bin/python"));
        // An environment around this one must not add packages.
        command.env_remove("PYTHONPATH").env_remove("PYTHONHOME").env_remove("VIRTUAL_ENV");
        command
    }
}
