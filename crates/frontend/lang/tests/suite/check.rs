//! The checked programs of valid models; no model makes the checker panic.

use std::path::{Path, PathBuf};

use preempt_lang::check::check;
use preempt_lang::diagnostic::{Diagnostic, Style, render};
use preempt_lang::source::Source;
use preempt_lang::syntax::parse;
use preempt_machine::program::{
    Base, BinaryOp, Expr, ExprKind, Function, Granularity, ObjectType, Program, Projection, Stmt,
    StmtKind, Type,
};

const EVERYTHING: &str = include_str!("../good/everything.pre");

/// Parses and checks.
fn try_check(text: &str) -> Result<Program, Vec<Diagnostic>> {
    let source = Source::new("model.pre", text);
    let (file, diagnostics) = parse(&source);
    if diagnostics.is_empty() { check(&file, &source) } else { Err(diagnostics) }
}

/// A model that is accepted.
fn program(text: &str) -> Program {
    let source = Source::new("model.pre", text);
    try_check(text)
        .unwrap_or_else(|diagnostics| panic!("{}", render(&source, &diagnostics, Style::Plain)))
}

/// The messages about a model that is refused.
fn messages(text: &str) -> Vec<String> {
    let diagnostics = try_check(text).err().unwrap_or_else(|| panic!("accepted: {text}"));
    diagnostics.into_iter().map(|diagnostic| diagnostic.message).collect()
}

fn function<'p>(program: &'p Program, name: &str) -> &'p Function {
    program
        .functions
        .iter()
        .find(|function| function.name == name)
        .expect("the model has this function")
}

/// The statements of `thread main { … }` in a model with these declarations.
fn main_of(declarations: &str, body: &str) -> Vec<Stmt> {
    function(&program(&format!("{declarations} thread main {{ {body} }}")), "main").body.clone()
}

fn constant(expr: &Expr) -> Option<i64> {
    if let ExprKind::Const(value) = expr.kind { Some(value) } else { None }
}

#[test]
fn every_construct_is_accepted() {
    let program = program(EVERYTHING);
    assert_eq!(program.granularity, Granularity::Statement);
    assert_eq!(program.enums[0].variants, ["Red", "Yellow", "Green"]);
    assert_eq!(
        program.records.iter().map(|r| &*r.name).collect::<Vec<_>>(),
        ["Node", "Account", "Pair"]
    );
    assert_eq!(program.invariants.len(), 2);
    assert_eq!(program.invariants[0].name, "plain >= 0 - 100");
    assert_eq!((&*program.invariants[1].name, program.invariants[1].locals.len()), ("bounded", 1));
    let init = program.init.expect("there is an init");
    assert_eq!(program.functions[init].name, "init");
}

#[test]
fn every_model_of_the_corpus_is_accepted() {
    let mut directories = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../corpus")];
    let mut models: Vec<PathBuf> = Vec::new();
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).expect("the corpus is part of the repository") {
            let path = entry.expect("the corpus can be read").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|ending| ending == "pre") {
                models.push(path);
            }
        }
    }
    assert!(models.len() >= 20, "the corpus has moved");
    for model in models {
        program(&std::fs::read_to_string(&model).expect("a model can be read"));
    }
}

#[test]
fn constants_are_folded_in_any_order() {
    let program = program(
        "const A = B * 2 + (if C { 1 } else { 1 / 0 }); const B = 1 << 4 | 3; const C = B > 3 && !(B == 4);
         const LOW = -2147483648; const D = -7 / 2 * 10 + -7 % 4; enum E { X, Y } const V = Y; const R: 0..100 = A;
         var a: [int; A]; var b = D; var c = C; var v = V; var low = LOW; var r = R; var s: 0..=A; semaphore(B) sem;
         thread main { skip; }",
    );
    let ty = |index: usize| program.globals[index].ty.clone();
    assert_eq!(ty(0), Type::Array(Box::new(Type::Int), 39));
    let values: Vec<i64> = program.globals[1..6].iter().map(|global| global.init[0]).collect();
    assert_eq!(values, [-33, 1, 1, -2147483648, 39]);
    assert_eq!([ty(2), ty(3), ty(5)], [Type::Bool, Type::Enum(0), Type::Int]);
    assert_eq!(ty(6), Type::Range { lo: 0, hi: 39 });
    assert_eq!(ty(7), Type::Object(ObjectType::Semaphore { initial: 19 }));
}

