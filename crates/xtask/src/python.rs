//! The Python package: built in virtual environments below `target`, and tested in a fresh one.

use std::path::PathBuf;
use std::process::Command;

use crate::shell;

/// Asks Python whether it is new enough and can make virtual environments.
const IS_SUITABLE: &str = "import sys, venv; sys.exit(sys.version_info < (3, 11))";

/// What the tests need beside the package; the package names them as its extra `test`, too.
const TEST_PACKAGES: [&str; 3] = ["pytest", "numpy", "pyarrow"];

/// The targets of wheels. The C library is that of manylinux2014, which zig brings.
const WHEEL_TARGETS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];

/// Builds the wheel, installs it into a fresh virtual environment and runs its tests there. Skipped with a message if
/// there is no suitable Python, or nothing to install packages from.
///
/// The profile is that of tests, since optimizing would take longer than the tests themselves.
pub fn test() -> Result<(), String> {
    let Some(tools) = tools(&["maturin"])? else { return Ok(()) };
    let wheels = directory("wheels");
    build(&tools, &wheels, &["build", "--quiet", "--profile", "dev"])?;
    let fresh = Environment::made("test")?;
    if !fresh.install(&TEST_PACKAGES.map(str::to_owned))? {
        return Ok(());
    }
    let wheel = only_wheel(&wheels)?;
    fresh.run("install the wheel", &["-m", "pip", "install", "--quiet", "--no-deps", &wheel])?;
    // Not from the sources: what is tested is what was installed.
    fresh.run(
        "tests of the package",
        &["-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "crates/python/tests"],
    )
}

/// Builds the wheels for all targets, and the source distribution, into `target/python/dist`.
pub fn wheels() -> Result<(), String> {
    let Some(tools) = tools(&["maturin[zig]"])? else {
        return Err("there is no suitable Python, or no package index".to_owned());
    };
    let dist = directory("dist");
    build(&tools, &dist, &["sdist"])?;
    for target in WHEEL_TARGETS {
        let arguments = [
            "build",
            "--quiet",
            "--release",
            "--zig",
            "--compatibility",
            "manylinux2014",
            "--target",
            target,
        ];
        build(&tools, &dist, &arguments)?;
    }
    println!("python: the wheels and the source distribution are in {}", dist.display());
    Ok(())
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
    let packages: Vec<String> = packages.iter().map(|&package| package.to_owned()).collect();
    Ok(tools.install(&packages)?.then_some(tools))
}

/// Runs maturin, which puts what it builds into `out` alone.
fn build(tools: &Environment, out: &PathBuf, arguments: &[&str]) -> Result<(), String> {
    let programs = tools.path.join("bin");
    let mut command = shell::program(&programs.join("maturin"));
    // Where maturin looks for zig.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(programs).chain(std::env::split_paths(&path));
    command.env("PATH", std::env::join_paths(all).map_err(|error| error.to_string())?);
    command.args(arguments).args(["--manifest-path", "crates/python/Cargo.toml", "--out"]).arg(out);
    shell::run_command(&format!("maturin {}", arguments.join(" ")), command)
}

/// An empty directory below `target/python`.
fn directory(name: &str) -> PathBuf {
    let path = shell::root().join("target/python").join(name);
    // It may be absent.
    let _ = std::fs::remove_dir_all(&path);
    path
}

fn only_wheel(directory: &PathBuf) -> Result<String, String> {
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
    fn install(&self, packages: &[String]) -> Result<bool, String> {
        let mut command = self.python();
        command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(packages);
        let status = command.status().map_err(|error| format!("cannot start pip: {error}"))?;
        if !status.success() {
            println!("python: skipped, pip can't install {} here", packages.join(", "));
        }
        Ok(status.success())
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
