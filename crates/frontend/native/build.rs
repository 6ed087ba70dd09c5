//! Compiles the runtime, the library that is loaded into executables under test.
//!
//! The library is embedded into every binary that uses this crate, so that `cargo install` and
//! `cargo run` need no other file. On stable Rust, cargo cannot embed the artefact of one crate
//! into another, and the file of a `cdylib` dependency would have to be found by guessing its name.
//! So this script calls `rustc` directly: the runtime has no dependencies, and always gets the
//! flags that it needs, whatever the profile and `RUSTFLAGS` of the build are. In particular, it
//! must unwind, and must not be instrumented.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let library = out.join("runtime.so");
    for source in ["runtime/src", "block/src", "../../system/src", "../replay/src/spin.rs"] {
        println!("cargo:rerun-if-changed={source}");
    }
    let target = env::var("TARGET").expect("cargo sets TARGET");
    if target != "x86_64-unknown-linux-gnu" {
        // `Executable::find` refuses to run on such a target.
        std::fs::write(&library, []).expect("the output folder can be written");
        return;
    }
    let rustc = env::var_os("RUSTC").expect("cargo sets RUSTC");
    let status = Command::new(rustc)
        .args(["--edition", "2024", "--crate-type", "cdylib"])
        .args(["--crate-name", "preempt_native_runtime", "--target", &target])
        .args(["-Copt-level=3", "-Cpanic=unwind", "-Cstrip=debuginfo", "-Ccodegen-units=1"])
        // A program that is linked with the library refers to it by this name, so it is loaded only
        // once although it is preloaded too.
        .arg("-Clink-arg=-Wl,-soname,libpreempt_native.so")
        // The runtime reports faults itself; the debug assertions of the object semantics are for
        // tests.
        .args(["-Cdebug-assertions=off", "--cap-lints=allow"])
        .arg("runtime/src/lib.rs")
        .arg("-o")
        .arg(&library)
        .status()
        .expect("rustc can be started");
    assert!(status.success(), "the runtime of preempt-native could not be compiled");
}
