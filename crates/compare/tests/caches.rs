//! The comparison of caches runs at a small size, and every answer is right. Unoptimized, because the other libraries
//! take longer to optimize than to run once.
#![cfg(feature = "caches")]

use std::process::Command;

#[test]
fn all_caches_are_compared() {
    let output = Command::new(env!("CARGO_BIN_EXE_alluvium-compare"))
        .args(["cache", "--items", "20000", "--requests", "20000", "--rounds", "1"])
        .output()
        .unwrap();
    let [told, shown] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(output.status.success(), "{shown}");
    for peer in ["quick_cache", "moka", "segcache", "dashmap"] {
        assert!(told.contains(peer), "no {peer} in {told}");
    }
}
