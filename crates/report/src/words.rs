//! The words for the parts of a strategy: on the command line, in text and in JSON they are the
//! same.

use preempt_explore::reduce::cartesian::Reading;
use preempt_explore::{Cache, Limit, Order, Reduction, StoreKind};

/// The word for an order.
pub fn order(order: Order) -> &'static str {
    match order {
        Order::BreadthFirst => "bfs",
        Order::DepthFirst => "dfs",
        Order::Icb { .. } => "icb",
        Order::ContextBounded => "cb-dfs",
        Order::DfsHb => "dfs-hb",
        Order::Executions => "executions",
        Order::Depth { .. } => "depth",
        Order::IterativeDepth { .. } => "idfs",
        Order::Random => "random",
        Order::Pct { .. } => "pct",
        Order::Urw => "urw",
        other => unreachable!("every order has a word: {other:?}"),
    }
}

/// The word for a cache.
pub fn cache(cache: Cache) -> &'static str {
    match cache {
        Cache::None => "none",
        Cache::State => "state",
        Cache::Hb => "hb",
    }
}

/// The word for a reduction.
pub fn reduction(reduction: Reduction) -> &'static str {
    match reduction {
        Reduction::None => "none",
        Reduction::Sleep => "sleep",
        Reduction::FlanaganGodefroid => "dpor-fg",
        Reduction::Source => "dpor",
        Reduction::Optimal => "dpor-optimal",
        Reduction::BudgetedSleep => "budgeted-sleep",
        Reduction::CbPor => "cb-por",
        Reduction::CbPorStates => "cb-por-states",
        Reduction::Blocks => "blocks",
        Reduction::BlocksPaper => "blocks-paper",
        Reduction::Cartesian { reading: Reading::Late } => "cartesian",
        Reduction::Cartesian { reading: Reading::Literal } => "cartesian-literal",
        Reduction::Transactions => "transactions",
        Reduction::TransactionsCycle => "transactions-cycle",
        Reduction::TransactionsUnsound => "transactions-unsound",
        other => unreachable!("every reduction has a word: {other:?}"),
    }
}

/// The word for a store.
pub fn store(store: StoreKind) -> &'static str {
    match store {
        StoreKind::Exact => "exact",
        StoreKind::Tree => "tree",
        StoreKind::Fingerprint => "fingerprint",
        StoreKind::Bitstate { .. } => "bitstate",
        other => unreachable!("every store has a word: {other:?}"),
    }
}

/// The word for the limit that ended a search.
pub fn limit(limit: Limit) -> &'static str {
    match limit {
        Limit::States => "states",
        Limit::Executions => "executions",
        Limit::Depth => "depth",
        Limit::Memory => "memory",
        Limit::Time => "time",
        Limit::Interrupt => "interrupt",
        Limit::Round => "round",
    }
}
