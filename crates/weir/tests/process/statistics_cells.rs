//! The cells of the statistics page, its forms and its filter, as HAProxy's page has them.

use crate::dashboard::send;
use crate::support::{DEFAULTS, Folder, Running, WEIR, free_port, wait_until};
use std::process::Command;

/// `[site]` answers checks and has a page, `[other]` has one with legends, `[closed]` refuses connections.
const SECTIONS: &str = "
frontend www
    bind 127.0.0.1:[site]
    rate-limit sessions 10000
    stats uri /haproxy?stats
    stats admin if TRUE
    http-request return status 200 if { path /check }
    default_backend app
backend app
    option httpchk GET /check
    timeout check 20s
    default-server inter 500ms
    server up 127.0.0.1:[site] check weight 30 maxconn 50
    server lost 127.0.0.1:[closed] check inter 200ms fall 1
    server maint 127.0.0.1:[site] check disabled
    server unchecked 127.0.0.1:[site] maxqueue 7
    server follows 127.0.0.1:[site] track app/up
    server spare 127.0.0.1:[site] check backup
    server light 127.0.0.1:[site] check weight 0
backend down
    option httpchk GET /check
    server one 127.0.0.1:[closed] check inter 200ms fall 1
listen other
    bind 127.0.0.1:[other]
    stats uri /plain
    stats show-legends
";

/// A process with pages.
struct Stage {
    _weir: Running,
    site: u16,
    other: u16,
    closed: u16,
}

impl Stage {
    /// Starts it, and waits until every server was checked.
    fn start(folder: &Folder) -> Self {
        let [site, other, closed] = std::array::from_fn(|_| free_port());
        let ports = [("[site]", site), ("[other]", other), ("[closed]", closed)];
        let text = format!("{DEFAULTS}{SECTIONS}");
        let text = ports.iter().fold(text, |text, (word, port)| text.replace(word, &port.to_string()));
        let file = folder.write("cells.cfg", &text);
        let stage = Self { _weir: Running::start(Command::new(WEIR).args(["-db", "-f", &file])), site, other, closed };
        let is_checked = |table: &str| {
            let is_settled = !table.contains(",UP ") && !table.contains(",* ");
            is_settled && table.matches(",DOWN,").count() == 3 && table.matches(",L7OK,").count() == 3
        };
        wait_until("every server is checked", || is_checked(&page(site, "/haproxy?stats;csv")));
        stage
    }
}

/// Asks for a page.
fn page(port: u16, target: &str) -> String {
    send(port, &format!("GET {target} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")).body
}

/// Returns the content of an element without its tags and without tooltips.
fn text_of(html: &str) -> String {
    let visible = html.split("<div class=\"tips\">").next().expect("a part of the page");
    let parts = visible.split('<').enumerate();
    parts.map(|(at, part)| if at == 0 { part } else { part.split_once('>').map_or("", |(_, text)| text) }).collect()
}

/// Returns the class and the cells of a row.
fn row<'a>(page: &'a str, id: &str) -> (&'a str, Vec<String>) {
    let (before, after) = page.split_once(&format!("\" id=\"{id}\">")).unwrap_or_else(|| panic!("{id}:\n{page}"));
    let class = before.rsplit_once("<tr class=\"").expect("a part of the page").1;
    let cells = after.split("</tr>\n").next().expect("a part of the page").split("<td").skip(1);
    // Cells of tooltips are not cells of the row.
    let mut depth = 0;
    let mut found = Vec::new();
    for cell in cells {
        if depth == 0 {
            found.push(text_of(cell.split_once('>').expect("a part of the page").1));
        }
        depth += cell.matches("<table").count() as i32 - cell.matches("</table>").count() as i32;
    }
    (class, found)
}

/// Replaces the number at the beginning of a duration: "9s UP" is "T UP".
fn without_time(cell: &str) -> String {
    let is_duration = |word: &str| word.ends_with('s') && word.starts_with(|first: char| first.is_ascii_digit());
    let words = cell.split(' ').map(|word| if is_duration(word) { "T" } else { word });
    words.filter(|word| *word != "*").collect::<Vec<_>>().join(" ")
}

/// Returns the class of a row, and its cells from the status on.
fn state(page: &str, id: &str) -> String {
    let (class, cells) = row(page, id);
    let cells: Vec<String> = cells[23..].iter().map(|cell| without_time(cell)).collect();
    format!("{class}: {}", cells.join("|"))
}

