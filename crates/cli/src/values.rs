//! The values of options. Strategies come from the engine's table.

use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use preempt_explore::plan::strategies::{self, Entry, STRATEGIES};
use preempt_explore::{Refusal, Setting, Subject};
use preempt_system::MemoryModel;

use crate::search::Pick;
use crate::terms::ExecutableFlags;

/// The strategies that an option chooses among. A model may have weak memory; an executable is
/// sequentially consistent.
fn offered(setting: Setting, subject: Subject) -> impl Iterator<Item = &'static Entry> {
    let all = STRATEGIES.iter().filter(move |entry| match subject {
        Subject::Model | Subject::WeakModel => true,
        Subject::Program => {
            entry.memory_models.contains(&MemoryModel::Sc) && entry.searches(subject)
        }
    });
    all.filter(move |entry| entry.setting() == setting)
}

/// Why executables cannot be explored by a strategy of the table.
fn not_for_executables(entry: &'static Entry) -> String {
    let strategy = entry.name;
    match entry.not_for_programs {
        Some(why) => Refusal::RealCode { strategy, why }.in_terms_of(&ExecutableFlags).to_string(),
        None => format!(
            "{strategy} explores closures and models with weak memory: it has to know the steps \
             of executions that never ran"
        ),
    }
}

/// The values of `--order` or `--reduce`. Those for research are accepted, and described in a
/// section of their own. Those that cannot explore the subject are refused with the reason.
pub fn strategies(setting: Setting, subject: Subject) -> impl TypedValueParser<Value = Pick> {
    let auto = match (setting, subject) {
        (Setting::Order, Subject::Model | Subject::WeakModel) => Some(
            "bfs, and icb to bound 2 for simple errors; icb under weak memory; with --reduce the \
             order that fits (default)",
        ),
        (Setting::Order, Subject::Program) => Some(
            "icb to bound 2, and further while that is cheap; with --reduce the order that fits \
             (default)",
        ),
        (_, Subject::Model | Subject::WeakModel) => {
            Some("one that suits the model and loses nothing; the report names it")
        }
        (_, Subject::Program) => None,
    };
    let auto = auto.map(|help| PossibleValue::new("auto").help(help));
    let none = (setting == Setting::Reduction)
        .then(|| PossibleValue::new("none").help("every step of every thread (default)"));
    let values = offered(setting, subject)
        .map(|entry| PossibleValue::new(entry.name).help(entry.summary).hide(!entry.is_general()));
    let is_offered = move |entry: &Entry| offered(setting, subject).any(|other| other == entry);
    let others = STRATEGIES.iter().filter(|entry| entry.setting() == setting);
    let others = others.filter(|entry| !is_offered(entry));
    let others = others.map(|entry| PossibleValue::new(entry.name).hide(true));
    let values: Vec<PossibleValue> =
        auto.into_iter().chain(none).chain(values).chain(others).collect();
    PossibleValuesParser::new(values).try_map(move |name| match strategies::named(&name) {
        Some(entry) if is_offered(entry) => Ok(Pick::Strategy(entry)),
        Some(entry) => Err(not_for_executables(entry)),
        None if name == "none" => Ok(Pick::None),
        None => Ok(Pick::Auto),
    })
}

/// The section of `--help` about values for research.
pub fn research(subject: Subject) -> String {
    let mut text = String::from("For research, --reduce also accepts:\n");
    for entry in offered(Setting::Reduction, subject).filter(|entry| !entry.is_general()) {
        text += &format!("  {:22}{}\n", entry.name, entry.summary);
    }
    text + "\n`preempt strategies` describes every strategy."
}

