//! Charts draw the given data, nothing hides it, and the text is valid XML for all names.

use preempt_report::plot::{Axis, Chart, Look, Series};

fn chart() -> Chart {
    let grown = |factor: f64| (0..6).map(move |n| (10f64.powi(n), factor * f64::from(n * n + 1)));
    Chart::new("States after so many executions", Axis::log("executions"), Axis::linear("states"))
        .with(Series::new("icb", Look::Line, grown(400.0)))
        .with(Series::new("random", Look::Line, grown(300.0)))
        .with(Series::new("dfs", Look::Line, grown(90.0)))
        .with(Series::new("db:40", Look::Curve, grown(60.0)))
        .with(Series::new("published", Look::Points, [(100.0, 5_000.0), (10_000.0, 9_000.0)]))
        .note("A note below")
}

/// The names and attributes of the elements that are open at the end of each tag, as an XML parser
/// would see them. Panics if tags do not match, an attribute is not quoted, or an entity is
/// invalid.
fn elements(svg: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut open = Vec::new();
    let mut all = Vec::new();
    let mut rest = svg;
    while let Some(at) = rest.find('<') {
        check_text(&rest[..at]);
        let end = at + rest[at..].find('>').expect("a tag ends");
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "tags match");
            continue;
        }
        let (tag, closed) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, mut attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        let mut found = Vec::new();
        while !attributes.trim().is_empty() {
            let (key, value) =
                attributes.trim_start().split_once("=\"").expect("an attribute is quoted");
            let (value, next) = value.split_once('"').expect("a quote ends");
            check_text(value);
            found.push((key.to_owned(), value.to_owned()));
            attributes = next;
        }
        all.push((name.to_owned(), found));
        if !closed {
            open.push(name.to_owned());
        }
    }
    assert!(open.is_empty(), "all tags are closed: {open:?}");
    all
}

fn check_text(text: &str) {
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
    for part in text.split('&').skip(1) {
        let entity = part.split(';').next().expect("an entity ends");
        assert!(["amp", "lt", "gt", "quot", "#39"].contains(&entity), "&{entity}");
    }
}

/// The points of a series' line.
fn line(svg: &str, name: &str) -> Vec<(f64, f64)> {
    let after = svg.split_once(&format!("<title>{name}</title>")).expect("the series is there").1;
    let path = after
        .split_once("d=\"M")
        .expect("the series has a line")
        .1
        .split('"')
        .next()
        .expect("a quote ends");
    let place = |text: &str| {
        let (x, y) = text.split_once(' ').expect("two numbers");
        (x.parse().expect("a number"), y.parse().expect("a number"))
    };
    path.split('L').map(place).collect()
}

#[test]
fn charts_draw_the_given_data() {
    let svg = chart().to_svg();
    let icb = line(&svg, "icb");
    assert_eq!(icb.len(), 6);
    // Equal decades are equally far apart, and twice as many states are twice as high.
    let gaps: Vec<f64> = icb.windows(2).map(|two| two[1].0 - two[0].0).collect();
    assert!(gaps.iter().all(|gap| (gap - gaps[0]).abs() < 0.2), "{gaps:?}");
    let zero = 440.0 - 52.0;
    for (number, (at, other)) in icb.iter().zip(line(&svg, "random")).enumerate() {
        let (high, low) = (zero - at.1, zero - other.1);
        assert!((high * 3.0 - low * 4.0).abs() < 0.5, "point {number}: {high} {low}");
    }
    assert_eq!(svg.matches("mark hollow").count(), 2 + 1, "two values and the legend's sample");
}

#[test]
fn the_text_is_valid_xml_for_all_names() {
    let nasty = "a<b>&\"c'\u{0}\u{1b}[31m]]>--";
    let mut chart = chart().note(nasty).with(Series::new(nasty, Look::Line, [(1.0, 1.0)]));
    chart.title = nasty.to_owned();
    (chart.x.label, chart.y.label) = (nasty.to_owned(), nasty.to_owned());
    let svg = chart.to_svg();
    let all = elements(&svg);
    assert_eq!(all[0].0, "svg");
    assert!(!svg.contains("a<b"), "names are escaped");
    assert_eq!(
        svg.matches("a&lt;b&gt;&amp;&quot;c&#39;").count(),
        8,
        "title three times, axes, note, series and legend"
    );
    assert!(
        all.iter().all(|(name, _)| !["script", "image", "use", "a"].contains(&name.as_str())),
        "nothing from outside"
    );
}

#[test]
fn the_legend_hides_nothing() {
    // A line through every corner: the legend is placed beside the picture, which gets narrower.
    let everywhere = [(0.0, 92.0), (1.0, 92.0), (1.0, 8.0), (0.0, 8.0)];
    let round = Chart::new("", Axis::linear("x"), Axis::percent("y")).with(Series::new(
        "a",
        Look::Line,
        everywhere,
    ));
    let svg = round.to_svg();
    let edge = line(&svg, "a").iter().map(|place| place.0).fold(0.0, f64::max);
    let legend =
        elements(&svg).into_iter().find(|(_, a)| a.contains(&("class".into(), "legend".into())));
    let (_, attributes) = legend.expect("there is one");
    let left: f64 = attributes
        .iter()
        .find(|(key, _)| key == "x")
        .expect("the point has a position")
        .1
        .parse()
        .expect("a number");
    assert!(left > edge, "{left} {edge}");
    let corner = Chart::new("", Axis::linear("x"), Axis::percent("y")).with(Series::new(
        "a",
        Look::Line,
        [(0.0, 0.0), (1.0, 100.0)],
    ));
    let edge_with_room = line(&corner.to_svg(), "a")[1].0;
    assert!(edge_with_room > edge, "where a corner is free the picture is as wide as it can be");
}

#[test]
fn unusual_data_are_drawn_where_possible() {
    let strange = [(f64::NAN, 1.0), (1.0, f64::INFINITY), (0.0, 5.0), (10.0, 0.0), (10.0, 7.0)];
    let svg = Chart::new("", Axis::log("x"), Axis::log("y"))
        .with(Series::new("a", Look::Curve, strange))
        .to_svg();
    elements(&svg);
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    assert!(Chart::new("", Axis::log("x"), Axis::whole("y")).to_svg().contains("no data"));
}

#[test]
fn series_differ_by_more_than_their_colour() {
    let mut many = Chart::new("", Axis::linear("x"), Axis::linear("y"));
    for n in 0..6 {
        many = many.with(Series::new(
            format!("series {n}"),
            Look::Line,
            [(0.0, 0.0), (9.0, f64::from(n + 1))],
        ));
    }
    let svg = many.to_svg();
    let looks = (0..6).map(|n| {
        let after =
            svg.split_once(&format!("<title>series {n}</title>")).expect("the series is drawn").1;
        let dash = after.split(" d=").next().expect("a path").to_owned();
        dash.split_once("stroke-dasharray").map(|(_, dash)| dash.to_owned())
    });
    let looks: std::collections::BTreeSet<_> = looks.collect();
    assert_eq!(looks.len(), 6, "every series has its own dashes");
    assert!(svg.contains("@media (prefers-color-scheme:dark)"));
    assert_eq!(svg, many.to_svg(), "the same data are the same picture");
}
