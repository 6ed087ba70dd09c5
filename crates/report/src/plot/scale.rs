//! Scales: map numbers to positions on an axis, and choose its ticks.

use super::Scale;
use crate::number::grouped;

/// An axis that knows its numbers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Measure {
    scale: Scale,
    /// The least and the greatest number.
    pub(super) from: f64,
    pub(super) to: f64,
    /// The numbers that are written, from the least.
    pub(super) ticks: Vec<Tick>,
}

/// A place on an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    /// The value of the tick.
    pub(super) at: f64,
    /// Its label; `None` for a grid line between two labelled ones.
    pub(super) label: Option<String>,
}

/// Whether an axis ends where the data do, or at the next round number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// Where the data do.
    Exact,
    /// At the next round number.
    Round,
}

/// The approximate number of labels on an axis.
const TICKS: f64 = 6.0;
/// An axis with more decades does not label all of them.
const DECADES: i32 = 8;

impl Measure {
    /// An axis for these numbers.
    pub(super) fn of(scale: Scale, numbers: impl Iterator<Item = f64>, ends: Ends) -> Measure {
        let shown = numbers.filter(|n| n.is_finite() && (scale != Scale::Log || *n > 0.0));
        let range = shown.fold(None, |range: Option<(f64, f64)>, n| match range {
            None => Some((n, n)),
            Some((least, most)) => Some((least.min(n), most.max(n))),
        });
        match scale {
            Scale::Log => Measure::log(range.unwrap_or((1.0, 10.0)), ends),
            Scale::Percent => Measure::even(scale, (0.0, 100.0), Ends::Exact, 20.0),
            _ => {
                let (least, most) = range.unwrap_or((0.0, 1.0));
                // A vertical axis that begins at 0 does not exaggerate differences.
                let least = if ends == Ends::Round { least.min(0.0) } else { least };
                let (least, most) =
                    if least < most { (least, most) } else { (least - 0.5, most + 0.5) };
                let whole = scale != Scale::Linear;
                Measure::even(scale, (least, most), ends, round_step((most - least) / TICKS, whole))
            }
        }
    }

    fn even(scale: Scale, (least, most): (f64, f64), ends: Ends, step: f64) -> Measure {
        let (first, last) = match ends {
            Ends::Exact => ((least / step - 1e-9).ceil(), (most / step + 1e-9).floor()),
            Ends::Round => ((least / step + 1e-9).floor(), (most / step - 1e-9).ceil()),
        };
        let (from, to) = match ends {
            Ends::Exact => (least, most),
            Ends::Round => (first * step, last * step),
        };
        let ticks = (first as i64..=last as i64).map(|n| {
            // Multiplied, not added up: every number is as exact as it can be.
            let at = n as f64 * step;
            Tick { at, label: Some(written(scale, at, step)) }
        });
        Measure { scale, from, to, ticks: ticks.collect() }
    }

    fn log((least, most): (f64, f64), ends: Ends) -> Measure {
        let (mut from, mut to) = (least, most);
        if ends == Ends::Round {
            (from, to) = (round_down(from), round_up(to));
        }
        if from >= to {
            (from, to) = (from / 2.0, to * 2.0);
        }
        let decades = to.log10() - from.log10();
        let every = ((decades / f64::from(DECADES)).ceil() as i32).max(1);
        let mut ticks = Vec::new();
        for exponent in from.log10().floor() as i32..=to.log10().floor() as i32 {
            for digit in 1..10 {
                let at = f64::from(digit) * 10f64.powi(exponent);
                if at < from * (1.0 - 1e-9) || at > to * (1.0 + 1e-9) {
                    continue;
                }
                let labelled = match digit {
                    1 => exponent.rem_euclid(every) == 0,
                    2 | 5 => decades < 2.5,
                    _ => decades < 0.7,
                };
                let label = labelled.then(|| power(at, exponent, digit));
                // Lines between decades would only make a long axis grey.
                if label.is_some() || decades < 5.0 || digit == 1 {
                    ticks.push(Tick { at, label });
                }
            }
        }
        Measure { scale: Scale::Log, from, to, ticks }
    }

    /// The position of a number as a fraction of the axis; `None` if it has no position.
    pub(super) fn place(&self, number: f64) -> Option<f64> {
        if !number.is_finite() {
            return None;
        }
        match self.scale {
            Scale::Log if number <= 0.0 => None,
            Scale::Log => Some((number / self.from).log10() / (self.to / self.from).log10()),
            _ => Some((number - self.from) / (self.to - self.from)),
        }
    }
}

/// The smallest of 1, 2, 5, 10, … times a power of ten that is not below `step`; whole if it has to
/// be.
fn round_step(step: f64, whole: bool) -> f64 {
    let step = if whole { step.max(1.0) } else { step };
    round_up(step)
}

/// The first of 1, 2, 5, 10, … from `n` on.
fn round_up(n: f64) -> f64 {
    let power = 10f64.powf(n.log10().floor());
    let digit = n / power;
    let digits = [1.0, 2.0, 5.0, 10.0];
    digits.into_iter().find(|&round| digit <= round * (1.0 + 1e-9)).unwrap_or(10.0) * power
}

