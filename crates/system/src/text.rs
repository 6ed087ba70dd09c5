//! Words and numbers in messages, the same in every front end and report.

/// The candidate that `word` was probably meant to be, if one is near enough: a third of its
/// letters wrong at most.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // The distance is quadratic in the lengths, and a word of this size is not a typing error.
    if word.len() > 64 {
        return None;
    }
    let allowed = (word.chars().count().max(3) / 3).min(3);
    let near = candidates.into_iter().map(|candidate| (distance(word, candidate), candidate));
    near.filter(|&(distance, _)| distance <= allowed)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, best)| best)
}

/// The edit distance of `a` and `b`: insertions, deletions, replacements and exchanges of
/// neighbours (optimal string alignment). The case of letters does not count.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().map(|c| c.to_ascii_lowercase()).collect();
    let b: Vec<char> = b.chars().map(|c| c.to_ascii_lowercase()).collect();
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before_last[j - 2] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// A number with its digits in groups of three: `1,234,567`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_nearest_word() {
        let words = ["while", "thread", "mutex", "if"];
        assert_eq!(nearest("whlie", words), Some("while"));
        assert_eq!(nearest("tread", words), Some("thread"));
        assert_eq!(nearest("Mutex", words), Some("mutex"));
        assert_eq!(nearest("banana", words), None);
        assert_eq!(nearest("", words), None);
    }

    #[test]
    fn digits_are_grouped() {
        for (n, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(n), text);
        }
    }
}
