//! Tests of the statistics page: the cells of its rows, its forms and its filter, as HAProxy's page has them.

use testkit::{Peer, sleep};

use crate::api::{SOCKET, order};
use crate::messages::*;
use crate::world::*;

const SECTIONS: &str = "
frontend www
    bind 10.0.0.1:80
    rate-limit sessions 100
    stats uri /haproxy?stats
    stats admin if TRUE
    default_backend app
backend app
    option httpchk GET /check
    default-server inter 1s rise 2 fall 2
    server up 10.0.1.1:80 check weight 30 maxconn 50
    server lost 10.0.1.9:80 check
    server maint 10.0.1.1:80 check disabled
    server drained 10.0.1.1:80 check
    server unchecked 10.0.1.1:80 maxqueue 7
    server follows 10.0.1.1:80 track app/up
    server spare 10.0.1.1:80 check backup
    server light 10.0.1.1:80 check weight 0
backend down
    option httpchk GET /check
    server one 10.0.1.9:80 check inter 1s fall 1
listen none
    bind 10.0.0.1:81
    stats uri /plain
    stats show-legends";

/// Asks for a page. The answer to HTTP/1.0 has no chunks.
async fn page(address: &str, target: &str) -> String {
    let mut client = Peer::connect(address).await;
    client.send(format!("GET {target} HTTP/1.0\r\nHost: a\r\n\r\n")).await;
    String::from_utf8(client.receive_rest().await).unwrap()
}

/// Returns the content of an element without its tags and without tooltips.
fn text_of(html: &str) -> String {
    let visible = html.split("<div class=\"tips\">").next().unwrap();
    let parts = visible.split('<').enumerate();
    parts.map(|(at, part)| if at == 0 { part } else { part.split_once('>').map_or("", |(_, text)| text) }).collect()
}

/// Returns the class and the cells of a row.
fn row<'a>(page: &'a str, id: &str) -> (&'a str, Vec<String>) {
    let (before, after) = page.split_once(&format!("\" id=\"{id}\">")).unwrap_or_else(|| panic!("{id}:\n{page}"));
    let class = before.rsplit_once("<tr class=\"").unwrap().1;
    let cells = after.split("</tr>\n").next().unwrap().split("<td").skip(1);
    // Cells of tooltips are not cells of the row.
    let mut depth = 0;
    let mut found = Vec::new();
    for cell in cells {
        if depth == 0 {
            found.push(text_of(cell.split_once('>').unwrap().1));
        }
        depth += cell.matches("<table").count() as i32 - cell.matches("</table>").count() as i32;
    }
    (class, found)
}

/// Returns the name, and status, last check, weight, active, backup and what follows in a row.
fn state(page: &str, id: &str) -> String {
    let (class, cells) = row(page, id);
    let checked = |cell: &String| match cell.split_once(" in ") {
        Some((result, time)) if time.ends_with("ms") => format!("{result} in ms"),
        _ => cell.clone(),
    };
    let cells: Vec<String> = cells[23..].iter().map(checked).collect();
    format!("{class}: {}", cells.join("|"))
}

#[test]
fn a_row_has_what_an_operator_reads() {
    config(SECTIONS).global(SOCKET).run(|world| async move {
        serve_ok(&world.scope, S1);
        order("set server app/drained state drain").await;
        sleep(10_500).await;
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        client.receive_until("ok").await;
        let page = page(WEIR, "/haproxy?stats").await;
        for (id, expected) in [
            ("app/up", "active_up: 10s UP|L7OK/200 in ms|30/30|Y|-|0|0|0s|-"),
            ("app/lost", "active_down: 9s DOWN|L4TOUT in ms|1/1|Y|-|2|1|9s|-"),
            ("app/maint", "maintain: 10s MAINT||1/1|Y|-|0|0|10s|-"),
            ("app/drained", "active_draining: 10s DRAIN|L7OK/200 in ms|1/1|Y|-|0|0|0s|-"),
            ("app/unchecked", "active_no_check: no check||1/1|Y|-||||-"),
            ("app/follows", "active_up: 10s UP||1/1|Y|-|via app/up|-"),
            ("app/spare", "backup_up: 10s UP|L7OK/200 in ms|1/1|-|Y|0|0|0s|-"),
            ("app/light", "active_draining: 10s UP|L7OK/200 in ms|0/0|Y|-|0|0|0s|-"),
            ("down/BACKEND", "backend: 9s DOWN||0/0|0|0||1|9s|"),
            ("www/FRONTEND", "frontend: OPEN||||||||"),
        ] {
            assert_eq!(state(&page, id), expected, "{id}");
        }
        // Queue, session rate, sessions: current, maximum, limit.
        let (_, cells) = row(&page, "app/unchecked");
        assert_eq!(cells[1..8], ["unchecked", "0", "0", "7", "0", "0", ""], "{cells:?}");
        let (_, cells) = row(&page, "app/up");
        assert_eq!((cells[4].as_str(), cells[10].as_str()), ("-", "50"), "{cells:?}");
        let (_, cells) = row(&page, "www/FRONTEND");
        assert_eq!((cells[2].as_str(), cells[7].as_str(), cells[11].as_str()), ("", "100", "2"), "{cells:?}");
        let (_, cells) = row(&page, "none/FRONTEND");
        assert_eq!(cells[7], "-", "{cells:?}");
    });
}

