//! The dashboard in a browser while servers are down: which are missing, why, and since when. Keeps pictures of it.

use crate::browser::Browser;
use crate::dashboard::send;
use crate::support::{DEFAULTS, Folder, Running, WEIR, connect, free_port, wait_for_close};
use std::net::Shutdown;
use std::process::Command;

/// Of six servers, two fail their checks: nothing listens on port 1.
const SECTIONS: &str = "global
    log 127.0.0.1:[nowhere] local0
    node edge-1
frontend www
    bind 127.0.0.1:[site]
    log global
    option httplog
    stick-table type string size 100 store http_req_cnt,http_req_rate(10s)
    http-request track-sc0 path
    http-request return status 503 if { path /broken }
    use_backend api if { path_beg /api }
    use_backend static if { path_beg /static }
    default_backend web
backend web
    server w1 127.0.0.1:[origin]
    server w2 127.0.0.1:[origin]
    server w3 127.0.0.1:1 check inter 100 fall 1
backend api
    server a1 127.0.0.1:[origin]
    server a2 127.0.0.1:1 check inter 100 fall 1
backend static
    server s1 127.0.0.1:[origin]
listen stats
    bind 127.0.0.1:[stats]
    stats uri /stats
    stats dashboard
    stats admin if TRUE
";

/// A process with failing servers.
pub struct Failing {
    _weir: Running,
    _origin: Running,
    pub site: u16,
    stats: u16,
}

impl Failing {
    /// Starts it, and waits until the checks have failed.
    pub fn start(folder: &Folder) -> Self {
        Self::with(folder, "")
    }

    /// The same with more sections; `[tls]` is a port.
    pub fn with(folder: &Folder, more: &str) -> Self {
        let [origin, site, stats, tls, nowhere] = std::array::from_fn(|_| free_port());
        let (global, sections) = SECTIONS.split_at(SECTIONS.find("frontend").expect("a section"));
        let mut text = format!("{global}{DEFAULTS}{sections}{more}");
        let ports =
            [("[origin]", origin), ("[site]", site), ("[stats]", stats), ("[tls]", tls), ("[nowhere]", nowhere)];
        for (word, port) in ports {
            text = text.replace(word, &port.to_string());
        }
        let file = folder.write("health.cfg", &text);
        let server = Running::start(Command::new(WEIR).args(["origin", "-L", &format!("127.0.0.1:{origin}")]));
        drop(connect(origin));
        let weir = Running::start(Command::new(WEIR).args(["-db", "-f", &file]));
        for port in [site, stats] {
            drop(connect(port));
        }
        Self { _weir: weir, _origin: server, site, stats }
    }

    /// The address of a view.
    pub fn address(&self, view: &str) -> String {
        format!("http://127.0.0.1:{}/stats/dashboard#/{view}", self.stats)
    }

    /// Changes a server.
    pub fn set(&self, server: &str, form: &str) {
        let length = form.len();
        let path = format!("/stats/api/v1/servers/{server}");
        let head = format!("POST {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
        assert_eq!(send(self.stats, &(head + form)).status, 200, "{server} {form}");
    }

    /// Requests a path of the site.
    pub fn request(&self, path: &str) -> u16 {
        send(self.site, &format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")).status
    }
}

/// Lists texts whose contrast with what is below them is too low (WCAG 2.2, 1.4.3).
const CONTRAST: &str = r"(() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const parts = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
    return { channels: [red, green, blue], alpha: alpha / 255 };
  };
  const over = (top, below) => top.channels.map((value, at) => value * top.alpha + below[at] * (1 - top.alpha));
  const light = (channels) => {
    const [red, green, blue] = channels.map((value) => value / 255).map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const ground = (node) => {
    if (!node) return [255, 255, 255];
    const own = parts(getComputedStyle(node).backgroundColor);
    return own.alpha === 1 ? own.channels : over(own, ground(node.parentElement));
  };
  const found = [];
  for (const node of document.querySelectorAll('body *')) {
    const has = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
    if (!has || !node.checkVisibility() || node.disabled || node.closest('svg, script, style, .skip')) continue;
    const style = getComputedStyle(node), below = ground(node);
    const text = over(parts(style.color), below);
    const [high, low] = [light(text), light(below)].sort((a, b) => b - a);
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    const contrast = (high + 0.05) / (low + 0.05);
    if (contrast < (large ? 3 : 4.5)) found.push(`${contrast.toFixed(2)} ${node.className || node.tagName} ${node.textContent.slice(0, 30)}`);
  }
  return found.join('\n');
})()";

/// Judges the view that is shown, in both themes and on a telephone, and keeps pictures of it.
pub fn judge_view(browser: &mut Browser, name: &str) {
    for (width, height, dark) in [(1440, 1200, true), (1440, 1200, false), (1024, 900, false), (390, 844, true)] {
        browser.look((width, height), dark);
        let theme = if dark { "dark" } else { "light" };
        browser.wait(&format!("document.documentElement.clientWidth === {width}"));
        let overflow = browser.value("document.documentElement.scrollWidth - window.innerWidth");
        assert!(overflow.as_i64().is_some_and(|more| more <= 0), "{name} is {overflow} wider than {width}");
        assert_eq!(browser.value(CONTRAST), "", "{name} {theme} {width}");
        let nameless = "[...document.querySelectorAll('a, button, input, [role=img]')].filter((node) => node.checkVisibility() \
                        && !(node.textContent.trim() || node.getAttribute('aria-label'))).length";
        assert_eq!(browser.value(nameless), 0, "{name}: a control without a name");
        browser.keep_picture(&format!("{name}-{theme}-{width}"));
    }
    browser.look((1440, 1200), false);
}

