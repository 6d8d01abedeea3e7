//! A Redis of simulated tests: strings, hashes and sorted sets that expire on the simulated clock. Its scripts run in Lua, so that a test
//! executes the same text as a real server.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::Moment;
use mlua::{Lua, MultiValue, Value};
use sha1::{Digest as _, Sha1};
use testkit::{Peer, Scope, Service};
use wire::resp::{Reply, next_reply};

/// A value, and when it expires.
struct Entry {
    data: Data,
    end: Option<Moment>,
}

enum Data {
    Text(Vec<u8>),
    Hash(BTreeMap<Vec<u8>, Vec<u8>>),
    Sorted(BTreeMap<Vec<u8>, f64>),
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Status(&'static str),
    Error(String),
    Integer(i64),
    Text(Vec<u8>),
    Nil,
    Array(Vec<Answer>),
}

type Arguments = Vec<Vec<u8>>;

#[derive(Default)]
struct Store {
    entries: BTreeMap<Vec<u8>, Entry>,
    scripts: BTreeMap<Vec<u8>, Vec<u8>>,
    commands: Vec<Arguments>,
}

/// The server. Clones share its data.
#[derive(Clone, Default)]
pub struct Redis(Arc<Mutex<Store>>);

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn number(bytes: &[u8]) -> i64 {
    text(bytes).parse().unwrap()
}

fn milliseconds(bytes: &[u8]) -> Moment {
    rt::now() + Duration::from_millis(number(bytes).try_into().unwrap())
}

impl Store {
    fn entry(&mut self, key: &[u8]) -> Option<&mut Entry> {
        if self.entries.get(key).is_some_and(|entry| entry.end.is_some_and(|end| end <= rt::now())) {
            self.entries.remove(key);
        }
        self.entries.get_mut(key)
    }

    fn text(&mut self, key: &[u8]) -> Option<&mut Vec<u8>> {
        match &mut self.entry(key)?.data {
            Data::Text(value) => Some(value),
            _ => panic!("{} is no text", text(key)),
        }
    }

    fn hash(&mut self, key: &[u8]) -> &mut BTreeMap<Vec<u8>, Vec<u8>> {
        self.entry(key);
        let fresh = || Entry { data: Data::Hash(BTreeMap::new()), end: None };
        match &mut self.entries.entry(key.to_vec()).or_insert_with(fresh).data {
            Data::Hash(fields) => fields,
            _ => panic!("{} is no hash", text(key)),
        }
    }

    fn sorted(&mut self, key: &[u8]) -> &mut BTreeMap<Vec<u8>, f64> {
        self.entry(key);
        let fresh = || Entry { data: Data::Sorted(BTreeMap::new()), end: None };
        match &mut self.entries.entry(key.to_vec()).or_insert_with(fresh).data {
            Data::Sorted(members) => members,
            _ => panic!("{} is no sorted set", text(key)),
        }
    }

    /// Returns the remaining time of a key in milliseconds, as `PTTL` does.
    fn left(&mut self, key: &[u8]) -> i64 {
        let Some(entry) = self.entry(key) else { return -2 };
        let left = entry.end.map(|end| end.saturating_since(rt::now()).as_millis().try_into().unwrap());
        left.unwrap_or(-1)
    }

    fn set(&mut self, arguments: &[Vec<u8>]) -> Answer {
        let [key, value, options @ ..] = arguments else { panic!("SET") };
        let options: Vec<_> = options.iter().map(|option| text(option)).collect();
        if options.iter().any(|option| option == "NX") && self.entry(key).is_some() {
            return Answer::Nil;
        }
        let end = options.iter().position(|option| option == "PX").map(|at| milliseconds(options[at + 1].as_bytes()));
        self.entries.insert(key.clone(), Entry { data: Data::Text(value.clone()), end });
        Answer::Status("OK")
    }

