//! Wrapping and truncating text. Every character counts as one column, which holds for everything
//! that models are written in.

/// The width of a text in columns.
pub(crate) fn width(text: &str) -> usize {
    text.chars().count()
}

/// The text, truncated if it is wider than `room`.
pub(crate) fn shortened(text: &str, room: usize) -> String {
    if width(text) <= room {
        text.to_owned()
    } else {
        text.chars().take(room.saturating_sub(1)).chain(['…']).collect()
    }
}

/// The text without control characters.
pub(crate) fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' | '\n' | '\r' => clean.push(' '),
            c if c.is_control() => clean.extend(c.escape_default()),
            c => clean.push(c),
        }
    }
    clean
}

/// The text in lines of at most `room` characters, cut at spaces where that is possible. At least
/// one line.
pub fn wrap(text: &str, room: usize) -> Vec<String> {
    let room = room.max(1);
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        if used > 0 && used + 1 + width(word) > room {
            lines.push(String::new());
            used = 0;
        }
        for (at, c) in (if used > 0 { " " } else { "" }).chars().chain(word.chars()).enumerate() {
            if used == room && at > 0 {
                lines.push(String::new());
                used = 0;
            }
            if let Some(line) = lines.last_mut() {
                line.push(c);
            }
            used += 1;
        }
    }
    lines
}

/// The parts, joined by commas, in lines of at most `room` characters. A part is cut only if it is
/// longer than a line.
pub(crate) fn wrap_list(parts: &[String], room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let part = if at + 1 < parts.len() { format!("{part},") } else { part.clone() };
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(&part) <= room => *line += &format!(" {part}"),
            _ => lines.extend(wrap(&part, room)),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_at_spaces_or_else_anywhere() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrap("", 3), [""]);
        for room in 0..9 {
            assert!(
                wrap("a bb ccc dddd é→x  y", room).iter().all(|line| width(line) <= room.max(1))
            );
        }
    }

    #[test]
    fn parts_stay_together() {
        let parts = ["x: 0 → 1".to_owned(), "y = 2".to_owned(), "m: free → held".to_owned()];
        assert_eq!(wrap_list(&parts, 16), ["x: 0 → 1, y = 2,", "m: free → held"]);
        assert_eq!(wrap_list(&parts, 80), ["x: 0 → 1, y = 2, m: free → held"]);
    }

    #[test]
    fn a_terminal_is_not_given_orders() {
        assert_eq!(clean("a\x1b[31mb\tc\u{9b}d"), "a\\u{1b}[31mb c\\u{9b}d");
    }
}
