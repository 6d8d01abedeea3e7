//! An apiserver that replays answers recorded from a real one (`tests/gateway/run --record`): lists, watches whose events the test sends,
//! a Lease that it keeps, and any status of its own that the test asks for.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::AbortHandle;

/// Paths of lists and the files of their recorded answers.
const LISTS: &[(&str, &str)] = &[
    ("/api/v1/namespaces", include_str!("../recorded/namespaces.json")),
    ("/api/v1/services", include_str!("../recorded/services.json")),
    ("/api/v1/secrets", include_str!("../recorded/secrets.json")),
    ("/api/v1/configmaps", include_str!("../recorded/configmaps.json")),
    ("/apis/discovery.k8s.io/v1/endpointslices", include_str!("../recorded/endpointslices.json")),
    ("/apis/gateway.networking.k8s.io/v1/gatewayclasses", include_str!("../recorded/gatewayclasses.json")),
    ("/apis/gateway.networking.k8s.io/v1/gateways", include_str!("../recorded/gateways.json")),
    ("/apis/gateway.networking.k8s.io/v1/listenersets", include_str!("../recorded/listenersets.json")),
    ("/apis/gateway.networking.k8s.io/v1/httproutes", include_str!("../recorded/httproutes.json")),
    ("/apis/gateway.networking.k8s.io/v1/grpcroutes", include_str!("../recorded/grpcroutes.json")),
    ("/apis/gateway.networking.k8s.io/v1/tlsroutes", include_str!("../recorded/tlsroutes.json")),
    ("/apis/gateway.networking.k8s.io/v1/referencegrants", include_str!("../recorded/referencegrants.json")),
    ("/apis/gateway.networking.k8s.io/v1/backendtlspolicies", include_str!("../recorded/backendtlspolicies.json")),
    ("/apis/gateway.networking.k8s.io/v1alpha2/tcproutes", include_str!("../recorded/tcproutes.json")),
];
/// The largest request.
const REQUEST_LIMIT: usize = 1 << 20;

/// A request that was received.
#[derive(Debug)]
pub struct Seen {
    /// `WATCH` for a watch, `REFUSED` for a connection while the server is down.
    pub method: String,
    pub path: String,
    pub query: String,
    pub body: Value,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub body: String,
}

impl Answer {
    pub fn new(status: u16, body: impl Into<String>) -> Self {
        Self { status, body: body.into() }
    }
}

/// The server and the requests that it has received.
pub struct Apiserver {
    pub address: SocketAddr,
    seen: UnboundedReceiver<Seen>,
    state: Arc<Mutex<State>>,
}

struct State {
    lists: BTreeMap<String, Answer>,
    /// Answers that precede all others, by method and path.
    next: BTreeMap<String, VecDeque<Answer>>,
    /// Senders of events of the open watches.
    watches: BTreeMap<String, UnboundedSender<String>>,
    /// Events of watches that are not open yet.
    events: BTreeMap<String, Vec<String>>,
    lease: Option<Value>,
    is_down: bool,
    connections: Vec<AbortHandle>,
    seen: UnboundedSender<Seen>,
}

impl Apiserver {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("listener");
        let address = listener.local_addr().expect("address");
        let (sender, seen) = mpsc::unbounded_channel();
        let state = Arc::new(Mutex::new(State {
            lists: LISTS.iter().map(|(path, body)| ((*path).to_owned(), Answer::new(200, *body))).collect(),
            next: BTreeMap::new(),
            watches: BTreeMap::new(),
            events: BTreeMap::new(),
            lease: None,
            is_down: false,
            connections: Vec::new(),
            seen: sender,
        }));
        tokio::task::spawn_local(accept(listener, state.clone()));
        Self { address, seen, state }
    }

    /// Waits for a request whose method is `method` and whose path ends with `path`. Requests before it are dropped.
    pub async fn request(&mut self, method: &str, path: &str) -> Seen {
        loop {
            let seen = self.seen.recv().await.expect("server");
            if seen.method == method && seen.path.ends_with(path) {
                return seen;
            }
        }
    }

    /// Changes the list of a path.
    pub fn set_list(&self, path: &str, answer: Answer) {
        self.state.lock().expect("state").lists.insert(path.to_owned(), answer);
    }

    pub fn list(&self, path: &str) -> Value {
        serde_json::from_str(&self.state.lock().expect("state").lists[path].body).expect("list")
    }

    /// Answers the next request of a method and a path.
    pub fn answer_next(&self, method: &str, path: &str, answer: Answer) {
        self.state.lock().expect("state").next.entry(format!("{method} {path}")).or_default().push_back(answer);
    }

    /// Sends an event on the watch of a path, as soon as it is open.
    pub fn send(&self, path: &str, event: &str) {
        let mut state = self.state.lock().expect("state");
        let event = format!("{event}\n");
        match state.watches.get(path) {
            Some(watch) => watch.send(event).expect("the watch has ended"),
            None => state.events.entry(path.to_owned()).or_default().push(event),
        }
    }

    /// Ends the watch of a path, as the apiserver does after some minutes.
    pub fn end_watch(&self, path: &str) {
        self.state.lock().expect("state").watches.remove(path);
    }

    /// Ends all connections, and refuses new ones.
    pub fn go_down(&self) {
        let mut state = self.state.lock().expect("state");
        state.is_down = true;
        state.watches.clear();
        for connection in state.connections.drain(..) {
            connection.abort();
        }
    }

    pub fn come_up(&self) {
        self.state.lock().expect("state").is_down = false;
    }
}

