//! Quantities in reports: bytes, times and rates with three significant digits.

use std::time::Duration;

pub use preempt_explore::outcome::counted;
pub use preempt_system::text::grouped;

/// A number of bytes: `512 B`, `8.0 KiB`, `1.25 GiB`.
pub fn bytes(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        _ => scaled(bytes as f64, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"]),
    }
}

/// A rate: `850/s`, `21.4 thousand/s`, `2.31 million/s`.
pub fn rate(count: u64, time: Duration) -> String {
    let rate = count as f64 / time.as_secs_f64().max(1e-9);
    match rate {
        0.0..1000.0 => format!("{rate:.0}/s"),
        _ => scaled(rate, 1000.0, &["/s", "thousand/s", "million/s", "billion/s"]),
    }
}

/// A time: `12 ms`, `0.35 s`, `48.2 s`, `2 min 05 s`, `3 h 20 min`.
pub fn time(time: Duration) -> String {
    let seconds = time.as_secs();
    match time.as_secs_f64() {
        0.0..0.1 => format!("{} ms", time.as_millis()),
        0.1..10.0 => format!("{:.2} s", time.as_secs_f64()),
        10.0..60.0 => format!("{:.1} s", time.as_secs_f64()),
        60.0..3600.0 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// An estimate, with two significant digits: `73`, `4,200`, `1.2 million`, `3.4·10¹⁵`.
pub fn roughly(n: u64) -> String {
    let round = |n: u64| {
        let power = 10u64.pow(n.checked_ilog10().unwrap_or(0).saturating_sub(1));
        (n / power + u64::from(n % power * 2 >= power)).saturating_mul(power)
    };
    match n {
        0..100 => n.to_string(),
        100..995_000 => grouped(round(n)),
        995_000..995_000_000_000 => {
            let (unit, word) = if n < 995_000_000 { (1e6, "million") } else { (1e9, "billion") };
            let value = round(n) as f64 / unit;
            format!("{value:.*} {word}", usize::from(value < 9.95))
        }
        _ => {
            let digits = format!("{n:.1e}");
            let (value, exponent) = digits.split_once('e').unwrap_or((&digits, "0"));
            let raised = exponent.chars().map(|c| match c {
                '1' => '¹',
                '2' => '²',
                '3' => '³',
                digit => char::from_u32('⁰' as u32 + digit as u32 - '0' as u32).unwrap_or(digit),
            });
            format!("{value}·10{}", raised.collect::<String>())
        }
    }
}

fn scaled(mut value: f64, base: f64, units: &[&str]) -> String {
    let mut unit = 0;
    // A value that rounds up to the next unit is written in that unit.
    while value >= base - 0.5 && unit + 1 < units.len() {
        value /= base;
        unit += 1;
    }
    let digits = match value {
        0.0..9.995 => 2,
        9.995..99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_matter() {
        for (n, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (25_165_824, "24.0 MiB"),
            (5 << 40, "5.00 TiB"),
        ] {
            assert_eq!(bytes(n), text);
        }
        assert_eq!(bytes((1 << 20) - 1), "1.00 MiB");
        for (n, text) in [(10, "10/s"), (21_400, "21.4 thousand/s"), (999_999, "1.00 million/s")] {
            assert_eq!(rate(n, Duration::from_secs(1)), text);
        }
        for (n, text) in [
            (0, "0"),
            (99, "99"),
            (123, "120"),
            (995, "1,000"),
            (14_333, "14,000"),
            (999_999, "1.0 million"),
            (1_234_567, "1.2 million"),
            (54_321_000, "54 million"),
            (999_999_999, "1.0 billion"),
            (3_400_000_000_000_000, "3.4·10¹⁵"),
        ] {
            assert_eq!(roughly(n), text);
        }
        for (ms, text) in [
            (12, "12 ms"),
            (350, "0.35 s"),
            (48_230, "48.2 s"),
            (125_000, "2 min 05 s"),
            (12_000_000, "3 h 20 min"),
        ] {
            assert_eq!(time(Duration::from_millis(ms)), text);
        }
    }
}