    fn execute(&mut self, arguments: &[Vec<u8>]) -> Answer {
        let [name, rest @ ..] = arguments else { panic!("no command") };
        let key = || rest[0].as_slice();
        let optional = |value: Option<Vec<u8>>| value.map_or(Answer::Nil, Answer::Text);
        match text(name).as_str() {
            "GET" => optional(self.text(key()).cloned()),
            "SET" => self.set(rest),
            "DEL" => {
                let count = rest.iter().filter(|key| self.entry(key).is_some()).count();
                rest.iter().for_each(|key| drop(self.entries.remove(key)));
                Answer::Integer(count as i64)
            }
            "INCR" => {
                let value = self.text(key()).map_or(0, |value| number(value)) + 1;
                let end = self.entry(key()).and_then(|entry| entry.end);
                let data = Data::Text(value.to_string().into());
                self.entries.insert(rest[0].clone(), Entry { data, end });
                Answer::Integer(value)
            }
            "PTTL" => Answer::Integer(self.left(key())),
            "PEXPIRE" => match self.entry(key()) {
                None => Answer::Integer(0),
                Some(entry) => {
                    entry.end = Some(milliseconds(&rest[1]));
                    Answer::Integer(1)
                }
            },
            "HSET" => Answer::Integer(i64::from(self.hash(key()).insert(rest[1].clone(), rest[2].clone()).is_none())),
            "HGET" => optional(self.hash(key()).get(&rest[1]).cloned()),
            "HDEL" => Answer::Integer(i64::from(self.hash(key()).remove(&rest[1]).is_some())),
            "HMGET" => {
                let fields = self.hash(key());
                Answer::Array(rest[1..].iter().map(|field| optional(fields.get(field).cloned())).collect())
            }
            "HGETALL" => {
                let pairs = self.hash(key()).iter().flat_map(|(field, value)| [field.clone(), value.clone()]);
                Answer::Array(pairs.map(Answer::Text).collect())
            }
            "ZADD" => {
                let score = text(&rest[1]).parse().unwrap();
                Answer::Integer(i64::from(self.sorted(key()).insert(rest[2].clone(), score).is_none()))
            }
            "ZREMRANGEBYSCORE" => {
                let most: f64 = text(&rest[2]).parse().unwrap();
                self.sorted(key()).retain(|_, score| *score > most);
                Answer::Integer(0)
            }
            "ZRANGEBYSCORE" => {
                let bound = |text: &[u8]| String::from_utf8(text.to_vec()).unwrap().parse::<f64>().unwrap();
                let range = bound(&rest[1])..=bound(&rest[2]);
                let members = self.sorted(key()).iter().filter(|(_, score)| range.contains(score));
                Answer::Array(members.map(|(member, _)| Answer::Text(member.clone())).collect())
            }
            "ZREM" => Answer::Integer(i64::from(self.sorted(key()).remove(&rest[1]).is_some())),
            "ZCARD" => Answer::Integer(self.sorted(key()).len() as i64),
            "TIME" => {
                let now = rt::wall();
                let parts = [now.seconds.to_string(), (now.nanos / 1_000).to_string()];
                Answer::Array(parts.map(|part| Answer::Text(part.into())).into())
            }
            other => Answer::Error(format!("ERR unknown command '{other}'")),
        }
    }
}

impl Redis {
    /// Serves an address.
    pub fn serve(&self, scope: &Rc<Scope>, address: &str) {
        let redis = self.clone();
        Service::at(address).serve(scope, move |peer, _| redis.clone().connection(peer));
    }

    /// Executes a command of a test.
    pub fn command(&self, arguments: &[&str]) -> Answer {
        self.run(&arguments.iter().map(|argument| argument.as_bytes().to_vec()).collect())
    }

    /// Returns the commands of clients.
    pub fn commands(&self) -> Vec<Vec<Vec<u8>>> {
        self.0.lock().unwrap().commands.clone()
    }

    /// Returns the keys that begin with a text.
    pub fn keys(&self, start: &str) -> Vec<String> {
        let store = self.0.lock().unwrap();
        store.entries.keys().map(|key| text(key)).filter(|key| key.starts_with(start)).collect()
    }

    /// Sets a value of any bytes.
    pub fn set(&self, key: &str, value: &[u8]) {
        self.run(&vec![b"SET".into(), key.into(), value.into()]);
    }

    async fn connection(self, mut peer: Peer) {
        let mut unread = Vec::new();
        loop {
            let mut out = Vec::new();
            while let Ok(Ok((Reply::Array(elements), taken))) = next_reply(&unread, 1 << 20) {
                let argument = |element: &Reply<'_>| match element {
                    Reply::Bulk(bytes) => bytes.to_vec(),
                    other => panic!("{other:?}"),
                };
                let arguments = elements.iter().map(argument).collect();
                unread.drain(..taken);
                encode(&self.run(&arguments), &mut out);
                self.0.lock().unwrap().commands.push(arguments);
            }
            if !out.is_empty() && !peer.try_send(&out).await {
                return;
            }
            let more = peer.receive_some().await;
            if more.is_empty() {
                return;
            }
            unread.extend(more);
        }
    }

