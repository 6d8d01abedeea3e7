//! The system call filter, as a BPF program for the kernel.
//!
//! Nothing here may decide when it is loaded. Calls that a filter never examines cost next to nothing: the kernel
//! determines in advance which numbers are always allowed.

use std::io;
use std::mem::offset_of;

use super::check;

/// The architecture's identifier in the data of every call, on architectures with a known filter.
#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: Option<u32> = Some(0xC000_003E);
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: Option<u32> = Some(0xC000_00B7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURE: Option<u32> = None;

/// On x86, numbers from here on belong to another calling convention (x32).
#[cfg(target_arch = "x86_64")]
const FOREIGN_NUMBERS: Option<u32> = Some(0x4000_0000);
#[cfg(not(target_arch = "x86_64"))]
const FOREIGN_NUMBERS: Option<u32> = None;

/// Calls that serving never needs, and that would be useful to a hijacked process.
const DENIED: &[libc::c_long] = &[
    // Memory of other programs.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    // Mounts, and ways around the file system's permissions.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_mknodat,
    libc::SYS_fanotify_init,
    libc::SYS_quotactl,
    libc::SYS_acct,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    // Users and privileges: already final.
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_setgroups,
    libc::SYS_capset,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // System administration.
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_personality,
    // Large and rarely used parts of the kernel.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    libc::SYS_shmget,
    libc::SYS_msgget,
    libc::SYS_semget,
];

/// Like [`DENIED`], for calls that only this architecture has.
#[cfg(target_arch = "x86_64")]
const DENIED_HERE: &[libc::c_long] = &[
    libc::SYS_kexec_file_load,
    libc::SYS_mknod,
    libc::SYS_modify_ldt,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_uselib,
    libc::SYS__sysctl,
    libc::SYS_lookup_dcookie,
];
#[cfg(not(target_arch = "x86_64"))]
const DENIED_HERE: &[libc::c_long] = &[];

/// Calls that start another program or process.
const PROGRAMS: &[libc::c_long] = &[libc::SYS_execve, libc::SYS_execveat];
#[cfg(target_arch = "x86_64")]
const FORKS: &[libc::c_long] = &[libc::SYS_fork, libc::SYS_vfork];
#[cfg(not(target_arch = "x86_64"))]
const FORKS: &[libc::c_long] = &[];

/// Calls that may make memory executable, with the permission as their third argument.
const PROTECTIONS: &[libc::c_long] = &[libc::SYS_mmap, libc::SYS_mprotect, libc::SYS_pkey_mprotect];

/// Permitted address families of sockets.
const FAMILIES: &[libc::c_int] = &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const IF_ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const ANSWER: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

const fn step(code: u16, value: u32, then: u8, otherwise: u8) -> libc::sock_filter {
    libc::sock_filter { code, jt: then, jf: otherwise, k: value }
}

const fn load(offset: usize) -> libc::sock_filter {
    step(LOAD, offset as u32, 0, 0)
}

/// Offset of the lower half of an argument.
const fn argument(index: usize) -> usize {
    let big_endian = if cfg!(target_endian = "big") { 4 } else { 0 };
    offset_of!(libc::seccomp_data, args) + index * 8 + big_endian
}

const fn answer(what: u32) -> libc::sock_filter {
    step(ANSWER, what, 0, 0)
}

const fn refuse(error: libc::c_int) -> libc::sock_filter {
    answer(libc::SECCOMP_RET_ERRNO | error as u32)
}

const ALLOW: libc::sock_filter = answer(libc::SECCOMP_RET_ALLOW);

/// Builds the filter program; `None`: the architecture is unknown. `programs` permits other programs and processes.
pub(crate) fn filter(programs: bool) -> Option<Vec<libc::sock_filter>> {
    let number = load(offset_of!(libc::seccomp_data, nr));
    let mut out = vec![
        load(offset_of!(libc::seccomp_data, arch)),
        step(IF_EQUAL, ARCHITECTURE?, 1, 0),
        answer(libc::SECCOMP_RET_KILL_PROCESS),
        number,
    ];
    if let Some(foreign) = FOREIGN_NUMBERS {
        out.extend([step(IF_AT_LEAST, foreign, 0, 1), refuse(libc::ENOSYS)]);
    }
    let mut denied: Vec<libc::c_long> = [DENIED, DENIED_HERE].concat();
    if !programs {
        denied.extend(PROGRAMS.iter().chain(FORKS));
        // The flags of `clone3` are in memory, which filters cannot read. Libraries fall back to `clone`.
        out.extend([step(IF_EQUAL, libc::SYS_clone3 as u32, 0, 1), refuse(libc::ENOSYS)]);
        out.extend([
            step(IF_EQUAL, libc::SYS_clone as u32, 0, 4),
            load(argument(0)),
            step(IF_ANY_BIT, libc::CLONE_THREAD as u32, 1, 0),
            refuse(libc::EPERM),
            ALLOW,
        ]);
    }
    for call in denied {
        out.extend([step(IF_EQUAL, call as u32, 0, 1), refuse(libc::EPERM)]);
    }
    // A filter persists across the start of another program, whose libraries have to be loaded.
    for call in PROTECTIONS.iter().filter(|_| !programs) {
        out.extend([
            step(IF_EQUAL, *call as u32, 0, 4),
            load(argument(2)),
            step(IF_ANY_BIT, libc::PROT_EXEC as u32, 0, 1),
            refuse(libc::EPERM),
            ALLOW,
        ]);
    }
    out.extend([step(IF_EQUAL, libc::SYS_socket as u32, 0, FAMILIES.len() as u8 * 2 + 2), load(argument(0))]);
    for family in FAMILIES {
        out.extend([step(IF_EQUAL, *family as u32, 0, 1), ALLOW]);
    }
    out.extend([refuse(libc::EAFNOSUPPORT), ALLOW]);
    Some(out)
}

/// Loads a filter for this thread and those that it starts, permanently. The thread must have set `no_new_privs`.
pub(crate) fn load_filter(filter: &mut [libc::sock_filter]) -> io::Result<()> {
    let length = u16::try_from(filter.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let program = libc::sock_fprog { len: length, filter: filter.as_mut_ptr() };
    let (mode, flags) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW);
    // SAFETY: the kernel reads the program, which points to `filter` with its length.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) };
    check(result as libc::c_int).map(drop)
}
