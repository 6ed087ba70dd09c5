//! One test per model: those of the corpus, and the examples of the language reference.

mod corpus;
mod language;

fn main() {
    let trials = corpus::trials().into_iter().chain(language::trials()).collect();
    libtest_mimic::run(&libtest_mimic::Arguments::from_args(), trials).exit();
}
