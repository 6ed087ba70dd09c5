//! A chart as SVG text.

use std::fmt::Write as _;

use super::legend::{self, Frame, Place};
use super::scale::{Ends, Measure};
use super::{Chart, Look, escape};

/// The whole picture, without its notes.
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 440.0;
/// The maximal width of a character of the small text, in most fonts.
const CHARACTER: f64 = 6.8;
/// A line of the legend, and of the notes.
const LINE: f64 = 18.0;
/// The sample before a name in the legend.
const SAMPLE: f64 = 34.0;
/// Between two marks of one series, at least.
const MARKS: f64 = 26.0;

/// The colours of the series, on light and on dark ground. With the dashes and the marks below they
/// can be distinguished by colour-blind readers, and on paper.
const COLOURS: [(&str, &str); 6] = [
    ("#0063a6", "#6cb6f0"),
    ("#c04a00", "#ff9457"),
    ("#00795c", "#45cfa0"),
    ("#a03c7c", "#ec9ccb"),
    ("#7d5a00", "#e8bd50"),
    ("#4a4a55", "#c4c6cf"),
];
const DASHES: [&str; 6] = ["", "8 4", "2 3", "10 3 2 3", "5 3", "12 3 2 3 2 3"];

/// The colours of everything but the series: page, frame and letters, lines behind the data.
const LIGHT: [&str; 3] = ["#ffffff", "#24292f", "#dfe3e8"];
const DARK: [&str; 3] = ["#14171c", "#dde2e8", "#323840"];

/// The area in which the series are drawn.
struct Drawn {
    look: Look,
    places: Vec<Place>,
}

pub(super) fn svg(chart: &Chart) -> String {
    let xs = chart.series.iter().flat_map(|series| series.points.iter().map(|point| point.0));
    let ys = chart.series.iter().flat_map(|series| series.points.iter().map(|point| point.1));
    let x = Measure::of(chart.x.scale, xs, Ends::Exact);
    let y = Measure::of(chart.y.scale, ys, Ends::Round);
    let widest = y
        .ticks
        .iter()
        .filter_map(|tick| tick.label.as_ref())
        .map(|label| text_width(label))
        .fold(0.0, f64::max);
    let names = chart.series.iter().map(|series| text_width(&series.name)).fold(0.0, f64::max);
    let size = (names + SAMPLE + 18.0, chart.series.len() as f64 * LINE + 8.0);
    let mut inside =
        Frame { left: widest + 44.0, top: 40.0, right: WIDTH - 24.0, bottom: HEIGHT - 52.0 };
    let mut drawn = place(chart, inside, &x, &y);
    let lines: Vec<Vec<Place>> = drawn.iter().flat_map(Drawn::hidden_by_a_legend).collect();
    let legend = legend::corner(inside, size, &lines).unwrap_or_else(|| {
        inside.right -= size.0 + 12.0;
        drawn = place(chart, inside, &x, &y);
        let (left, top) = (inside.right + 12.0, inside.top);
        Frame { left, top, right: left + size.0, bottom: top + size.1 }
    });
    let height = HEIGHT + chart.notes.len() as f64 * LINE;
    let mut svg = String::new();
    head(&mut svg, chart, height);
    axes(&mut svg, chart, inside, &x, &y);
    for (number, (series, drawn)) in chart.series.iter().zip(&drawn).enumerate() {
        let _ = writeln!(
            svg,
            "<g class=\"s{}\"><title>{}</title>",
            number % COLOURS.len(),
            escape(&series.name)
        );
        drawn.write(&mut svg, number);
        svg.push_str("</g>\n");
    }
    if chart.series.is_empty() {
        let (x, y) = ((inside.left + inside.right) / 2.0, (inside.top + inside.bottom) / 2.0);
        let _ =
            writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">no data</text>");
    } else {
        names_of(&mut svg, chart, legend);
    }
    for (at, note) in chart.notes.iter().enumerate() {
        let y = HEIGHT + at as f64 * LINE + 4.0;
        let _ = writeln!(
            svg,
            "<text class=\"note\" x=\"{:.1}\" y=\"{y:.1}\">{}</text>",
            inside.left,
            escape(note)
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// The maximal width of a text in the small font.
fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * CHARACTER
}

fn place(chart: &Chart, inside: Frame, x: &Measure, y: &Measure) -> Vec<Drawn> {
    let series = chart.series.iter().map(|series| {
        let places = series.points.iter().filter_map(|&(across, up)| {
            let (across, up) = (x.place(across)?, y.place(up)?);
            let down = inside.bottom - up * (inside.bottom - inside.top);
            Some((inside.left + across * (inside.right - inside.left), down))
        });
        Drawn { look: series.look, places: places.collect() }
    });
    series.collect()
}

fn head(svg: &mut String, chart: &Chart, height: f64) {
    let title = escape(&chart.title);
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" role=\"img\" \
         aria-label=\"{title}\">\n<title>{title}</title>\n<style>\n"
    );
    svg.push_str(
        "text{font:12px system-ui,sans-serif}.title{font-size:15px;font-weight:600}\
         .note{font-size:11px}\n",
    );
    svg.push_str(
        ".line{fill:none;stroke-width:2;stroke-linejoin:round}.minor{stroke-opacity:.45}\n",
    );
    colours(svg, LIGHT, |(light, _)| light);
    svg.push_str("@media (prefers-color-scheme:dark){\n");
    colours(svg, DARK, |(_, dark)| dark);
    svg.push_str("}\n</style>\n");
    let _ = writeln!(svg, "<rect class=\"page\" width=\"{WIDTH}\" height=\"{height}\"/>");
    let _ = writeln!(svg, "<text class=\"title\" x=\"16\" y=\"24\">{title}</text>");
}

