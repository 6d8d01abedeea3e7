//! Commands for pattern lists: ACLs and maps (management manual, section 9.3). Must never access a file, and must never
//! hold a list's lock while it waits for the peer to read.

use config::spec::RuntimeLevel;
use config::text::{from_bytes, to_bytes};
use expression::pattern::{Change, ChangeError, EntrySelector, ListState};
use expression::pattern::{Content, List, ListName, Lookup};
use expression::sample::{Context, Value};

use super::super::call::Severity;
use super::super::{Call, Command, Pending, Run};
use engine::generation::Generation;
use engine::service::streamless_context;
use engine::worker::Worker;

/// Entries visited per lock.
const PAGE: usize = 256;

const fn row(name: &'static str, usage: &'static str, doc: &'static str, run: Run<Worker>) -> Command<Worker> {
    Command::new(name, usage, doc, run).at(RuntimeLevel::Admin)
}

#[rustfmt::skip]
pub(super) const TABLE: &[Command<Worker>] = &[
    row("add acl", "add acl [@<ver>] <acl> <pattern>", "add an acl entry", Run::Now(|call| add(call, ACL))),
    row("add map", "add map [@<ver>] <map> <key> <val>", "add a map entry (payload supported instead of key/val)", Run::Now(|call| add(call, MAP))),
    row("clear acl", "clear acl [@<ver>] <acl>", "clear the contents of this acl", Run::Now(|call| clear(call, ACL))),
    row("clear map", "clear map [@<ver>] <map>", "clear the contents of this map", Run::Now(|call| clear(call, MAP))),
    row("commit acl", "commit acl @<ver> <acl>", "commit the ACL at this version", Run::Now(|call| commit(call, ACL))),
    row("commit map", "commit map @<ver> <map>", "commit the map at this version", Run::Now(|call| commit(call, MAP))),
    row("del acl", "del acl <acl> [<key>|#<ref>]", "delete acl entries matching <key>", Run::Now(|call| del(call, ACL))),
    row("del map", "del map <map> [<key>|#<ref>]", "delete map entries matching <key>", Run::Now(|call| del(call, MAP))),
    row("get acl", "get acl <acl> <value>", "report the patterns matching a sample for an ACL", Run::Now(|call| get(call, ACL))),
    row("get map", "get map <map> <value>", "report the keys and values matching a sample for a map", Run::Now(|call| get(call, MAP))),
    row("prepare acl", "prepare acl <acl>", "prepare a new version for atomic ACL replacement", Run::Now(|call| prepare(call, ACL))),
    row("prepare map", "prepare map <map>", "prepare a new version for atomic map replacement", Run::Now(|call| prepare(call, MAP))),
    row("set map", "set map <map> [<key>|#<ref>] <value>", "modify a map entry", Run::Now(set)),
    row("show acl", "show acl [@<ver>] <acl>", "report available acls or dump an acl's contents", Run::Gradual(|call| show(call, ACL))),
    row("show map", "show map [@<ver>] [map]", "report available maps or dump a map's contents", Run::Gradual(|call| show(call, MAP))),
];

/// The type of list that a command works on.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kind {
    /// The name in messages.
    name: &'static str,
    map: bool,
}

const ACL: Kind = Kind { name: "ACL", map: false };
const MAP: Kind = Kind { name: "map", map: true };

impl Kind {
    fn has(self, list: &List) -> bool {
        if self.map { list.is_map } else { list.is_acl }
    }
}

/// A list named by a command.
#[derive(Clone, Copy)]
struct ListReference<'a> {
    list: &'a List,
    state: &'a ListState,
}

fn find<'a>(generation: &'a Generation, name: &str) -> Option<ListReference<'a>> {
    let lists = &generation.program.lists;
    let at = match name.strip_prefix('#') {
        Some(id) => {
            let id = id.parse::<i64>().ok()? as u32;
            lists.all.iter().position(|list| list.id == id)?
        }
        None => lists.find(ListName::parse(name).reference())?,
    };
    Some(ListReference { list: lists.all.get(at)?, state: generation.lists.get(at)? })
}

/// Returns the list if it is of that type; otherwise answers with an error.
fn named<'a>(call: &mut Call<'a, Worker>, at: usize, kind: Kind) -> Option<ListReference<'a>> {
    known(call, at, kind, |list| kind.has(list))
}

/// Returns a list of any type. Adding and looking up entries works on both, as in HAProxy.
fn any_named<'a>(call: &mut Call<'a, Worker>, at: usize, kind: Kind) -> Option<ListReference<'a>> {
    known(call, at, kind, |_| true)
}

fn known<'a>(
    call: &mut Call<'a, Worker>,
    at: usize,
    kind: Kind,
    fits: impl FnOnce(&List) -> bool,
) -> Option<ListReference<'a>> {
    let found = find(call.generation, call.word(at)).filter(|named| fits(named.list));
    if found.is_none() {
        call.refuse(&format!("Unknown {} identifier. Please use #<id> or <file>.\n", kind.name));
    }
    found
}

