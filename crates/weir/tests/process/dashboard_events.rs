//! The dashboard in a browser: events and their marks on charts, the recorded hour, kept lines of errors, certificates,
//! top keys. Keeps pictures of each.

use crate::browser::Browser;
use crate::dashboard_health::{Failing, judge_view, text};
use crate::pki::{self, Authority, CertificateOptions};
use crate::support::Folder;
use serde_json::json;
use std::process::Command;

/// The number of elements.
fn count(selector: &str) -> String {
    format!("document.querySelectorAll({selector:?}).length")
}

#[test]
fn events_are_listed_and_marked_on_charts() {
    let folder = Folder::new();
    let stage = Failing::start(&folder);
    let Some(mut browser) = Browser::start(&folder) else { return };
    browser.look((1440, 1200), false);
    browser.open(&stage.address(""));
    browser.wait("[...document.querySelectorAll('.happening')].filter((one) => one.textContent.includes('is down')).length === 2");
    browser.wait(&format!("{} > 0", count(".chart .flag.bad")));
    // The keyboard goes from event to event.
    browser.value("document.querySelector('.chart').focus()");
    browser.press("PageUp");
    browser.wait("document.querySelector('.tip:not([hidden]) .event')");
    let tip = browser.value(&text(".tip:not([hidden])"));
    assert!(tip.as_str().is_some_and(|tip| tip.contains("is down")), "{tip}");
    browser.press("Escape");
    browser.wait(&format!("{} === 0", count(".tip:not([hidden])")));
    // So does the mouse.
    browser.hover(".chart .flag.bad");
    browser.wait("document.querySelector('.tip:not([hidden])')?.textContent.includes('is down')");
    browser.keep_picture("event-on-a-chart");
    // A change by an administrator is there at once.
    stage.set("static/s1", "state=maint");
    browser.wait("[...document.querySelectorAll('.happening')].some((one) => one.textContent.includes('static/s1 is in maintenance'))");
    browser.open(&stage.address("events"));
    browser.wait(&format!("{} >= 3", count(".happening")));
    judge_view(&mut browser, "events");
    // The server, and its backend that has no other.
    browser.click("[data-choice=administration]");
    browser.wait(&format!("{} === 2", count(".happening")));
    assert_eq!(browser.value(&text(".happening .who")), "dashboard");
    assert!(browser.complaints().is_empty(), "{:#?}", browser.complaints());
}

/// Answers requests for the history with an hour of values.
const HOUR: &str = r"(() => {
  const ask = window.fetch;
  window.fetch = (address, options) => {
    if (!String(address).includes('/history')) return ask(address, options);
    const now = Date.now() / 1000, times = Array.from({ length: 360 }, (_, at) => now - 10 * (360 - at));
    const since = Number(new URLSearchParams(String(address).split('?')[1]).get('since') || 0);
    const kept = times.filter((time) => time > since);
    const list = (value) => kept.map((time) => value(Math.round((time - now) / 10)));
    const columns = { requests: list((at) => 4000 + 400 * Math.sin(at / 9)), errors_4xx: list(() => 90), errors_5xx: list((at) => (at > -60 ? 70 : 0)),
      errors: list(() => 0), bytes_in: list(() => 200000), bytes_out: list((at) => 9e6 + 1e6 * Math.sin(at / 7)), sessions: list((at) => 24 + Math.round(6 * Math.sin(at / 20))),
      connections: list(() => 40), queue: list(() => 0), p50: list(() => 13.8), p95: list((at) => 48 + 5 * Math.sin(at / 5)), p99: list((at) => 95 + 20 * Math.sin(at / 11)),
      servers_usable: list((at) => (at > -60 ? 2 : 3)), servers_down: list((at) => (at > -60 ? 1 : 0)) };
    const kind = /kind=(\w+)/.exec(address)[1], proxy = decodeURIComponent((/proxy=([^&]*)/.exec(address) || [])[1] || 'www');
    const body = { interval_s: 10, capacity: 360, time: now, times: kept, seconds: kept.map(() => 10), series: [{ kind, proxy, first: 0, columns }] };
    return Promise.resolve(new Response(JSON.stringify(body), { headers: { 'content-type': 'application/json' } }));
  };
})()";

/// The distance of the first curve's begin from the left of the first chart, in pixels.
const BEGIN: &str = "document.querySelector('.chart path.line').getBBox().x";

#[test]
fn charts_show_an_hour_as_soon_as_the_page_is_open() {
    let folder = Folder::new();
    let stage = Failing::start(&folder);
    let Some(mut browser) = Browser::start(&folder) else { return };
    browser.look((1440, 1200), false);
    browser.call("Page.addScriptToEvaluateOnNewDocument", json!({ "source": HOUR }));
    browser.open(&stage.address(""));
    browser.wait(&format!("{BEGIN} > 0 && {BEGIN} < 75"));
    for (span, begin, name) in [("3600", "-60 min", "1 h"), ("300", "-5 min", "5 min"), ("900", "-15 min", "15 min")] {
        browser.click(&format!("[data-span='{span}']"));
        browser.wait(&format!("document.querySelector('.chart .tick.mid').textContent === '{begin}' && {BEGIN} < 75"));
        assert_eq!(browser.value(&text(".segments [aria-pressed=true]")), name);
    }
    judge_view(&mut browser, "overview-with-history");
    browser.open(&stage.address("backend/web"));
    browser.wait(&format!("document.querySelector('.view[data-view=backend] .chart') && {BEGIN} < 75"));
    judge_view(&mut browser, "backend-with-history");
    assert!(browser.complaints().is_empty(), "{:#?}", browser.complaints());
}