#[test]
fn tooltips_have_the_rest() {
    config(SECTIONS).workers(&[1]).run(|world| async move {
        serve_ok(&world.scope, S1);
        sleep(10_500).await;
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        client.receive_until("ok").await;
        let page = page(WEIR, "/haproxy?stats").await;
        let tips =
            |id: &str| page.split_once(&format!("id=\"{id}\"")).unwrap().1.split("</tr>\n").next().unwrap().to_owned();
        let front = tips("www/FRONTEND");
        for part in [
            "<th>Max connection rate:</th><td>",
            "<th>Max request rate:</th><td>",
            "<th>Cum. HTTP requests:</th><td>2</td>",
            "<th>- HTTP 2xx responses:</th><td>1</td><td>(50%)</td>",
            "<th>Intercepted requests:</th><td>1</td>",
            "<th>Compression out:</th><td>0</td>",
        ] {
            assert!(front.contains(part), "{part}: {front}");
        }
        let back = tips("app/BACKEND");
        for part in [
            "<th>New connections:</th><td>1</td>",
            "Max / Avg over last 1024 success. conn.",
            "<th>- Responses time:</th>",
            "Connection resets during transfers: 0 client, 0 server",
        ] {
            assert!(back.contains(part), "{part}: {back}");
        }
        let server = tips("app/lost");
        assert!(
            server.contains("<th>Estimated need of connections:</th>") && server.contains("Layer4 timeout"),
            "{server}"
        );
        assert!(!page.contains("10.0.1.9"), "addresses are shown only with show-legends");
        let legends = self::page("10.0.0.1:81", "/plain").await;
        assert!(legends.contains("<th>IP:</th><td>10.0.1.9:80</td>") && legends.contains("cap: FE, mode: http, id: "));
        let process = page.split_once("<dl>").unwrap().1.split("</dl>").next().unwrap();
        for name in ["pid", "uptime", "maxconn", "current conns", "conn rate", "bit rate", "idle"] {
            assert!(process.contains(&format!("<dt>{name}</dt><dd>")), "{name}: {process}");
        }
    });
}

#[test]
fn forms_select_servers_and_filters_select_proxies() {
    config(SECTIONS).workers(&[1]).run(|_| async move {
        let whole = page(WEIR, "/haproxy?stats").await;
        let app = whole.split_once("<section id=\"app\">").unwrap().1.split("</section>").next().unwrap();
        assert!(app.contains("<form method=\"post\" action=\"/haproxy?stats\">"), "{app}");
        assert_eq!(app.matches(" name=\"s\" value=\"").count(), 8);
        assert_eq!(app.matches("onclick=\"for(const box of this.form.elements)").count(), 1);
        assert!(app.contains("<option value=\"maint\">Set state to MAINT</option>"));
        assert!(app.contains("<input type=\"hidden\" name=\"b\" value=\"#"));
        let www = whole.split_once("<section id=\"www\">").unwrap().1.split("</section>").next().unwrap();
        assert!(!www.contains("checkbox"), "a frontend has no servers: {www}");
        let form =
            "<form method=\"get\" action=\"/haproxy\"><input type=\"hidden\" name=\"stats\" value=\"\"><label>Scope : ";
        assert!(whole.contains(form), "{whole}");
        // As a browser sends that form.
        let some = page(WEIR, "/haproxy?stats=&scope=ap").await;
        assert!(some.contains("<section id=\"app\">") && !some.contains("<section id=\"www\">"), "{some}");
        assert!(some.contains("<input name=\"scope\" value=\"ap\""), "{some}");
        let plain = page("10.0.0.1:81", "/plain").await;
        assert!(!plain.contains("checkbox") && plain.contains("<form method=\"get\" action=\"/plain\"><label>Scope"));
    });
}
