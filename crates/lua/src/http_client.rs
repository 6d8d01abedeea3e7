//! `core.httpclient`: one request by the client of the process. Must never hold a state's lock.

use std::time::Duration;

use engine::http_client::client::{Answer, Destination, Exchange, Message, Uri};
use engine::http_client::{self, Request};
use engine::worker::Worker;
use mlua::{Table, Value};

use crate::address::{self, Target};
use crate::lent::{fields, text};
use crate::value::{Job, Plain};

/// Bytes of the longest body of an answer.
const LONGEST: usize = 64 << 20;

/// What a script asks for.
struct Wish {
    request: Request,
    to: Option<Target>,
}

/// Begins what a function asks for; `None`: nothing is asked for by that name.
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
            Some(answer) => show(&answer),
            None => Plain::Table(vec![
                (Plain::from("status"), Plain::Int(0)),
                (Plain::from("reason"), Plain::from("")),
                (Plain::from("headers"), Plain::Table(Vec::new())),
                (Plain::from("body"), Plain::from("")),
            ]),
        }]
    }))
}

fn read(method: &str, table: &Table) -> Result<Wish, String> {
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
                    // The body says that.
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
    // 0 is the usual limit.
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
    Ok(Wish { request, to })
}

async fn send(worker: &Worker, wish: &Wish) -> Option<Answer> {
    let request = &wish.request;
    let Some(to) = &wish.to else { return http_client::send(worker, request, LONGEST).await.ok() };
    let address = address::find(worker, to).await?;
    let client = worker.generation().program.http_client.clone();
    let tls = if request.uri.is_secure { Some((client.tls?, request.uri.host.clone())) } else { None };
    let fields: Vec<(&str, &str)> = request.fields.iter().map(|(name, value)| (&**name, &**value)).collect();
    let uri = &request.uri;
    let message = Message::new(&request.method, &uri.target, &uri.authority, &fields, request.body.as_deref())?;
    let deadline = rt::now() + request.timeout;
    let connect_by = client.connect.map_or(deadline, |time| rt::now() + time).min(deadline);
    let patience = request.patience(deadline);
    let exchange = Exchange::begin(&Destination { address, tls }, &message, connect_by, patience).await.ok()?;
    exchange.whole(LONGEST).await.ok()
}

fn show(answer: &Answer) -> Plain {
    Plain::Table(vec![
        (Plain::from("status"), Plain::Int(answer.head.status().into())),
        (Plain::from("reason"), Plain::Text(answer.head.reason().to_vec())),
        (Plain::from("headers"), fields(&answer.head)),
        (Plain::from("body"), Plain::Text(answer.body.clone())),
    ])
}
