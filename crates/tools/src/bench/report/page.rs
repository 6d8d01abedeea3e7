//! The HTML page with the charts, as one file. Must never refer to anything outside of itself, nor need a
//! script.

use super::chart::{self, Frame};
use super::figures::{self, Figure};
use super::quantity::Unit;
use super::summary::{MOST_WAYS, Summary};
use super::svg::escape;
use super::{statistics, tables, verdict};
use crate::bench::results::Results;
use std::fmt::Write;

const STYLE: &str = include_str!("page.css");

/// Maximum number of findings and proxies that are listed.
const MOST: usize = 100;
/// Maximum number of combinations whose medians are shown above the charts.
const MOST_AT_THE_TOP: usize = 3;
/// Maximum length of a scenario that is shown, in characters.
const MOST_SCENARIO: usize = 60_000;

/// Returns the page.
pub fn render(results: &Results) -> String {
    let summary = Summary::of(results);
    let figures = figures::all(&summary);
    let mut out = head(results);
    out.push_str("<body>\n<main>\n");
    out.push_str(&top(&summary));
    out.push_str(&proxies(&summary));
    let short = statistics::evenly(&summary.settings, MOST_AT_THE_TOP);
    let rest = if short.len() < summary.settings.len() {
        format!(" {} of {} combinations; all of them stand behind the charts.", short.len(), summary.settings.len())
    } else {
        String::new()
    };
    let _ = writeln!(out, "<section id=\"medians\"><h2>Medians</h2>\n<p>{MEDIANS}{rest}</p>");
    out.push_str(&tables::medians(&summary, &short));
    out.push_str("</section>\n");
    let drawn = figures.iter().filter(|figure| !figure.panels.is_empty());
    for (index, figure) in drawn.enumerate() {
        out.push_str(&place(index + 1, figure));
    }
    if !rest.is_empty() {
        out.push_str("<section id=\"all-medians\"><h2>Medians of all combinations</h2>\n");
        out.push_str(&tables::medians(&summary, &summary.settings));
        out.push_str("</section>\n");
    }
    out.push_str(&details(&summary));
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

const MEDIANS: &str = "Of all rounds without a fault; the range goes from the least to the greatest round. A pointer on a \
                       number shows its range.";

fn head(results: &Results) -> String {
    let title = escape(&results.scenario.title, 200);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n<meta name=\"generator\" content=\"weir bench {}\"/>\n\
         <title>{title}</title>\n<style>\n{}{STYLE}</style>\n</head>\n",
        escape(&results.weir, 60),
        chart::STYLE
    )
}

fn top(summary: &Summary<'_>) -> String {
    let results = summary.results;
    let mut out = String::from("<header>\n");
    let _ = writeln!(out, "<h1>{}</h1>", escape(&results.scenario.title, 200));
    let _ = writeln!(out, "<p class=\"repeats\">Repeats: {}</p>", escape(&results.scenario.repeats, 600));
    let _ = writeln!(out, "<p class=\"verdict\">{}</p>", escape(&verdict::sentence(summary), 1500));
    let machine = &results.machine;
    let rows = [
        ("Processor", format!("{}, {} cores", machine.processor, machine.cores)),
        ("Memory", Unit::Memory.show(machine.memory as f64)),
        ("Kernel", machine.kernel.clone()),
        ("Begun", results.begun.clone()),
        ("Measured by", format!("weir bench {}", results.weir)),
        ("Scenario", results.scenario.name.clone()),
    ];
    out.push_str("<dl>\n");
    for (name, value) in rows {
        let _ = writeln!(out, "<div><dt>{name}</dt><dd>{}</dd></div>", escape(&value, 300));
    }
    out.push_str("</dl>\n</header>\n");
    out.push_str(&environment(results));
    out
}

fn environment(results: &Results) -> String {
    let mut out = String::from("<section id=\"environment\"><h2>The environment</h2>\n");
    if results.environment.is_empty() {
        out.push_str("<p>Nothing was looked at before this run.</p></section>\n");
        return out;
    }
    let warnings = results.environment.iter().filter(|finding| finding.warning.is_some()).count();
    let said = match warnings {
        0 => "Nothing was found that would spoil the result.".to_owned(),
        1 => "One finding may spoil the result.".to_owned(),
        many => format!("{many} findings may spoil the result."),
    };
    let _ = writeln!(out, "<p>{said}</p>\n<ul class=\"environment\">");
    // Warnings first.
    let (bad, good): (Vec<_>, Vec<_>) = results.environment.iter().partition(|finding| finding.warning.is_some());
    for finding in bad.into_iter().chain(good).take(MOST) {
        let class = if finding.warning.is_some() { "warning" } else { "well" };
        let sign = if finding.warning.is_some() { "!" } else { "✓" };
        let (subject, seen) = (escape(&finding.subject, 120), escape(&finding.seen, 400));
        let _ = write!(out, "<li class=\"{class}\"><span class=\"sign\">{sign}</span><b>{subject}</b> {seen}");
        if let Some(warning) = &finding.warning {
            let _ = write!(out, "<span class=\"why\">Warning: {}</span>", escape(warning, 600));
        }
        out.push_str("</li>\n");
    }
    out.push_str("</ul></section>\n");
    out
}