fn colours(
    svg: &mut String,
    [page, ink, grid]: [&str; 3],
    of: impl Fn((&'static str, &'static str)) -> &'static str,
) {
    let _ = writeln!(
        svg,
        ".page,.hollow{{fill:{page}}}text{{fill:{ink}}}.frame{{fill:none;stroke:{ink}}}.grid{{stroke:{grid}}}\
         .legend{{fill:{page};stroke:{grid}}}"
    );
    for (number, colour) in COLOURS.into_iter().enumerate() {
        let colour = of(colour);
        let _ = write!(
            svg,
            ".s{number} .line,.s{number} .mark{{stroke:{colour}}}.s{number} .solid{{fill:{colour}}}"
        );
    }
    svg.push('\n');
}

fn axes(svg: &mut String, chart: &Chart, inside: Frame, x: &Measure, y: &Measure) {
    let Frame { left, top, right, bottom } = inside;
    // Numbers from left to right are left out where they would run into the one before.
    let mut free = f64::NEG_INFINITY;
    for tick in &x.ticks {
        let Some(place) = x.place(tick.at) else { continue };
        let at = left + place * (right - left);
        let class = if tick.label.is_some() { "grid" } else { "grid minor" };
        let _ = writeln!(svg, "<path class=\"{class}\" d=\"M{at:.1} {top:.1}V{bottom:.1}\"/>");
        let half = tick.label.as_deref().map_or(0.0, text_width) / 2.0;
        if let Some(label) = tick.label.as_ref().filter(|_| at - half > free) {
            free = at + half + 4.0;
            let y = bottom + 17.0;
            let _ = writeln!(
                svg,
                "<text x=\"{at:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{}</text>",
                escape(label)
            );
        }
    }
    for tick in &y.ticks {
        let Some(place) = y.place(tick.at) else { continue };
        let at = bottom - place * (bottom - top);
        let class = if tick.label.is_some() { "grid" } else { "grid minor" };
        let _ = writeln!(svg, "<path class=\"{class}\" d=\"M{left:.1} {at:.1}H{right:.1}\"/>");
        if let Some(label) = &tick.label {
            let (x, y) = (left - 7.0, at + 4.0);
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"end\">{}</text>",
                escape(label)
            );
        }
    }
    let (width, height) = (right - left, bottom - top);
    let _ = writeln!(
        svg,
        "<rect class=\"frame\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" \
         height=\"{height:.1}\"/>"
    );
    let (middle, below) = ((left + right) / 2.0, bottom + 38.0);
    let label = escape(&chart.x.label);
    let _ = writeln!(
        svg,
        "<text x=\"{middle:.1}\" y=\"{below:.1}\" text-anchor=\"middle\">{label}</text>"
    );
    let (middle, label) = ((top + bottom) / 2.0, escape(&chart.y.label));
    let _ = writeln!(
        svg,
        "<text transform=\"translate(16 {middle:.1})rotate(-90)\" \
         text-anchor=\"middle\">{label}</text>"
    );
}

