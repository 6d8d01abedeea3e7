//! Imports between the crates (see ARCHITECTURE.md): each imports only crates below it.

use crate::tree;
use std::collections::BTreeSet;
use std::path::Path;

/// Allowed dependencies of each crate. `testkit` may be used by the tests of every crate above `rt`.
const MAY_USE: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("deflate", &[]),
    ("wire", &["base"]),
    ("config", &["base"]),
    ("rt", &["base"]),
    ("balance", &["base", "config", "wire"]),
    ("tls", &["base", "wire"]),
    ("quic", &["base", "tls"]),
    ("expression", &["base", "config", "wire", "tls"]),
    ("live", &["base", "config", "wire", "balance", "expression"]),
    ("policy", &["base", "config", "wire", "balance", "tls", "expression", "live"]),
    ("conn", &["base", "wire", "rt", "tls", "quic"]),
    (
        "engine",
        &["base", "deflate", "wire", "config", "rt", "balance", "tls", "quic", "expression", "live", "policy", "conn"],
    ),
    ("control", &["base", "wire", "config", "rt", "balance", "tls", "expression", "live", "policy", "conn", "engine"]),
    ("lua", &["base", "wire", "config", "rt", "expression", "live", "policy", "conn", "engine"]),
    ("lint", &["config", "expression", "policy"]),
    ("tools", &["base", "config", "wire", "rt", "tls", "quic", "conn"]),
    (
        "weir",
        &[
            "base",
            "wire",
            "config",
            "rt",
            "tls",
            "expression",
            "live",
            "policy",
            "conn",
            "engine",
            "control",
            "lint",
            "lua",
            "tools",
        ],
    ),
    ("testkit", &["base", "wire", "rt"]),
    // The bodies of the fuzz targets, used only by the runners in `fuzz/`.
    (
        "fuzz",
        &[
            "base",
            "deflate",
            "wire",
            "config",
            "rt",
            "balance",
            "tls",
            "quic",
            "expression",
            "live",
            "policy",
            "conn",
            "engine",
            "control",
            "tools",
        ],
    ),
    // Runs the program from outside.
    ("cases", &[]),
    // A program of its own, which uses the runtime API alone.
    ("gateway", &[]),
];

/// Crates with a program of their own, which `cargo build` and `cargo test` leave out: their libraries would enable features of libraries
/// that the others use as well. `.ci/run` tests them.
const ON_THEIR_OWN: [&str; 1] = ["gateway"];

/// Crates whose tests may use `testkit`.
const TESTED_WITH_PEERS: &[&str] = &["policy", "conn", "engine", "control", "lua", "tools", "weir"];

/// Crates that the tests of a crate alone may use: the simulated tests of the engine inspect it through the runtime API, those of
/// the program have a client that speaks QUIC.
const TESTED_FROM_ABOVE: &[(&str, &str)] = &[("engine", "control"), ("weir", "quic")];

/// Crates that only tests use. They depend on themselves in their tests, to enable their feature `tests`.
const FOR_TESTS: [&str; 3] = ["testkit", "fuzz", "cases"];