async fn accept(listener: TcpListener, state: Arc<Mutex<State>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let mut locked = state.lock().expect("state");
        if locked.is_down {
            let refused =
                Seen { method: "REFUSED".into(), path: String::new(), query: String::new(), body: Value::Null };
            let _ = locked.seen.send(refused);
            continue;
        }
        let connection = tokio::task::spawn_local(serve(stream, state.clone()));
        locked.connections.push(connection.abort_handle());
    }
}

async fn serve(mut stream: TcpStream, state: Arc<Mutex<State>>) {
    let mut buffer = Vec::new();
    while let Some(seen) = read_request(&mut stream, &mut buffer).await {
        let is_watch = seen.query.contains("watch=true");
        let answer = respond(&state, &seen, is_watch);
        let path = seen.path.clone();
        let events = (is_watch && answer.status == 200).then(|| {
            let (sender, events) = mpsc::unbounded_channel();
            let mut state = state.lock().expect("state");
            for event in state.events.remove(&path).unwrap_or_default() {
                sender.send(event).expect("events");
            }
            state.watches.insert(path, sender);
            events
        });
        // The watch is open before the test knows of it.
        let method = if is_watch { "WATCH".into() } else { seen.method };
        let _ = state.lock().expect("state").seen.send(Seen { method, ..seen });
        let result = match events {
            Some(events) => stream_events(&mut stream, events).await,
            None => write_answer(&mut stream, &answer).await,
        };
        if result.is_err() {
            return;
        }
    }
}

async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Seen> {
    loop {
        if let Some(end) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
            let length = head
                .lines()
                .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok())
                .unwrap_or(0usize);
            if buffer.len() >= end + 4 + length {
                let body = serde_json::from_slice(&buffer[end + 4..end + 4 + length]).unwrap_or(Value::Null);
                buffer.drain(..end + 4 + length);
                let mut words = head.split(' ');
                let method = words.next()?.to_owned();
                let target = words.next()?;
                let (path, query) = target.split_once('?').unwrap_or((target, ""));
                return Some(Seen { method, path: path.to_owned(), query: query.to_owned(), body });
            }
        }
        assert!(buffer.len() < REQUEST_LIMIT, "the request is too large");
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}

fn respond(state: &Mutex<State>, seen: &Seen, is_watch: bool) -> Answer {
    let mut state = state.lock().expect("state");
    let method = if is_watch { "WATCH" } else { &seen.method };
    if let Some(answer) = state.next.get_mut(&format!("{method} {}", seen.path)).and_then(VecDeque::pop_front) {
        return answer;
    }
    if seen.path.contains("/leases") {
        return respond_lease(&mut state.lease, seen);
    }
    match (seen.method.as_str(), state.lists.get(&seen.path)) {
        ("GET", Some(list)) if list.status == 200 && is_watch => Answer::new(200, ""),
        ("GET", Some(list)) => list.clone(),
        ("PATCH", _) if seen.path.ends_with("/status") => Answer::new(200, "{}"),
        _ => Answer::new(404, include_str!("../recorded/missing.txt")),
    }
}

/// Keeps one Lease with the apiserver's check of versions.
fn respond_lease(lease: &mut Option<Value>, seen: &Seen) -> Answer {
    let version = lease.as_ref().and_then(|lease| lease["metadata"]["resourceVersion"].as_str()).map(str::to_owned);
    let next = version.as_ref().map_or(1, |version| version.parse::<u64>().expect("version") + 1);
    let conflict = Answer::new(409, include_str!("../recorded/conflict.json"));
    match (seen.method.as_str(), version) {
        ("GET", None) => {
            return Answer::new(404, json!({"kind": "Status", "code": 404, "reason": "NotFound"}).to_string());
        }
        ("GET", Some(_)) => {}
        ("POST", None) => *lease = Some(seen.body.clone()),
        ("PUT", Some(version)) if seen.body["metadata"]["resourceVersion"] == version => {
            *lease = Some(seen.body.clone())
        }
        _ => return conflict,
    }
    let lease = lease.as_mut().expect("lease");
    if seen.method != "GET" {
        lease["metadata"]["resourceVersion"] = json!(next.to_string());
    }
    Answer::new(200, lease.to_string())
}

async fn write_answer(stream: &mut TcpStream, answer: &Answer) -> std::io::Result<()> {
    let head = format!(
        "HTTP/1.1 {} Recorded\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        answer.status,
        answer.body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(answer.body.as_bytes()).await
}

/// Streams events until the test ends the watch.
async fn stream_events(stream: &mut TcpStream, mut events: UnboundedReceiver<String>) -> std::io::Result<()> {
    stream
        .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
        .await?;
    while let Some(event) = events.recv().await {
        stream.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes()).await?;
    }
    stream.write_all(b"0\r\n\r\n").await
}
