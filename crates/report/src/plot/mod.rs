//! Line charts as SVG: data in, one self-contained picture out.
//!
//! The picture is the same for the same data on every machine. It needs nothing from outside,
//! carries its own light and dark colours, and distinguishes its series by colour, by dashes and by
//! the shapes of their marks, so that it can be read without colours too.
//!
//! ```
//! use preempt_report::plot::{Axis, Chart, Look, Series};
//!
//! let covered = Series::new("icb", Look::Line, [(1.0, 11.0), (10.0, 340.0), (100.0, 1540.0)]);
//! let chart = Chart::new("Coverage", Axis::log("executions"), Axis::linear("states")).with(covered);
//! assert!(chart.to_svg().starts_with("<svg "));
//! ```

mod draw;
mod legend;
mod scale;

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// The title.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines and points, in the order of the legend.
    pub series: Vec<Series>,
    /// Notes below the chart, one line each.
    pub notes: Vec<String>,
}

/// An axis of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The label.
    pub label: String,
    /// The scale, which maps numbers to positions.
    pub scale: Scale,
}

/// The scale, which maps numbers to positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scale {
    /// Linear.
    Linear,
    /// Linear, with ticks at whole numbers only.
    Whole,
    /// Linear, from 0 to 100.
    Percent,
    /// Logarithmic. Numbers that are not positive have no position.
    Log,
    /// Linear over exponents, labelled as powers of ten: for values that are too large for a float.
    PowersOfTen,
}

/// One curve, or some points.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its appearance.
    pub look: Look,
    /// The points, from left to right. Points that are not finite are omitted.
    pub points: Vec<(f64, f64)>,
}

/// The appearance of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Look {
    /// A line with marks.
    Line,
    /// A line without marks: a curve that is known everywhere.
    Curve,
    /// Hollow marks without a line: single values, such as a paper's.
    Points,
}

impl Axis {
    fn new(label: impl Into<String>, scale: Scale) -> Axis {
        Axis { label: label.into(), scale }
    }

    /// A linear axis.
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis::new(label, Scale::Linear)
    }

    /// A linear axis of whole numbers.
    pub fn whole(label: impl Into<String>) -> Axis {
        Axis::new(label, Scale::Whole)
    }

    /// An axis from 0 to 100.
    pub fn percent(label: impl Into<String>) -> Axis {
        Axis::new(label, Scale::Percent)
    }

    /// A logarithmic axis.
    pub fn log(label: impl Into<String>) -> Axis {
        Axis::new(label, Scale::Log)
    }

    /// An axis of exponents.
    pub fn powers_of_ten(label: impl Into<String>) -> Axis {
        Axis::new(label, Scale::PowersOfTen)
    }
}

impl Series {
    /// A series of these points.
    pub fn new(
        name: impl Into<String>,
        look: Look,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Series {
        Series { name: name.into(), look, points: points.into_iter().collect() }
    }
}

impl Chart {
    /// A chart without data.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Chart {
        Chart { title: title.into(), x, y, series: Vec::new(), notes: Vec::new() }
    }

    /// The same with one more series.
    pub fn with(mut self, series: Series) -> Chart {
        self.series.push(series);
        self
    }

    /// The same with one more line below.
    pub fn note(mut self, text: impl Into<String>) -> Chart {
        self.notes.push(text.into());
        self
    }

    /// The picture. Ends with a newline.
    pub fn to_svg(&self) -> String {
        draw::svg(self)
    }
}

/// `text` escaped for XML, inside an element or a quoted attribute.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // XML has no way to write these at all.
            '\0'..='\u{8}'
            | '\u{b}'
            | '\u{c}'
            | '\u{e}'..='\u{1f}'
            | '\u{7f}'
            | '\u{fffe}'
            | '\u{ffff}' => {
                escaped.push(char::REPLACEMENT_CHARACTER);
            }
            c => escaped.push(c),
        }
    }
    escaped
}