fn proxies(summary: &Summary<'_>) -> String {
    let results = summary.results;
    let mut out = String::from("<section id=\"proxies\"><h2>What was compared</h2>\n<ul class=\"proxies\">\n");
    for proxy in results.proxies.iter().take(MOST) {
        let way = summary.ways.iter().find(|way| way.proxy.as_ref() == Some(&proxy.name));
        let colour = way.map_or_else(|| "cn".to_owned(), |way| way.colour.class());
        let (name, version) = (escape(&proxy.name, 80), escape(&proxy.version, 300));
        let command = escape(&command_line(&proxy.command), 2000);
        let _ = writeln!(
            out,
            "<li><span class=\"dot {colour}\"></span><b>{name}</b> {version}<code class=\"command\">{command}</code></li>"
        );
    }
    if summary.ways.iter().any(|way| way.proxy.is_none()) {
        out.push_str("<li><span class=\"dot cd\"></span><b>direct</b> the load asks the origin itself</li>\n");
    }
    out.push_str("</ul>\n");
    if results.proxies.len() > MOST_WAYS {
        let _ = writeln!(out, "<p>Only the first {MOST_WAYS} are drawn.</p>");
    }
    let command = escape(&results.command, 4000);
    let _ = writeln!(
        out,
        "<p>The command that repeats it:</p>\n<pre class=\"wrapped\"><code>{command}</code></pre>\n</section>"
    );
    out
}

/// Returns a command line, quoted for a shell.
fn command_line(words: &[String]) -> String {
    let plain = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "-_./:=,@%+".contains(c));
    let quoted = words.iter().map(|word| match word {
        word if plain(word) => word.clone(),
        word => format!("'{}'", word.replace('\'', "'\\''")),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// Returns a figure with its number.
fn place(number: usize, figure: &Figure) -> String {
    let mut out = format!("<section id=\"{}\" class=\"figure\"><h2>{number}. {}</h2>\n", figure.slug, figure.title);
    let _ = writeln!(out, "<p>{}</p>", escape(&figure.text, 1200));
    for (index, panel) in figure.panels.iter().enumerate() {
        let name = figure.name(index);
        let _ = writeln!(out, "<figure id=\"f-{name}\">\n<figcaption>{}</figcaption>", escape(&panel.heading, 300));
        for frame in [Frame::Wide, Frame::Narrow] {
            out.push_str(&panel.chart.draw(frame, &format!("{name}-{}", frame.class())));
        }
        out.push_str("</figure>\n");
    }
    out.push_str("</section>\n");
    out
}

fn details(summary: &Summary<'_>) -> String {
    let mut out = String::new();
    let mut section = |id: &str, title: &str, text: &str, table: Option<String>| {
        if let Some(table) = table {
            let _ = writeln!(out, "<section id=\"{id}\"><h2>{title}</h2>\n<p>{text}</p>\n{table}</section>");
        }
    };
    let threads = "In the median round of each combination, the busiest first.";
    section("threads", "CPU of each thread", threads, tables::threads(summary));
    let costs = "Packets are those of the interface of the traffic, received and sent, and CPU is that of the load and \
                 the origins: medians of the rounds. System calls were counted in a round of their own, which is not timed.";
    section("costs", "What a request costs besides", costs, tables::costs(summary));
    out.push_str("<section id=\"faults\"><h2>Faults</h2>\n");
    match tables::faults(summary) {
        Some(list) => {
            out.push_str("<p>These rounds count for nothing.</p>\n");
            out.push_str(&list);
        }
        None => out.push_str("<p>No round had a fault.</p>\n"),
    }
    let text = escape(&summary.results.scenario_text, MOST_SCENARIO);
    let _ = writeln!(
        out,
        "</section>\n<section id=\"scenario\"><h2>The scenario</h2>\n<pre><code>{text}</code></pre>\n</section>"
    );
    out
}
