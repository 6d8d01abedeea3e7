//! The dashboard in a browser: it shows activity, changes a server by click, and sends no request to another host.

use crate::browser::Browser;
use crate::dashboard::{Stage, send};
use crate::support::{Folder, Running, WEIR};
use std::process::Command;

/// The views, each with an element that it shows once loaded.
const VIEWS: &[(&str, &str)] = &[
    ("topology", "document.querySelectorAll('.node').length >= 6 && document.querySelector('.edge').getAttribute('d')"),
    ("servers", "document.querySelectorAll('.view[data-view=servers] tbody tr').length === 3"),
    ("sessions", "document.querySelector('.view[data-view=sessions] table')"),
    ("tables", "document.querySelector('.view a[href=\"#/tables/site\"]')"),
    ("tables/site", "document.querySelectorAll('.view tbody tr').length > 0"),
    ("log", "document.querySelectorAll('.log li').length > 0"),
    ("config", "document.querySelectorAll('.code li').length > 20"),
    (
        "frontend/site",
        "document.querySelectorAll('.chart').length === 7 && document.querySelectorAll('.values div').length > 20",
    ),
    (
        "server/app/s1",
        "document.querySelectorAll('.chart').length === 6 && document.querySelectorAll('.values div').length > 20",
    ),
];

/// Sends requests for the duration of the test.
fn traffic(stage: &Stage) -> Running {
    let address = format!("http://127.0.0.1:{}/?s=2000", stage.site);
    Running::start(Command::new(WEIR).args(["load", "-c", "4", "-R", "50", &address]))
}

/// The curve of requests.
const CURVE: &str = "document.querySelector('.chart path.line').getAttribute('d')";

#[test]
fn the_page_shows_traffic_and_drains_a_server_by_click() {
    let folder = Folder::new();
    let stage = Stage::start(&folder);
    let Some(mut browser) = Browser::start(&folder) else { return };
    let _traffic = traffic(&stage);
    browser.look((1280, 900), true);
    browser.open(&format!("http://127.0.0.1:{}/stats/dashboard", stage.all));
    browser.wait("document.querySelectorAll('.chart').length === 7 && (document.querySelector('.chart path.line').getAttribute('d') || '').length > 20");
    assert_eq!(browser.value("document.getElementById('node').textContent"), "here");
    let before = browser.value(CURVE);
    browser.wait(&format!("{CURVE} !== {before}"));
    browser.wait("parseFloat(document.querySelector('.tile:not(.health) b').textContent) > 10");
    browser.value("location.hash = '#/backend/app'");
    browser.wait("document.querySelectorAll('.view[data-view=backend] tbody tr').length === 2");
    browser.click(".view tbody tr:nth-child(2) .menu-button");
    browser.wait("document.querySelector('#menu:popover-open')");
    browser.click("#menu button[data-action=drain]");
    browser.wait("document.querySelector('dialog[open]')");
    browser.click("#ask-yes");
    // A server that is not usable comes first.
    browser.wait("document.querySelector('.view tbody tr:first-child .pill').textContent === 'DRAIN'");
    let servers = send(
        stage.all,
        "GET /stats/api/v1/servers?backend=app&fields=status HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
    );
    assert!(servers.body.contains("\"name\":\"s2\",\"status\":\"DRAIN\""), "{}", servers.body);
    for (name, shown) in VIEWS {
        browser.value(&format!("location.hash = '#/{name}'"));
        browser.wait(shown);
        let overflow = browser.value("document.documentElement.scrollWidth - window.innerWidth");
        assert!(overflow.as_i64().is_some_and(|more| more <= 0), "{name} is {overflow} wider than the window");
    }
    // Markup in the configuration is shown as text.
    browser.value("location.hash = '#/config'");
    browser.wait("document.querySelector('.code li i')?.textContent === '# <b>here</b>'");
    judge(&browser, &stage);
}

#[test]
fn the_page_fits_a_telephone_and_the_keyboard() {
    let folder = Folder::new();
    let stage = Stage::start(&folder);
    let Some(mut browser) = Browser::start(&folder) else { return };
    browser.look((400, 800), false);
    browser.open(&format!("http://127.0.0.1:{}/stats/dashboard", stage.all));
    browser.wait("document.querySelectorAll('.chart').length === 7");
    for (key, view) in [("2", "servers"), ("3", "topology"), ("5", "log"), ("1", "")] {
        browser
            .value(&format!("document.dispatchEvent(new KeyboardEvent('keydown', {{ key: '{key}', bubbles: true }}))"));
        browser.wait(&format!("document.querySelector('.view').dataset.view === '{view}'"));
        let overflow = browser.value("document.documentElement.scrollWidth - window.innerWidth");
        assert!(overflow.as_i64().is_some_and(|more| more <= 0), "{view} is {overflow} wider than the window");
    }
    let ground = "getComputedStyle(document.documentElement).backgroundColor";
    let light = browser.value(ground);
    browser.value("nextTheme(); nextTheme();");
    assert_ne!(browser.value(ground), light, "the theme was switched");
    judge(&browser, &stage);
}

/// There were no errors, and no requests to another host.
fn judge(browser: &Browser, stage: &Stage) {
    assert!(browser.complaints().is_empty(), "{:#?}", browser.complaints());
    let own = format!("http://127.0.0.1:{}/stats/", stage.all);
    let requests = browser.requests();
    assert!(requests.len() > 2, "{requests:?}");
    for request in requests {
        assert!(request.starts_with(&own) || request.starts_with("data:"), "{request}");
    }
}
