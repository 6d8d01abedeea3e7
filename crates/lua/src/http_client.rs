//! `core.httpclient`: a request by the HTTP client of the process. Must never hold a state's lock.

use std::time::Duration;

use engine::http_client::client::{Answer, Destination, Exchange, Failure, Message, Uri};
use engine::http_client::{self, Request};
use engine::worker::Worker;
use mlua::{Table, Value};

use crate::address::{self, Target};
use crate::stream_handle::{fields, text};
use crate::value::{Job, Plain};

/// Maximum length of a response body in bytes.
const LONGEST: usize = 64 << 20;

/// The parameters of a script's request.
struct RequestOptions {
    request: Request,
    to: Option<Target>,
}

/// Creates the job for a call; `None`: another function.
pub(crate) fn begin(name: &str, values: &[Value]) -> Option<Job> {
    if name != "http" {
        return None;
    }
    let wish = match values.get(1) {
        Some(Value::Table(table)) => read(&text(values.first()), table),
        _ => Err("needs a table as argument".to_owned()),
    };
    Some(Box::pin(async move {
        let wish = match wish {
            Ok(wish) => wish,
            Err(why) => return vec![Plain::Nil, Plain::Text(why.into_bytes())],
        };
        let Some(worker) = crate::here() else { return Vec::new() };
        vec![match send(&worker, &wish).await {
            Ok(answer) => show(&answer),
            Err(status) => failed(status),
        }]
    }))
}

fn read(method: &str, table: &Table) -> Result<RequestOptions, String> {
    let given = |name: &str| table.get::<Value>(name).unwrap_or(Value::Nil);
    let Value::String(url) = given("url") else { return Err("need a 'url' argument".to_owned()) };
    let mut uri = Uri::parse(&url.to_string_lossy()).ok_or("couldn't start the httpclient")?;
    let mut more = Vec::new();
    if let Value::Table(headers) = given("headers") {
        for pair in headers.pairs::<mlua::LuaString, Table>() {
            let (name, values) = pair.map_err(|_| "headers must be a table of tables of strings")?;
            let name = name.to_string_lossy().to_ascii_lowercase();
            for value in values.pairs::<Value, mlua::LuaString>() {
                let value = value.map_err(|_| "headers must be a table of tables of strings")?.1.to_string_lossy();
                match name.as_str() {
                    "host" => uri.authority = value,
                    // These are derived from the body.
                    "content-length" | "transfer-encoding" => {}
                    _ => more.push((name.clone(), value)),
                }
            }
        }
    }
    let mut request = Request::new(method, uri);
    request.fields.retain(|(name, _)| !more.iter().any(|(given, _)| given == name));
    request.fields.extend(more);
    request.body = given("body").as_string().map(|body| body.as_bytes().to_vec());
    request.silence = match given("timeout") {
        Value::Integer(period) => u64::try_from(period).ok().map(Duration::from_millis),
        Value::Number(period) => Duration::try_from_secs_f64(period / 1000.0).ok(),
        _ => None,
    };
    // 0 is the default.
    request.silence = request.silence.filter(|period| !period.is_zero());
    let to = match given("dst") {
        Value::String(to) => {
            let port = Some(request.uri.port);
            let text = to.to_string_lossy();
            let to = address::parse(&text, None).or_else(|_| address::parse(&text, port));
            Some(to.map_err(|_| "Can't use the 'dst' argument")?)
        }
        _ => None,
    };
    Ok(RequestOptions { request, to })
}

/// Sends the request. The error is the status of HAProxy's error page.
async fn send(worker: &Worker, wish: &RequestOptions) -> Result<Answer, u16> {
    let request = &wish.request;
    let Some(to) = &wish.to else {
        return http_client::send(worker, request, LONGEST).await.map_err(|failure| match failure {
            http_client::Failure::Exchange(failure) => status_of(&failure),
            http_client::Failure::Malformed => 400,
            http_client::Failure::Unresolved | http_client::Failure::NoTls => 503,
        });
    };
    let address = address::find(worker, to).await.ok_or(503_u16)?;
    let client = worker.generation().program.http_client.clone();
    let tls = if request.uri.is_secure { Some((client.tls.ok_or(503_u16)?, request.uri.host.clone())) } else { None };
    let fields: Vec<(&str, &str)> = request.fields.iter().map(|(name, value)| (&**name, &**value)).collect();
    let uri = &request.uri;
    let message =
        Message::new(&request.method, &uri.target, &uri.authority, &fields, request.body.as_deref()).ok_or(400_u16)?;
    let deadline = rt::now() + request.timeout;
    let connect_by = client.connect.map_or(deadline, |time| rt::now() + time).min(deadline);
    let patience = request.patience(deadline);
    let exchange = Exchange::begin(&Destination { address, tls }, &message, connect_by, patience).await;
    let outcome = match exchange {
        Ok(exchange) => exchange.whole(LONGEST).await,
        Err(failure) => Err(failure),
    };
    outcome.map_err(|failure| status_of(&failure))
}

/// Returns the status that a client would receive if a server failed like this.
fn status_of(failure: &Failure) -> u16 {
    match failure {
        Failure::Connect(_) | Failure::Insecure(_) => 503,
        Failure::Expired => 504,
        Failure::Broken(_) | Failure::Closed | Failure::Invalid | Failure::TooLong => 502,
    }
}

/// Returns HAProxy's result of a failed request: no status, and its error page.
fn failed(status: u16) -> Plain {
    let page = wire::http::error_pages::page(status);
    let body = page.map_or_else(Vec::new, |page| page.body());
    let length = body.len().to_string();
    let usual = [("cache-control", "no-cache"), ("content-type", "text/html"), ("content-length", &*length)];
    let fields =
        usual.map(|(name, value)| (Plain::from(name), Plain::Table(vec![(Plain::Int(0), Plain::from(value))])));
    Plain::Table(vec![
        (Plain::from("status"), Plain::Int(0)),
        (Plain::from("reason"), Plain::from(page.map_or("", |page| page.reason))),
        (Plain::from("headers"), Plain::Table(fields.into())),
        (Plain::from("body"), Plain::Text(body)),
    ])
}

fn show(answer: &Answer) -> Plain {
    Plain::Table(vec![
        (Plain::from("status"), Plain::Int(answer.head.status().into())),
        (Plain::from("reason"), Plain::Text(answer.head.reason().to_vec())),
        (Plain::from("headers"), fields(&answer.head)),
        (Plain::from("body"), Plain::Text(answer.body.clone())),
    ])
}
