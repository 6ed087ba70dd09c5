//! Checks record types: their fields, their sizes, and that none contains itself.

use preempt_machine::diagnostic::Diagnostic;
use preempt_machine::program::{ObjectType, Record, RecordId, Type};
use preempt_machine::source::Span;
use preempt_system::text::grouped;

use super::Checker;
use super::names::RecordItem;

/// The most cells of all shared variables together, and of one heap record.
pub(super) const MAX_SHARED_CELLS: u128 = 1_000_000;
/// The most cells of the locals of one function.
pub(super) const MAX_LOCAL_CELLS: u128 = 100_000;

/// A record type.
pub(super) struct RecordType {
    pub(super) name: String,
    pub(super) fields: Vec<Field>,
    /// The number of cells; 0 until it is known.
    cells: u128,
    /// Whether it contains an object.
    has_objects: bool,
}

/// A field.
pub(super) struct Field {
    pub(super) name: String,
    pub(super) ty: Option<Type>,
    pub(super) span: Span,
}

impl RecordType {
    /// For the program; `None` if it has an error.
    pub(super) fn finish(self) -> Option<Record> {
        let fields = self
            .fields
            .into_iter()
            .map(|field| Some((field.name, field.ty?)))
            .collect::<Option<_>>()?;
        Some(Record { name: self.name, fields })
    }
}

impl<'a> Checker<'a> {
    /// Determines the types of all fields, then the sizes of all records.
    pub(super) fn resolve_records(&mut self, items: &[RecordItem<'a>]) {
        // The names first: messages about the type of a field may need the name of any record.
        for item in items {
            let (name, fields) = (item.name.text.clone(), Vec::new());
            self.records.push(RecordType { name, fields, cells: 0, has_objects: false });
        }
        for (id, item) in items.iter().enumerate() {
            for (name, written) in item.fields {
                let ty = self.resolve(written);
                if let Some(first) =
                    self.records[id].fields.iter().find(|field| field.name == name.text)
                {
                    let first = first.span;
                    self.duplicate(name, first);
                }
                self.records[id].fields.push(Field {
                    name: name.text.clone(),
                    ty,
                    span: name.span,
                });
            }
            if item.fields.is_empty() {
                self.report(
                    Diagnostic::new(
                        item.name.span,
                        format!("record `{}` has no fields", item.name.text),
                    )
                    .label("nothing could be stored in it")
                    .hint("give it at least one field"),
                );
            }
        }
        self.size_records(items);
    }

    /// Computes the sizes of records after those that they contain. A record that contains itself
    /// is reported once; its size stays 0, so that nothing else is reported about it.
    fn size_records(&mut self, items: &[RecordItem<'a>]) {
        let parts: Vec<Vec<RecordId>> = self.records.iter().map(parts).collect();
        let mut seen = vec![false; items.len()];
        for root in 0..items.len() {
            let mut path = if seen[root] { vec![] } else { vec![(root, 0)] };
            while let Some((id, followed)) = path.last_mut() {
                let id = *id;
                seen[id] = true;
                let Some(&part) = parts[id].get(*followed) else {
                    path.pop();
                    self.size_record(id, items[id].name.span);
                    continue;
                };
                *followed += 1;
                if let Some(start) = path.iter().position(|&(id, _)| id == part) {
                    self.record_cycle(path[start..].iter().map(|&(id, _)| &items[id]).collect());
                } else if !seen[part] {
                    path.push((part, 0));
                }
            }
        }
    }

    fn size_record(&mut self, id: RecordId, span: Span) {
        let types = || self.records[id].fields.iter().filter_map(|field| field.ty.as_ref());
        let cells = types().fold(0u128, |sum, ty| sum.saturating_add(self.cells(ty)));
        let has_objects = types().any(|ty| self.has_objects(ty));
        self.records[id].has_objects = has_objects;
        if cells <= MAX_SHARED_CELLS {
            self.records[id].cells = cells;
            return;
        }
        self.report(
            Diagnostic::new(span, format!("record `{}` is too large", self.records[id].name))
                .label(format!(
                    "has {} cells; at most {} are possible",
                    size(cells),
                    size(MAX_SHARED_CELLS)
                ))
                .hint("use shorter arrays: a model checker stores every state it sees"),
        );
    }

    fn record_cycle(&mut self, cycle: Vec<&RecordItem<'a>>) {
        let [first, rest @ ..] = cycle.as_slice() else { return };
        let name = &first.name.text;
        let names: Vec<&str> =
            cycle.iter().chain([first]).map(|item| item.name.text.as_str()).collect();
        let mut diagnostic =
            Diagnostic::new(first.name.span, format!("record `{name}` contains itself"))
                .label(format!("{} has no end", names.join(" → ")))
                .hint(format!("put a pointer in between: a field of type `*{name}`"));
        for item in rest {
            diagnostic =
                diagnostic.related(item.name.span, format!("through `{}`", item.name.text));
        }
        self.report(diagnostic);
    }

    /// The number of cells of a value of a type; a channel has one more than its capacity.
    pub(super) fn cells(&self, ty: &Type) -> u128 {
        match ty {
            Type::Record(id) => self.records[*id].cells,
            Type::Array(element, length) => self.cells(element).saturating_mul(*length as u128),
            Type::Object(ObjectType::Channel { capacity, .. }) => u128::from(*capacity) + 1,
            _ => 1,
        }
    }

    /// Whether a type contains an object, not counting pointers.
    pub(super) fn has_objects(&self, ty: &Type) -> bool {
        match ty {
            Type::Record(id) => self.records[*id].has_objects,
            Type::Array(element, _) => self.has_objects(element),
            Type::Object(_) => true,
            _ => false,
        }
    }
}

/// The records that a record contains, not counting pointers.
fn parts(record: &RecordType) -> Vec<RecordId> {
    let part = |mut ty: &Type| loop {
        match ty {
            Type::Array(element, _) => ty = element,
            Type::Record(id) => return Some(*id),
            _ => return None,
        }
    };
    record.fields.iter().filter_map(|field| part(field.ty.as_ref()?)).collect()
}

/// A number for a message, with thousands separators.
pub(super) fn size(number: u128) -> String {
    if number > 1_000_000_000_000_000 {
        return "more than 10^15".into();
    }
    grouped(number as u64)
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_readable() {
        assert_eq!(size(1_234_567), "1,234,567");
        assert_eq!(size(u128::MAX), "more than 10^15");
    }
}
