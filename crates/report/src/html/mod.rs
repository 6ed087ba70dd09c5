//! A check or a replay as one HTML file: the page loads nothing from elsewhere and needs no build.
//!
//! [`Page::to_html`] fills `viewer.html` with the style, the scripts, and the data as JSON in a
//! script element of its own. The data have the shape that `--json` prints, with the arrows and the
//! values after each step besides.
//!
//! Texts of the program under test are untrusted. They occur only in the data, where `<`, `>` and
//! `&` are written as JSON escapes, so that no text can end the element; the scripts turn them into
//! text nodes, never into HTML. The one exception is the title, which is escaped as HTML. The page
//! forbids itself every connection.

use preempt_explore::{Growth, Tally};
use preempt_system::Finding;

use crate::check_report::CheckReport;
use crate::json::Value;
use crate::json_report;
use crate::text_report;
use crate::trace::Trace;
use crate::trace_text::headline;
use crate::value_history::{Change, Variable};

const TEMPLATE: &str = include_str!("viewer.html");
const STYLE: &str = include_str!("viewer.css");
/// The scripts, in the order of their dependences.
const SCRIPTS: [&str; 6] = [
    include_str!("trace.js"),
    include_str!("lanes.js"),
    include_str!("overview.js"),
    include_str!("panes.js"),
    include_str!("coverage.js"),
    include_str!("viewer.js"),
];

/// The content of a page.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// The subject of the check: the file of a model, the place of a test.
    pub subject: &'a str,
    /// The check, unless a single schedule was replayed.
    pub checked: Option<&'a CheckReport<'a>>,
    /// A sentence about a replay.
    pub replayed: Option<&'a str>,
    /// The executions to show: those of the findings, in their order.
    pub traces: &'a [Trace],
    /// The source files of the program: name and text.
    pub sources: &'a [(String, String)],
}

impl Page<'_> {
    /// The page.
    pub fn to_html(&self) -> String {
        let title = escaped(&format!("{} – Preempt", self.subject));
        let data = inert(&self.data().to_string());
        let scripts = SCRIPTS.concat();
        let mut parts = vec![
            ("title", title.as_str()),
            ("style", STYLE),
            ("data", &data),
            ("scripts", &scripts),
        ];
        parts.reverse();
        let mut page =
            String::with_capacity(TEMPLATE.len() + STYLE.len() + data.len() + scripts.len());
        let mut rest = TEMPLATE;
        // One after the other: inserted text is not scanned again.
        while let Some((name, part)) = parts.pop() {
            let mark = format!("{{{{{name}}}}}");
            let (before, after) =
                rest.split_once(&mark).expect("the template has a place for every part");
            page += before;
            page += part;
            rest = after;
        }
        page + rest
    }

    fn data(&self) -> Value {
        let findings =
            self.checked.map(|checked| &checked.outcome.findings[..]).unwrap_or_default();
        let executions = self.traces.iter().enumerate().map(|(at, trace)| {
            let mut fields = json_report::execution(trace);
            fields.extend(findings.get(at).map(json_report::schedule_of).unwrap_or_default());
            let command = self.checked.zip(findings.get(at)).and_then(command);
            fields.extend(command.map(|command| ("command", command.into())));
            fields.extend(drawn(trace));
            Value::Object(fields)
        });
        let source = |(file, text): &(String, String)| {
            Value::Object(vec![("file", file.as_str().into()), ("text", text.as_str().into())])
        };
        Value::Object(vec![
            ("preempt", env!("CARGO_PKG_VERSION").into()),
            ("subject", self.subject.into()),
            ("check", self.checked.map(|checked| Value::Object(checked.without_findings())).into()),
            ("summary", self.checked.map(summary).into()),
            (
                "growth",
                self.checked.and_then(|checked| checked.outcome.growth.as_ref()).map(growth).into(),
            ),
            ("replayed", self.replayed.into()),
            ("executions", executions.collect()),
            ("sources", self.sources.iter().map(source).collect()),
        ])
    }
}

