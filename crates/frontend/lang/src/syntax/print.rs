//! Prints the syntax tree in one canonical form.
//!
//! The printed text parses to the same tree, except for spans. Comments and redundant parentheses
//! are not in the tree, so they are lost. Trees that no text has (a negative number literal, a
//! reserved name) are printed as something similar.

mod exprs;
mod stmts;

use super::ast::{
    Block, Declarator, File, ItemKind, Name, ObjectArg, RangeExpr, TypeExpr, TypeKind,
};
use exprs::{expr, leading};

/// The text of a model.
pub fn print(file: &File) -> String {
    let mut printer = Printer { text: String::new(), depth: 0 };
    for item in &file.items {
        printer.item(&item.kind);
    }
    printer.text
}

struct Printer {
    text: String,
    /// The indentation of the current line, in blocks.
    depth: usize,
}

impl Printer {
    /// A line of its own.
    fn line(&mut self, line: &str) {
        self.text += &"    ".repeat(self.depth);
        self.text += line;
        self.text.push('\n');
    }

    /// `head { … }`, on a line that may have been started.
    fn block(&mut self, head: &str, block: &Block) {
        self.line(&format!("{head}{{"));
        self.body(block);
        self.line("}");
    }

    fn body(&mut self, block: &Block) {
        self.depth += 1;
        for stmt in &block.stmts {
            self.stmt(stmt, "");
        }
        self.depth -= 1;
    }

    fn item(&mut self, item: &ItemKind) {
        match item {
            ItemKind::Steps(word) => self.line(&format!("steps {};", word.text)),
            ItemKind::Memory(word) => self.line(&format!("memory {};", word.text)),
            ItemKind::Const { name, ty: declared, value } => {
                let declared = declared
                    .as_ref()
                    .map(|declared| format!(": {}", ty(declared)))
                    .unwrap_or_default();
                self.line(&format!("const {}{declared} = {};", name.text, expr(value)));
            }
            ItemKind::Enum { name, variants } => {
                let variants: Vec<&str> = variants.iter().map(|variant| &*variant.text).collect();
                self.line(&format!("enum {} {{ {} }}", name.text, variants.join(", ")));
            }
            ItemKind::Record { name, fields } => {
                self.line(&format!("record {} {{ {} }}", name.text, typed_names(fields)));
            }
            ItemKind::Var { atomic, name, ty, init } => {
                let atomic = if *atomic { "atomic " } else { "" };
                self.line(&format!(
                    "{atomic}{};",
                    variable(name, ty.as_ref(), init.as_ref().map(expr))
                ));
            }
            ItemKind::Object { ty: object, declarators } => {
                let declarators: Vec<String> = declarators.iter().map(declarator).collect();
                self.line(&format!("{} {};", ty(object), declarators.join(", ")));
            }
            ItemKind::Fn { name, params, result, body } => {
                let result =
                    result.as_ref().map(|result| format!("-> {} ", ty(result))).unwrap_or_default();
                self.block(&format!("fn {}({}) {result}", name.text, typed_names(params)), body);
            }
            ItemKind::Thread { name, params, body } => {
                let params: Vec<String> =
                    params.iter().map(|(name, over)| bound(name, over)).collect();
                let params = if params.is_empty() {
                    String::new()
                } else {
                    format!("({})", params.join(", "))
                };
                self.block(&format!("thread {}{params} ", name.text), body);
            }
            ItemKind::Init(body) => self.block("init ", body),
            ItemKind::Invariant { name, condition } => {
                let name = name.as_ref().map(|name| format!("{}: ", name.text)).unwrap_or_default();
                self.line(&format!("invariant {name}{};", expr(condition)));
            }
        }
    }
}

/// `var x: int = 3`
fn variable(name: &Name, declared: Option<&TypeExpr>, init: Option<String>) -> String {
    let declared = declared.map(|declared| format!(": {}", ty(declared))).unwrap_or_default();
    let init = init.map(|init| format!(" = {init}")).unwrap_or_default();
    format!("var {}{declared}{init}", name.text)
}

/// `forks[N]`
fn declarator(declarator: &Declarator) -> String {
    let dimensions: Vec<String> =
        declarator.dimensions.iter().map(|length| format!("[{}]", expr(length))).collect();
    format!("{}{}", declarator.name.text, dimensions.concat())
}

/// `a: int, b: bool`
fn typed_names(names: &[(Name, TypeExpr)]) -> String {
    let names: Vec<String> =
        names.iter().map(|(name, of)| format!("{}: {}", name.text, ty(of))).collect();
    names.join(", ")
}

/// `i in 0..N`
fn bound(name: &Name, over: &RangeExpr) -> String {
    format!("{} in {}", name.text, exprs::range(over))
}

fn ty(of: &TypeExpr) -> String {
    match &of.kind {
        TypeKind::Named(name) => name.clone(),
        TypeKind::Range(range) => {
            format!("{}{}{}", leading(&range.lo), exprs::dots(range), exprs::operand(&range.hi))
        }
        TypeKind::Array(element, length) => format!("[{}; {}]", ty(element), expr(length)),
        TypeKind::Pointer(to) => format!("*{}", ty(to)),
        TypeKind::Object(word, args) if args.is_empty() => word.clone(),
        TypeKind::Object(word, args) => {
            let args: Vec<String> = args.iter().map(object_arg).collect();
            format!("{word}({})", args.join(", "))
        }
    }
}

fn object_arg(arg: &ObjectArg) -> String {
    match arg {
        ObjectArg::Expr(value) => leading(value),
        ObjectArg::Type(of) => ty(of),
    }
}
