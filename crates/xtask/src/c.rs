//! The C library: built, installed below `target/c`, and tested from there with the compilers of the machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use serde_json::Value;

use crate::shell;

/// What the compilers of C and C++ refuse.
const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Werror", "-pedantic"];
/// Libraries of the system that the library takes from, as `rustc --print native-static-libs` names them.
const SYSTEM_LIBRARIES: [&str; 7] = ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-lc"];
/// Leaks are memory to which nothing points. What threads that still run hold is none.
const VALGRIND: [&str; 7] = [
    "valgrind",
    "--quiet",
    "--fair-sched=try",
    "--leak-check=full",
    "--show-leak-kinds=definite",
    "--errors-for-leak-kinds=definite",
    "--error-exitcode=1",
];
const PACKAGE: &str = "crates/capi";

/// Tests everything that the tools of this machine can test, and says what was skipped.
///
/// The profile is that of tests. The package for Python is built with it, which CI has compiled before: with the same
/// packages, dependencies have the same features, so that the engine is not compiled again.
pub fn test() -> Result<(), String> {
    if !shell::succeeds("cc --version") {
        println!("c: skipped, no C compiler here");
        return Ok(());
    }
    let library = build("--package alluvium-capi --package alluvium-python --lib --profile dev")?;
    let prefix = directory("prefix")?;
    install_built(&library, &prefix)?;
    check_exports(&library.with_extension("so"), "")?;
    check_exports(&prefix.join("lib/liballuvium.so"), "@@ALLUVIUM_0")?;
    check_header(&prefix)?;
    check_coverage()?;
    let programs = directory("programs")?;
    thread::scope(|scope| {
        let in_c =
            scope.spawn(|| run_tests(&prefix, &programs).and_then(|()| run_example(&prefix, &programs)));
        let in_go = run_go(&prefix, &programs);
        in_c.join().map_err(|_| "the tests in C panicked".to_owned())?.and(in_go)
    })
}

/// Builds the library optimized and installs it.
pub fn install(prefix: &Path) -> Result<(), String> {
    install_built(&build("--package alluvium-capi --profile release")?, prefix)?;
    println!("c: the library, its header and alluvium.pc are below {}", prefix.display());
    Ok(())
}

/// Builds the library with others and returns the path of the static one. The shared one is beside it.
fn build(selection: &str) -> Result<PathBuf, String> {
    let line = format!("cargo build {selection} --message-format json-render-diagnostics");
    let output = shell::command(&line).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("cannot start `{line}`: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{line}` failed: {}", output.status));
    }
    let messages = String::from_utf8_lossy(&output.stdout).into_owned();
    static_library(&messages).ok_or_else(|| format!("`{line}` built no static library"))
}

fn static_library(messages: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let files = messages.filter_map(|message| message["filenames"].as_array().cloned()).flatten();
    let mut paths = files.filter_map(|file| file.as_str().map(PathBuf::from));
    paths.find(|path| path.ends_with("liballuvium.a"))
}

/// Puts header, libraries and the file for pkg-config below `prefix`. The shared library is linked from the static one,
/// with versions of its symbols: the compiler of Rust passes the linker a list of symbols, beside which no versions can
/// be given.
fn install_built(library: &Path, prefix: &Path) -> Result<(), String> {
    let package = shell::root().join(PACKAGE);
    let (lib, include) = (prefix.join("lib"), prefix.join("include"));
    let described = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| format!("cannot write {path}: {error}")
    };
    fs::create_dir_all(lib.join("pkgconfig")).map_err(described(&lib))?;
    fs::create_dir_all(&include).map_err(described(&include))?;
    fs::copy(package.join("include/alluvium.h"), include.join("alluvium.h")).map_err(described(&include))?;
    fs::copy(library, lib.join("liballuvium.a")).map_err(described(&lib))?;

    let version = env!("CARGO_PKG_VERSION");
    let name = format!("liballuvium.so.{version}");
    let mut command = shell::command("cc -shared -Wl,-soname,liballuvium.so.0 -Wl,--gc-sections");
    command.arg(format!("-Wl,--version-script={}", package.join("symbols.map").display()));
    command.arg("-Wl,--whole-archive").arg(library).arg("-Wl,--no-whole-archive");
    command.args(SYSTEM_LIBRARIES).arg("-o").arg(lib.join(&name));
    shell::run_command("cc -shared", command)?;
    for link in ["liballuvium.so.0", "liballuvium.so"] {
        // It may be absent.
        let _ = fs::remove_file(lib.join(link));
        std::os::unix::fs::symlink(&name, lib.join(link)).map_err(described(&lib))?;
    }

    let template = package.join("alluvium.pc.in");
    let template =
        fs::read_to_string(&template).map_err(|error| format!("{}: {error}", template.display()))?;
    let absolute = std::path::absolute(prefix).map_err(|error| error.to_string())?;
    let text = template
        .replace("@prefix@", &absolute.display().to_string())
        .replace("@version@", version)
        .replace("@private@", &SYSTEM_LIBRARIES.join(" "));
    let path = lib.join("pkgconfig/alluvium.pc");
    fs::write(&path, text).map_err(described(&path))
}