/// The text of an element.
pub fn text(selector: &str) -> String {
    format!("document.querySelector('{selector}').textContent")
}

/// The row of a list whose name is that.
fn row(name: &str) -> String {
    format!(
        "[...document.querySelectorAll('.objects tr')].find((row) => row.querySelector('.name a')?.textContent === '{name}')"
    )
}

#[test]
fn missing_servers_are_amber_and_a_backend_without_one_is_red() {
    let folder = Folder::new();
    let stage = Failing::start(&folder);
    let Some(mut browser) = Browser::start(&folder) else { return };
    browser.look((1440, 1200), false);
    browser.open(&stage.address(""));
    browser
        .wait("document.querySelector('.tile.health.warn') && document.querySelectorAll('.problems li').length === 2");
    assert_eq!(browser.value(&text(".tile.health b")), "4 of 6");
    assert_eq!(browser.value(&text(".tile.health small")), "2 down");
    for (backend, servers, health) in [("web", "2/3", "going"), ("api", "1/2", "going"), ("static", "1/1", "up")] {
        let row = row(backend);
        assert_eq!(browser.value(&format!("{row}.querySelector('.share').textContent")), servers, "{backend}");
        assert_eq!(browser.value(&format!("{row}.querySelector('.pill').className")), format!("pill {health}"));
    }
    let problems = browser.value(&text(".problems"));
    let problems = problems.as_str().expect("text");
    assert!(problems.contains("web/w3") && problems.contains("api/a2") && problems.contains("L4CON"), "{problems}");
    assert_eq!(
        browser.value(
            "[...document.querySelectorAll('.problems .since')].every((one) => /\\d[smhd]$/.test(one.textContent))"
        ),
        true
    );
    judge_view(&mut browser, "overview");
    // The last usable server of a backend is taken out.
    stage.set("api/a1", "state=maint");
    browser.wait("document.querySelector('.tile.health.bad')");
    let row = row("api");
    browser.wait(&format!("{row}.querySelector('.pill').className === 'pill down'"));
    assert_eq!(browser.value(&text(".problems li:first-child strong")), "api");
    assert_eq!(browser.value("document.querySelector('.objects .pill.down') === null"), false);
    judge_view(&mut browser, "overview-red");
    assert!(browser.complaints().is_empty(), "{:#?}", browser.complaints());
}

#[test]
fn lists_and_the_page_of_a_server_name_the_reason_and_the_time() {
    let folder = Folder::new();
    let stage = Failing::start(&folder);
    let Some(mut browser) = Browser::start(&folder) else { return };
    browser.look((1440, 1200), false);
    browser.open(&stage.address("servers"));
    browser.wait("document.querySelectorAll('.objects tbody .pill.down').length === 2");
    // What is down comes first.
    let first = "[...document.querySelectorAll('.objects tbody tr')].slice(0, 2).map((row) => row.querySelector('.name').textContent).join()";
    assert_eq!(browser.value(first), "web/w3,api/a2");
    let row = row("web/w3");
    let cell = |title: &str| format!("{row}.querySelector('[data-title={title}]').textContent");
    let reason = browser.value(&cell("Reason"));
    assert!(reason.as_str().is_some_and(|text| text.contains("L4CON")), "{reason}");
    assert_ne!(browser.value(&cell("Since")), "–");
    judge_view(&mut browser, "servers");
    browser.open(&stage.address("server/web/w3"));
    browser.wait("document.querySelector('.state-card.down')");
    let card = browser.value(&text(".state-card"));
    let card = card.as_str().expect("text");
    assert!(card.starts_with("Down for ") && card.contains("L4CON") && card.contains("Since"), "{card}");
    assert_eq!(browser.value("document.querySelector('.state-card').getBoundingClientRect().bottom < 400"), true);
    judge_view(&mut browser, "server");
    browser.open(&stage.address("backend/api"));
    browser.wait("document.querySelectorAll('.problems li').length === 1");
    judge_view(&mut browser, "backend");
    assert!(browser.complaints().is_empty(), "{:#?}", browser.complaints());
}

/// The newest sample of the frontend.
const ROW: &str = "store.get('frontend', 'www').row";

#[test]
fn connections_that_a_browser_does_not_use_are_no_errors() {
    let folder = Folder::new();
    let stage = Failing::start(&folder);
    let Some(mut browser) = Browser::start(&folder) else { return };
    browser.look((1440, 1200), false);
    browser.open(&stage.address("frontend/www"));
    browser.wait("store.get('frontend', 'www') && store.samples > 1");
    for _ in 0..5 {
        let idle = connect(stage.site);
        idle.shutdown(Shutdown::Write).expect("shut down");
        wait_for_close(idle);
    }
    assert_eq!(stage.request("/"), 200);
    // Those of the start, which has waited for the port, are there as well.
    browser.wait(&format!("{ROW}.unused_connections >= 5 && {ROW}.hrsp_2xx === 1"));
    // They are counted as HAProxy counts them, and shown as what they are.
    for (column, others) in [("ereq", 0), ("hrsp_4xx", 0), ("req_tot", 1)] {
        assert_eq!(browser.value(&format!("{ROW}.{column} - {ROW}.unused_connections")), others, "{column}");
    }
    let most = |name: &str| format!("Math.max(...store.get('frontend', 'www').live.values.{name})");
    for name in ["errors", "e4", "e5", "failed"] {
        assert_eq!(browser.value(&most(name)), 0, "{name}");
    }
    // Times below the resolution are not shown as if they were measured.
    assert_eq!(
        browser.value("[format.time(0.0005), format.time(0.001), format.time(0.25)].join()"),
        "< 0.1 ms,< 0.1 ms,0.25 ms"
    );
}
