//! A JSON writer. Reports consist of one object whose fields have a fixed order, so a serialisation
//! library would not pay off in every user's test.
//!
//! [`crate::json_report`] defines the object.

use std::fmt::{self, Write as _};

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Unknown or absent.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A count.
    Number(u64),
    /// A measured quantity. JSON has no notation for values that are not finite; they are written
    /// as null.
    Measure(f64),
    /// A text.
    Text(String),
    /// Several values.
    List(Vec<Value>),
    /// Named values, in this order.
    Object(Vec<(&'static str, Value)>),
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Value {
        Value::Number(value)
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Value {
        Value::Number(value.into())
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Value {
        Value::Number(value as u64)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Measure(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Value {
        Value::Text(value)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

impl FromIterator<Value> for Value {
    fn from_iter<I: IntoIterator<Item = Value>>(values: I) -> Value {
        Value::List(values.into_iter().collect())
    }
}

impl fmt::Display for Value {
    /// Indented by two spaces; lists and objects that contain no lists or objects are on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0)
    }
}

impl Value {
    fn write(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Number(value) => write!(f, "{value}"),
            Value::Measure(value) if value.is_finite() => write!(f, "{value}"),
            Value::Measure(_) => f.write_str("null"),
            Value::Text(text) => quote(f, text),
            Value::List(values) => {
                let items = values.iter().map(|value| (None, value));
                sequence(f, depth, ['[', ']'], items, values.iter().all(Value::is_flat))
            }
            Value::Object(fields) => {
                let items = fields.iter().map(|(name, value)| (Some(*name), value));
                sequence(
                    f,
                    depth,
                    ['{', '}'],
                    items,
                    depth > 0 && fields.iter().all(|(_, value)| value.is_flat()),
                )
            }
        }
    }

    /// Whether it contains no list and no object.
    fn is_flat(&self) -> bool {
        match self {
            Value::List(values) => {
                values.iter().all(|value| matches!(value, Value::Text(_) | Value::Number(_)))
            }
            Value::Object(_) => false,
            _ => true,
        }
    }
}

fn sequence<'a>(
    f: &mut fmt::Formatter<'_>,
    depth: usize,
    [open, close]: [char; 2],
    items: impl Iterator<Item = (Option<&'static str>, &'a Value)>,
    on_one_line: bool,
) -> fmt::Result {
    f.write_char(open)?;
    let mut empty = true;
    for (name, value) in items {
        if !empty {
            f.write_char(',')?;
        }
        if !on_one_line {
            write!(f, "\n{:1$}", "", 2 * (depth + 1))?;
        } else if !empty {
            f.write_char(' ')?;
        }
        if let Some(name) = name {
            quote(f, name)?;
            f.write_str(": ")?;
        }
        value.write(f, depth + 1)?;
        empty = false;
    }
    if !on_one_line && !empty {
        write!(f, "\n{:1$}", "", 2 * depth)?;
    }
    f.write_char(close)
}

/// The text as a JSON string. DEL and the line separators that break JavaScript are escaped too.
fn quote(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            '\0'..='\u{1f}' | '\u{7f}' | '\u{2028}' | '\u{2029}' => {
                write!(f, "\\u{:04x}", c as u32)?
            }
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let every_char: String =
            (0..0x300).chain(0x2020..0x2030).filter_map(char::from_u32).chain(['🦀']).collect();
        let value = Value::Object(vec![
            ("text", every_char.clone().into()),
            ("none", Value::Null),
            ("largest", u64::MAX.into()),
            ("measure", 0.1.into()),
            ("no number", f64::NAN.into()),
            ("flags", [true, false].into_iter().map(Value::from).collect()),
            ("empty", Value::List(Vec::new())),
            (
                "nested",
                [Value::Object(vec![("a", 1u32.into())]), Value::Object(Vec::new())]
                    .into_iter()
                    .collect(),
            ),
        ]);
        let read: serde_json::Value =
            serde_json::from_str(&value.to_string()).expect("the output is JSON");
        assert_eq!(
            read,
            serde_json::json!({
                "text": every_char, "none": null, "largest": u64::MAX, "measure": 0.1, "no number": null,
                "flags": [true, false], "empty": [], "nested": [{"a": 1}, {}],
            })
        );
    }

    #[test]
    fn small_things_stand_on_one_line() {
        let step = Value::Object(vec![
            ("line", 3u32.into()),
            ("effects", ["x = 1".into()].into_iter().collect()),
        ]);
        let value = Value::Object(vec![
            ("ok", true.into()),
            ("steps", [step.clone(), step].into_iter().collect()),
        ]);
        let expected = r#"{
  "ok": true,
  "steps": [
    {"line": 3, "effects": ["x = 1"]},
    {"line": 3, "effects": ["x = 1"]}
  ]
}"#;
        assert_eq!(value.to_string(), expected);
    }
}
