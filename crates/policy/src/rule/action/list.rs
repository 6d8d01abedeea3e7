//! Actions on pattern lists: `add-acl`, `del-acl`, `set-map`, `del-map`. Must never hold a list.

use super::{Action, Row, row};
use crate::program::ProgramContext;
use crate::rule::parse::{Parsing, RuleError, Words};
use expression::log_format::LogFormat;
use expression::pattern::ListName;
use expression::pattern::{ChangeError, EntrySelector};
use expression::sample::Context;

/// The actions of this family.
pub(super) const TABLE: &[Row] = &[
    row("add-acl", |words, parsing| read(words, parsing, ListVerb::Add)),
    row("del-acl", |words, parsing| read(words, parsing, ListVerb::Remove)),
    row("set-map", |words, parsing| read(words, parsing, ListVerb::Set)),
    row("del-map", |words, parsing| read(words, parsing, ListVerb::Remove)),
];

/// The operation on an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListVerb {
    /// Add it unless it exists.
    Add,
    /// Set its value; add it if it does not exist.
    Set,
    /// Remove it.
    Remove,
}

/// A change of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListChange {
    verb: ListVerb,
    /// Name of the list. A list that no expression uses is never changed.
    list: Box<str>,
    key: LogFormat,
    value: Option<LogFormat>,
}

impl ListChange {
    /// Performs the change. An entry that is not valid for the list is ignored, as in HAProxy. `text` is a buffer.
    pub fn perform(&self, context: &Context<'_>, text: &mut Vec<u8>) {
        let (Some(program), Some(lists)) = (context.program(), context.lists) else { return };
        let Some(state) = program.lists.find(&self.list).and_then(|list| lists.get(list)) else { return };
        let mut render = |format: &LogFormat| {
            text.clear();
            format.render_in(context, text);
            context.copy(text)
        };
        let Some(key) = render(&self.key) else { return };
        let Some(value) = self.value.as_ref().map_or(Some(&[][..]), &mut render) else { return };
        let which = EntrySelector::Key(key);
        match self.verb {
            // No write lock is needed if nothing changes.
            ListVerb::Add if state.read(|change| change.has(key)) => {}
            ListVerb::Remove if !state.read(|change| change.has(key)) => {}
            ListVerb::Add => state.write(|change, _| {
                if !change.has(key) {
                    let _ = change.add(None, key, value);
                }
            }),
            ListVerb::Set => state.write(|change, _| {
                if change.set(which, value) == Err(ChangeError::Missing) {
                    let _ = change.add(None, key, value);
                }
            }),
            ListVerb::Remove => state.write(|change, fallen| {
                change.remove(which, fallen);
            }),
        }
    }
}

fn read(words: &mut Words<'_>, parsing: &Parsing<'_>, verb: ListVerb) -> Result<Action, RuleError> {
    let count = if verb == ListVerb::Set { 2 } else { 1 };
    let missing = format!("expects exactly {count} arguments");
    let key = parsing.format(words.expect(&missing)?)?;
    let value = match verb {
        ListVerb::Set => Some(parsing.format(words.expect(&missing)?)?),
        _ => None,
    };
    let list = ListName::parse(words.parentheses().unwrap_or_default()).reference().into();
    Ok(Action::ChangeList(Box::new(ListChange { verb, list, key, value })))
}
