//! Removes the process's rights to everything that serving does not need, so that a vulnerability in it is worth little
//! to an attacker.
//!
//! Applies to the calling thread and to the threads that it starts, permanently: call it before the workers start,
//! after everything that needs what is forbidden.

use std::io;
use std::os::fd::BorrowedFd;

use crate::sys;

/// Operations that must remain permitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequiredOperations {
    /// Starting other programs.
    pub programs: bool,
    /// Executing programs that gain privileges from their files (setuid, file capabilities).
    pub gains: bool,
    /// Writing files. Core dumps, too, are written by the process itself.
    pub files: bool,
}

/// Which measures to apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// Measures that cost nothing afterwards. The system call filter adds a cost to every system call: it is loaded
    /// only if landlock cannot be applied.
    #[default]
    Free,
    /// All measures.
    Whole,
}

/// The result of each measure; `None` if the needs or the extent excluded it.
#[derive(Debug)]
pub struct Confined {
    /// Programs that are executed gain no privileges (`no_new_privs`).
    pub gains: Option<io::Result<()>>,
    /// Nothing in the file system can be written, created or executed.
    pub files: Option<io::Result<()>>,
    /// System calls that serving never makes are refused: other programs and processes, executable memory, system
    /// administration.
    pub calls: Option<io::Result<()>>,
}

/// Applies the measures that `needs` and `extent` permit. If one fails, the others are still applied. Files may still
/// be created and replaced in the folders in `written`.
pub fn confine(needs: RequiredOperations, extent: Extent, written: &[BorrowedFd<'_>]) -> Confined {
    let gains = (!needs.gains).then(sys::rights::forbid_new_privileges);
    let files = (!needs.programs && !needs.files).then(|| sys::landlock::forbid_changes(written));
    let is_free = extent == Extent::Free && files.as_ref().is_some_and(Result::is_ok);
    let calls = (!is_free).then(|| match sys::seccomp::filter(needs.programs) {
        Some(mut filter) => sys::seccomp::load_filter(&mut filter),
        None => Err(io::ErrorKind::Unsupported.into()),
    });
    Confined { gains, files, calls }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::process::Command;

    /// Confinement cannot be undone, so each case needs a process of its own: the test runs itself as a child process.
    const ASKED: &str = "WEIR_TEST_CONFINED";
    /// The folder that it may write to.
    const FOLDER: &str = "WEIR_TEST_CONFINED_FOLDER";

    fn ask(case: &str) {
        let this = std::env::current_exe().unwrap();
        let test = "confine::tests::what_serving_needs_stays_and_the_rest_goes";
        // Created and removed by the parent: the confined process cannot remove it.
        let folder = std::env::temp_dir().join(format!("weir-test-confined-{}-{case}", std::process::id()));
        let run = Command::new(this)
            .args(["--exact", test, "--nocapture"])
            .env(ASKED, case)
            .env(FOLDER, &folder)
            .output()
            .unwrap();
        let _ = std::fs::remove_dir_all(&folder);
        let told = String::from_utf8_lossy(&run.stdout).into_owned();
        assert!(
            run.status.success() && told.contains("1 passed"),
            "{case}: {told}{}",
            String::from_utf8_lossy(&run.stderr)
        );
    }

    #[test]
    fn what_serving_needs_stays_and_the_rest_goes() {
        match std::env::var(ASKED).as_deref() {
            Ok("serving") => serving(),
            Ok("programs") => programs(),
            Ok("free") => free(),
            _ => ["serving", "programs", "free"].into_iter().for_each(ask),
        }
    }

    fn serving() {
        let path = std::path::PathBuf::from(std::env::var_os(FOLDER).unwrap());
        let kept = crate::Folder::open(&path, crate::FileOwner::default()).unwrap();
        kept.write("a.pem", b"old", crate::FileOwner::default()).unwrap();
        let done = confine(RequiredOperations::default(), Extent::Whole, &[kept.descriptor()]);
        // A kernel may lack one of the measures; those that it has must work.
        let holds = |measure: &Option<io::Result<()>>| measure.as_ref().is_some_and(Result::is_ok);
        assert!(holds(&done.gains), "{done:?}");
        let refused =
            |result: io::Result<()>| result.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
        if holds(&done.files) {
            assert!(refused(std::fs::write("/tmp/weir-test-confined", "x")));
            assert!(refused(std::fs::create_dir("/tmp/weir-test-confined-directory")));
            std::fs::read("/proc/self/status").unwrap();
            kept.write("a.pem", b"new", crate::FileOwner::default()).unwrap();
            assert_eq!(kept.read("a.pem").unwrap(), b"new");
            assert!(refused(std::fs::create_dir(path.join("inside"))));
        }
        if holds(&done.calls) {
            assert!(Command::new("/bin/true").status().is_err());
            assert!(refused(sys::rights::enter_user_namespace()));
            assert!(refused(sys::rights::set_capabilities(0)));
            assert_eq!(socket_of(libc::AF_PACKET), Err(Some(libc::EAFNOSUPPORT)));
            assert_eq!(socket_of(libc::AF_INET6), Ok(()));
            assert_eq!(map(libc::PROT_READ | libc::PROT_EXEC), Err(Some(libc::EPERM)));
            assert_eq!(map(libc::PROT_READ), Ok(()));
        }
        std::thread::spawn(talk).join().unwrap();
    }

    fn socket_of(family: libc::c_int) -> Result<(), Option<i32>> {
        let made = sys::socket::create(family, libc::SOCK_DGRAM);
        made.map(drop).map_err(|error| error.raw_os_error())
    }

    fn map(protection: libc::c_int) -> Result<(), Option<i32>> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping of one page, which is unused.
        let address = unsafe { libc::mmap(std::ptr::null_mut(), 4096, protection, flags, -1, 0) };
        if address == libc::MAP_FAILED { Err(io::Error::last_os_error().raw_os_error()) } else { Ok(()) }
    }

    fn talk() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(b"x").unwrap();
        let mut byte = [0];
        server.read_exact(&mut byte).unwrap();
    }

    /// One of the two is in effect if the kernel has either, and the costly one only without the other.
    fn free() {
        let done = confine(RequiredOperations::default(), Extent::Free, &[]);
        assert_eq!(done.calls.is_none(), matches!(done.files, Some(Ok(()))), "{done:?}");
        std::thread::spawn(talk).join().unwrap();
    }

    fn programs() {
        let done = confine(RequiredOperations { programs: true, ..RequiredOperations::default() }, Extent::Free, &[]);
        assert!(done.files.is_none());
        assert!(done.calls.is_some(), "nothing else holds");
        assert!(Command::new("/bin/true").status().unwrap().success());
    }
}