#[test]
fn crates_import_only_what_stands_below_them() {
    let mut wrong = Vec::new();
    for manifest in tree::files("crates").iter().filter(|path| path.ends_with("Cargo.toml")) {
        let name = manifest.components().nth(1).expect("a crate").as_os_str().to_string_lossy().into_owned();
        let Some((_, allowed)) = MAY_USE.iter().find(|(owner, _)| *owner == name) else {
            wrong.push(format!("{name} has no place in the table of layers"));
            continue;
        };
        for (section, dependency) in dependencies(&tree::read(manifest)) {
            let ours = MAY_USE.iter().any(|(owner, _)| *owner == dependency);
            let for_tests = section == "dev-dependencies";
            let peers = dependency == "testkit" && for_tests && TESTED_WITH_PEERS.contains(&name.as_str());
            let itself = dependency == name && for_tests && FOR_TESTS.contains(&name.as_str());
            let above = for_tests && TESTED_FROM_ABOVE.contains(&(name.as_str(), dependency.as_str()));
            if ours && !peers && !itself && !above && !allowed.contains(&dependency.as_str()) {
                wrong.push(format!("{name} must not use {dependency}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Returns section and name of every dependency of a manifest; `weir-x` and `x` mean the same crate.
fn dependencies(manifest: &str) -> Vec<(String, String)> {
    let mut section = String::new();
    let mut found = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            section = header.trim_end_matches(']').to_owned();
        } else if section.ends_with("dependencies") && !line.starts_with('#') {
            let name: String = line
                .chars()
                .take_while(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'))
                .collect();
            if !name.is_empty() {
                found.push((section.clone(), name.strip_prefix("weir-").unwrap_or(&name).to_owned()));
            }
        }
    }
    found
}

#[test]
fn policy_cannot_see_sockets_and_rt_cannot_see_protocols() {
    // The same rule, checked in the code: a path that the manifest does not allow would not compile, but a file
    // included from elsewhere would.
    for file in tree::rust_files().iter().filter(|file| file.components().any(|part| part.as_os_str() == "src")) {
        let code = tree::code(&tree::read(file));
        let including = code.contains("#[path") || code.contains("include!(");
        assert!(!including, "{} pulls in a file of another place", file.display());
    }
}

#[test]
fn every_crate_is_built_and_tested() {
    let manifest = tree::read(Path::new("Cargo.toml"));
    assert!(manifest.contains("\nmembers = [\"crates/*\"]\n"));
    let start = manifest.find("default-members = [").expect("members that are built by default");
    let listed = &manifest[start..start + manifest[start..].find(']').expect("an end")];
    let run = tree::read(Path::new(".ci/run"));
    for (name, _) in MAY_USE {
        let is_default = listed.contains(&format!("\n    \"crates/{name}\",\n"));
        let is_alone = ON_THEIR_OWN.contains(name) && run.contains(&format!("cargo test -p weir-{name}\n"));
        assert!(is_default != is_alone, "{name}");
    }
}

/// `cargo build` compiles the library of every crate. Those of crates for tests are empty without their feature `tests`,
/// and their dependencies are compiled for the product anyway, or optional.
#[test]
fn a_build_compiles_nothing_that_only_tests_use() {
    let folders = FOR_TESTS.map(|name| Path::new("crates").join(name));
    let manifests = tree::files("crates").into_iter().filter(|path| path.ends_with("Cargo.toml"));
    let others = folders.iter().cloned().chain(ON_THEIR_OWN.map(|name| Path::new("crates").join(name)));
    let others: Vec<_> = others.collect();
    let product = manifests.filter(|path| !others.iter().any(|folder| path.starts_with(folder)));
    let product: BTreeSet<_> = product.flat_map(|path| dependencies(&tree::read(&path))).collect();
    for folder in folders {
        let library = tree::read(&folder.join("src/lib.rs"));
        let first = library.lines().find(|line| !line.is_empty() && !line.starts_with("//"));
        assert_eq!(first, Some("#![cfg(feature = \"tests\")]"), "{}", folder.display());
        let manifest = tree::read(&folder.join("Cargo.toml"));
        let is_optional = |name: &str| {
            let mut lines = manifest.lines().filter(|line| line.starts_with(&format!("{name} = ")));
            lines.any(|line| line.contains("optional = true"))
        };
        assert!(!manifest.contains("\ndefault = "), "{}", folder.display());
        for dependency in dependencies(&manifest).into_iter().filter(|(section, _)| section == "dependencies") {
            let fits = product.contains(&dependency) || is_optional(&dependency.1);
            assert!(fits, "{} needs {}, which Weir does not", folder.display(), dependency.1);
        }
    }
}

#[test]
fn dependencies_are_read_from_every_form_that_cargo_knows() {
    let manifest = "[package]\nname = \"x\"\n[dependencies]\nbase.workspace = true\nweir-rt = { path = \"../rt\" }\n\
                    [target.'cfg(unix)'.dependencies]\nlibc = \"0.2\"\n[dev-dependencies]\ntestkit = { workspace = true }\n";
    let found: Vec<_> = dependencies(manifest).into_iter().map(|(_, name)| name).collect();
    assert_eq!(found, ["base", "rt", "libc", "testkit"]);
}