    fn run(&self, arguments: &Arguments) -> Answer {
        match text(&arguments[0]).as_str() {
            "PING" => Answer::Status("PONG"),
            "AUTH" | "SELECT" => Answer::Status("OK"),
            "SCRIPT" => {
                let digest: String = Sha1::digest(&arguments[2]).iter().map(|byte| format!("{byte:02x}")).collect();
                self.0.lock().unwrap().scripts.insert(digest.clone().into(), arguments[2].clone());
                Answer::Text(digest.into())
            }
            "EVALSHA" => {
                let script = self.0.lock().unwrap().scripts.get(&arguments[1]).cloned();
                script
                    .map_or_else(|| Answer::Error("NOSCRIPT".into()), |script| self.evaluate(&script, &arguments[2..]))
            }
            "EVAL" => self.evaluate(&arguments[1], &arguments[2..]),
            _ => self.0.lock().unwrap().execute(arguments),
        }
    }

    /// Executes a script. `arguments`: the number of keys, keys, other arguments.
    fn evaluate(&self, script: &[u8], arguments: &[Vec<u8>]) -> Answer {
        let lua = Lua::new();
        let (keys, others) = arguments[1..].split_at(number(&arguments[0]).try_into().unwrap());
        let strings = |values: &[Vec<u8>]| {
            let strings = values.iter().map(|value| lua.create_string(value).unwrap());
            lua.create_sequence_from(strings).unwrap()
        };
        lua.globals().set("KEYS", strings(keys)).unwrap();
        lua.globals().set("ARGV", strings(others)).unwrap();
        let store = Arc::clone(&self.0);
        let call = lua.create_function(move |lua, arguments: MultiValue| {
            let argument = |value: &Value| match value {
                Value::String(text) => text.as_bytes().to_vec(),
                Value::Integer(number) => number.to_string().into_bytes(),
                Value::Number(number) => number.to_string().into_bytes(),
                other => panic!("{other:?}"),
            };
            let arguments: Arguments = arguments.iter().map(argument).collect();
            to_lua(lua, &store.lock().unwrap().execute(&arguments))
        });
        let redis = lua.create_table().unwrap();
        redis.set("call", call.unwrap()).unwrap();
        redis.set("pcall", redis.get::<Value>("call").unwrap()).unwrap();
        lua.globals().set("redis", redis).unwrap();
        from_lua(lua.load(script).eval().unwrap_or_else(|error| panic!("{error}\n{}", text(script))))
    }
}

fn to_lua(lua: &Lua, answer: &Answer) -> mlua::Result<Value> {
    Ok(match answer {
        Answer::Status(status) => {
            let table = lua.create_table()?;
            table.set("ok", *status)?;
            Value::Table(table)
        }
        Answer::Error(error) => return Err(mlua::Error::RuntimeError(error.clone())),
        Answer::Integer(number) => Value::Integer(*number),
        Answer::Text(text) => Value::String(lua.create_string(text)?),
        Answer::Nil => Value::Boolean(false),
        Answer::Array(elements) => {
            let elements: Vec<_> = elements.iter().map(|element| to_lua(lua, element)).collect::<mlua::Result<_>>()?;
            Value::Table(lua.create_sequence_from(elements)?)
        }
    })
}

fn from_lua(value: Value) -> Answer {
    match value {
        Value::Integer(number) => Answer::Integer(number),
        Value::Number(number) => Answer::Integer(number as i64),
        Value::String(text) => Answer::Text(text.as_bytes().to_vec()),
        Value::Boolean(true) => Answer::Integer(1),
        Value::Table(table) => Answer::Array(table.sequence_values().map(|value| from_lua(value.unwrap())).collect()),
        _ => Answer::Nil,
    }
}

fn encode(answer: &Answer, out: &mut Vec<u8>) {
    match answer {
        Answer::Status(status) => out.extend(format!("+{status}\r\n").bytes()),
        Answer::Error(error) => out.extend(format!("-{error}\r\n").bytes()),
        Answer::Integer(number) => out.extend(format!(":{number}\r\n").bytes()),
        Answer::Text(text) => {
            out.extend(format!("${}\r\n", text.len()).bytes());
            out.extend(text);
            out.extend(b"\r\n");
        }
        Answer::Nil => out.extend(b"$-1\r\n"),
        Answer::Array(elements) => {
            out.extend(format!("*{}\r\n", elements.len()).bytes());
            elements.iter().for_each(|element| encode(element, out));
        }
    }
}