/// The command that replays a finding, unless its token is too long to be pasted.
fn command((checked, finding): (&CheckReport<'_>, &Finding)) -> Option<String> {
    let token = json_report::token_of(finding);
    (token.len() <= text_report::LONGEST_TOKEN).then(|| checked.replay.of(&token))
}

/// The coverage after each number of executions.
fn growth(growth: &Growth) -> Value {
    let sample = |tally: &Tally| {
        Value::Object(vec![
            ("executions", tally.taken().into()),
            ("traces", tally.traces.into()),
            ("states", tally.states.into()),
        ])
    };
    growth.samples.iter().map(sample).collect()
}

/// The lines of the report about the search.
fn summary(checked: &CheckReport<'_>) -> Value {
    let lines = text_report::summary(checked);
    lines.into_iter().map(|(label, text)| Value::List(vec![label.into(), text.into()])).collect()
}

/// The data of the lanes, in addition to the steps.
fn drawn(trace: &Trace) -> Vec<(&'static str, Value)> {
    let list =
        |numbers: &Vec<usize>| numbers.iter().map(|&number| number.into()).collect::<Value>();
    let variable = |variable: &Variable| {
        Value::Object(vec![
            ("name", variable.name.as_str().into()),
            ("slot", variable.owner.map(|thread| thread.index()).into()),
        ])
    };
    let change =
        |(number, value): &Change| Value::List(vec![(*number).into(), value.clone().into()]);
    vec![
        ("headline", trace.failure.as_ref().map(headline).into()),
        ("threads", trace.names.iter().map(|name| name.as_str().into()).collect()),
        (
            "preempts",
            trace
                .steps
                .iter()
                .map(|step| step.preempts.map(|thread| thread.index()).into())
                .collect(),
        ),
        ("arrows", trace.arrows.iter().map(list).collect()),
        ("variables", trace.values.variables.iter().map(variable).collect()),
        (
            "changes",
            trace
                .values
                .changes
                .iter()
                .map(|changes| changes.iter().map(change).collect())
                .collect(),
        ),
    ]
}

/// JSON that is still the same JSON, and cannot end a script element or begin a comment in it.
fn inert(json: &str) -> String {
    // Outside strings JSON has none of these.
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// A text as HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use preempt_system::{Failure, FailureKind, Narration, Nesting, Site, ThreadId};
    use serde_json::Value as Json;

    use super::*;
    use crate::trace::{NarratedStep, ThreadPosition};
    use crate::value_history::ValueHistory;

    /// A text that would like to be HTML, a script, a comment, and a part of the template.
    const HOSTILE: &str = "</script><img src=x onerror=alert(1)> <!-- & \"'\u{2028} {{scripts}}";

    /// An execution of one step all of whose texts are `text`.
    fn trace(text: &str) -> Trace {
        let site = Some(Site { file: text.into(), line: 1, column: 1 });
        let narration = Narration {
            site: site.clone(),
            source: text.to_owned(),
            effects: vec![text.to_owned()],
        };
        let thread = ThreadId::new(0);
        let step = NarratedStep {
            thread,
            number: thread,
            alternative: None,
            narration: narration.clone(),
            label: text.to_owned(),
            nesting: Nesting::Own,
            preempts: Some(thread),
            stale: None,
        };
        let variables = vec![Variable { owner: None, name: text.to_owned(), nth: 0 }];
        let changes = vec![vec![(0, Some(text.to_owned()))], vec![(0, None)]];
        Trace {
            names: vec![text.to_owned()],
            steps: vec![step],
            arrows: vec![Vec::new()],
            values: ValueHistory { variables, changes },
            failure: Some(Failure { kind: FailureKind::Assertion, message: text.to_owned(), site }),
            waiting: vec![ThreadPosition { thread, narration }],
            ..Trace::default()
        }
    }

    fn page(text: &str) -> String {
        let sources = [(text.to_owned(), text.to_owned())];
        Page {
            subject: text,
            checked: None,
            replayed: Some(text),
            traces: &[trace(text)],
            sources: &sources,
        }
        .to_html()
    }

    fn data(page: &str) -> Json {
        let (_, rest) = page.split_once("id=\"data\">").expect("the page has data");
        let (json, _) = rest.split_once("</script>").expect("the data end");
        serde_json::from_str(json).expect("the data are JSON")
    }

    #[test]
    fn no_text_of_a_program_becomes_part_of_the_page() {
        let (hostile, plain) = (page(HOSTILE), page("x"));
        for tag in ["<script", "</script", "<img", "<!--", "<style"] {
            assert_eq!(hostile.matches(tag).count(), plain.matches(tag).count(), "{tag}");
        }
        assert!(!hostile.contains("<img"));
        let scripts = SCRIPTS.concat();
        assert_eq!(hostile.matches(&scripts).count(), 1, "what was put in is not filled in again");
        let data = data(&hostile);
        let execution = &data["executions"][0];
        for text in [
            &data["subject"],
            &data["sources"][0]["text"],
            &execution["threads"][0],
            &execution["steps"][0]["source"],
            &execution["steps"][0]["effects"][0],
            &execution["waiting"][0]["file"],
            &execution["variables"][0]["name"],
            &execution["changes"][0][0][1],
            &execution["message"],
        ] {
            assert_eq!(text, HOSTILE, "the text is the same as it was");
        }
    }

    #[test]
    fn a_page_names_the_first_step_of_the_cycle() {
        let finite = trace("x");
        let lasso = Trace { cycle: 1, ..finite.clone() };
        let page = |trace: &Trace| {
            let traces = std::slice::from_ref(trace);
            let page = Page { subject: "x", checked: None, replayed: None, traces, sources: &[] };
            data(&page.to_html())["executions"][0]["cycle"].clone()
        };
        assert_eq!(page(&finite), Json::Null);
        assert_eq!(page(&lasso), 1, "steps are counted from 1");
    }

    #[test]
    fn a_page_names_nothing_outside_of_itself() {
        let page = page("x").replace("http://www.w3.org/2000/svg", "");
        for word in [
            "http:",
            "https:",
            "src=",
            "href=",
            "@import",
            "url(",
            "fetch(",
            "XMLHttpRequest",
            "innerHTML",
            "eval(",
        ] {
            assert!(!page.contains(word), "{word}");
        }
    }
}