/// `NAME=VALUE`, where the value is an integer, `true`, `false` or a variant.
pub fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE, such as N=3")?;
    let (name, value) = (name.trim(), value.trim());
    if !is_name(name) {
        return Err(format!(
            "`{name}` is not the name of a constant; expected NAME=VALUE, such as N=3"
        ));
    }
    if !is_name(value) && value.parse::<i64>().is_err() {
        return Err(format!(
            "`{value}` is not a value: expected an integer, true, false or a variant"
        ));
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// Whether a text is a name of the modelling language.
fn is_name(text: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(letter) && text.chars().all(|c| letter(c) || c.is_ascii_digit())
}

/// A number of bytes: `65536`, `64K`, `1.5G`, `4GiB`. The letters mean powers of 1024.
pub fn size(text: &str) -> Result<usize, String> {
    let wrong = || {
        format!(
            "`{text}` is not a size: expected a number of bytes, or one with K, M, G or T, such as \
             4G"
        )
    };
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        "T" | "TB" | "TIB" => 40,
        _ => return Err(wrong()),
    };
    let number: f64 = digits.parse().map_err(|_| wrong())?;
    let bytes = number * (1u64 << shift) as f64;
    // 2^62 is exact in both types, and more than any machine has.
    if (1.0..=(1u64 << 62) as f64).contains(&bytes) { Ok(bytes as usize) } else { Err(wrong()) }
}

/// A value of `--memory`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryArg {
    /// The memory model of an executable.
    Model(MemoryModel),
    /// The limit of the search in bytes.
    Limit(usize),
}

/// The parser of `--memory`. Models declare their memory model themselves.
pub fn memory(subject: Subject) -> fn(&str) -> Result<MemoryArg, String> {
    let limit = |text: &str| size(text).map(MemoryArg::Limit);
    match subject {
        Subject::Program => |text| match memory_model(text) {
            Ok(model) => Ok(MemoryArg::Model(model)),
            Err(_) => size(text)
                .map(MemoryArg::Limit)
                .map_err(|why| format!("{why}; or sc or weak for the memory model of the program")),
        },
        _ => limit,
    }
}

/// The name of a memory model.
pub fn memory_model(text: &str) -> Result<MemoryModel, String> {
    let known = MemoryModel::ALL.into_iter().find(|model| model.name() == text);
    known.ok_or_else(|| format!("`{text}` is not a memory model: expected sc or weak"))
}

/// A whole number, which is never negative.
pub fn whole<N: FromStr<Err = ParseIntError>>(text: &str) -> Result<N, String> {
    text.parse().map_err(|error: ParseIntError| match error.kind() {
        IntErrorKind::PosOverflow => format!("`{text}` is too large"),
        _ => format!("`{text}` is not a whole number: expected 0 or more, such as 10"),
    })
}

/// A time span in seconds.
pub fn seconds(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a time: expected seconds above 0, such as 60 or 0.5");
    let seconds: f64 = text.parse().map_err(|_| wrong())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in
            [("1", 1), ("64K", 65536), ("1.5g", 3 << 29), ("4GiB", 4 << 30), ("2mb", 2 << 20)]
        {
            assert_eq!(size(text), Ok(bytes));
        }
        for text in ["", "G", "4X", "-1", "0", "1e30", "nan", "inf", "4 G"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_memory_of_an_executable_is_a_model_or_a_limit() {
        let program = memory(Subject::Program);
        assert_eq!(program("weak"), Ok(MemoryArg::Model(MemoryModel::Weak)));
        assert_eq!(program("sc"), Ok(MemoryArg::Model(MemoryModel::Sc)));
        assert_eq!(program("64K"), Ok(MemoryArg::Limit(65536)));
        assert!(program("tso").is_err_and(|why| why.ends_with("the memory model of the program")));
        assert_eq!(memory(Subject::Model)("64K"), Ok(MemoryArg::Limit(65536)));
        assert!(memory(Subject::Model)("weak").is_err());
    }

    #[test]
    fn settings_are_names_and_values() {
        for (text, name, value) in
            [("N=3", "N", "3"), ("a = -4", "a", "-4"), ("on=true", "on", "true")]
        {
            assert_eq!(setting(text), Ok((name.into(), value.into())));
        }
        for text in ["N", "=3", "N=1+1", "N=", "3=N", "N=99999999999999999999"] {
            assert!(setting(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_said_about_a_number_names_it() {
        assert_eq!(whole::<u32>("7"), Ok(7));
        for (text, said) in
            [("-1", "`-1` is not a whole number"), ("x", "`x` is not"), ("4294967296", "too large")]
        {
            assert!(whole::<u32>(text).is_err_and(|why| why.contains(said)), "{text}");
        }
    }

    #[test]
    fn times_are_positive() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for text in ["0", "-1", "x", "", "nan", "1e300"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
