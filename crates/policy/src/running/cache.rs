//! Fetches about the use of a cache for a response (section 7.3.6). Must never look into a cache.

use crate::program::ProgramContext;
use expression::fetch::Fetch;
use expression::sample::{Context, Places, Type, Value};
use expression::{Arguments, Signature};

/// HAProxy's name of the place that these fetches require.
const ANSWER: &str = "HTTP response";

/// The fetches of this family.
pub const TABLE: &[Fetch] = &[
    Fetch::new(
        "res.cache_hit",
        Signature::NONE,
        Type::Bool,
        Places::SERVER_LAYER5,
        "Whether the response comes from a cache.",
        is_hit,
    )
    .needing(ANSWER),
    Fetch::new(
        "res.cache_name",
        Signature::NONE,
        Type::Str,
        Places::SERVER_LAYER5,
        "Name of the cache that the response comes from; empty: none.",
        name,
    )
    .needing(ANSWER),
];

fn is_hit<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    Some(Value::Bool(context.transaction.cache.is_some()))
}

fn name<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    let program = context.program();
    let cache = context.transaction.cache.and_then(|index| program?.caches.get(index));
    Some(Value::Str(cache.map_or(b"", |cache| cache.name.as_bytes())))
}
