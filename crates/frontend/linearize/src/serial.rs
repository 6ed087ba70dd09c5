//! The serial executions of a scenario, as a tree: a path is a sequence of calls with their
//! results, and the tree has exactly the paths that some serial execution takes.

/// The outcome of a call in a serial execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallOutcome {
    /// It returns this result.
    Returned(u32),
    /// It never returns.
    Blocks,
}

/// Calls made one after the other, by number, with their outcomes.
pub type SerialCalls = Vec<(usize, CallOutcome)>;

/// Serial executions.
#[derive(Clone, Debug)]
pub struct SerialTree {
    nodes: Vec<Node>,
}

/// The point after some calls.
#[derive(Clone, Debug, Default)]
struct Node {
    next: Vec<(usize, CallOutcome, usize)>,
    /// The results of an observer at this point.
    observed: Vec<u32>,
}

impl Default for SerialTree {
    fn default() -> SerialTree {
        SerialTree { nodes: vec![Node::default()] }
    }
}

impl SerialTree {
    /// The point before the first call.
    pub const ROOT: usize = 0;

    /// The point after one more call with this outcome; added if it is new.
    pub fn extend(&mut self, from: usize, call: usize, outcome: CallOutcome) -> usize {
        if let Some(known) = self.after(from, call, outcome) {
            return known;
        }
        let new = self.nodes.len();
        self.nodes.push(Node::default());
        self.nodes[from].next.push((call, outcome, new));
        new
    }

    /// Adds a result of an observer at a point.
    pub fn observe(&mut self, at: usize, result: u32) {
        let observed = &mut self.nodes[at].observed;
        if !observed.contains(&result) {
            observed.push(result);
        }
    }

    /// The point after one more call with this outcome, if a serial execution leads there.
    pub fn after(&self, from: usize, call: usize, outcome: CallOutcome) -> Option<usize> {
        let mut next = self.nodes[from].next.iter();
        next.find(|next| (next.0, next.1) == (call, outcome)).map(|next| next.2)
    }

    /// The outcomes of a call at a point, each with the point after it: several if the
    /// specification is not deterministic.
    pub fn next(
        &self,
        from: usize,
        call: usize,
    ) -> impl Iterator<Item = (CallOutcome, usize)> + '_ {
        let next = self.nodes[from].next.iter().filter(move |next| next.0 == call);
        next.map(|&(_, outcome, after)| (outcome, after))
    }

    /// The results of an observer at a point.
    pub fn observed(&self, at: usize) -> &[u32] {
        &self.nodes[at].observed
    }

    /// A call that has two outcomes at the same point, unless it `may`; with the calls and outcomes
    /// that lead there.
    pub fn ambiguous(
        &self,
        may: impl Fn(usize) -> bool,
    ) -> Option<(SerialCalls, usize, [CallOutcome; 2])> {
        let mut open = vec![(SerialTree::ROOT, Vec::new())];
        while let Some((at, path)) = open.pop() {
            for (nth, &(call, outcome, next)) in self.nodes[at].next.iter().enumerate() {
                let mut earlier = self.nodes[at].next[..nth].iter();
                if let Some(other) = earlier.find(|other| other.0 == call && !may(call)) {
                    return Some((path, call, [other.1, outcome]));
                }
                let mut path: SerialCalls = path.clone();
                path.push((call, outcome));
                open.push((next, path));
            }
        }
        None
    }

    /// All maximal serial executions: calls with outcomes, and what an observer saw.
    pub fn executions(&self) -> Vec<(SerialCalls, Vec<u32>)> {
        let mut all = Vec::new();
        self.collect(SerialTree::ROOT, &mut Vec::new(), &mut all);
        all
    }

    fn collect(&self, at: usize, path: &mut SerialCalls, all: &mut Vec<(SerialCalls, Vec<u32>)>) {
        let Node { next, observed } = &self.nodes[at];
        if next.is_empty() {
            all.push((path.clone(), observed.clone()));
        }
        for &(call, outcome, after) in next {
            path.push((call, outcome));
            self.collect(after, path, all);
            path.pop();
        }
    }
}
