//! Converts `Address` to and from the kernel's socket addresses.

use std::ffi::OsStr;
use std::io;
use std::mem;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use crate::address::Address;

/// A socket address in the kernel's representation.
pub(crate) struct RawAddress {
    storage: libc::sockaddr_storage,
    pub(crate) length: libc::socklen_t,
}

const PATH_AT: usize = mem::offset_of!(libc::sockaddr_un, sun_path);
/// Size of `sun_path` in bytes.
const LONGEST_PATH: usize = mem::size_of::<libc::sockaddr_un>() - PATH_AT;

impl RawAddress {
    /// Returns space for an address that the kernel writes.
    pub(crate) fn room() -> RawAddress {
        // SAFETY: all bytes zero is a valid value of this plain structure.
        let storage: libc::sockaddr_storage = unsafe { mem::zeroed() };
        RawAddress { storage, length: mem::size_of::<libc::sockaddr_storage>() as libc::socklen_t }
    }

    pub(crate) fn pointer(&self) -> *const libc::sockaddr {
        (&raw const self.storage).cast()
    }

    pub(crate) fn pointer_mut(&mut self) -> *mut libc::sockaddr {
        (&raw mut self.storage).cast()
    }

    pub(crate) fn storage_pointer(&mut self) -> *mut libc::c_void {
        (&raw mut self.storage).cast()
    }

    /// Encodes an address. An unnamed one cannot be bound or connected to.
    pub(crate) fn encode(address: &Address) -> io::Result<RawAddress> {
        match address {
            Address::Inet(SocketAddr::V4(v4)) => Ok(RawAddress::of(libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                sin_zero: [0; 8],
            })),
            Address::Inet(SocketAddr::V6(v6)) => Ok(RawAddress::of(libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            })),
            Address::Unix(path) => RawAddress::unix(path.as_os_str().as_bytes(), 0),
            Address::Abstract(name) => RawAddress::unix(name, 1),
            Address::Unnamed | Address::Carrier(_) => {
                Err(io::Error::new(io::ErrorKind::InvalidInput, "an unnamed address"))
            }
        }
    }

    fn of<T: Copy>(value: T) -> RawAddress {
        const { assert!(mem::size_of::<T>() <= mem::size_of::<libc::sockaddr_storage>()) };
        let mut raw = RawAddress::room();
        // SAFETY: the storage is large enough (checked above) and aligned for every kind of socket address.
        unsafe { raw.storage_pointer().cast::<T>().write(value) };
        raw.length = mem::size_of::<T>() as libc::socklen_t;
        raw
    }

    /// Encodes a UNIX address: `name` after `leading` NUL bytes.
    fn unix(name: &[u8], leading: usize) -> io::Result<RawAddress> {
        let named = leading + name.len();
        let path = leading == 0;
        if name.is_empty() || named + usize::from(path) > LONGEST_PATH || (path && name.contains(&0)) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a name for a UNIX socket"));
        }
        let mut sun_path = [0; LONGEST_PATH];
        for (place, byte) in sun_path[leading..].iter_mut().zip(name) {
            *place = *byte as libc::c_char;
        }
        let mut raw = RawAddress::of(libc::sockaddr_un { sun_family: libc::AF_UNIX as libc::sa_family_t, sun_path });
        raw.length = (PATH_AT + named + usize::from(path)) as libc::socklen_t;
        Ok(raw)
    }

    /// Returns the bytes that the kernel wrote.
    fn bytes(&self) -> &[u8] {
        let length = (self.length as usize).min(mem::size_of::<libc::sockaddr_storage>());
        // SAFETY: the storage is `length` bytes at least, and all of them are initialised.
        unsafe { std::slice::from_raw_parts((&raw const self.storage).cast(), length) }
    }

    /// Decodes the address that the kernel wrote; an unknown family counts as unnamed.
    pub(crate) fn decode(&self) -> Address {
        match libc::c_int::from(self.storage.ss_family) {
            libc::AF_INET => {
                // SAFETY: the family determines what the storage holds, and every byte of it is initialised.
                let v4 = unsafe { self.pointer().cast::<libc::sockaddr_in>().read() };
                let ip = Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes());
                Address::Inet(SocketAddr::V4(SocketAddrV4::new(ip, u16::from_be(v4.sin_port))))
            }
            libc::AF_INET6 => {
                // SAFETY: as above.
                let v6 = unsafe { self.pointer().cast::<libc::sockaddr_in6>().read() };
                let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
                let (port, flow, scope) = (u16::from_be(v6.sin6_port), v6.sin6_flowinfo, v6.sin6_scope_id);
                Address::Inet(SocketAddr::V6(SocketAddrV6::new(ip, port, flow, scope)))
            }
            libc::AF_UNIX => decode_unix(self.bytes().get(PATH_AT..).unwrap_or_default()),
            _ => Address::Unnamed,
        }
    }
}

fn decode_unix(name: &[u8]) -> Address {
    match name {
        [] => Address::Unnamed,
        [0, name @ ..] => Address::Abstract(name.to_vec()),
        path => {
            let end = path.iter().position(|byte| *byte == 0).unwrap_or(path.len());
            Address::Unix(PathBuf::from(OsStr::from_bytes(&path[..end])))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_address_survives_the_kernels_form() {
        let rows = [
            Address::Inet("127.0.0.1:8080".parse().unwrap()),
            Address::Inet("[2001:db8::7]:443".parse().unwrap()),
            Address::Unix(PathBuf::from("/run/weir.sock")),
            Address::Unix(PathBuf::from("x".repeat(107))),
            Address::Abstract(b"name".to_vec()),
            Address::Abstract(vec![b'a'; 107]),
            Address::Abstract({
                let mut padded = vec![0; 107];
                padded[0] = b'p';
                padded
            }),
        ];
        for address in rows {
            assert_eq!(RawAddress::encode(&address).unwrap().decode(), address);
        }
    }

    #[test]
    fn names_that_do_not_fit_are_refused() {
        let long = PathBuf::from("x".repeat(108));
        for address in [
            Address::Unix(long),
            Address::Unix(PathBuf::new()),
            Address::Unix(PathBuf::from("a\0b")),
            Address::Abstract(vec![b'a'; 108]),
            Address::Unnamed,
        ] {
            assert!(RawAddress::encode(&address).is_err(), "{address:?}");
        }
    }
}