#[test]
fn the_process_records_what_the_charts_show() {
    let folder = Folder::new();
    let stage = Failing::start(&folder);
    let Some(mut browser) = Browser::start(&folder) else { return };
    browser.open(&stage.address(""));
    browser.wait("store.recorded.get('process//').series.times.length > 0");
    assert_eq!(browser.value("store.recorded.get('process//').series.values.usable[0]"), 4);
    assert_eq!(browser.value("store.recorded.get('process//').series.values.down[0]"), 2);
}

#[test]
fn a_count_of_errors_leads_to_their_lines() {
    let folder = Folder::new();
    let stage = Failing::start(&folder);
    let Some(mut browser) = Browser::start(&folder) else { return };
    for path in ["/broken", "/broken?2", "/broken?3"] {
        assert_eq!(stage.request(path), 503, "{path}");
    }
    browser.look((1440, 1200), false);
    browser.open(&stage.address("frontend/www"));
    browser.wait("[...document.querySelectorAll('.values div')].some((one) => one.textContent === 'hrsp_5xx3')");
    browser.click(".values a.count[href$='class=5']");
    browser.wait(&format!("{} === 3", count(".errors-list li")));
    assert_eq!(browser.value("location.hash"), "#/log?errors=1&proxy=www&class=5");
    let line = browser.value(&text(".errors-list li"));
    assert!(line.as_str().is_some_and(|line| line.contains("503") && line.contains("GET /broken?3")), "{line}");
    assert_eq!(browser.value(&text(".group b")), "3");
    judge_view(&mut browser, "errors");
    browser.click(".chip[href*='class=5']");
    // The chart's legend, the tile and the list have such links as well.
    browser.open(&stage.address(""));
    browser.wait("document.querySelector('.objects td.errors a.count')");
    for link in
        [".tile[href^='#/log?errors=1']", ".legend a.count[href*='class=4']", ".objects td.errors a[href*='proxy=www']"]
    {
        assert_ne!(browser.value(&count(link)), 0, "{link}");
    }
    assert!(browser.complaints().is_empty(), "{:#?}", browser.complaints());
}

#[test]
fn a_table_shows_its_top_keys() {
    let folder = Folder::new();
    let stage = Failing::start(&folder);
    let Some(mut browser) = Browser::start(&folder) else { return };
    for path in ["/a", "/b", "/b", "/b", "/c", "/c"] {
        assert_eq!(stage.request(path), 200, "{path}");
    }
    browser.look((1440, 1200), false);
    browser.open(&stage.address("tables/www"));
    browser.wait(&format!("{} === 3", count(".top-keys li")));
    let keys = "[...document.querySelectorAll('.top-keys .key-name')].map((one) => one.textContent).join()";
    assert_eq!(browser.value(keys), "/b,/c,/a");
    browser.click(".panel-head .segments button[aria-pressed=false]");
    browser.wait("document.querySelector('.top-keys b').textContent === '3'");
    judge_view(&mut browser, "table");
    assert!(browser.complaints().is_empty(), "{:#?}", browser.complaints());
}

/// A time in that number of days, as `YYMMDDHHMMSSZ`.
fn in_days(days: u32) -> String {
    let date = format!("now + {days} days + 1 hour");
    let output = Command::new("date").args(["-u", "-d", &date, "+%y%m%d%H%M%SZ"]).output().expect("date");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

#[test]
fn certificates_are_listed_with_their_days_left() {
    if !pki::is_there() {
        return;
    }
    let folder = Folder::new();
    let authority = Authority::root();
    let mut bind = "frontend tls\n    bind 127.0.0.1:[tls] ssl".to_owned();
    for (name, days) in [("soon", 3), ("later", 20), ("far", 200)] {
        let names = format!("DNS:{name}.test");
        let until = in_days(days);
        let options = CertificateOptions { names: &names, until: &until, ..CertificateOptions::default() };
        bind += &format!(" crt {}", authority.issue(name, options));
    }
    let stage = Failing::with(&folder, &format!("{bind}\n    default_backend web\n"));
    let Some(mut browser) = Browser::start(&folder) else { return };
    browser.look((1440, 1200), false);
    browser.open(&stage.address("certificates"));
    browser.wait(&format!("{} === 3", count(".objects tbody tr")));
    let pills = "[...document.querySelectorAll('.objects .pill')].map((one) => one.className.slice(5) + ' ' + one.textContent).join()";
    assert_eq!(browser.value(pills), "down 3 days,going 20 days,up 200 days");
    assert_eq!(browser.value(&text(".objects tbody td")), "soon.test");
    judge_view(&mut browser, "certificates");
    // The overview lists those that expire soon.
    browser.open(&stage.address(""));
    browser.wait(&format!("{} === 4", count(".problems li")));
    assert_eq!(browser.value(&text(".problems li.bad")), "3 dayssoon.testCertificate expires in 3 days");
    assert!(browser.complaints().is_empty(), "{:#?}", browser.complaints());
}
