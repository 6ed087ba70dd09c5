//! The crate without its feature `check`: std's own types, at no cost.

pub mod alloc;
pub mod cell;

pub use std::{hint, sync, thread, thread_local};

/// A static that [`lazy_static!`](crate::lazy_static!) declares: std's `LazyLock`.
pub type Lazy<T> = sync::LazyLock<T>;

pub mod lazy_static {
    //! The types of [`lazy_static!`](crate::lazy_static!).
    pub use super::Lazy;
    pub use std::thread::AccessError;
}
