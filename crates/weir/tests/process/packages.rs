//! Files that packages and images install: their configurations are accepted without messages, the files that the
//! package's description names exist, and the example for nginx users is valid.

use crate::support::{Folder, line};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).expect("a file of the project")
}

/// Checks a configuration; the package's user need not exist on this machine.
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
    // There is no certificate.
    check("docs/from-nginx.md", &text.replace(" ssl crt /etc/weir/site.pem", ""));
}

/// Returns the pages of a folder and below, by their names in the book.
fn pages(folder: &Path, below: &str, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the documentation") {
        let path = entry.expect("a file").path();
        let name = format!("{below}{}", path.file_name().and_then(|name| name.to_str()).expect("a name"));
        match name.strip_suffix(".md") {
            _ if path.is_dir() => pages(&path, &format!("{name}/"), found),
            Some("SUMMARY") | None => {}
            Some("README") => found.push("index.html".to_owned()),
            Some(page) => found.push(format!("{page}.html")),
        }
    }
}

/// Builds the book with mdBook. Skipped with a message if it is not installed.
#[test]
fn the_documentation_is_a_book() {
    let folder = Folder::new();
    let mut command = Command::new(std::env::var_os("MDBOOK").unwrap_or_else(|| "mdbook".into()));
    command.arg("build").arg("--dest-dir").arg(folder.path("book")).current_dir(root());
    let done = match command.output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("skipped: mdbook is not installed");
            return;
        }
        done => done.expect("mdbook runs"),
    };
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success() && !told.contains("WARN") && !told.contains("ERROR"), "{told}");
    let mut wanted = Vec::new();
    pages(&root().join("docs"), "", &mut wanted);
    let missing: Vec<&String> = wanted.iter().filter(|page| !folder.path("book").join(page).exists()).collect();
    assert!(missing.is_empty(), "pages that are not in docs/SUMMARY.md: {missing:?}");
    let files = std::fs::read_dir(folder.path("book")).expect("a book");
    let names = files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned());
    assert!(names.into_iter().any(|name| name.starts_with("searchindex")), "the book has no search");
}

#[test]
fn the_files_of_the_debian_package_exist() {
    let manifest = read("crates/weir/Cargo.toml");
    let named = manifest.split('"').filter(|word| word.starts_with("../../") && !word.contains('*'));
    let missing: Vec<&str> = named.filter(|name| !root().join("crates/weir").join(name).exists()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Runs the script that builds the package, with a `cargo` that prints its arguments.
fn package(variables: &[(&str, &str)]) -> (bool, String) {
    let folder = Folder::new();
    let cargo = folder.write("cargo", "#!/bin/sh\necho \"$*\"\n");
    std::fs::set_permissions(&cargo, std::fs::Permissions::from_mode(0o755)).expect("set");
    let path = format!("{}:/usr/bin:/bin", folder.text());
    let mut command = Command::new("sh");
    command.arg(root().join("contrib/package.sh")).arg("--no-build").env_clear().env("PATH", path);
    let done = command.envs(variables.iter().copied()).output().expect("a shell");
    (done.status.success(), String::from_utf8([done.stdout, done.stderr].concat()).expect("text"))
}

#[test]
fn the_maintainer_of_the_package_is_who_builds_it() {
    let name = ("DEBFULLNAME", "Jane Doe");
    let address = ("DEBEMAIL", "jane@example.com");
    let expected = "deb -p weir --profile dist --maintainer Jane Doe <jane@example.com> --no-build\n";
    assert_eq!(package(&[name, address]), (true, expected.to_owned()));
    for (variables, missing) in [([name], "DEBEMAIL"), ([address], "DEBFULLNAME")] {
        let (success, text) = package(&variables);
        assert!(!success && text.contains(missing), "{text}");
    }
    assert!(!read("crates/weir/Cargo.toml").contains("maintainer = "), "the manifest names another one");
}
