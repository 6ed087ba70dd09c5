//! What the commands print, as transcripts in `tests/cmd`.
//! `TRYCMD=overwrite cargo test -p preempt-cli transcripts` rewrites them; what differs from run to
//! run (times, memory) is written as `[..]` afterwards.

#[test]
fn transcripts() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd").case("tests/cmd/*.toml");
}
