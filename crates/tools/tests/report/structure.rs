//! The page and its drawings as XML: well-formed, escaped, and without numbers that are not finite.

use crate::fixture;
use weir_tools::bench::report::{drawings, render};
use weir_tools::bench::results::{Point, Results};
use weir_tools::load::record::Counts;

/// Parses the page without its first line, which is not valid XML.
fn parse(page: &str) -> roxmltree::Document<'_> {
    let markup = page.strip_prefix("<!DOCTYPE html>\n").expect("an HTML page");
    roxmltree::Document::parse(markup).unwrap_or_else(|error| panic!("the page is not well-formed: {error}"))
}

fn check(results: &Results) -> String {
    let page = render(results);
    let document = parse(&page);
    let mut ids: Vec<&str> = document.descendants().filter_map(|node| node.attribute("id")).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "every id is there once");
    for node in document.descendants().filter(roxmltree::Node::is_element) {
        for attribute in node.attributes().filter(|attribute| !matches!(attribute.name(), "title" | "content")) {
            let odd = ["NaN", "inf"].iter().any(|word| attribute.value().contains(word));
            assert!(!odd, "{}={}", attribute.name(), attribute.value());
        }
    }
    for drawing in drawings(results) {
        roxmltree::Document::parse(&drawing.svg).unwrap_or_else(|error| panic!("{}: {error}", drawing.file));
        assert!(drawing.file.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.')));
    }
    page
}

const FIGURES: [&str; 7] = [
    "1-requests-over-time",
    "2-latency-percentiles",
    "3-object-sizes",
    "4-cpu-per-request",
    "5-offered-rate",
    "6-workers",
    "7-memory",
];

#[test]
fn a_whole_run_has_every_figure_in_its_order() {
    let page = check(&fixture::full());
    let places: Vec<_> =
        FIGURES.iter().map(|name| page.find(&format!("<section id=\"{name}\"")).expect(name)).collect();
    assert!(places.is_sorted());
    assert!(!page.contains("This scenario"), "nothing is missing");
    for name in FIGURES {
        for frame in ["wide", "narrow"] {
            assert!(page.contains(&format!("<title id=\"{name}-{frame}-t\">")), "{name} {frame}");
        }
    }
    assert!(page.len() < 3 << 20, "{} bytes", page.len());
}

#[test]
fn nothing_points_out_of_the_page() {
    let page = render(&fixture::full());
    let document = parse(&page);
    for node in document.descendants() {
        assert!(!matches!(node.tag_name().name(), "script" | "link" | "img" | "iframe" | "object" | "base"));
        assert!(!node.attributes().any(|attribute| matches!(attribute.name(), "href" | "src")));
    }
    assert!(!page.contains("url(") && !page.contains("@import"));
}

#[test]
fn the_same_proxy_has_the_same_colour_everywhere() {
    let page = render(&fixture::full());
    let document = parse(&page);
    let mut seen = 0;
    for group in document.descendants().filter(|node| node.tag_name().name() == "g") {
        let title = group.children().find(|node| node.tag_name().name() == "title").and_then(|node| node.text());
        let Some(title) = title.filter(|_| group.attribute("class") != Some("spot")) else { continue };
        let expected = [("weir", "c0"), ("haproxy", "c1"), ("nginx", "c3"), ("direct", "cd")];
        let (_, colour) = expected.iter().find(|(name, _)| title.starts_with(name)).expect(title);
        assert_eq!(group.attribute("class"), Some(*colour), "{title}");
        seen += 1;
    }
    assert!(seen > 100, "{seen} groups");
}

