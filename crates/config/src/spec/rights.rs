//! Privileges that the process drops or keeps before it serves (configuration manual, section 3.1).

use crate::span::Spanned;

/// A user or a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountSpec {
    /// By name, which is looked up when the configuration is loaded.
    Name(String),
    /// By number.
    Number(u32),
}

/// Privileges of the process in the `global` section.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RightsSpec {
    /// `user`, `uid`.
    pub user: Option<Spanned<AccountSpec>>,
    /// `group`, `gid`.
    pub group: Option<Spanned<AccountSpec>>,
    /// `chroot`.
    pub chroot: Option<ChrootSpec>,
    /// `setcap`: capabilities kept when the user changes.
    pub capabilities: Vec<Capability>,
    /// `set-dumpable`: `Some(false)` clears the process's dumpable attribute.
    pub dumpable: Option<bool>,
    /// `insecure-fork-wanted`.
    pub fork_wanted: bool,
    /// `insecure-setuid-wanted`.
    pub setuid_wanted: bool,
    /// `confine`.
    pub confine: Confinement,
}

/// `chroot`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChrootSpec {
    /// An anonymous directory, created for this process only.
    Auto,
    /// A directory.
    Directory(String),
}

/// Capabilities that `setcap` accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// `cap_net_raw`.
    NetRaw,
    /// `cap_net_admin`.
    NetAdmin,
    /// `cap_net_bind_service`.
    NetBindService,
    /// `cap_sys_admin`.
    SysAdmin,
}

impl Capability {
    /// All capabilities, in the order of HAProxy's messages.
    pub const ALL: [Self; 4] = [Self::NetRaw, Self::NetAdmin, Self::NetBindService, Self::SysAdmin];

    /// Returns the name in `setcap`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NetRaw => "cap_net_raw",
            Self::NetAdmin => "cap_net_admin",
            Self::NetBindService => "cap_net_bind_service",
            Self::SysAdmin => "cap_sys_admin",
        }
    }
}

/// `confine`, a keyword of Weir only: whether the process gives up permissions that it does not need to serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Confinement {
    /// Restrictions without run-time cost, as far as the kernel supports them; missing support is not an error.
    #[default]
    Auto,
    /// Not at all.
    Off,
    /// All restrictions; startup fails if one is not supported.
    Strict,
}
