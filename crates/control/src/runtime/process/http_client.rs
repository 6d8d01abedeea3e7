//! `httpclient` (management manual, section 9.3): sends a request and shows the response, for debugging. Must never
//! buffer more of a response than the peer reads.

use config::spec::RuntimeLevel;
use engine::http_client::client::{Exchange, Failure as Broken, Uri};
use engine::http_client::{Failure, Request, begin};
use engine::worker::Worker;
use wire::http::error_pages;

use super::super::{Call, Command, Mode, Pending, Run};

pub(super) const TABLE: &[Command<Worker>] =
    &[Command::new("httpclient", "httpclient [--htx] <method> <URI>", "launch an HTTP request", Run::Gradual(run))
        .at(RuntimeLevel::Admin)
        .in_mode(Mode::Expert)];

fn run<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let at = if call.word(1) == "--htx" { 2 } else { 1 };
        let (method, uri) = (call.word(at).to_owned(), call.word(at + 1).to_owned());
        if method.is_empty() || uri.is_empty() {
            call.refuse("Can't start the HTTP client: not enough parameters.");
            return Ok(());
        }
        let Some(uri) = Uri::parse(&uri) else {
            call.refuse("Can't start the HTTP client.");
            return Ok(());
        };
        let body = call.payload.filter(|payload| !payload.is_empty()).map(<[u8]>::to_vec);
        let request = Request { body, ..Request::new(&method, uri) };
        let mut exchange = match begin(call.state, &request).await {
            Ok(exchange) => exchange,
            Err(Failure::Malformed | Failure::NoTls) => {
                call.refuse("Can't start the HTTP client.");
                return Ok(());
            }
            Err(failure) => {
                call.answer.push(no_answer(&failure));
                return Ok(());
            }
        };
        call.answer.push(head(&exchange));
        loop {
            let mut part = Vec::new();
            let goes_on = exchange.next(&mut part).await;
            call.answer.push(part);
            call.answer.relieve().await?;
            if !goes_on.unwrap_or(false) {
                return Ok(());
            }
        }
    })
}

/// Returns the head of a response in HAProxy's format.
fn head(exchange: &Exchange) -> Vec<u8> {
    let head = exchange.head();
    let mut text = [head.version_text(), format!(" {} ", head.status()).as_bytes(), head.reason(), b"\n"].concat();
    for (name, value) in head.fields() {
        text.extend([&name.to_ascii_lowercase()[..], b": ", value, b"\r\n"].concat());
    }
    text.extend(b"\r\n");
    text
}

/// Returns the text shown in place of a response, with status 0.
fn no_answer(failure: &Failure) -> String {
    let status = match failure {
        Failure::Exchange(Broken::Expired) => 504,
        Failure::Exchange(Broken::Closed | Broken::Broken(_) | Broken::Invalid) => 502,
        _ => 503,
    };
    let Some(page) = error_pages::page(status) else { return String::new() };
    let body = String::from_utf8_lossy(&page.body()).into_owned();
    format!(
        "HTTP/1.1 0 {}\ncontent-length: {}\r\ncache-control: no-cache\r\ncontent-type: text/html\r\n\r\n{body}",
        page.reason,
        body.len()
    )
}
