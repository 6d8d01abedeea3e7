//! `maxconn-store` of a server: its `maxconn` holds over all nodes of a store; Weir's own. Must never look the store up.

use super::ServerContext;
use crate::document::Word;
use crate::span::Spanned;
use crate::spec::{LostMode, MaxconnStoreSpec};

/// Reads `maxconn-store <store> [lost { local | open | closed }]`.
pub(super) fn maxconn_store(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    let Some(store) = value.filter(|word| !word.text.is_empty()) else {
        return context.error(keyword.span, "'maxconn-store' expects <store> as argument.");
    };
    let lost = match context.arguments {
        [_, _, mode] => match mode.text.as_str() {
            "local" => LostMode::Local,
            "open" => LostMode::Open,
            "closed" => LostMode::Closed,
            other => {
                let message = format!("'maxconn-store' : 'lost' expects 'local', 'open' or 'closed', got '{other}'.");
                return context.error(mode.span, message);
            }
        },
        [_, lost] => {
            let message = "'maxconn-store' : 'lost' expects 'local', 'open' or 'closed'.";
            return context.error(lost.span, message);
        }
        _ => LostMode::default(),
    };
    let store = Spanned::new(store.text.clone(), store.span);
    context.draft.limits.store = Some(MaxconnStoreSpec { store, lost });
}
