//! Network namespaces by name (`ip netns`): sockets that are opened in one belong to it for good. A worker is in another
//! one than its own for the length of a single call only, and never comes back to its loop from there.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::OnceLock;

use crate::sys;

/// Where the system keeps them.
const FOLDER: &str = "/var/run/netns";

/// A network namespace, held open.
#[derive(Debug)]
pub struct Namespace {
    handle: File,
}

impl Namespace {
    /// Finds one by its name.
    ///
    /// # Errors
    /// The file system's; `InvalidInput` for a name with a slash.
    pub fn open(name: &str) -> io::Result<Namespace> {
        if name.contains('/') {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // Entering one needs a way back: it is looked up before privileges are dropped.
        home()?;
        File::open(Path::new(FOLDER).join(name)).map(|handle| Namespace { handle })
    }

    /// Runs `action` inside, on a thread of its own that ends with it, and waits for it: for the time before the workers
    /// start.
    ///
    /// # Errors
    /// The kernel's: entering needs a privilege.
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

    /// Runs `action` inside on this thread, which is back when this returns: two system calls for a worker that opens
    /// one socket.
    ///
    /// # Errors
    /// The kernel's: entering needs a privilege; else what `action` says.
    pub(crate) fn within<R>(&self, action: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
        let home = home()?;
        sys::process::enter_network_namespace(&self.handle)?;
        // Comes back also when `action` panics.
        let _return = Return { home };
        action()
    }
}

/// The namespace that the process began in.
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
        // A thread that could enter one can enter the other. If that ever fails, everything that this thread opens from now on
        // would be in the wrong network: better nothing at all.
        if sys::process::enter_network_namespace(self.home).is_err() {
            std::process::abort();
        }
    }
}
