//! Reloads in place of a worker that has dropped its privileges (docs/reload.md): a reader started by the master reads
//! the files. These tests need root, and openssl where certificates change.

use crate::reload::{Service, named};
use crate::support::{Folder, connect, free_port, weir};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Creates a folder readable only by root, with a chroot folder in it; `None`: the test is skipped.
fn guarded() -> Option<(Folder, String)> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: not root, nothing can be dropped");
        return None;
    }
    let folder = Folder::new();
    std::fs::create_dir(folder.path("jail")).expect("a free name");
    std::fs::create_dir(folder.path("secret")).expect("a free name");
    std::fs::set_permissions(folder.path("secret"), std::fs::Permissions::from_mode(0o700)).expect("ours");
    let dropped = format!("    chroot {}\n    uid 65534\n    gid 65534\n", folder.path("jail").display());
    Some((folder, dropped))
}

/// Reloads in place, which must succeed, and returns the messages.
fn reload_in_place(service: &Service, worker: u32) -> String {
    let answer = service.reload();
    assert!(answer.starts_with("Success=1\n") && answer.contains("Reloaded in place"), "{answer}");
    assert_eq!(service.worker(), worker);
    answer
}

#[test]
fn files_and_addresses_reach_a_worker_in_a_jail() {
    let Some((folder, dropped)) = guarded() else { return };
    let secret = |name: &str| folder.path("secret").join(name).display().to_string();
    let mapped = |port: &str| {
        let rule = format!(
            "    http-request return status 200 content-type text/plain lf-string %[path,map({})]\n",
            secret("map")
        );
        format!("frontend web\n    bind 127.0.0.1:PORT{port}\n{rule}    errorfile 503 {}\n", secret("503"))
    };
    folder.write("secret/map", "/ one\n");
    folder.write("secret/503", "HTTP/1.0 503 Service Unavailable\r\n\r\n");
    let (map, sections) = (secret("map"), mapped(""));
    let other = free_port();
    let more = mapped(&format!("\n    bind 127.0.0.1:{other}"));
    let service = Service::start_with(&dropped, &sections, folder);
    let worker = service.worker();
    let mut kept = connect(service.port);
    service.is_answered_by(&mut kept, "one");
    std::fs::write(&map, "/ two\n").expect("root writes");
    reload_in_place(&service, worker);
    service.is_answered_by(&mut connect(service.port), "two");
    service.is_answered_by(&mut kept, "one");
    service.write(&dropped, &more);
    let answer = reload_in_place(&service, worker);
    assert!(answer.contains(&format!("address 127.0.0.1:{other} of proxy web is added")), "{answer}");
    service.is_answered_by(&mut connect(other), "two");
    // An unprivileged user cannot listen on that port.
    let low = more.replace(&other.to_string(), "817");
    service.write(&dropped, &low);
    let answer = service.reload();
    if std::net::TcpListener::bind("127.0.0.1:817").is_ok() {
        assert!(!answer.contains("Reloaded in place"), "{answer}");
    } else {
        assert!(answer.contains("Reloaded in place"), "{answer}");
        service.is_answered_by(&mut connect(817), "two");
        assert_eq!(service.worker(), worker);
    }
}

#[test]
fn an_error_is_told_with_its_place_where_the_worker_cannot_read() {
    let Some((folder, dropped)) = guarded() else { return };
    let service = Service::start_with(&dropped, &named("one"), folder);
    let worker = service.worker();
    service.write(&dropped, &named("two").replace("status 200", "status lots"));
    let answer = service.reload();
    assert!(answer.starts_with("Success=0\n"), "{answer}");
    assert!(answer.contains("service.cfg:") && answer.contains("lots") && answer.contains("^"), "{answer}");
    let missing = service.folder.path("secret/nothing").display().to_string();
    service
        .write(&dropped, &named("two").replace("http-request", &format!("errorfile 503 {missing}\n    http-request")));
    let answer = service.reload();
    assert!(answer.starts_with("Success=0\n") && answer.contains(&missing), "{answer}");
    std::fs::remove_file(service.folder.path("service.cfg")).expect("it is there");
    let answer = service.reload();
    assert!(answer.contains("Cannot open configuration file/directory"), "{answer}");
    service.write(&dropped, &named("three"));
    reload_in_place(&service, worker);
    service.is_answered_by(&mut connect(service.port), "three");
    // The privileges to drop cannot change.
    service.write("    uid 65534\n", &named("four"));
    let answer = service.reload();
    assert!(answer.starts_with("Success=1\n") && answer.contains("what the process gives up is different"), "{answer}");
}

#[test]
fn names_of_accounts_and_hosts_are_looked_up_for_a_worker_in_a_jail() {
    let Some((folder, dropped)) = guarded() else { return };
    let by_name = dropped.replace("uid 65534", "user nobody").replace("gid 65534", "group nogroup");
    let config = folder.write("names.cfg", &format!("global\n{by_name}{}", named("one").replace("PORT", "1")));
    if weir(["-c", "-f", &config]).code() != Some(0) {
        eprintln!("SKIPPED: there is no user nobody or no group nogroup");
        return;
    }
    let balanced =
        "frontend web\n    bind 127.0.0.1:PORT\n    default_backend app\nbackend app\n    server s1 localhost:1\n";
    let service = Service::start_with(&by_name, balanced, folder);
    let worker = service.worker();
    service.write(&by_name, &format!("{balanced}    server s2 localhost:2\n"));
    let answer = reload_in_place(&service, worker);
    assert!(answer.contains("server s2 of proxy app is added"), "{answer}");
}

/// Creates a certificate for a name, with its key; `None`: openssl is missing.
fn certificate(path: &Path, name: &str) -> Option<()> {
    let path = path.display();
    let line = format!(
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout {path} -out {path}.crt -days 30 -subj /CN={name}"
    );
    let made = Command::new("openssl").args(line.split(' ')).stderr(Stdio::null()).status();
    let Ok(made) = made else {
        eprintln!("SKIPPED: there is no openssl");
        return None;
    };
    assert!(made.success());
    let crt = std::fs::read_to_string(format!("{path}.crt")).expect("made");
    let key = std::fs::read_to_string(path.to_string()).expect("made");
    std::fs::write(path.to_string(), crt + &key).expect("ours");
    Some(())
}

/// Returns the name in the certificate of an address.
fn shown(port: u16) -> String {
    let done = Command::new("openssl")
        .args(["s_client", "-connect", &format!("127.0.0.1:{port}")])
        .stdin(Stdio::null())
        .output()
        .expect("openssl is there");
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    text.lines().find(|line| line.starts_with("subject=")).unwrap_or(&text).to_owned()
}

#[test]
fn certificates_change_for_a_worker_in_a_jail() {
    let Some((folder, dropped)) = guarded() else { return };
    let path = folder.path("secret/site.pem");
    if certificate(&path, "one.example").is_none() {
        return;
    }
    let sections = named("one").replace("PORT", &format!("PORT ssl crt {}", path.display()));
    let service = Service::start_with(&dropped, &sections, folder);
    let worker = service.worker();
    assert!(shown(service.port).contains("one.example"));
    certificate(&path, "two.example").expect("openssl is there");
    reload_in_place(&service, worker);
    assert!(shown(service.port).contains("two.example"), "{}", shown(service.port));
}