#[test]
fn initial_values_are_one_for_each_cell() {
    let program = program(
        "enum E { X, Y } var a: [[int; 2]; 3] = 7; var b: [[int; 2]; 2] = [[1, 2], 3]; var c = [true, false]; var d: E = Y;
         var e: [int; 3]; var f: 5..9; var g: [*int; 2] = null; record R { m: mutex, x: int } var r: [R; 2];
         mutex m[2][3]; thread main { skip; }",
    );
    let init = |index: usize| program.globals[index].init.clone();
    assert_eq!(init(0), [7; 6]);
    assert_eq!(init(1), [1, 2, 3, 3]);
    assert_eq!(init(2), [1, 0]);
    assert_eq!(init(3), [1]);
    assert_eq!((init(4), init(5), init(7), init(8)), (vec![], vec![], vec![], vec![]));
    assert_eq!(init(6), [0, 0]);
    let mutexes =
        Type::Array(Box::new(Type::Array(Box::new(Type::Object(ObjectType::Mutex)), 3)), 2);
    assert_eq!(program.globals[8].ty, mutexes);
}

#[test]
fn threads_have_their_ranges() {
    let program = program(
        "const N = 4; thread a { skip; } fn f() { skip; } thread b(i in 0..N, j in -1..=N) { skip; }",
    );
    assert_eq!(program.threads.iter().map(|thread| thread.function).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(program.threads[1].params, [(0, 4), (-1, 5)]);
    let b = function(&program, "b");
    assert_eq!((b.params, &b.locals[1].ty), (2, &Type::Range { lo: -1, hi: 4 }));
}

#[test]
fn every_declaration_has_a_local_of_its_own() {
    let program = program(
        "fn f(x: int, y: bool) -> int {
            var z = x; { var z = z; z = 2; } for x in 0..z { var y = x; assert all(x in 0..2: x == y); } return x;
         }
         thread main { skip; }",
    );
    let f = function(&program, "f");
    let names: Vec<&str> = f.locals.iter().map(|local| local.name.as_str()).collect();
    assert_eq!((f.params, names), (2, vec!["x", "y", "z", "z", "x", "y", "x"]));
    // `var z = z;` reads the outer one, and the last `x` is the parameter again.
    let StmtKind::Block(inner) = &f.body[1].kind else { panic!("a block") };
    let StmtKind::Let { local: 3, init: Some(Expr { kind: ExprKind::Load(place), .. }) } =
        &inner[0].kind
    else {
        panic!("a declaration")
    };
    assert!(matches!(place.base, Base::Local(2)));
    let Some(Stmt {
        kind: StmtKind::Return(Some(Expr { kind: ExprKind::Load(place), .. })), ..
    }) = f.body.last()
    else {
        panic!("a return")
    };
    assert!(matches!(place.base, Base::Local(0)));
}

#[test]
fn loops_and_ranges_are_translated() {
    let body = main_of(
        "const N = 3;",
        "loop { break; } for i in 0..=N { skip; } var t = choose(1..=N); for i in t..t { skip; }",
    );
    assert!(matches!(body[0].kind, StmtKind::Loop(_)));
    let StmtKind::For { from, to, inclusive: true, .. } = &body[1].kind else { panic!("a for") };
    assert_eq!((constant(from), constant(to)), (Some(0), Some(3)));
    let StmtKind::Let {
        init: Some(Expr { kind: ExprKind::Choose { lo, hi, inclusive: true }, .. }),
        ..
    } = &body[2].kind
    else {
        panic!("a choice")
    };
    assert_eq!((constant(lo), constant(hi)), (Some(1), Some(3)));
    let StmtKind::For { inclusive: false, .. } = &body[3].kind else { panic!("a for") };
}

