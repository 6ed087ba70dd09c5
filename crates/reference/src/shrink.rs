//! Shrinks a program while it keeps a property. The generator writes one statement per line, so
//! shrinking removes lines and blocks.

/// The smallest program found by removing lines while `keeps` holds.
pub fn shrink(text: &str, keeps: impl Fn(&str) -> bool) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    loop {
        let before = lines.len();
        let mut at = 0;
        while at < lines.len() {
            match candidates(&lines, at).into_iter().find(|fewer| keeps(&fewer.join("\n"))) {
                Some(fewer) => lines = fewer,
                None => at += 1,
            }
        }
        if lines.len() == before {
            return lines.join("\n") + "\n";
        }
    }
}

/// The program without the statement, declaration or branch that begins at line `at`, or with its
/// body in its place.
fn candidates(lines: &[String], at: usize) -> Vec<Vec<String>> {
    let without = |from: usize, to: usize| [&lines[..from], &lines[to..]].concat();
    let opens = |line: &String| line.trim_end().ends_with('{');
    let closes = |line: &String| line.trim_start().starts_with('}');
    if !opens(&lines[at]) {
        return if closes(&lines[at]) { Vec::new() } else { vec![without(at, at + 1)] };
    }
    // Find where the block that starts on this line ends. Another block may follow it (`} else {`).
    let mut depth = 1;
    let mut ends = Vec::new();
    for (end, line) in lines.iter().enumerate().skip(at + 1) {
        depth -= i32::from(closes(line));
        if depth == 0 {
            ends.push(end);
        }
        depth += i32::from(opens(line));
        if depth == 0 {
            break;
        }
    }
    let (Some(&first), Some(&last)) = (ends.first(), ends.last()) else { return Vec::new() };
    if closes(&lines[at]) {
        return vec![without(at, first)];
    }
    let mut unwrapped = without(at, last + 1);
    unwrapped.splice(
        at..at,
        lines[at + 1..last].iter().filter(|line| !line.trim().starts_with("} ")).cloned(),
    );
    vec![without(at, last + 1), unwrapped]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_needed_is_taken_away() {
        let text = "var x = 0;\nthread t {\n    if x == 0 {\n        x = 1;\n        x = 2;\n    } else {\n        skip;\n    }\n}\n";
        let small = shrink(text, |text| text.contains("x = 2;") && text.contains("thread"));
        assert_eq!(small, "thread t {\n        x = 2;\n}\n");
    }
}