#[test]
fn a_row_has_what_an_operator_reads() {
    let folder = Folder::new();
    let stage = Stage::start(&folder);
    let page = page(stage.site, "/haproxy?stats");
    for (id, expected) in [
        ("app/up", "active_up: T UP|L7OK/200 in T|30/30|Y|-|0|0|T|-"),
        ("app/maint", "maintain: T MAINT||1/1|Y|-|0|0|T|-"),
        ("app/unchecked", "active_no_check: no check||1/1|Y|-||||-"),
        ("app/follows", "active_up: T UP||1/1|Y|-|via app/up|-"),
        ("app/spare", "backup_up: T UP|L7OK/200 in T|1/1|-|Y|0|0|T|-"),
        ("app/light", "active_draining: T UP|L7OK/200 in T|0/0|Y|-|0|0|T|-"),
        ("down/BACKEND", "backend: T DOWN||0/0|0|0||1|T|"),
        ("www/FRONTEND", "frontend: OPEN||||||||"),
    ] {
        assert_eq!(state(&page, id), expected, "{id}");
    }
    let lost = state(&page, "app/lost");
    assert!(lost.starts_with("active_down: T DOWN|L4CON in T|1/1|Y|-|") && lost.ends_with("|1|T|-"), "{lost}");
    // Queue, session rate, sessions: current, maximum, limit.
    let (_, cells) = row(&page, "app/unchecked");
    assert_eq!(cells[1..8], ["unchecked", "0", "0", "7", "0", "0", ""], "{cells:?}");
    let (_, cells) = row(&page, "app/up");
    assert_eq!((cells[4].as_str(), cells[10].as_str()), ("-", "50"), "{cells:?}");
    let (_, cells) = row(&page, "www/FRONTEND");
    assert_eq!((cells[2].as_str(), cells[7].as_str()), ("", "10000"), "{cells:?}");
    let (_, cells) = row(&page, "other/FRONTEND");
    assert_eq!(cells[7], "-", "{cells:?}");
}

#[test]
fn tooltips_have_the_rest() {
    let folder = Folder::new();
    let stage = Stage::start(&folder);
    let whole = page(stage.site, "/haproxy?stats");
    let tips = |id: &str| {
        whole
            .split_once(&format!("id=\"{id}\""))
            .expect("a part of the page")
            .1
            .split("</tr>\n")
            .next()
            .expect("a part of the page")
            .to_owned()
    };
    for (id, parts) in [
        (
            "www/FRONTEND",
            &[
                "<th>Max connection rate:</th><td>",
                "<th>Max request rate:</th><td>",
                "<th>Cum. HTTP requests:</th><td>",
                "<th>- HTTP 2xx responses:</th><td>",
                "<th>Intercepted requests:</th><td>",
                "<th>Compression out:</th><td>0</td>",
            ][..],
        ),
        (
            "app/BACKEND",
            &[
                "<th>New connections:</th><td>0</td>",
                "Max / Avg over last 1024 success. conn.",
                "<th>- Responses time:</th>",
                "Connection resets during transfers: 0 client, 0 server",
            ],
        ),
        ("app/lost", &["<th>Estimated need of connections:</th>", "Layer4 connection problem: "]),
    ] {
        let text = tips(id);
        assert!(parts.iter().all(|part| text.contains(part)), "{id}: {text}");
    }
    let address = format!("127.0.0.1:{}", stage.closed);
    assert!(!whole.contains(&address), "addresses are shown only with show-legends");
    let legends = page(stage.other, "/plain");
    assert!(
        legends.contains(&format!("<th>IP:</th><td>{address}</td>")) && legends.contains("cap: FE, mode: http, id: ")
    );
    let process =
        whole.split_once("<dl>").expect("a part of the page").1.split("</dl>").next().expect("a part of the page");
    for name in ["pid", "uptime", "maxconn", "current conns", "conn rate", "bit rate", "idle"] {
        assert!(process.contains(&format!("<dt>{name}</dt><dd>")), "{name}: {process}");
    }
}

#[test]
fn forms_select_servers_and_filters_select_proxies() {
    let folder = Folder::new();
    let stage = Stage::start(&folder);
    let whole = page(stage.site, "/haproxy?stats");
    let section = |name: &str| {
        let rest = whole.split_once(&format!("<section id=\"{name}\">")).expect("a part of the page").1;
        rest.split("</section>").next().expect("a part of the page").to_owned()
    };
    let app = section("app");
    assert!(app.contains("<form method=\"post\" action=\"/haproxy?stats\">"), "{app}");
    assert_eq!(app.matches(" name=\"s\" value=\"").count(), 7);
    assert_eq!(app.matches("onclick=\"for(const box of this.form.elements)").count(), 1);
    assert!(app.contains("<option value=\"maint\">Set state to MAINT</option>"));
    assert!(app.contains("<input type=\"hidden\" name=\"b\" value=\"#"));
    assert!(!section("www").contains("checkbox"), "a frontend has no servers");
    let form =
        "<form method=\"get\" action=\"/haproxy\"><input type=\"hidden\" name=\"stats\" value=\"\"><label>Scope : ";
    assert!(whole.contains(form), "{whole}");
    // As a browser sends that form.
    let some = page(stage.site, "/haproxy?stats=&scope=ap");
    assert!(some.contains("<section id=\"app\">") && !some.contains("<section id=\"www\">"), "{some}");
    assert!(some.contains("<input name=\"scope\" value=\"ap\""), "{some}");
    let plain = page(stage.other, "/plain");
    assert!(!plain.contains("checkbox") && plain.contains("<form method=\"get\" action=\"/plain\"><label>Scope"));
}