#[test]
fn statements_are_translated() {
    let body = main_of(
        "var x = 0; channel(1, int) c;",
        "x += 2; if x == 1 { skip; } end: x = c.recv(); match x { 1 | 3..=4 => { skip; } _ => { yield; } } assume x > 0;",
    );
    assert!(matches!(body[0].kind, StmtKind::Update { op: BinaryOp::Add, .. }));
    assert!(matches!(&body[1].kind, StmtKind::If { otherwise, .. } if otherwise.is_empty()));
    assert!(body[2].end && !body[1].end);
    let StmtKind::Match { arms, otherwise, .. } = &body[3].kind else { panic!("a match") };
    assert_eq!(arms[0].0, [(1, 1), (3, 4)]);
    assert_eq!(otherwise.as_ref().map(Vec::len), Some(1));
    assert!(matches!(body[4].kind, StmtKind::Await { assume: true, .. }));
}

#[test]
fn pointers_are_dereferenced_before_a_dot() {
    let body = main_of(
        "record Node { next: *Node, data: [int; 3], lock: mutex } var head: *Node; fn f() -> *Node { return head; }",
        "head.next.data[2] = 1; head.lock.lock(); f().next = null; var p = &head.lock; p.unlock();",
    );
    let StmtKind::Assign { place, .. } = &body[0].kind else { panic!("an assignment") };
    let [Projection::Field(0, 1), Projection::Index(index, 3)] = place.path.as_slice() else {
        panic!("a path")
    };
    assert_eq!((constant(index), &place.ty), (Some(2), &Type::Int));
    // The last dereferenced pointer is `head.next`, itself the field of a dereferenced pointer.
    let Base::Deref(next) = &place.base else { panic!("a dereference") };
    let ExprKind::Load(next) = &next.kind else { panic!("a load") };
    assert!(matches!((&next.base, &*next.path), (Base::Deref(_), [Projection::Field(0, 0)])));
    let StmtKind::Expr(Expr { kind: ExprKind::Method { object, .. }, .. }) = &body[4].kind else {
        panic!("a call")
    };
    assert!(matches!(
        (&object.base, &object.ty),
        (Base::Deref(_), Type::Object(ObjectType::Mutex))
    ));
}

#[test]
fn null_takes_the_type_that_is_expected() {
    let body = main_of(
        "record Node { next: *Node } var head: *Node; var t: thread;",
        "head = null; assert null == head; t = if head == null { null } else { t };",
    );
    let pointer = Type::Pointer(Box::new(Type::Record(0)));
    assert!(matches!(&body[0].kind, StmtKind::Assign { value, .. } if value.ty == pointer));
    let StmtKind::Assert { condition: Expr { kind: ExprKind::Binary(_, left, _), .. }, .. } =
        &body[1].kind
    else {
        panic!("an assertion")
    };
    assert_eq!(left.ty, pointer);
    assert!(matches!(&body[2].kind, StmtKind::Assign { value, .. } if value.ty == Type::Thread));
}

#[test]
fn an_atomic_block_may_wait_at_its_beginning() {
    let declarations = "mutex m, f[3]; channel(1, int) c; channel(0, int) r; var x = 0; var a: [int; 3]; var t: thread;
        fn first() { m.lock(); x = 1; } fn second(i: int) { first(); } fn plain() { x = 2; } fn id(i: int) -> int { return i; }
        fn down(n: int) { m.lock(); if n > 0 { plain(); } }";
    let fine = [
        "await x == 1; x = 2;",
        "m.lock(); x = 1; m.unlock();",
        "{ { m.lock(); } x = 1; }",
        "x = c.recv();",
        "a[1] = c.recv(); c.try_send(1);",
        "var i = 2 * c.recv();",
        "f[x].lock();",
        "c.send(x + 1);",
        "if c.recv() == 1 { x = 1; }",
        "match c.recv() { 1 => { x = 1; } _ => { skip; } }",
        "x = r.recv();",
        "join t; x = 1;",
        "second(x); plain();",
        "down(1);",
        "return;",
        "x = choose(0..3); spawn plain();",
    ];
    for body in fine {
        main_of(declarations, &format!("loop {{ atomic {{ {body} }} }}"));
    }
    let refused = [
        "x = 1; m.lock();",
        "plain(); first();",
        "x = id(c.recv()) + c.recv();",
        "down(c.recv());",
        "if x == 0 { join t; }",
        "while c.recv() == 1 { skip; }",
        "x += c.recv();",
        "r.send(1);",
    ];
    for body in refused {
        let said = messages(&format!("{declarations} thread main {{ atomic {{ {body} }} }}"));
        assert!(said.len() == 1 && said[0].contains("`atomic`"), "{body}: {said:?}");
    }
}