/// Returns the version argument of a command, and the number of words it takes.
fn version(call: &Call<'_, Worker>) -> (Option<u32>, usize) {
    match call.word(2).strip_prefix('@') {
        Some(number) => (Some(number.parse::<i64>().unwrap_or(0) as u32), 1),
        None => (None, 0),
    }
}

/// Parses a selection: entries by key, or one entry by `#` and its reference in hexadecimal digits.
fn which(text: &[u8]) -> EntrySelector<'_> {
    let digits = text.strip_prefix(b"#").and_then(|digits| std::str::from_utf8(digits).ok());
    let reference = digits.and_then(|digits| u64::from_str_radix(digits.strip_prefix("0x").unwrap_or(digits), 16).ok());
    reference.map_or(EntrySelector::Key(text), EntrySelector::Reference)
}

/// Returns HAProxy's message for a rejected change.
fn sentence(error: ChangeError, kind: Kind) -> String {
    match error {
        ChangeError::Pattern(why) | ChangeError::Value(why) => match why.split_once('\n') {
            // Further lines show the place in the pattern.
            Some((why, rest)) => format!("{why}.\n{rest}\n"),
            None => format!("{why}.\n"),
        },
        ChangeError::Missing => "entry not found.\n".to_owned(),
        ChangeError::Future => {
            let word = kind.name.to_ascii_lowercase();
            format!("Version number in the future, please use 'prepare {word}' before.\n")
        }
    }
}

fn show<'a>(call: &'a mut Call<'_, Worker>, kind: Kind) -> Pending<'a> {
    Box::pin(async move {
        let (version, shift) = version(call);
        if call.word(2 + shift).is_empty() && shift == 0 {
            return show_lists(call, kind).await;
        }
        let Some(ListReference { list, state }) = named(call, 2 + shift, kind) else { return Ok(()) };
        let mut last = 0;
        loop {
            let page = state.read(|change| change.page(version, last, PAGE));
            let Some((reference, ..)) = page.last() else { return Ok(()) };
            last = *reference;
            for (reference, key, value) in &page {
                call.answer.push(format!("{reference:#x} "));
                call.answer.push(key);
                if list.is_map {
                    call.answer.push(" ");
                    call.answer.push(value);
                }
                call.answer.push("\n");
            }
            call.answer.relieve().await?;
        }
    })
}

async fn show_lists(call: &mut Call<'_, Worker>, kind: Kind) -> Result<(), super::super::Disconnected> {
    call.answer.push("# id (file) description\n");
    let mut lists: Vec<(usize, &List)> =
        call.generation.program.lists.all.iter().enumerate().filter(|(_, list)| kind.has(list)).collect();
    lists.sort_by_key(|(_, list)| list.id);
    for (at, list) in lists {
        let Some(state) = call.generation.lists.get(at) else { continue };
        let (current, next, count) = state.read(|change| (change.current, change.next, change.count()));
        call.answer.push(format!(
            "{} ({}) {}. curr_ver={current} next_ver={next} entry_cnt={}\n",
            list.id,
            list.name,
            list.description,
            count * list.views.len()
        ));
        call.answer.relieve().await?;
    }
    Ok(())
}

