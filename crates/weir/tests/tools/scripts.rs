//! The scripts of `bench/`. Must never measure anything.

use std::path::Path;

/// The scripts of `bench/` start: each prints its help.
#[test]
fn scripts_print_their_help() {
    if std::process::Command::new("python3").arg("-V").output().is_err() {
        eprintln!("SKIPPED: python3 is not installed");
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench");
    let scripts = std::fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path());
    for script in scripts.filter(|path| path.extension().is_some_and(|extension| extension == "py")) {
        let done =
            std::process::Command::new("python3").arg("-B").arg(&script).arg("--help").output().expect("python3");
        assert!(done.status.success(), "{}: {}", script.display(), String::from_utf8_lossy(&done.stderr));
    }
}
