//! The command `cargo preempt`.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    preempt_cli::cargo_preempt()
}