#[test]
fn bars_begin_at_zero_and_are_as_long_as_their_numbers() {
    let svg = drawings(&fixture::full()).into_iter().find(|drawing| drawing.file == "4-cpu-per-request.svg");
    let svg = svg.expect("the chart of CPU").svg;
    let document = roxmltree::Document::parse(&svg).expect("XML");
    let number = |node: &roxmltree::Node<'_, '_>, name: &str| -> f64 {
        node.attribute(name).expect("a coordinate").parse().expect("a number")
    };
    let mut scales = Vec::new();
    let zero = document.descendants().find(|node| node.attribute("class") == Some("base")).expect("the line of zero");
    for group in document.descendants().filter(|node| matches!(node.attribute("class"), Some("c0" | "c1" | "c3"))) {
        let part = |class: &str| group.children().find(|node| node.attribute("class") == Some(class));
        let (solid, pale) = (part("solid").expect("user"), part("pale").expect("system"));
        assert!((number(&solid, "x") - number(&zero, "x1")).abs() < 0.11);
        assert!((number(&pale, "x") - number(&solid, "x") - number(&solid, "width")).abs() < 0.21, "stacked");
        let note = part("note").and_then(|node| node.text()).expect("the value");
        let value: f64 = note.split(' ').next().expect("a word").parse().expect("a number");
        scales.push((number(&solid, "width") + number(&pale, "width")) / value);
    }
    assert_eq!(scales.len(), 3);
    assert!(scales.iter().all(|scale| (scale / scales[0] - 1.0).abs() < 0.01), "{scales:?}");
}

#[test]
fn what_was_not_measured_is_left_out() {
    let mut results = fixture::empty();
    let page = check(&results);
    assert!(page.contains("Nothing was measured."));
    assert!(!page.contains("class=\"figure\"") && !page.contains("id=\"threads\"") && !page.contains("id=\"costs\""));
    assert!(drawings(&results).is_empty());
    results.points = fixture::full().points;
    for round in results.points.iter_mut().flat_map(|point| &mut point.rounds) {
        round.fault = Some("lost".to_owned());
    }
    let page = check(&results);
    assert!(page.contains("Every round had a fault"));
    assert!(drawings(&results).is_empty());
    // One size, one rate: there is no sweep.
    let mut results = fixture::full();
    results.points.truncate(4);
    let page = check(&results);
    assert!(page.contains("id=\"4-cpu-per-request\"") && !page.contains("id=\"3-object-sizes\""));
    assert!(page.contains("<h2>3. CPU a request"), "those that are there are numbered");
}

#[test]
fn a_program_has_its_colour_whichever_others_were_measured() {
    let mut results = fixture::full();
    results.points.truncate(4);
    results.points.retain(|point| point.proxy.as_deref() == Some("haproxy"));
    results.proxies.retain(|proxy| proxy.name == "haproxy");
    let page = check(&results);
    assert!(page.contains("dot c1") && !page.contains("dot c0"));
}

#[test]
fn the_verdict_is_made_from_the_numbers() {
    let verdict = |results: &Results| {
        let page = render(results);
        let start = page.find("<p class=\"verdict\">").expect("a verdict") + 19;
        page[start..start + page[start..].find("</p>").expect("its end")].to_owned()
    };
    let mut results = fixture::full();
    results.points.truncate(4);
    // Enough rounds without a fault.
    results.points.iter_mut().for_each(|point| point.rounds.extend_from_within(..));
    let told = verdict(&results);
    assert!(told.starts_with("CPU a request: weir "), "{told}");
    assert!(told.contains(" (least), against haproxy "), "{told}");
    assert!(told.contains("Requests a second: ") && told.contains("99th percentile: "), "{told}");
    assert!(told.contains("; medians of "), "{told}");
    let third = results.points[3].rounds.clone();
    results.points[1].rounds = third;
    assert!(verdict(&results).starts_with("CPU a request: haproxy "));
    let third = results.points[3].rounds.clone();
    results.points[2].rounds = third;
    assert!(verdict(&results).contains("(the best two within noise)"));
    for point in &mut results.points {
        point.rounds.truncate(1);
    }
    let told = verdict(&results);
    assert!(told.contains("one round, too few to tell a difference from noise") && !told.contains("(least)"), "{told}");
    results.points.truncate(2);
    assert!(verdict(&results).contains("of what the load reaches without it"));
    results.points.truncate(1);
    assert!(verdict(&results).contains("Without a proxy the load reaches"));
}

const HOSTILE: &str = "</style></pre><script>alert(\"1\")</script><!--&x;]]>'\"\u{0}\u{202e}";

