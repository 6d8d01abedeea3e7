//! The configurations of every shipped scenario are accepted by the proxies. A proxy that is not installed is skipped.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use tools::bench::scenario::template::{self, Values};
use tools::bench::scenario::{Proxy, Scenario, read, shipped::SHIPPED};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// A folder that is removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("weir-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Values of the placeholders while nothing runs.
fn values(scenario: &Scenario, folder: &Path) -> Values {
    let folder = folder.to_str().unwrap();
    let mut values: Values = [
        ("weir", WEIR),
        ("folder", folder),
        ("scratch", folder),
        ("port", "18081"),
        ("origin", "127.0.0.1:18080"),
        ("origin_port", "18080"),
        ("size", "64"),
        ("rate", "0"),
        ("workers", "1"),
        ("connections", "64"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    values.insert("lists".to_owned(), format!("{folder}/lists"));
    for number in 1..=scenario.origin.len().max(1) {
        values.insert(format!("origin_{number}"), format!("127.0.0.1:{}", 18090 + number));
        values.insert(format!("origin_{number}_port"), (18090 + number).to_string());
    }
    values.extend(scenario.values.iter().map(|(name, value)| (name.get_ref().clone(), value.clone())));
    values
}

/// Writes the files of a proxy and returns its command line.
fn prepare(scenario: &Scenario, proxy: &Proxy, folder: &Path) -> Vec<String> {
    let values = values(scenario, folder);
    let lists = folder.join("lists");
    std::fs::create_dir_all(&lists).unwrap();
    for (name, list) in &scenario.lists {
        // The start is sufficient: the rest is truncated, and an incomplete last line is dropped.
        let mut begin = vec![0; 16 << 10];
        let mut room = begin.as_mut_slice();
        let _ = list.write(&mut room);
        let written = begin.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        std::fs::write(lists.join(name.get_ref()), &begin[..written]).unwrap();
    }
    for (name, text) in scenario.files.iter().chain(&proxy.files) {
        std::fs::write(folder.join(name.get_ref()), template::fill(text.get_ref(), &values).unwrap()).unwrap();
    }
    proxy.command.iter().map(|word| template::fill(word.get_ref(), &values).unwrap()).collect()
}

/// Whether the program accepts its configuration, and its output; `None`: not installed.
fn check(command: &[String], option: &str) -> Option<(bool, String)> {
    let output = match Command::new(&command[0]).arg(option).args(&command[1..]).output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => panic!("{}: {error}", command[0]),
    };
    Some((output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()))
}

#[test]
fn every_shipped_scenario_has_configurations_that_its_proxies_take() {
    let mut missing = BTreeSet::new();
    for (name, text) in SHIPPED {
        let scenario = read(name, text).unwrap_or_else(|error| panic!("{error}")).scenario;
        for proxy in &scenario.proxy {
            let folder = Folder::new(&format!("{name}-{}", proxy.name.get_ref()));
            let command = prepare(&scenario, proxy, &folder.0);
            let option = match proxy.name.get_ref().as_str() {
                "weir" | "haproxy" => "-c",
                "nginx" => "-t",
                _ => continue,
            };
            let Some((taken, said)) = check(&command, option) else {
                missing.insert(command[0].clone());
                continue;
            };
            if !taken && said.contains("ngx_stream_module.so: cannot open") {
                missing.insert("nginx's module stream".to_owned());
                continue;
            }
            // Only recent versions support it.
            if !taken && said.contains("unknown proxy mode 'spop'") && said.contains("haproxy version is 2.") {
                missing.insert("an HAProxy with mode spop".to_owned());
                continue;
            }
            // It is built without QUIC.
            if !taken
                && ["QUIC is not compiled in", "invalid parameter \"quic\""].iter().any(|text| said.contains(text))
            {
                missing.insert(format!("{} with QUIC", proxy.name.get_ref()));
                continue;
            }
            // A condition of the whole scenario does not concern a proxy.
            let waits = proxy.name.get_ref() == "weir" && proxy.waits_for.is_some();
            assert_eq!(taken, !waits, "{name}, {}, which {}:\n{said}", proxy.name.get_ref(), {
                if waits { "waits for what it lacks, and takes it already" } else { "is to take its configuration" }
            });
        }
    }
    for program in missing {
        println!("SKIPPED: {program} is not installed, its configurations were not checked");
    }
}

#[test]
fn the_same_configuration_is_given_to_weir_and_to_haproxy() {
    for (name, text) in SHIPPED {
        let scenario = read(name, text).unwrap_or_else(|error| panic!("{error}")).scenario;
        let own = |wanted: &str| {
            let proxy = scenario.proxy.iter().find(|proxy| proxy.name.get_ref() == wanted);
            let proxy = proxy.unwrap_or_else(|| panic!("{name} has no {wanted}"));
            let words: Vec<String> = proxy.command[1..].iter().map(|word| word.get_ref().clone()).collect();
            (words, proxy.files.len())
        };
        assert_eq!(own("weir"), own("haproxy"), "{name}");
        assert_eq!(scenario.proxy[0].name.get_ref(), "weir", "{name}: the others are compared with the first one");
    }
}