/// Checks that the library exports what the header declares, with this version, and nothing else.
fn check_exports(library: &Path, version: &str) -> Result<(), String> {
    let line = format!("nm --dynamic --defined-only {}", library.display());
    let Some(listing) = shell::output(&line) else {
        println!("c: the symbols are not checked, `{line}` fails here");
        return Ok(());
    };
    // A version is a symbol, too.
    let symbols =
        listing.lines().filter(|line| !line.contains(" A ")).filter_map(|line| line.split(' ').nth(2));
    let mut exported: Vec<&str> = symbols.collect();
    exported.sort_unstable();
    let mut declared: Vec<String> =
        declared_functions()?.iter().map(|name| format!("{name}{version}")).collect();
    declared.sort_unstable();
    if exported == declared {
        return Ok(());
    }
    let surplus = exported.iter().filter(|name| !declared.iter().any(|other| other == *name)).take(5);
    Err(format!(
        "{} exports {} symbols, and the header declares {}; surplus: {:?}",
        library.display(),
        exported.len(),
        declared.len(),
        surplus.collect::<Vec<_>>()
    ))
}

/// The names of the functions of the header.
fn declared_functions() -> Result<Vec<String>, String> {
    let path = shell::root().join(PACKAGE).join("include/alluvium.h");
    let header = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let lines = header.lines().filter(|line| !line.starts_with([' ', '*', '/', '#', '}']));
    let names = lines.filter_map(|line| line.split_once('(')).map(|(head, _)| head);
    let names = names.filter_map(|head| head.rsplit([' ', '*']).next());
    Ok(names.filter(|name| name.starts_with("alluvium_")).map(str::to_owned).collect())
}

/// Compiles the header alone, as C and as C++.
fn check_header(prefix: &Path) -> Result<(), String> {
    let header = prefix.join("include/alluvium.h");
    for line in ["cc -std=c11 -x c", "c++ -std=c++17 -x c++"] {
        let mut command = shell::command(line);
        command.args(WARNINGS).arg("-fsyntax-only").arg(&header);
        shell::run_command(line, command)?;
    }
    Ok(())
}

