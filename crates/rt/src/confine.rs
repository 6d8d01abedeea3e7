//! The process forbids itself what serving does not need, so that a vulnerability in it is worth little to an attacker.
//!
//! It holds for the calling thread and those that it starts, for good: call it before the workers start, behind
//! everything that needs what is forbidden.

use std::io;
use std::os::fd::BorrowedFd;

use crate::sys;

/// What must stay possible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Starting other programs.
    pub programs: bool,
    /// Programs that gain rights from their files.
    pub gains: bool,
    /// Writing files: the core of a crash is one that the process makes itself.
    pub files: bool,
}

/// How far to go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// What costs nothing afterwards. The filter of system calls costs each of them something: it is loaded only where
    /// landlock does not hold.
    #[default]
    Free,
    /// Everything.
    Whole,
}

/// What came of it, measure by measure; `None` where the needs or the extent excluded one.
#[derive(Debug)]
pub struct Confined {
    /// No program that is executed gets more rights than this process.
    pub gains: Option<io::Result<()>>,
    /// Nothing in the file system can be written, made or executed.
    pub files: Option<io::Result<()>>,
    /// System calls that serving never makes are refused: other programs and processes, executable memory, the
    /// administration of the machine.
    pub calls: Option<io::Result<()>>,
}

/// Confines the process as far as it may be. What one measure fails at does not keep the others from being taken. In folders
/// that are `written`, files may be made and replaced still.
pub fn confine(needs: Needs, extent: Extent, written: &[BorrowedFd<'_>]) -> Confined {
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

    /// Confinement cannot be undone, so each case needs a process of its own: the test starts itself again.
    const ASKED: &str = "WEIR_TEST_CONFINED";
    /// Where it may write.
    const FOLDER: &str = "WEIR_TEST_CONFINED_FOLDER";

    fn ask(case: &str) {
        let this = std::env::current_exe().unwrap();
        let test = "confine::tests::what_serving_needs_stays_and_the_rest_goes";
        // What is confined cannot remove it.
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
        let kept = crate::Folder::open(&path, (None, None)).unwrap();
        kept.write("a.pem", b"old", (None, None)).unwrap();
        let done = confine(Needs::default(), Extent::Whole, &[kept.descriptor()]);
        // A kernel without one of them is no fault of ours; what it has must hold.
        let holds = |measure: &Option<io::Result<()>>| measure.as_ref().is_some_and(Result::is_ok);
        assert!(holds(&done.gains), "{done:?}");
        let refused =
            |result: io::Result<()>| result.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
        if holds(&done.files) {
            assert!(refused(std::fs::write("/tmp/weir-test-confined", "x")));
            assert!(refused(std::fs::create_dir("/tmp/weir-test-confined-directory")));
            std::fs::read("/proc/self/status").unwrap();
            kept.write("a.pem", b"new", (None, None)).unwrap();
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

    /// One of both holds wherever the kernel has one, and the dear one only without the other.
    fn free() {
        let done = confine(Needs::default(), Extent::Free, &[]);
        assert_eq!(done.calls.is_none(), matches!(done.files, Some(Ok(()))), "{done:?}");
        std::thread::spawn(talk).join().unwrap();
    }

    fn programs() {
        let done = confine(Needs { programs: true, ..Needs::default() }, Extent::Free, &[]);
        assert!(done.files.is_none());
        assert!(done.calls.is_some(), "nothing else holds");
        assert!(Command::new("/bin/true").status().unwrap().success());
    }
}
