//! Descriptions of states and steps for traces.

use preempt_system::object::Kind;
use preempt_system::{
    Access, Action, Choice, Describe, Footprint, Location, Narration, Step, ThreadId,
};

use super::cells::{Root, kind, size};
use super::code::{Cell, RestPoint};
use super::record::{Accesses, Recorder};
use super::{Machine, Stepper};
use crate::program::{FunctionId, Type};
use crate::source::Span;

impl Machine {
    /// The name of a thread: `phil(2)`, or `worker#3` for the thread in slot 3 that `spawn` made.
    pub fn thread_name(&self, thread: ThreadId) -> String {
        match &self.cells.slots[thread.index()].root {
            Root::Thread(function, params) => {
                let name = &self.program.functions[*function].name;
                let params: Vec<String> = params.iter().map(i64::to_string).collect();
                if params.is_empty() {
                    name.clone()
                } else {
                    format!("{name}({})", params.join(", "))
                }
            }
            Root::Spare => {
                let mut names =
                    self.facts.spawned.iter().map(|&f| self.program.functions[f].name.as_str());
                let only = (self.facts.spawned.len() == 1).then(|| names.next()).flatten();
                format!("{}#{}", only.unwrap_or("thread"), thread.index())
            }
            Root::Init(_) => "init".to_owned(),
        }
    }

    /// The name of a cell, such as `a[3].next`, `Node#2.value`, or that of a local variable.
    pub(super) fn cell_name(&self, cell: Cell) -> String {
        match self.locate(cell) {
            Some((name, ty, offset)) => self.part_name(name, &ty, offset, None).0,
            None => "an intermediate value".to_owned(),
        }
    }

    /// The variable that contains a cell, its type, and the offset of the cell.
    fn locate(&self, cell: Cell) -> Option<(String, Type, u32)> {
        let global = self.cells.globals.partition_point(|&base| base <= cell);
        if let Some(global) = global.checked_sub(1) {
            let (base, global) = (self.cells.globals[global], &self.program.globals[global]);
            if cell - base < size(&self.program, &global.ty) {
                return Some((global.name.clone(), global.ty.clone(), cell - base));
            }
        }
        for (&record, pool) in &self.cells.pools {
            if pool.range().contains(&cell) {
                let distance = cell - pool.base;
                let name =
                    format!("{}#{}", self.program.records[record].name, distance / pool.size + 1);
                return Some((name, Type::Record(record), distance % pool.size));
            }
        }
        let frames = self.cells.slots.iter().chain(&self.cells.init).flat_map(|slot| &slot.frames);
        for (&function, frame) in frames {
            for (local, &base) in self.program.functions[function].locals.iter().zip(&frame.locals)
            {
                if (base..base.saturating_add(size(&self.program, &local.ty))).contains(&cell) {
                    return Some((local.name.clone(), local.ty.clone(), cell - base));
                }
            }
        }
        None
    }

    /// The name and the type of the part of a variable that starts at `offset`: the part of the
    /// type `wanted`, or the smallest part, but whole objects.
    fn part_name(
        &self,
        name: String,
        ty: &Type,
        offset: u32,
        wanted: Option<&Type>,
    ) -> (String, Type) {
        if offset == 0 && wanted == Some(ty) {
            return (name, ty.clone());
        }
        match ty {
            Type::Array(element, _) => {
                let stride = size(&self.program, element);
                self.part_name(
                    format!("{name}[{}]", offset / stride),
                    element,
                    offset % stride,
                    wanted,
                )
            }
            Type::Record(id) => {
                let mut offset = offset;
                for (field, ty) in &self.program.records[*id].fields {
                    let size = size(&self.program, ty);
                    if offset < size {
                        return self.part_name(format!("{name}.{field}"), ty, offset, wanted);
                    }
                    offset -= size;
                }
                (name, ty.clone())
            }
            _ => (name, ty.clone()),
        }
    }

    /// Whether nothing was assigned to a cell.
    fn is_zero(&self, state: &[u64], cell: Cell) -> bool {
        let field = &self.layout.fields[cell as usize];
        field.get(state) == (field.zero as i64).wrapping_add(field.lo)
    }

    fn get(&self, state: &[u64], cell: Cell) -> i64 {
        self.layout.fields[cell as usize].get(state)
    }

    /// The value of type `ty` that starts at `cell`.
    fn show(&self, state: &[u64], cell: Cell, ty: &Type) -> String {
        match ty {
            Type::Array(element, length) => {
                let stride = size(&self.program, element);
                let parts =
                    (0..*length as u32).map(|i| self.show(state, cell + i * stride, element));
                format!("[{}]", parts.collect::<Vec<_>>().join(", "))
            }
            Type::Record(id) => {
                let mut at = cell;
                let parts = self.program.records[*id].fields.iter().map(|(name, ty)| {
                    let text = format!("{name}: {}", self.show(state, at, ty));
                    at += size(&self.program, ty);
                    text
                });
                format!("{{ {} }}", parts.collect::<Vec<_>>().join(", "))
            }
            Type::Object(object) => {
                let element = match object {
                    crate::program::ObjectType::Channel { element, .. } => Some(&**element),
                    _ => None,
                };
                self.show_object(state, cell, kind(object), element)
            }
            scalar => self.show_scalar(self.get(state, cell), scalar),
        }
    }

