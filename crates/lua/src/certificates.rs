//! Certificate updates by scripts (class `CertCache` of HAProxy's Lua manual). Must never read a file.

use base::WallTime;
use engine::certificate_parts::{Part, update};
use engine::certificates::Certificates;
use live::timeline::Author;
use mlua::{Lua, LuaString, Table};

use crate::machine::may_block;

/// The parts of a certificate, in the order of their application.
const PARTS: [(&str, Part); 5] = [
    ("crt", Part::Text),
    ("key", Part::Key),
    ("ocsp", Part::Ocsp),
    ("issuer", Part::Issuer),
    ("sctl", Part::Timestamps),
];

/// Replaces parts of a certificate, by their names; returns an error message; nil on success.
fn set(lua: &Lua, name: &str, given: &Table) -> mlua::Result<Option<String>> {
    if !may_block(lua) {
        return Ok(Some("Cannot use CertCache.set from a non-yield capable runtime context".to_owned()));
    }
    let texts = PARTS.map(|(shown, part)| (part, shown, given.get::<Option<LuaString>>(shown)));
    let mut parts = Vec::new();
    for (part, shown, text) in &texts {
        if let Ok(Some(text)) = text {
            parts.push((*part, *shown, text.as_bytes()));
        }
    }
    let parts: Vec<_> = parts.iter().map(|(part, shown, text)| (*part, *shown, &**text)).collect();
    // There are no certificates while scripts are loaded.
    let Some(process) = crate::process() else {
        return Ok(Some("Can't replace a certificate which is not referenced by the configuration!".to_owned()));
    };
    let now = i64::try_from(rt::clock::since_epoch().as_secs()).unwrap_or(i64::MAX);
    let refused = update(process.service::<Certificates>(), &process.generation().program, name, now, &parts).err();
    if refused.is_none() {
        let time = WallTime { seconds: now, nanos: 0 };
        engine::timeline::certificate(&process, name, Author::Script, time);
        engine::ocsp::look_again(&process);
    }
    Ok(refused)
}

/// Adds the functions for certificates.
///
/// # Errors
/// Lua's error.
pub(crate) fn open(lua: &Lua, native: &Table) -> mlua::Result<()> {
    native.set("set_certificate", lua.create_function(|lua, (name, given): (String, Table)| set(lua, &name, &given))?)
}