/// Checks that the tests call every function.
fn check_coverage() -> Result<(), String> {
    let mut text = String::new();
    for path in test_sources()? {
        text += &fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    match declared_functions()?.iter().find(|name| !text.contains(&format!("{name}("))) {
        Some(name) => Err(format!("no test in {PACKAGE}/tests/c calls {name}")),
        None => Ok(()),
    }
}

fn test_sources() -> Result<Vec<PathBuf>, String> {
    let directory = shell::root().join(PACKAGE).join("tests/c");
    let entries = fs::read_dir(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    Ok(paths.filter(|path| path.extension().is_some_and(|extension| extension == "c")).collect())
}

/// The options of the compiler, from pkg-config where it is there.
fn flags(prefix: &Path) -> Vec<String> {
    let mut command = shell::command("pkg-config --cflags --libs alluvium");
    command.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")).stderr(Stdio::null());
    let found = command.output().ok().filter(|output| output.status.success());
    match found {
        Some(output) => {
            String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect()
        }
        None => {
            println!("c: alluvium.pc is not tested, no pkg-config here");
            let (include, lib) = (prefix.join("include"), prefix.join("lib"));
            vec![format!("-I{}", include.display()), format!("-L{}", lib.display()), "-lalluvium".to_owned()]
        }
    }
}

/// Runs a program with the installed library, then under valgrind with these further words before it, if valgrind is
/// there. The program gets an empty directory for its files.
fn run(name: &str, program: &Path, prefix: &Path, before: &[&str]) -> Result<(), String> {
    let with = |mut command: Command, files: &str| {
        command.env("LD_LIBRARY_PATH", prefix.join("lib")).arg(directory(&format!("{name}-{files}"))?);
        shell::run_command(&format!("the program of {name}, {files}"), command)
    };
    with(shell::program(program), "plain")?;
    if !shell::succeeds("valgrind --version") {
        println!("c: the program of {name} does not run under valgrind, which is not installed");
        return Ok(());
    }
    let mut command = shell::command("env");
    command.args(before).arg(program);
    with(command, "valgrind")
}

/// Compiles and runs the tests in C.
fn run_tests(prefix: &Path, programs: &Path) -> Result<(), String> {
    let program = programs.join("test");
    let mut command = shell::command("cc -std=c11 -g -pthread");
    command.args(WARNINGS).args(test_sources()?).args(flags(prefix)).arg("-o").arg(&program);
    shell::run_command("cc of the tests", command)?;
    run("tests", &program, prefix, &VALGRIND)
}

/// Compiles the example in C with the static library, and runs it.
fn run_example(prefix: &Path, programs: &Path) -> Result<(), String> {
    let program = programs.join("words");
    let mut command = shell::command("cc -std=c11 -O2");
    command.args(WARNINGS).arg(shell::root().join(PACKAGE).join("examples/words.c"));
    command.arg("-I").arg(prefix.join("include")).arg(prefix.join("lib/liballuvium.a"));
    command.args(SYSTEM_LIBRARIES).arg("-o").arg(&program);
    shell::run_command("cc of the example", command)?;
    let mut command = shell::program(&program);
    command.arg(directory("example")?.join("data"));
    shell::run_command("the example in C", command)
}

/// Builds and runs the example in Go.
fn run_go(prefix: &Path, programs: &Path) -> Result<(), String> {
    let go = ["go", "/usr/local/go/bin/go"].into_iter().find(|go| shell::succeeds(&format!("{go} version")));
    let Some(go) = go else {
        println!("c: the example in Go is not built, no Go here");
        return Ok(());
    };
    let program = programs.join("go");
    let package = shell::root().join(PACKAGE).join("examples/go");
    // Valgrind does not know the newest form of debug information.
    let mut command = shell::command(&format!("{go} build -buildvcs=false -ldflags=-w -o"));
    command.arg(&program).arg(".").current_dir(&package);
    command
        .env("CGO_ENABLED", "1")
        .env("GOTOOLCHAIN", "local")
        .env("GOFLAGS", "-mod=mod")
        .env("GOPROXY", "off");
    command.env("CGO_CFLAGS", format!("-I{}", prefix.join("include").display()));
    command.env("CGO_LDFLAGS", format!("-L{}", prefix.join("lib").display()));
    shell::run_command("go build", command)?;
    let suppressions = format!("--suppressions={}", package.join("valgrind.supp").display());
    // A signal handler that continues elsewhere is more than valgrind can follow.
    let before = [&["GODEBUG=asyncpreemptoff=1"], &VALGRIND[..], &[&suppressions]].concat();
    run("go", &program, prefix, &before)
}

/// An empty directory below `target/c`.
fn directory(name: &str) -> Result<PathBuf, String> {
    let path = shell::root().join("target/c").join(name);
    // It may be absent.
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).map_err(|error| format!("cannot make {}: {error}", path.display()))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_static_library_is_found_among_messages() {
        let messages = [
            r#"{"reason":"compiler-artifact","filenames":["/t/liballuvium.rlib","/t/liballuvium.rmeta"]}"#,
            r#"{"reason":"compiler-artifact","filenames":["/t/liballuvium.so","/t/liballuvium.a"]}"#,
            r#"{"reason":"build-finished","success":true}"#,
        ];
        assert_eq!(static_library(&messages.join("\n")), Some(PathBuf::from("/t/liballuvium.a")));
        assert_eq!(static_library(messages[0]), None);
    }

    #[test]
    fn the_functions_of_the_header_are_found() {
        let functions = declared_functions().unwrap();
        assert!(functions.len() > 90, "{} functions", functions.len());
        for name in ["alluvium_version", "alluvium_open", "alluvium_get_many_flat", "alluvium_error_free"] {
            assert!(functions.iter().any(|function| function == name), "{name}");
        }
    }
}
