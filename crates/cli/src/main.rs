//! The command `preempt`.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    preempt_cli::preempt()
}
