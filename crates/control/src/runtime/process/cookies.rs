//! Commands for dynamic cookies (management manual, section 9.3). Must never change the cookie value of a `server`
//! line.

use config::spec::RuntimeLevel;
use live::CookieChange;

use super::super::{Call, Command, Run};
use engine::service::cookies::change_cookies;
use engine::worker::Worker;

pub(super) const TABLE: &[Command<Worker>] = &[
    Command::new(
        "disable dynamic-cookie backend",
        "disable dynamic-cookie backend <bk>",
        "disable dynamic cookies on a specific backend",
        Run::Now(disable),
    )
    .at(RuntimeLevel::Admin),
    Command::new(
        "enable dynamic-cookie backend",
        "enable dynamic-cookie backend <bk>",
        "enable dynamic cookies on a specific backend",
        Run::Now(enable),
    )
    .at(RuntimeLevel::Admin),
    Command::new(
        "set dynamic-cookie-key backend",
        "set dynamic-cookie-key backend <bk> <k>",
        "change a backend secret key for dynamic cookies",
        Run::Now(set_key),
    )
    .at(RuntimeLevel::Admin),
];

fn disable(call: &mut Call<'_, Worker>) {
    change(call, |_| Some(CookieChange::Dynamic(false)));
}

fn enable(call: &mut Call<'_, Worker>) {
    change(call, |_| Some(CookieChange::Dynamic(true)));
}

fn set_key(call: &mut Call<'_, Worker>) {
    change(call, |key| Some(CookieChange::Key(key)).filter(|_| !key.is_empty()));
}

/// Changes the backend named by the fourth word; the fifth is the key.
fn change(call: &mut Call<'_, Worker>, what: for<'k> fn(&'k [u8]) -> Option<CookieChange<'k>>) {
    if call.word(3).is_empty() {
        return call.refuse("A backend name is expected.");
    }
    let shared = &call.state.process;
    let mut proxies = call.generation.program.proxies.iter().filter(|proxy| proxy.backend.is_some());
    let Some(proxy) = proxies.find(|proxy| *proxy.name == *call.word(3)) else {
        return call.refuse("No such backend.");
    };
    match what(call.word(4).as_bytes()) {
        Some(change) => change_cookies(shared, proxy, change),
        None => call.refuse("String value expected."),
    }
}
