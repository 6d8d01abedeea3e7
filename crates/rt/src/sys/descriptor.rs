//! A descriptor of a socket, which is closed as [`crate::SocketCalls`] says.
//!
//! It must never be closed twice, nor while its number is in use.

use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::Deref;
use std::os::fd::{IntoRawFd, OwnedFd, RawFd};

use super::calls;

/// Returns the file type and permissions of a descriptor (`st_mode`); `None`: it is not open.
pub(crate) fn file_mode(fd: RawFd) -> Option<libc::mode_t> {
    let mut status = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the pointer is to a place as large as the type.
    let result = unsafe { libc::fstat(fd, status.as_mut_ptr()) };
    // SAFETY: all bytes zero is a valid value of this plain structure, and the kernel writes nothing but valid ones.
    (result == 0).then(|| unsafe { status.assume_init() }.st_mode)
}

/// A descriptor with a single owner. Dropping it closes it.
#[derive(Debug)]
pub(crate) struct Descriptor(ManuallyDrop<OwnedFd>);

impl From<OwnedFd> for Descriptor {
    #[inline]
    fn from(fd: OwnedFd) -> Descriptor {
        Descriptor(ManuallyDrop::new(fd))
    }
}

impl From<Descriptor> for OwnedFd {
    fn from(descriptor: Descriptor) -> OwnedFd {
        let mut descriptor = ManuallyDrop::new(descriptor);
        // SAFETY: the descriptor is not used again, and its `drop` never runs.
        unsafe { ManuallyDrop::take(&mut descriptor.0) }
    }
}

impl Deref for Descriptor {
    type Target = OwnedFd;

    #[inline]
    fn deref(&self) -> &OwnedFd {
        &self.0
    }
}

impl Drop for Descriptor {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the descriptor is not used again.
        let fd = unsafe { ManuallyDrop::take(&mut self.0) }.into_raw_fd();
        // SAFETY: no pointers are passed, and the number has no other owner. Whatever the call returns, it is free
        // then.
        unsafe { calls::close(fd) };
    }
}