#[test]
fn a_thread_may_also_be_started_by_init() {
    program("fn g() { skip; } fn f() { spawn g(); } init { f(); }");
    assert_eq!(messages("fn g() { skip; } init { g(); }"), ["the model has no threads"]);
    assert_eq!(messages(""), ["the model has no threads"]);
}

#[test]
fn long_chains_need_no_deep_stack() {
    let thread = "thread main { skip; }";
    let count = 3_000;
    let chain = |link: &dyn Fn(usize) -> String| (0..count).map(link).collect::<String>();
    program(&format!(
        "{} const C{count} = 1; {thread}",
        chain(&|i| format!("const C{i} = C{};", i + 1))
    ));
    program(&format!(
        "{} record R{count} {{ x: int }} {thread}",
        chain(&|i| format!("record R{i} {{ r: R{} }}", i + 1))
    ));
    let calls = chain(&|i| format!("fn f{}() {{ f{i}(); }}", i + 1));
    program(&format!(
        "mutex m; fn f0() {{ m.lock(); }} {calls} thread main {{ atomic {{ f{count}(); }} }}"
    ));
    // Each record contains the one before twice: the size is exponential, the time is not.
    let doubling = chain(&|i| format!("record D{} {{ a: D{i}, b: D{i} }}", i + 1));
    assert!(!messages(&format!("record D0 {{ x: int }} {doubling} {thread}")).is_empty());
}

/// A small random number generator with a fixed seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// The words and signs of a text, with the blanks between them.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let like = |c: char| {
            if first.is_alphanumeric() {
                c.is_alphanumeric() || c == '_'
            } else {
                c.is_whitespace()
            }
        };
        let end = if first.is_alphanumeric() || first.is_whitespace() {
            rest.find(|c| !like(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (word, after) = rest.split_at(end);
        words.push(word);
        rest = after;
    }
    words
}

#[test]
fn edited_models_cause_no_panic() {
    let spice = [
        "0",
        "1",
        "-1",
        "2147483647",
        "999999999",
        "null",
        "true",
        "N",
        "Red",
        "atomic",
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        "&",
        "*",
        ";",
        "..",
    ];
    let bad = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad");
    let mut texts: Vec<(PathBuf, String)> = std::fs::read_dir(bad)
        .expect("tests/bad is part of the crate")
        .map(|entry| entry.expect("a directory can be read").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "pre"))
        .map(|path| (path.clone(), std::fs::read_to_string(path).expect("a model can be read")))
        .collect();
    texts.sort();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let (mut checked, mut accepted) = (0, 0);
    for round in 0..3_000 {
        // Mostly the valid model, because its edits get furthest.
        let text = if round % 3 > 0 { EVERYTHING } else { &texts[random.below(texts.len())].1 };
        let mut edited = words(text);
        for _ in 0..=random.below(3) {
            let (at, other) = (random.below(edited.len()), random.below(edited.len()));
            match random.below(4) {
                0 => _ = edited.remove(at),
                1 => edited.swap(at, other),
                2 => edited[at] = edited[other],
                _ => edited[at] = spice[random.below(spice.len())],
            }
            edited.push(" ");
        }
        let text: String = edited.concat();
        let source = Source::new("model.pre", &*text);
        let (file, syntax) = parse(&source);
        let result = check(&file, &source);
        checked += usize::from(syntax.is_empty());
        accepted += usize::from(syntax.is_empty() && result.is_ok());
        if let Err(diagnostics) = result {
            assert!(
                !(syntax.is_empty() && diagnostics.is_empty()),
                "refused without a reason: {text}"
            );
            for diagnostic in diagnostics {
                assert!(
                    text.get(diagnostic.span.range()).is_some(),
                    "a place outside of the text: {diagnostic:?}"
                );
            }
        }
    }
    // The edits must be neither all harmless nor all fatal.
    assert!(
        checked > 250 && accepted > 25 && accepted < checked,
        "{checked} parsed, {accepted} accepted"
    );
}