/// The last of 1, 2, 5, 10, … up to `n`.
fn round_down(n: f64) -> f64 {
    let power = 10f64.powf(n.log10().floor());
    let digit = n / power;
    [5.0, 2.0].into_iter().find(|&round| digit >= round * (1.0 - 1e-9)).unwrap_or(1.0) * power
}

fn written(scale: Scale, at: f64, step: f64) -> String {
    let digits = if step >= 1.0 { 0 } else { (-step.log10().floor()) as usize };
    match scale {
        Scale::Percent => format!("{at:.0} %"),
        Scale::PowersOfTen => raised(at as i64),
        _ if digits == 0 && at >= 0.0 => grouped(at as u64),
        _ => format!("{at:.digits$}"),
    }
}

/// A number on a logarithmic axis.
fn power(at: f64, exponent: i32, digit: i32) -> String {
    match exponent {
        0..=6 => grouped(at.round() as u64),
        -3..0 => format!("{at:.*}", -exponent as usize),
        _ if digit == 1 => raised(exponent.into()),
        _ => format!("{digit}·{}", raised(exponent.into())),
    }
}

/// 10ⁿ.
fn raised(exponent: i64) -> String {
    let digits = exponent.to_string();
    let raised = digits.chars().map(|c| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        digit => char::from_u32('⁰' as u32 + digit as u32 - '0' as u32).unwrap_or(digit),
    });
    match exponent {
        0 => "1".into(),
        1 => "10".into(),
        _ => format!("10{}", raised.collect::<String>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, from: f64, to: f64, ends: Ends) -> Vec<String> {
        let measure = Measure::of(scale, [from, to].into_iter(), ends);
        measure.ticks.into_iter().filter_map(|tick| tick.label).collect()
    }

    #[test]
    fn round_numbers_are_written() {
        let even = |to| labels(Scale::Linear, 0.0, to, Ends::Round);
        assert_eq!(even(1.0), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(even(13_821.0), ["0", "5,000", "10,000", "15,000"]);
        assert_eq!(labels(Scale::Whole, 0.0, 3.0, Ends::Exact), ["0", "1", "2", "3"]);
        assert_eq!(labels(Scale::Percent, 7.0, 8.0, Ends::Round).len(), 6);
        assert_eq!(
            labels(Scale::Log, 1.0, 100_000.0, Ends::Exact),
            ["1", "10", "100", "1,000", "10,000", "100,000"]
        );
        assert_eq!(labels(Scale::Log, 3.0, 60.0, Ends::Round), ["2", "5", "10", "20", "50", "100"]);
        assert_eq!(labels(Scale::Log, 1e5, 1e9, Ends::Exact)[2..], ["10⁷", "10⁸", "10⁹"]);
        assert_eq!(
            labels(Scale::PowersOfTen, 0.0, 5000.0, Ends::Round)[..3],
            ["1", "10¹⁰⁰⁰", "10²⁰⁰⁰"]
        );
        assert!(
            labels(Scale::Log, 1.0, 1e40, Ends::Exact).len() <= 9,
            "a long axis is not crowded"
        );
    }

    #[test]
    fn numbers_keep_their_order_and_stay_inside() {
        for scale in [Scale::Linear, Scale::Whole, Scale::Percent, Scale::Log, Scale::PowersOfTen] {
            for ends in [Ends::Exact, Ends::Round] {
                let numbers = [0.5, 1.0, 7.0, 33.0, 99.0];
                let measure = Measure::of(scale, numbers.into_iter(), ends);
                let places: Vec<f64> = numbers.iter().filter_map(|&n| measure.place(n)).collect();
                assert!(places.windows(2).all(|two| two[0] < two[1]), "{scale:?} {places:?}");
                assert!(
                    places.iter().all(|place| (-1e-9..=1.0 + 1e-9).contains(place)),
                    "{scale:?} {places:?}"
                );
                let written = measure.ticks.iter().filter_map(|tick| measure.place(tick.at));
                assert!(
                    written.into_iter().all(|place| (-1e-9..=1.0 + 1e-9).contains(&place)),
                    "{scale:?} {ends:?}"
                );
            }
        }
    }

    #[test]
    fn what_has_no_place_is_left_out() {
        let measure =
            Measure::of(Scale::Log, [0.0, -1.0, f64::NAN, 2.0, 50.0].into_iter(), Ends::Exact);
        assert_eq!((measure.from, measure.to), (2.0, 50.0));
        assert_eq!([0.0, -1.0, f64::NAN, f64::INFINITY].map(|n| measure.place(n)), [None; 4]);
        // An axis with one number, or none, is still an axis.
        for scale in [Scale::Linear, Scale::Whole, Scale::Log] {
            for numbers in [&[][..], &[5.0]] {
                let measure = Measure::of(scale, numbers.iter().copied(), Ends::Round);
                assert!(
                    measure.from < measure.to && !measure.ticks.is_empty(),
                    "{scale:?} {numbers:?} {measure:?}"
                );
            }
        }
    }
}