fn names_of(svg: &mut String, chart: &Chart, frame: Frame) {
    let Frame { left, top, right, bottom } = frame;
    let (width, height) = (right - left, bottom - top);
    let _ = writeln!(
        svg,
        "<rect class=\"legend\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" \
         height=\"{height:.1}\" rx=\"3\"/>"
    );
    for (number, series) in chart.series.iter().enumerate() {
        let y = top + 4.0 + LINE * (number as f64 + 0.5);
        let _ = write!(svg, "<g class=\"s{}\">", number % COLOURS.len());
        if series.look != Look::Points {
            line(svg, number, &[(left + 8.0, y), (left + 8.0 + SAMPLE - 8.0, y)]);
        }
        if series.look != Look::Curve {
            mark(svg, number, series.look, (left + 8.0 + (SAMPLE - 8.0) / 2.0, y));
        }
        let (x, y) = (left + SAMPLE + 8.0, y + 4.0);
        let _ =
            writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\">{}</text></g>", escape(&series.name));
    }
}

impl Drawn {
    fn write(&self, svg: &mut String, number: usize) {
        if self.look != Look::Points && self.places.len() > 1 {
            line(svg, number, &self.places);
        }
        // A curve of a single value would not be seen.
        if self.look == Look::Curve && self.places.len() > 1 {
            return;
        }
        let mut last: Option<Place> = None;
        for (at, &place) in self.places.iter().enumerate() {
            let far = |last: Place| (place.0 - last.0).hypot(place.1 - last.1) >= MARKS;
            if self.look == Look::Points || at + 1 == self.places.len() || last.is_none_or(far) {
                mark(svg, number, self.look, place);
                last = Some(place);
            }
        }
    }

    /// The lines that a legend must not cover.
    fn hidden_by_a_legend(&self) -> Vec<Vec<Place>> {
        match self.look {
            Look::Points => self.places.iter().map(|&place| vec![place]).collect(),
            _ => vec![self.places.clone()],
        }
    }
}

fn line(svg: &mut String, number: usize, places: &[Place]) {
    let dash = DASHES[number % DASHES.len()];
    let dash =
        if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
    let _ = write!(svg, "<path class=\"line\"{dash} d=\"");
    for (at, (x, y)) in places.iter().enumerate() {
        let _ = write!(svg, "{}{x:.1} {y:.1}", if at == 0 { 'M' } else { 'L' });
    }
    svg.push_str("\"/>\n");
}

/// A mark, hollow for values without a line.
fn mark(svg: &mut String, number: usize, look: Look, (x, y): Place) {
    let class = if look == Look::Points { "mark hollow" } else { "mark solid" };
    let (r, width) = if look == Look::Points { (5.0, 2.0) } else { (3.2, 1.0) };
    let shape = match number % 6 {
        0 => format!(
            "M{:.1} {y:.1}a{r} {r} 0 1 0 {:.1} 0a{r} {r} 0 1 0 {:.1} 0z",
            x - r,
            2.0 * r,
            -2.0 * r
        ),
        1 => format!("M{:.1} {:.1}h{:.1}v{:.1}h{:.1}z", x - r, y - r, 2.0 * r, 2.0 * r, -2.0 * r),
        2 => format!("M{x:.1} {:.1}l{:.1} {:.1}h{:.1}z", y - 1.3 * r, 1.2 * r, 2.2 * r, -2.4 * r),
        3 => format!(
            "M{x:.1} {:.1}l{:.1} {:.1}l{:.1} {:.1}l{:.1} {:.1}z",
            y - 1.4 * r,
            1.4 * r,
            1.4 * r,
            -1.4 * r,
            1.4 * r,
            -1.4 * r,
            -1.4 * r
        ),
        4 => format!("M{x:.1} {:.1}l{:.1} {:.1}h{:.1}z", y + 1.3 * r, 1.2 * r, -2.2 * r, -2.4 * r),
        _ => format!("M{:.1} {:.1}h{:.1}v{:.1}h{:.1}z", x - r / 2.0, y - 1.5 * r, r, 3.0 * r, -r),
    };
    let _ = writeln!(svg, "<path class=\"{class}\" stroke-width=\"{width}\" d=\"{shape}\"/>");
}
