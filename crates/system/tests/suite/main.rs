//! The tests of this crate in one program: linking many of them takes longer than running them.

mod happens_before;
mod locks;
mod objects;
mod stories;
