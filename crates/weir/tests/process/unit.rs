//! The systemd unit, with the test acting as systemd: it starts, reloads and stops as the file specifies.

use crate::support::{
    DEFAULTS, Folder, PATIENCE, Running, WEIR, connect, exchange, free_port, get, run, wait_for_file,
};
use std::collections::BTreeMap;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;

/// Returns the assignments of the section `[Service]`, in order.
fn service() -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/systemd/weir.service");
    let text = std::fs::read_to_string(path).expect("the unit");
    let lines = text.lines().skip_while(|line| *line != "[Service]").skip(1).take_while(|line| !line.starts_with('['));
    let pairs = lines.filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn value(unit: &[(String, String)], name: &str) -> String {
    let found = unit.iter().find(|(key, _)| key == name);
    found.unwrap_or_else(|| panic!("{name} is missing")).1.clone()
}

/// Parses a command line like systemd: `$NAME` as a separate word is replaced by its words.
fn command(line: &str, variables: &BTreeMap<String, String>) -> Command {
    let mut words = line.split(' ').flat_map(|word| match word.strip_prefix('$') {
        Some(name) => {
            let value = variables.get(name).map_or("", String::as_str);
            value.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect()
        }
        None => vec![word.to_owned()],
    });
    let program = words.next().expect("a program");
    let mut command = Command::new(program.replace("/usr/sbin/weir", WEIR));
    command.args(words);
    command
}

#[test]
fn the_unit_starts_reloads_and_stops() {
    let unit = service();
    assert_eq!(value(&unit, "Type"), "notify");
    let folder = Folder::new();
    let port = free_port();
    let text = format!("{DEFAULTS}frontend web\n    bind 127.0.0.1:{port}\n    default_backend none\nbackend none\n");
    let file = folder.write("weir.cfg", &text);
    let mut variables = BTreeMap::new();
    for assignment in value(&unit, "Environment").split('"').filter(|text| text.contains('=')) {
        let (name, value) = assignment.split_once('=').expect("an assignment");
        let value = value.replace("/run/weir", folder.text()).replace("/etc/weir/weir.cfg", &file);
        variables.insert(name.to_owned(), value);
    }
    let manager = UnixDatagram::bind(folder.path("notify")).expect("free");
    manager.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let news = || {
        let mut place = [0; 512];
        let count = manager.recv(&mut place).expect("news");
        String::from_utf8_lossy(&place[..count]).into_owned()
    };
    let checked = run(&mut command(&value(&unit, "ExecStartPre"), &variables));
    assert_eq!(checked.code(), Some(0), "{}", checked.stderr);
    let mut start = command(&value(&unit, "ExecStart"), &variables);
    let running = Running::start(start.env("NOTIFY_SOCKET", folder.path("notify")));
    let ready = format!("READY=1\nMAINPID={}\n", running.id());
    assert!(news().starts_with(&ready));
    assert_eq!(exchange(&mut connect(port), &get("/")).0, 503);
    assert_eq!(wait_for_file(&folder.path("weir.pid")), format!("{}\n", running.id()));
    variables.insert("MAINPID".into(), running.id().to_string());
    assert_eq!(run(&mut command(&value(&unit, "ExecReload"), &variables)).code(), Some(0));
    assert!(news().starts_with("RELOADING=1\n"));
    assert!(news().starts_with(&ready));
    assert_eq!(exchange(&mut connect(port), &get("/")).0, 503);
    let signal = value(&unit, "KillSignal").replace("SIG", "-");
    assert_eq!(run(Command::new("/bin/kill").arg(signal).arg(running.id().to_string())).code(), Some(0));
    assert_eq!(news(), "STOPPING=1");
    let code = running.finish().code().expect("a status");
    let fine = value(&unit, "SuccessExitStatus");
    assert!(code == 0 || fine.split(' ').any(|fine| fine == code.to_string()), "{code}");
}
