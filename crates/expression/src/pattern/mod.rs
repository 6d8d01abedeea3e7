//! Patterns that samples are matched against (configuration manual, sections 7.1.1 to 7.1.6). Owns the matching methods
//! and the sets of patterns with their indexes. Must never fetch or convert a sample beyond the cast that a method
//! needs.

mod affix;
mod automaton;
mod changes;
mod entries;
mod expansion;
mod hash;
mod index;
mod integer;
mod list;
mod many;
mod method;
mod network;
mod numbers;
mod object;
mod regex;
mod route;
mod set;
mod single;
mod string;

pub use automaton::Steps;
pub use changes::{Change, ChangeError, EntrySelector, ListEvent, ListState, ListStates};
pub use entries::Entries;
pub use expansion::expand;
pub use hash::Key;
pub use index::{PatternIndex, Texts};
pub(crate) use integer::{Notation, written as written_range};
pub use list::{ListName, lines};
pub use method::Method;
pub use network::Network;
pub use object::{Content, List, ListLine, Lists, Lookup, MatchedEntry, Registry, Use, View};
pub use regex::{Places, Regex, Search, pcre2_version};
pub use route::{RouteKey, RouteRequest};
pub use set::{Hit, PatternSet};
pub use string::compare;
