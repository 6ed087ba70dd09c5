//! The output of the commands, as transcripts in `tests/cmd`. `TRYCMD=overwrite cargo test -p
//! preempt-cli transcripts` rewrites them; parts that differ from run to run (times, memory) must
//! then be replaced by `[..]`.

#[test]
fn transcripts() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd").case("tests/cmd/*.toml");
}
