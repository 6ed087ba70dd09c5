//! All integration tests of this crate in one binary: linking many binaries takes longer than
//! running the tests.

mod happens_before;
mod litmus;
mod locks;
mod objects;
mod sequences;
