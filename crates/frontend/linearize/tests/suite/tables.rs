//! Tables and explanations.

use preempt_linearize::table::{Labels, lines};
use preempt_linearize::{CallOutcome, Criterion, History, SerialTree, witness};

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

#[test]
fn a_line_separates_calls_that_did_not_overlap() {
    let mut history = History::new(&[0, 0, 1, 1]);
    history.call(0);
    history.returned(0, 0);
    history.call(1);
    history.call(2);
    history.returned(2, 0);
    history.call(3);
    history.returned(3, 0);
    history.returned(1, 0);
    let labels = Labels {
        threads: &texts(["A", "B"]),
        calls: &texts(["push(1)", "pop()", "pop()", "push(4)"]),
        results: &["Ok(())", "Ok(1)", "Err(Empty)", "Err(Full(4))"].map(|r| Some(r.to_owned())),
    };
    let expected = "\
A                   B
push(1) = Ok(())
──────────────────────────────────────  above returned before below was called
pop() = Ok(1)       pop() = Err(Empty)
                    push(4) = Err(Full(4))";
    let expected = expected.replace("──────────────────────────────────────", &"─".repeat(42));
    assert_eq!(lines(&history, labels).join("\n"), expected);
}

#[test]
fn order_within_a_stretch_is_said_in_words() {
    let mut history = History::new(&[0, 0, 1]);
    history.call(2);
    history.call(0);
    history.returned(0, 0);
    history.call(1);
    let labels = Labels {
        threads: &texts(["A", "B"]),
        calls: &texts(["f()", "g()", "h()"]),
        results: &[Some("1".to_owned()), None, None],
    };
    let expected =
        "A                    B\nf() = 1              h() never returns\ng() never returns";
    assert_eq!(lines(&history, labels).join("\n"), expected);
    let mut history = History::new(&[0, 1, 2]);
    history.call(0);
    history.call(1);
    history.returned(0, 0);
    history.call(2);
    let labels = Labels {
        threads: &texts(["A", "B", "C"]),
        calls: &texts(["f()", "g()", "h()"]),
        results: &[Some("1".to_owned()), None, None],
    };
    let expected = "A          B                    C\n\
                    f() = 1    g() never returns    h() never returns  [after f()]";
    assert_eq!(lines(&history, labels).join("\n"), expected);
}

#[test]
fn an_explanation_is_the_longest_sequence_and_what_should_follow() {
    // A counter: the first call returns 0, the second 1.
    let mut tree = SerialTree::default();
    for [first, second] in [[0, 1], [1, 0]] {
        let after = tree.extend(SerialTree::ROOT, first, CallOutcome::Returned(0));
        tree.extend(after, second, CallOutcome::Returned(1));
    }
    assert_eq!(tree.executions().len(), 2);
    assert!(tree.ambiguous(|_| false).is_none());
    let mut history = History::new(&[0, 1]);
    (0..2).for_each(|call| history.call(call));
    (0..2).for_each(|call| history.returned(call, 0));
    let why = witness::search(&history, &tree, Criterion::Linearizable).expect_err("both are 0");
    assert_eq!(why.longest, [0]);
    assert_eq!(why.next, [(1, vec![CallOutcome::Returned(1)])]);
    tree.extend(SerialTree::ROOT, 0, CallOutcome::Returned(7));
    let (path, call, outcomes) = tree.ambiguous(|_| false).expect("call 0 returns 0 or 7");
    assert_eq!((path.len(), call), (0, 0));
    assert!(tree.ambiguous(|call| call == 0).is_none(), "it may");
    assert_eq!(outcomes, [CallOutcome::Returned(0), CallOutcome::Returned(7)]);
}