#[test]
fn hostile_words_stay_words() {
    let mut results = fixture::full();
    let hostile = || HOSTILE.to_owned();
    for text in [&mut results.begun, &mut results.weir, &mut results.command, &mut results.scenario_text] {
        *text = hostile();
    }
    let scenario = &mut results.scenario;
    for text in [&mut scenario.name, &mut scenario.title, &mut scenario.repeats] {
        *text = hostile();
    }
    results.machine.processor = hostile();
    results.machine.kernel = hostile();
    for finding in &mut results.environment {
        finding.subject = hostile();
        finding.seen = hostile();
        finding.warning = Some(hostile());
    }
    for proxy in &mut results.proxies {
        proxy.name.push_str(HOSTILE);
        proxy.version = hostile();
        proxy.command = vec![hostile()];
    }
    for point in &mut results.points {
        point.proxy = point.proxy.as_ref().map(|name| format!("{name}{HOSTILE}"));
        for round in &mut point.rounds {
            round.fault = round.fault.as_ref().map(|_| hostile());
            round.system_calls.insert(hostile(), 7.0);
            round.threads.iter_mut().for_each(|thread| thread.name = hostile());
        }
    }
    let page = check(&results);
    assert!(!page.contains("<script") && !page.contains("&x;") && !page.contains('\u{202e}') && !page.contains('\0'));
    assert_eq!(page.matches("</style>").count(), 1);
}

#[test]
fn odd_numbers_harm_nothing() {
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.0, 1e308, 1e-308] {
        let mut results = fixture::full();
        for point in &mut results.points {
            point.rate = point.rate.map(|_| odd);
            for round in &mut point.rounds {
                spoil(round, odd);
            }
        }
        check(&results);
        // Together with valid ones.
        let mut results = fixture::full();
        results.points.iter_mut().for_each(|point| spoil(&mut point.rounds[0], odd));
        check(&results);
    }
}

fn spoil(round: &mut weir_tools::bench::results::Round, odd: f64) {
    round.total.length = odd;
    round.latency.iter_mut().for_each(|row| row.1 = odd);
    round.latency.push((odd, odd));
    round.reference.insert(0, (odd, 1.0));
    for second in &mut round.seconds {
        second.at = odd;
        second.length = odd;
    }
    for thread in &mut round.threads {
        thread.user = odd;
        thread.system = odd;
    }
    round.origin_cpu = odd;
    round.load_cpu = odd;
    round.system_calls.values_mut().for_each(|count| *count = odd);
}

#[test]
fn one_point_and_one_second_are_drawn() {
    let mut results = fixture::full();
    results.points.truncate(2);
    for round in results.points.iter_mut().flat_map(|point| &mut point.rounds) {
        round.seconds.truncate(1);
        round.latency.truncate(4);
        round.reference.clear();
    }
    results.points.iter_mut().for_each(|point| point.rounds.truncate(1));
    assert!(!check(&results).contains("<circle"));
    results.points[1].rounds[0].latency = vec![(99.0, 150.0)];
    assert!(check(&results).contains("<circle"), "a line of one point is a mark");
}

#[test]
fn a_fragment_of_a_second_and_a_tail_without_answers_are_not_drawn() {
    let mut results = fixture::full();
    results.points.truncate(2);
    let drawn = |results: &Results| {
        let [over_time, latency, ..] = &drawings(results)[..] else { panic!("two charts at least") };
        (over_time.svg.clone(), latency.svg.contains(">99.9999%<"))
    };
    let (before, far) = drawn(&results);
    assert!(far);
    for round in results.points.iter_mut().flat_map(|point| &mut point.rounds) {
        let answers = round.seconds[0].answers;
        round.seconds.push(Counts { at: 30.001, length: 0.001, answers, ..Counts::default() });
        let tenth = round.latency.iter().position(|row| row.0 > 99.9).expect("a tail");
        let slowest = round.latency[tenth].1;
        round.latency[tenth..].iter_mut().for_each(|row| row.1 = slowest);
    }
    let (after, far) = drawn(&results);
    assert_eq!(before, after, "the fragment changes nothing");
    assert!(!far, "the axis ends with the answers");
    for round in results.points.iter_mut().flat_map(|point| &mut point.rounds) {
        round.seconds.truncate(1);
    }
    assert!(drawn(&results).0.contains("class=\"line bold\" d=\"M"), "one second is a line of its length");
}

