//! What the process gives up before it serves, and what it keeps (configuration manual, section 3.1).

use crate::span::Spanned;

/// A user or a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountSpec {
    /// By name: looked up when the configuration is loaded.
    Name(String),
    /// By number.
    Number(u32),
}

/// What `global` says about the rights of the process.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RightsSpec {
    /// `user`, `uid`.
    pub user: Option<Spanned<AccountSpec>>,
    /// `group`, `gid`.
    pub group: Option<Spanned<AccountSpec>>,
    /// `chroot`.
    pub chroot: Option<ChrootSpec>,
    /// `setcap`: capabilities that are kept when the user changes.
    pub capabilities: Vec<Capability>,
    /// `set-dumpable`: `Some(false)` takes the permission away.
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
    /// A directory without a name, made for the process alone.
    Auto,
    /// A directory.
    Directory(String),
}

/// What `setcap` may name.
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
    /// Every one, in the order of HAProxy's messages.
    pub const ALL: [Self; 4] = [Self::NetRaw, Self::NetAdmin, Self::NetBindService, Self::SysAdmin];

    /// The name in `setcap`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NetRaw => "cap_net_raw",
            Self::NetAdmin => "cap_net_admin",
            Self::NetBindService => "cap_net_bind_service",
            Self::SysAdmin => "cap_sys_admin",
        }
    }
}

/// `confine`, a keyword of Weir's own: whether the process forbids itself what serving does not need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Confinement {
    /// What costs nothing while it serves, as far as the kernel helps; what it cannot do is no error.
    #[default]
    Auto,
    /// Not at all.
    Off,
    /// Completely, or the process does not start.
    Strict,
}
