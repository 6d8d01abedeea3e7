//! Network namespaces by name (`ip netns`): sockets opened in one belong to it permanently. A worker is in a namespace
//! other than its own only during a single call, and must never return to its event loop in one.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::OnceLock;

use crate::sys;

/// The folder of the system's named namespaces.
const FOLDER: &str = "/var/run/netns";

/// An open network namespace.
#[derive(Debug)]
pub struct Namespace {
    handle: File,
}

impl Namespace {
    /// Opens a namespace by its name.
    ///
    /// # Errors
    /// From the file system; `InvalidInput` for a name with a slash.
    pub fn open(name: &str) -> io::Result<Namespace> {
        if name.contains('/') {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // Leaving a namespace needs the original one: it is opened before privileges are dropped.
        home()?;
        File::open(Path::new(FOLDER).join(name)).map(|handle| Namespace { handle })
    }

    /// Runs `action` inside, on a thread of its own, and waits for it: for use before the workers start.
    ///
    /// # Errors
    /// From the kernel: entering needs a privilege.
    pub fn run<T: Send>(&self, action: impl FnOnce() -> T + Send) -> io::Result<T> {
        std::thread::scope(|scope| {
            let inside = std::thread::Builder::new().name("namespace".to_owned());
            let inside = inside.spawn_scoped(scope, || {
                sys::process::enter_network_namespace(&self.handle)?;
                Ok(action())
            })?;
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Runs `action` inside on this thread, and returns to the original namespace afterwards: two system calls for a
    /// worker that opens one socket.
    ///
    /// # Errors
    /// From the kernel: entering needs a privilege; otherwise the error of `action`.
    pub(crate) fn within<R>(&self, action: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        let home = home()?;
        sys::process::enter_network_namespace(&self.handle)?;
        // Returns to the original namespace even if `action` panics.
        let _return = Return { home };
        action()
    }
}

/// Returns the namespace that the process started in.
fn home() -> io::Result<&'static File> {
    static HOME: OnceLock<File> = OnceLock::new();
    if let Some(home) = HOME.get() {
        return Ok(home);
    }
    let opened = File::open("/proc/self/ns/net")?;
    Ok(HOME.get_or_init(|| opened))
}

struct Return {
    home: &'static File,
}

impl Drop for Return {
    fn drop(&mut self) {
        // A thread that could enter one namespace can enter the other. If that ever failed, everything that this thread
        // opens later would be in the wrong network: aborting is preferred.
        if sys::process::enter_network_namespace(self.home).is_err() {
            std::process::abort();
        }
    }
}