    fn show_scalar(&self, value: i64, ty: &Type) -> String {
        match ty {
            Type::Bool => (value != 0).to_string(),
            Type::Enum(id) => self.program.enums[*id].variants[value as usize].clone(),
            Type::Pointer(_) | Type::Thread if value == 0 => "null".to_owned(),
            Type::Thread => self.thread_name(ThreadId::new(value as usize - 1)),
            Type::Pointer(target) => match self.locate(value as Cell - 1) {
                Some((name, ty, offset)) => {
                    let whole = self.part_name(name, &ty, offset, Some(target)).0;
                    // A record on the heap has no other name than the pointers to it.
                    let on_heap = whole.contains('#') && !whole.contains(['.', '[']);
                    if on_heap { whole } else { format!("&{whole}") }
                }
                None => unreachable!("a pointer points to a shared place"),
            },
            _ => value.to_string(),
        }
    }

    fn show_object(&self, state: &[u64], cell: Cell, kind: Kind, element: Option<&Type>) -> String {
        let fields: Vec<u64> =
            (cell..).take(kind.fields()).map(|field| self.get(state, field) as u64).collect();
        let payload = |value: i64| {
            element.map_or_else(|| value.to_string(), |ty| self.show_scalar(value, ty))
        };
        kind.show(&fields, |thread| self.thread_name(thread), payload)
    }

    /// The text of a span on one line, without comments.
    fn text(&self, span: Span) -> String {
        let lines = self
            .program
            .source
            .slice(span)
            .lines()
            .map(|line| line.split("//").next().unwrap_or_default());
        lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
    }

    fn narration(&self, rest: &RestPoint) -> Narration {
        let source = self.text(rest.span) + rest.tail;
        Narration { site: Some(self.program.source.site(rest.span)), source, effects: Vec::new() }
    }

    /// The named locals of a thread whose values differ between two states.
    fn changed_locals(&self, thread: ThreadId, before: &[u64], after: &[u64]) -> Vec<String> {
        let mut changed = Vec::new();
        for (&function, frame) in &self.cells.slots[thread.index()].frames {
            // The variables of a call that has ended were not assigned; they no longer exist.
            if frame.cells.clone().all(|cell| self.is_zero(after, cell)) {
                continue;
            }
            for (local, &base) in self.program.functions[function].locals.iter().zip(&frame.locals)
            {
                if base == super::cells::NO_CELL {
                    continue;
                }
                for cell in base..base + size(&self.program, &local.ty) {
                    if self.get(before, cell) != self.get(after, cell) {
                        let (name, ty) =
                            self.part_name(local.name.clone(), &local.ty, cell - base, None);
                        changed.push(format!("{name} = {}", self.show(after, cell, &ty)));
                    }
                }
            }
        }
        changed
    }

    /// The named locals of a running thread, including those of the functions that it has called.
    fn locals(&self, thread: ThreadId, state: &[u64]) -> Vec<(String, String)> {
        let (slot, body) = (&self.cells.slots[thread.index()], self.body(thread));
        let mut all = Vec::new();
        for (&function, frame) in &slot.frames {
            let is_body = body == Some(function);
            // The cells of a call that has ended or not started yet are unassigned.
            if !is_body && frame.cells.clone().all(|cell| self.is_zero(state, cell)) {
                continue;
            }
            let of = &self.program.functions[function];
            for (local, &base) in of
                .locals
                .iter()
                .zip(&frame.locals)
                .filter(|&(_, &base)| base != super::cells::NO_CELL)
            {
                let name = if is_body {
                    local.name.clone()
                } else {
                    format!("{}.{}", of.name, local.name)
                };
                all.push((name, self.show(state, base, &local.ty)));
            }
        }
        all
    }

    /// The first function of a thread, if it is known statically.
    fn body(&self, thread: ThreadId) -> Option<FunctionId> {
        match self.cells.slots[thread.index()].root {
            Root::Thread(function, _) | Root::Init(function) => Some(function),
            Root::Spare => None,
        }
    }

    /// The name and the type of what starts at a shared cell: a variable, a part of one, or an
    /// object.
    fn shared_part(&self, cell: Cell) -> Option<(String, Type)> {
        if cell >= self.cells.shared || cell == self.cells.threads {
            return None;
        }
        let (name, ty, offset) = self.locate(cell)?;
        Some(self.part_name(name, &ty, offset, None))
    }

