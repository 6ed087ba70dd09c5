//! The arithmetic of growth: laws fitted to measured points, and a forecast of the next point.

use crate::measure::Measured;

/// The slope of the regression line (least squares). `None` unless there are at least two different
/// abscissas.
pub fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let n = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / n, y + point.1 / n));
    let (rise, run) = points.iter().fold((0.0, 0.0), |(rise, run), point| {
        let along = point.0 - x;
        (rise + along * (point.1 - y), run + along * along)
    });
    (run > 0.0).then(|| rise / run)
}

/// The *e* for which *y* grows as *x*^*e*. Only positive values count.
pub fn power(points: &[(f64, f64)]) -> Option<f64> {
    let logarithms = positive(points).filter(|point| point.0 > 0.0).map(|(x, y)| (x.ln(), y.ln()));
    slope(&logarithms.collect::<Vec<_>>())
}

/// The factor by which *y* grows when *x* grows by one. Only positive values count.
pub fn factor(points: &[(f64, f64)]) -> Option<f64> {
    slope(&positive(points).map(|(x, y)| (x, y.ln())).collect::<Vec<_>>()).map(f64::exp)
}

fn positive(points: &[(f64, f64)]) -> impl Iterator<Item = (f64, f64)> {
    points.iter().copied().filter(|point| point.1 > 0.0)
}

/// A forecast of the memory for the search at `x`, in bytes: the number of states grows as between
/// the last two points, each state is as large as those of the last point, and twice that, since a
/// growing table exists twice. If growth is polynomial this is an overestimate. `None` without two
/// points.
pub fn forecast(points: &[(u32, Measured)], x: u32) -> Option<f64> {
    let [.., (before, few), (last, many)] = points else { return None };
    let increments = (f64::from(x) - f64::from(*last)) / (f64::from(*last) - f64::from(*before));
    let states = many.states as f64 * (many.states as f64 / few.states as f64).powf(increments);
    Some(2.0 * states * many.bytes_per_state())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: Option<f64>, expected: f64) {
        let found = found.expect("there are two places");
        assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
    }

    #[test]
    fn laws_are_found_in_points_that_follow_them() {
        let points = |law: fn(f64) -> f64| [1.0, 2.0, 3.0, 5.0, 8.0].map(|x| (x, law(x)));
        near(slope(&points(|x| 7.0 - 3.0 * x)), -3.0);
        near(power(&points(|x| 4.0 * x.powi(3))), 3.0);
        near(factor(&points(|x| 5.0 * 11_f64.powf(x))), 11.0);
    }

    #[test]
    fn the_line_is_the_nearest_one() {
        // By hand: means 2 and 3; (-1 × -2 + 0 × 1 + 1 × 1) / 2.
        near(slope(&[(1.0, 1.0), (2.0, 4.0), (3.0, 4.0)]), 1.5);
    }

    #[test]
    fn one_place_has_no_slope_and_nothing_is_no_power() {
        assert_eq!(slope(&[]), None);
        assert_eq!(slope(&[(2.0, 1.0), (2.0, 5.0)]), None);
        assert_eq!(
            power(&[(1.0, 0.0), (2.0, 4.0)]),
            None,
            "a time too short to be measured is omitted"
        );
        near(power(&[(0.0, 9.0), (1.0, 2.0), (2.0, 4.0)]), 1.0);
    }

    #[test]
    fn the_forecast_goes_on_as_the_last_two_points() {
        let at = |x, states, peak_bytes| {
            (
                x,
                Measured {
                    states,
                    transitions: 0,
                    seconds: 0.0,
                    wall: 0.0,
                    peak_bytes,
                    disk_bytes: 0,
                    complete: true,
                },
            )
        };
        let points = [at(1, 7, 7), at(2, 10, 100), at(4, 40, 800)];
        assert_eq!(forecast(&points[..1], 2), None);
        // Four times as many for two: twice as many for one more. 80 states of 20 bytes, twice.
        assert_eq!(forecast(&points, 5), Some(3200.0));
        assert_eq!(forecast(&points, 6), Some(6400.0));
    }
}
