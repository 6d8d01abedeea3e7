//! The statistics page in a browser: servers are changed by its form, proxies are filtered by its field, tooltips
//! appear, and no request goes to another host.

use crate::browser::Browser;
use crate::dashboard::send;
use crate::support::{Folder, Running, WEIR, free_port, wait_until};
use serde_json::json;
use std::process::Command;

/// An outage: two servers are down, one of them all that its backend has.
const SECTIONS: &str = "defaults
    mode http
    timeout client 20s
    timeout server 20s
    timeout connect 20s
    timeout check 20s
listen page
    bind 127.0.0.1:[page]
    stats uri /haproxy?stats
    stats admin if TRUE
    stats show-legends
    http-request return status 200 if { path /ok }
backend app
    option httpchk GET /ok
    default-server inter 2s
    server one 127.0.0.1:[page] check weight 30
    server two 127.0.0.1:[page] check
    server bold 127.0.0.1:[page]
    server lost 127.0.0.1:[closed] check inter 100ms fall 1
    server spare 127.0.0.1:[page] check backup
backend down
    option httpchk GET /none
    server only 127.0.0.1:[page] check inter 100ms fall 1
";

/// A process with that page.
struct Stage {
    _weir: Running,
    page: u16,
}

impl Stage {
    /// Starts it, and waits until the checks have found what is down.
    fn start(folder: &Folder) -> Self {
        let (page, closed) = (free_port(), free_port());
        let text = SECTIONS.replace("[page]", &page.to_string()).replace("[closed]", &closed.to_string());
        let file = folder.write("page.cfg", &text);
        let weir = Running::start(Command::new(WEIR).args(["-db", "-f", &file]));
        let request = "GET /haproxy?stats;csv HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        // A check that was too early is repeated: its server is going down until then (`UP 2/3`).
        wait_until("the states of all servers", || {
            let table = send(page, request).body;
            table.matches(",DOWN,").count() == 3 && table.matches(",L7OK,").count() == 3 && !table.contains(",UP ")
        });
        Self { _weir: weir, page }
    }

    fn address(&self, rest: &str) -> String {
        format!("http://127.0.0.1:{}/haproxy?stats{rest}", self.page)
    }
}

/// Whether an element is shown.
fn is_shown(browser: &mut Browser, selector: &str) -> bool {
    browser.value(&format!("document.querySelector({selector:?}).offsetParent !== null")) == true
}

#[test]
fn the_page_is_used_as_haproxy_s() {
    let folder = Folder::new();
    let stage = Stage::start(&folder);
    let Some(mut browser) = Browser::start(&folder) else { return };
    browser.look((1600, 900), true);
    browser.open(&stage.address(""));
    browser.wait("document.querySelectorAll('section').length === 3");
    // The row of a server that is down has another colour than one that is up, and the reason in its cell.
    let colour = |row: &str| format!("getComputedStyle(document.getElementById('{row}')).backgroundColor");
    let colours: Vec<String> = ["app/one", "app/lost", "app/spare", "app/bold"]
        .map(|row| browser.value(&colour(row)).as_str().unwrap_or_default().to_owned())
        .to_vec();
    assert!((0..4).all(|at| colours[at + 1..].iter().all(|other| *other != colours[at])), "{colours:?}");
    let text = browser.value("document.getElementById('app/lost').innerText");
    assert!(text.as_str().is_some_and(|text| text.contains(" DOWN") && text.contains("L4CON in ")), "{text}");
    // A tooltip appears under the pointer.
    let tip = "[id='app/lost'] td:nth-child(25) .tips";
    assert!(!is_shown(&mut browser, tip));
    let place = browser.value(&format!(
        "(() => {{ const box = document.querySelector({tip:?}).parentNode.getBoundingClientRect(); return [box.x + 3, box.y + 3]; }})()"
    ));
    browser.call("Input.dispatchMouseEvent", json!({ "type": "mouseMoved", "x": place[0], "y": place[1] }));
    browser.wait(&format!("document.querySelector({tip:?}).offsetParent !== null"));
    // One box ticks all servers of its form.
    browser.click("section[id=app] thead input");
    assert_eq!(browser.value("document.querySelectorAll('input[name=s]:checked').length"), 5);
    browser.value("document.querySelector('section[id=app] select').value = 'maint'");
    browser.click("section[id=app] button");
    browser.wait_for_next(
        "document.querySelector('.notice.done') && document.querySelectorAll('tr.maintain').length === 5",
    );
    // The filter keeps the address of the page.
    browser.value("document.querySelector('input[name=scope]').value = 'ow'");
    browser.value("setTimeout(() => document.querySelector('input[name=scope]').form.submit(), 0)");
    browser.wait_for_next("document.querySelectorAll('section').length === 1 && document.getElementById('down')");
    assert_eq!(browser.value("document.querySelector('input[name=scope]').value"), "ow");
    assert!(browser.complaints().is_empty(), "{:#?}", browser.complaints());
    let own = format!("http://127.0.0.1:{}/haproxy?stats", stage.page);
    assert!(
        browser.requests().iter().all(|url| url.starts_with(&own) || url.starts_with("data:")),
        "{:?}",
        browser.requests()
    );
}

#[test]
fn the_page_fits_its_window() {
    let folder = Folder::new();
    let stage = Stage::start(&folder);
    let Some(mut browser) = Browser::start(&folder) else { return };
    for (width, dark) in [(1440, false), (800, true), (400, false)] {
        browser.look((width, 900), dark);
        browser.open(&stage.address(";norefresh"));
        browser.wait("document.querySelectorAll('section').length === 3 && document.readyState === 'complete'");
        let overflow = browser.value("document.documentElement.scrollWidth - window.innerWidth");
        assert!(overflow.as_i64().is_some_and(|more| more <= 0), "at {width} it is {overflow} wider than the window");
    }
}
