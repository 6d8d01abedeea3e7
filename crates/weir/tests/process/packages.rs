//! What packages and images install: their configurations are accepted without a word, the files that the package's
//! description names exist, and the example for those who come from nginx is one that Weir takes.

use crate::support::{Folder, line};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).expect("a file of the project")
}

/// Checks a configuration; the user of the package need not exist on this machine.
fn check(name: &str, text: &str) {
    let folder = Folder::new();
    let text = text.replace("    user weir\n    group weir\n", "");
    let file = folder.write("weir.cfg", &text);
    let done = line(&format!("-c -V -dW -f {file}"));
    assert_eq!(done.code(), Some(0), "{name}: {}", done.stderr);
}

#[test]
fn the_configurations_of_the_packages_are_accepted() {
    for name in ["contrib/debian/weir.cfg", "contrib/docker/weir.cfg"] {
        check(name, &read(name));
    }
}

#[test]
fn the_example_for_users_of_nginx_is_accepted() {
    let page = read("docs/from-nginx.md");
    let lines = page.lines().skip_while(|line| *line != "    global").take_while(|line| !line.starts_with("## "));
    let text: String = lines.map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(line))).collect();
    assert!(text.contains("backend app"), "{text}");
    // No certificate lies there.
    check("docs/from-nginx.md", &text.replace(" ssl crt /etc/weir/site.pem", ""));
}

#[test]
fn the_files_of_the_debian_package_exist() {
    let manifest = read("crates/weir/Cargo.toml");
    let named = manifest.split('"').filter(|word| word.starts_with("../../") && !word.contains('*'));
    let missing: Vec<&str> = named.filter(|name| !root().join("crates/weir").join(name).exists()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