#[test]
fn a_round_that_ended_early_does_not_pull_the_tail_down() {
    let mut results = fixture::full();
    results.points.truncate(2);
    let point = &mut results.points[1];
    for (index, round) in point.rounds.iter_mut().enumerate() {
        round.reference.clear();
        // The first round ends at 99 % with a response that is slower than all others.
        let slow = if index == 0 { 1e7 } else { 1e3 * (index as f64) };
        round.latency = [50.0, 99.0, 99.9, 99.99]
            .map(|at| (at, if index == 0 && at > 98.0 { slow } else { slow.min(1e4) + at }))
            .to_vec();
    }
    let svg = drawings(&results).swap_remove(1).svg;
    let document = roxmltree::Document::parse(&svg).expect("XML");
    let own = document.descendants().filter(|node| node.attribute("class") == Some("c0"));
    let path = own.flat_map(|node| node.children()).find_map(|node| node.attribute("d")).expect("a line").to_owned();
    let heights: Vec<f64> = path.split(['M', 'L']).filter_map(|at| at.split(' ').nth(1)?.parse().ok()).collect();
    assert!(heights.len() > 2 && heights.is_sorted_by(|a, b| a >= b), "{heights:?}");
}

#[test]
fn empty_lists_and_huge_counts_harm_nothing() {
    let mut results = fixture::full();
    for round in results.points.iter_mut().flat_map(|point| &mut point.rounds) {
        round.seconds.clear();
        round.latency.clear();
        round.threads.clear();
        round.total.answers = u64::MAX;
        round.total.received = u64::MAX;
        round.packets = (u64::MAX, u64::MAX);
        round.memory.anonymous = u64::MAX;
        round.total.error_reset = u64::MAX;
        round.total.error_timeout = u64::MAX;
    }
    check(&results);
    results.points.iter_mut().for_each(|point| point.rounds.clear());
    check(&results);
}

#[test]
fn a_long_run_makes_no_longer_page() {
    let mut results = fixture::full();
    results.points.truncate(4);
    for round in results.points.iter_mut().flat_map(|point| &mut point.rounds) {
        let last = *round.seconds.last().expect("a second");
        round.seconds.extend((31..=20_000).map(|at| Counts { at: f64::from(at), ..last }));
        let thread = round.threads.first().cloned();
        round.threads.extend(thread.into_iter().flat_map(|thread| std::iter::repeat_n(thread, 5000)));
    }
    results.scenario_text = "x".repeat(10 << 20);
    results.environment = std::iter::repeat_n(results.environment[0].clone(), 10_000).collect();
    let fault = results.points[2].rounds[1].clone();
    results.points[2].rounds.extend(std::iter::repeat_n(fault, 1000).map(|round| weir_tools::bench::results::Round {
        seconds: Vec::new(),
        threads: Vec::new(),
        ..round
    }));
    let page = check(&results);
    assert!(page.len() < 1 << 20, "{} bytes", page.len());
    let light = Point { rounds: Vec::new(), ..fixture::full().points.swap_remove(1) };
    let many: Vec<Point> = (0..5000).map(|connections| Point { connections, ..light.clone() }).collect();
    results.points.extend(many);
    check(&results);
}

#[test]
fn many_proxies_are_told_and_some_are_drawn() {
    let mut results = fixture::full();
    let (points, proxy) = (results.points[..2].to_vec(), results.proxies[0].clone());
    results.points = points[..1].to_vec();
    results.proxies.clear();
    for index in 0..40 {
        let name = format!("a proxy with a rather long name, number {index}");
        results.points.push(Point { proxy: Some(name.clone()), ..points[1].clone() });
        results.proxies.push(weir_tools::bench::results::ProxyName { name, ..proxy.clone() });
    }
    let page = check(&results);
    assert!(page.contains("Only the first 16 are drawn."));
}
