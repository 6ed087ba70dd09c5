//! The step machine: executes models, whatever language they were written in.
//!
//! A [`Reader`] turns a [`Source`](source::Source) into a checked [`Program`](program::Program), or
//! into [`Diagnostic`](diagnostic::Diagnostic)s. A [`Machine`] makes a
//! [`Model`](preempt_system::Model) of the program: packed states, and steps between them. A search
//! explores that model to find errors of the program.
//!
//! This crate knows no syntax. The example builds a program by hand, as a reader would, and
//! executes it:
//!
//! ```
//! use preempt_machine::Machine;
//! use preempt_machine::program::{
//!     Base, Expr, ExprKind, Function, Global, Granularity, Place, Program, Stmt, StmtKind, Thread, Type,
//! };
//! use preempt_machine::source::{Source, Span};
//! use preempt_system::{Choice, MemoryModel, Model, Step, Stepper, ThreadId};
//!
//! let source = Source::new("set.pre", "var x: 0..=3 = 0; thread t { x = 2; }");
//! let (of_x, of_thread, of_step) = (Span::new(4, 5), Span::new(25, 26), Span::new(29, 35));
//! let ty = Type::Range { lo: 0, hi: 3 };
//! let x = Place { base: Base::Global(0), path: vec![], ty: ty.clone(), span: of_step };
//! let two = Expr { kind: ExprKind::Const(2), ty: Type::Int, span: of_step };
//! let body = vec![Stmt { kind: StmtKind::Assign { place: x, value: two }, span: of_step, end: false }];
//! let program = Program {
//!     source,
//!     granularity: Granularity::Access,
//!     memory: MemoryModel::Sc,
//!     enums: vec![],
//!     records: vec![],
//!     globals: vec![Global { name: "x".into(), ty, atomic: false, init: vec![0], span: of_x }],
//!     functions: vec![Function { name: "t".into(), params: 0, locals: vec![], result: None, body, span: of_thread }],
//!     threads: vec![Thread { function: 0, params: vec![] }],
//!     init: None,
//!     invariants: vec![],
//! };
//!
//! let machine = Machine::new(program).expect("its states are small");
//! let mut state = vec![0; machine.shape().words];
//! let mut stepper = machine.stepper();
//! stepper.initial(&mut state);
//! let choice = Choice::of(ThreadId::new(0));
//! assert_eq!(stepper.step(&mut state, choice), Step::Moved { alternatives: 1 });
//! assert_eq!(stepper.step(&mut state, choice), Step::Ended);
//! ```

#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

pub mod arith;
pub mod diagnostic;
mod machine;
#[expect(missing_docs, reason = "fields are explained by their names or by the example in the doc")]
pub mod program;
pub mod reader;
pub mod source;
pub mod walk;

pub use machine::{Machine, Stepper, Unreached};
pub use reader::{Parsed, Reader, Settings};
