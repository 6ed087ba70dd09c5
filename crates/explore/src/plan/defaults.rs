//! The order and the reduction of a plan that names none or one of them.

use preempt_system::{MemoryModel, Model};

use super::strategies;
use super::{Cache, Order, Plan, Points, Reduction};

/// The kind of program that is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A [`Model`](preempt_system::Model), whose states can be copied and compared.
    Model,
    /// A [`Model`](preempt_system::Model) with weak memory, whose states do not determine what
    /// follows.
    WeakModel,
    /// Another [`Program`](preempt_system::Program), such as a closure.
    Program,
}

impl Plan {
    /// The usual plan for a model: it explores the model's memory.
    pub fn for_model(model: &impl Model) -> Plan {
        let plan = Plan { memory: model.memory_model(), ..Plan::new() };
        match plan.memory {
            MemoryModel::Weak => plan.choose(None, None, Subject::WeakModel),
            _ => plan,
        }
    }

    /// Sets the order and the reduction. Those that are not given follow from each other, and from
    /// the bound and the points of the plan, which have to be set before.
    pub fn choose(
        self,
        order: Option<Order>,
        reduction: Option<Reduction>,
        subject: Subject,
    ) -> Plan {
        let reduced = reduction.and_then(strategies::of_reduction);
        let (order, reduction) = match (order, reduced, subject) {
            (Some(order), ..) => (order, reduction.unwrap_or_default()),
            (None, Some(entry), _) => (entry.orders[0], reduction.unwrap_or_default()),
            // Which races there are depends on happens-before graphs, not on states.
            (None, None, Subject::Model) if self.points == Points::Sync => {
                (Order::Icb { cache: Cache::Hb }, Reduction::None)
            }
            (None, None, Subject::Model) if self.bound.is_some() => {
                (Order::Icb { cache: Cache::State }, Reduction::None)
            }
            (None, None, Subject::Model) => (Order::BreadthFirst, Reduction::None),
            (None, None, Subject::WeakModel) => (Order::Icb { cache: Cache::Hb }, Reduction::None),
            (None, None, Subject::Program) if self.bound.is_some() => {
                (Order::Icb { cache: Cache::Hb }, Reduction::None)
            }
            (None, None, Subject::Program) if reduction.is_some() => {
                (Order::Executions, Reduction::None)
            }
            (None, None, Subject::Program) => (Order::Executions, Reduction::Optimal),
        };
        self.order(order).reduction(reduction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_chosen_can_be_built() {
        let reductions = strategies::STRATEGIES.iter().filter_map(|entry| match entry.value {
            strategies::Value::Reduction(reduction) => Some(reduction),
            strategies::Value::Order(_) => None,
        });
        for reduction in reductions.map(Some).chain([None, Some(Reduction::None)]) {
            for bound in [None, Some(1)] {
                let plan = Plan { bound, ..Plan::new().ignore_deadlocks() };
                let plan = plan.choose(None, reduction, Subject::Model);
                let plan = Plan { memory: plan.entry().memory_models[0], ..plan };
                let allowed = plan.entry().needs_bound.is_some() == bound.is_some();
                let icb = matches!(plan.order, Order::Icb { .. });
                assert_eq!(plan.resolve().is_ok(), allowed || icb, "{plan:?}");
            }
        }
        let unbounded = Plan::new().choose(None, None, Subject::Program);
        assert_eq!(unbounded.entry().name, "dpor-optimal");
        let bounded = Plan::new().bound(2).choose(None, None, Subject::Program);
        assert_eq!(bounded.order, Order::Icb { cache: Cache::Hb });
        let all = Plan::new().choose(None, Some(Reduction::None), Subject::Program);
        assert_eq!(all.entry().name, "executions");
    }
}