    /// The effect of a step on a shared location.
    fn effect(&self, cell: Cell, access: Access, before: &[u64], after: &[u64]) -> Option<String> {
        let (name, ty) = self.shared_part(cell)?;
        let (old, new) = (self.show(before, cell, &ty), self.show(after, cell, &ty));
        Some(match access {
            Access::Write if old != new => format!("{name}: {old} → {new}"),
            Access::Read | Access::Write => format!("{name} = {new}"),
        })
    }
}

/// Records what a blocked step has accessed, and the thread whose end it waits for. A footprint
/// does not distinguish that thread from the one that takes the step: the steps of spawned threads
/// read their own stage too.
struct Wait<'a> {
    accesses: Accesses<'a>,
    joins: Option<ThreadId>,
}

impl Recorder for Wait<'_> {
    fn cell(&mut self, cell: Cell, access: Access) {
        self.accesses.cell(cell, access);
    }
    fn act(&mut self, cell: Cell, kind: Kind, action: Action) {
        self.accesses.act(cell, kind, action);
    }
    fn waits(&mut self, cell: Cell, kind: Kind, action: Action) {
        self.accesses.waits(cell, kind, action);
    }
    fn life(&mut self, thread: ThreadId, action: Action) {
        if action == Action::Join {
            self.joins = Some(thread);
        }
    }
}

impl Describe for Stepper<'_> {
    fn thread_name(&self, thread: ThreadId) -> String {
        self.machine.thread_name(thread)
    }

    fn describe_step(&mut self, state: &[u64], choice: Choice) -> Narration {
        let machine = self.machine;
        let slot = &machine.slots[choice.thread.index()];
        let at = slot.counter.get(state);
        let Some(rest) = machine.code.slots[choice.thread.index()].rests.get(at as usize) else {
            return Narration { source: "(has ended)".to_owned(), ..Narration::default() };
        };
        let mut narration = machine.narration(rest);
        let (mut after, mut footprint) = (state.to_vec(), Footprint::new());
        let step = self.take_step_with_effects(
            &mut after,
            choice,
            &mut Accesses { footprint: &mut footprint, machine },
        );
        let shared = footprint.accesses().iter();
        narration
            .effects
            .extend(shared.filter_map(|&(at, access)| machine.effect(at.0, access, state, &after)));
        narration.effects.extend(machine.changed_locals(choice.thread, state, &after));
        if slot.counter.get(&after) == slot.ended && matches!(step, Step::Moved { .. }) {
            narration.effects.push("ends".to_owned());
        }
        narration
    }

    fn describe_wait(&mut self, state: &[u64], thread: ThreadId) -> Option<Narration> {
        let machine = self.machine;
        let mut after = state.to_vec();
        let mut footprint = Footprint::new();
        let accesses = Accesses { footprint: &mut footprint, machine };
        let mut wait = Wait { accesses, joins: None };
        match self.take_step(&mut after, Choice::of(thread), &mut wait) {
            Step::Blocked { .. } => {}
            _ => return None,
        }
        let joins = wait.joins;
        let at = machine.slots[thread.index()].counter.get(state);
        let mut narration =
            machine.narration(&machine.code.slots[thread.index()].rests[at as usize]);
        let shared = footprint.accesses().iter();
        narration
            .effects
            .extend(shared.filter_map(|&(at, _)| machine.effect(at.0, Access::Read, state, state)));
        narration
            .effects
            .extend(joins.map(|thread| format!("{} has not ended", machine.thread_name(thread))));
        Some(narration)
    }

    fn value(&mut self, state: &[u64], location: Location) -> Option<(String, String)> {
        let (name, ty) = self.machine.shared_part(location.0)?;
        let value = self.machine.show(state, location.0, &ty);
        Some((name, value))
    }

    fn variables(&mut self, state: &[u64]) -> Vec<(String, String)> {
        let machine = self.machine;
        let globals = machine.program.globals.iter().zip(&machine.cells.globals);
        let mut all: Vec<(String, String)> = globals
            .map(|(global, &cell)| (global.name.clone(), machine.show(state, cell, &global.ty)))
            .collect();
        for (&record, pool) in &machine.cells.pools {
            for i in 0..machine.get(state, pool.live) as u32 {
                let name = format!("{}#{}", machine.program.records[record].name, i + 1);
                all.push((
                    name,
                    machine.show(state, pool.base + i * pool.size, &Type::Record(record)),
                ));
            }
        }
        all
    }

    fn locals(&mut self, state: &[u64], thread: ThreadId) -> Vec<(String, String)> {
        let slot = &self.machine.slots[thread.index()];
        let there = ![slot.ended, slot.absent].contains(&slot.counter.get(state));
        if there { self.machine.locals(thread, state) } else { Vec::new() }
    }
}
