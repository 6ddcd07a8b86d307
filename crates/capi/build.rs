//! Gives the shared library its name for the linker, with the major version of the interface.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,liballuvium.so.0");
}