fn lend<T>(worker: &Worker, generation: &Generation, with: impl FnOnce(&Context<'_>) -> T) -> T {
    let shared = &worker.process;
    worker
        .with_arena(|arena| streamless_context::lend(&generation.program, &generation.lists, &shared.live, arena, with))
}

fn get(call: &mut Call<'_, Worker>, kind: Kind) {
    if call.word(2).is_empty() || call.word(3).is_empty() {
        call.refuse(&format!("Missing {} identifier and/or key.\n", kind.name));
        return;
    }
    let Some(ListReference { list, state }) = any_named(call, 2, kind) else { return };
    let text = to_bytes(call.word(3)).into_owned();
    let mut out = Vec::new();
    for (view, base) in list.views.iter().enumerate() {
        let lookup = Lookup::new(0, view, base.clone(), list.entries.clone());
        lend(call.state, call.generation, |context| get_in(context, &lookup, state, &text, kind, &mut out));
    }
    call.answer.push(out);
}

/// Writes one line of `get acl` or `get map`.
fn get_in(context: &Context<'_>, lookup: &Lookup, state: &ListState, text: &[u8], kind: Kind, out: &mut Vec<u8>) {
    let (set, content) = (&lookup.base.set, lookup.base.content);
    let case = if set.ignores_case() { "insensitive" } else { "sensitive" };
    out.extend_from_slice(format!("type={}, case={case}, ", set.method().name()).as_bytes());
    let (found, pattern) = if kind.map { ("found", "key") } else { ("match", "pattern") };
    let text = context.copy(text).unwrap_or_default();
    let write = |change: &Change| {
        let entry =
            set.prepare(context, Value::Str(text)).and_then(|value| context.bounded(change.find(lookup, value)));
        let Some(entry) = entry else {
            out.extend_from_slice(format!("{found}=no\n").as_bytes());
            return;
        };
        let index = if set.is_tree() { "tree" } else { "list" };
        out.extend_from_slice(format!("{found}=yes, idx={index}, {pattern}=\"").as_bytes());
        out.extend_from_slice(entry.key);
        out.push(b'"');
        match (kind.map, content) {
            (false, _) => {}
            (true, Content::None) => out.extend_from_slice(b", value=none"),
            (true, _) => {
                out.extend_from_slice(b", value=\"");
                out.extend_from_slice(entry.value);
                let kind = content.parse(entry.value).map_or("str", |value| match value {
                    Value::Int(_) => "sint",
                    Value::Ipv4(_) => "ipv4",
                    Value::Ipv6(_) => "ipv6",
                    _ => "str",
                });
                out.extend_from_slice(format!("\", type=\"{kind}\"").as_bytes());
            }
        }
        out.push(b'\n');
    };
    state.read(write);
}

fn add(call: &mut Call<'_, Worker>, kind: Kind) {
    let (version, shift) = version(call);
    let (key, value) = (call.word(3 + shift), call.word(4 + shift));
    let payload = call.payload.filter(|payload| kind.map && !payload.is_empty());
    let missing = if kind.map { payload.is_none() && (key.is_empty() || value.is_empty()) } else { key.is_empty() };
    if missing || call.word(2 + shift).is_empty() {
        call.refuse(if kind.map {
            "'add map' expects three parameters (map identifier, key and value) or one parameter (map identifier) and a \
             payload\n"
        } else {
            "'add acl' expects two parameters: ACL identifier and pattern.\n"
        });
        return;
    }
    let (key, value) = (to_bytes(key).into_owned(), to_bytes(value).into_owned());
    let Some(ListReference { list, state }) = any_named(call, 2 + shift, kind) else { return };
    if !kind.map && list.is_map {
        call.refuse(
            "This ACL is shared with a map containing samples. You must use the command 'add map' to add values.\n",
        );
        return;
    }
    let added = match payload {
        None => state.write(|change, _| change.add(version, &key, &value)).map_err(|why| sentence(why, kind)),
        Some(payload) => add_payload(state, version, payload),
    };
    if let Err(why) = added {
        call.refuse(&why);
    }
}

/// Adds the lines of a payload, until one is invalid.
fn add_payload(state: &ListState, version: Option<u32>, payload: &[u8]) -> Result<(), String> {
    for line in payload.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line).trim_ascii_start();
        if line.is_empty() {
            continue;
        }
        let end = line.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(line.len());
        let (key, value) = (&line[..end], line[end..].trim_ascii_start());
        if value.is_empty() {
            return Err(format!("Missing value for key '{}'.\n", from_bytes(key)));
        }
        state.write(|change, _| change.add(version, key, value)).map_err(|why| sentence(why, MAP))?;
    }
    Ok(())
}

fn set(call: &mut Call<'_, Worker>) {
    if (2..5).any(|at| call.word(at).is_empty()) {
        call.refuse("'set map' expects three parameters: map identifier, key and value.\n");
        return;
    }
    let Some(ListReference { state, .. }) = named(call, 2, MAP) else { return };
    let (key, value) = (to_bytes(call.word(3)).into_owned(), to_bytes(call.word(4)).into_owned());
    let which = which(&key);
    match state.write(|change, _| change.set(which, &value)) {
        Ok(()) => {}
        Err(ChangeError::Missing) if matches!(which, EntrySelector::Reference(_)) => {
            call.refuse("key or pattern not found.\n")
        }
        Err(why) => call.refuse(&sentence(why, MAP)),
    }
}

fn del(call: &mut Call<'_, Worker>, kind: Kind) {
    if call.word(2).is_empty() || call.word(3).is_empty() {
        call.refuse(&format!("This command expects two parameters: {} identifier and key.\n", kind.name));
        return;
    }
    let Some(ListReference { state, .. }) = named(call, 2, kind) else { return };
    let key = to_bytes(call.word(3)).into_owned();
    if !state.write(|change, fallen| change.remove(which(&key), fallen)) {
        call.refuse("Key not found.\n");
    }
}

fn clear(call: &mut Call<'_, Worker>, kind: Kind) {
    let (version, shift) = version(call);
    if call.word(2 + shift).is_empty() {
        call.refuse(&format!("Missing {} identifier.\n", kind.name));
        return;
    }
    if let Some(ListReference { state, .. }) = named(call, 2 + shift, kind) {
        state.write(|change, fallen| change.clear(version, fallen));
    }
}

fn prepare(call: &mut Call<'_, Worker>, kind: Kind) {
    if let Some(ListReference { state, .. }) = named(call, 2, kind) {
        let version = state.write(|change, _| change.prepare());
        call.say(Severity::Info, &format!("New version created: {version}\n"));
    }
}

fn commit(call: &mut Call<'_, Worker>, kind: Kind) {
    let (Some(version), shift) = version(call) else {
        call.refuse("Missing version number.\n");
        return;
    };
    if call.word(2 + shift).is_empty() {
        call.refuse(&format!("Missing {} identifier.\n", kind.name));
        return;
    }
    let Some(ListReference { state, .. }) = named(call, 2 + shift, kind) else { return };
    if !state.write(|change, fallen| change.commit(version, fallen)) {
        call.refuse("Version number out of range.\n");
    }
}
