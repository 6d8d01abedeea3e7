//! Network namespaces by name (`ip netns`): sockets that are opened in one belong to it for good.
//!
//! A worker must never change its own namespace: what it opens next would be lost there.

use std::fs::File;
use std::io;
use std::path::Path;

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
}
