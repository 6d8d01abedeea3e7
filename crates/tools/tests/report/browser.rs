//! The page in headless Chromium without any network. Must never check colours or pixels: only the drawn elements,
//! their position, and that no text overlaps another or leaves its drawing.

use crate::command::folder;
use crate::fixture;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use weir_tools::bench::report::{drawings, write};
use weir_tools::bench::results::Results;

const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Returns the document as loaded by the browser; `None` if there is no browser.
fn document(page: &Path, width: u32) -> Option<String> {
    let profile = folder(&format!("profile-{width}-{}", page.file_stem()?.to_str()?));
    let size = format!("--window-size={width},900");
    let user = format!("--user-data-dir={}", profile.display());
    for browser in BROWSERS {
        let mut command = Command::new("timeout");
        command.args(["100", browser, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]);
        command.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
        // No name can be resolved, and the proxy is a port without a listener.
        command.args([
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--proxy-server=127.0.0.1:1",
            "--disable-dev-shm-usage",
        ]);
        command.args([&user, &size, "--dump-dom"]).arg(format!("file://{}", page.display()));
        let Output { status, stdout, .. } = command.stdin(Stdio::null()).output().ok()?;
        let _ = fs::remove_dir_all(&profile);
        if status.success() {
            return Some(String::from_utf8_lossy(&stdout).into_owned());
        }
        // 127 and 126: the program does not exist.
        assert!(matches!(status.code(), Some(126 | 127)), "{browser}: {status}");
    }
    None
}

/// Inspects the page from within. The report itself has no script and forbids all of them, so the inspected page
/// is a copy of it whose policy permits this one.
const LOOK: &str = r#"<script>
const seen = [];
for (const chart of document.querySelectorAll('svg.chart')) {
  const box = chart.getBoundingClientRect();
  if (box.width === 0) continue;
  const name = chart.querySelector('title').textContent;
  const lines = chart.querySelectorAll('path.line, rect.solid').length;
  const long = [...chart.querySelectorAll('path.line')].every(line => line.getTotalLength() > 1);
  seen.push(`CHART ${chart.getAttribute('aria-labelledby')} ${lines} ${long}`);
  const texts = [...chart.querySelectorAll('text')].map(text => [text.textContent, text.getBoundingClientRect()]);
  for (const [text, at] of texts) {
    if (at.left < box.left - 0.5 || at.right > box.right + 0.5 || at.top < box.top - 0.5 || at.bottom > box.bottom + 0.5)
      seen.push(`FAULT ${name}: "${text}" leaves the drawing`);
    for (const [other, it] of texts) {
      const across = Math.min(at.right, it.right) - Math.max(at.left, it.left);
      const down = Math.min(at.bottom, it.bottom) - Math.max(at.top, it.top);
      // The boxes of two lines of text may touch where no letter does.
      if (at !== it && across > 0.5 && down > at.height * 0.35) seen.push(`FAULT ${name}: "${text}" covers "${other}"`);
    }
  }
}
for (const other of performance.getEntriesByType('resource')) seen.push(`FAULT ${other.name} was fetched`);
if (document.documentElement.scrollWidth > window.innerWidth) seen.push('FAULT the page scrolls sideways');
document.body.innerHTML = '<pre id="seen"></pre>';
document.getElementById('seen').textContent = seen.join('\n') + '\nEND';
</script>
"#;

#[allow(clippy::print_stderr, reason = "what was not looked at is said")]
fn look(results: &Results, name: &str, width: u32) -> Option<Vec<String>> {
    let folder = folder(name);
    let page = write(results, &folder).expect("written");
    let html = fs::read_to_string(&page).expect("a page");
    let open = html.replace("style-src 'unsafe-inline'", "style-src 'unsafe-inline'; script-src 'unsafe-inline'");
    assert_ne!(open, html, "the page has a policy");
    let copy = folder.join("looked-at.html");
    fs::write(&copy, open.replace("</body>", &format!("{LOOK}</body>"))).expect("written");
    let Some(dom) = document(&copy, width) else {
        eprintln!("SKIPPED: none of {BROWSERS:?} is installed: nobody looked at the report");
        return None;
    };
    let seen = dom.split("<pre id=\"seen\">").nth(1).and_then(|rest| rest.split("\nEND").next()).expect("it was seen");
    Some(seen.lines().map(str::to_owned).collect())
}

fn judge(results: &Results, seen: &[String], frame: &str) {
    let faults: Vec<_> = seen.iter().filter(|line| line.starts_with("FAULT")).collect();
    assert!(faults.is_empty(), "{faults:#?}");
    let charts = drawings(results).len();
    assert_eq!(seen.len(), charts, "one drawing of each chart is shown: {seen:#?}");
    for line in seen {
        let words: Vec<&str> = line.split(' ').collect();
        assert!(words[1].ends_with(&format!("{frame}-t")), "{line}");
        assert!(words[3].parse::<u32>().expect("a count") >= 3 && words[4] == "true", "{line}");
    }
}

#[test]
fn on_a_desk_every_chart_is_drawn_and_no_text_covers_another() {
    for (name, results) in [("desk", fixture::full()), ("crowd", fixture::crowd())] {
        if let Some(seen) = look(&results, name, 1200) {
            judge(&results, &seen, "wide");
        }
    }
}

#[test]
fn on_a_phone_every_chart_is_drawn_and_no_text_covers_another() {
    // The browser's minimum window width is 500.
    for (name, results) in [("phone", fixture::full()), ("phone-crowd", fixture::crowd())] {
        if let Some(seen) = look(&results, name, 500) {
            judge(&results, &seen, "narrow");
        }
    }
}

#[test]
fn a_drawing_of_its_own_is_shown() {
    let folder = folder("drawing");
    write(&fixture::full(), &folder).expect("written");
    let Some(dom) = document(&folder.join("charts/1-requests-over-time.svg"), 960) else {
        eprintln!("SKIPPED: none of {BROWSERS:?} is installed: nobody looked at a drawing");
        return;
    };
    assert!(dom.contains("class=\"line bold\"") && !dom.contains("parsererror"), "{dom:.400}");
}
