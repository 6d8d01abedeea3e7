//! The manual page of the runtime API lists every command. `BLESS=1` rewrites its table.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use weir_control::runtime::process::reference;

const BEGIN: &str = "<!-- commands -->\n";
const END: &str = "<!-- end of the commands -->\n";

#[test]
fn the_page_shows_the_table_of_commands() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/runtime-api.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (table, after) = rest.split_once(END).unwrap();
    let wanted = reference();
    assert!(wanted.lines().count() > 25, "commands are missing");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{wanted}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(table, wanted, "write it anew with BLESS=1");
}
