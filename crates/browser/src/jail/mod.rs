//! The network jail: each browser runs in its own network namespace, where sockets of the proxy are the only way out.
//!
//! A process must enter a namespace itself, before it executes the browser. The service therefore starts a *launcher*:
//! its own program in another mode ([`launcher`]), running as the browser's user from the start. The launcher creates
//! the namespaces, brings up the loopback interface, binds the proxy's sockets inside, sends them to the service, drops
//! its capabilities, and executes the browser. A socket stays in the namespace it was created in, so the service
//! accepts and dials from outside.
//!
//! `launcher` is the process inside, `loopback` brings up the interface, `handover` transfers the sockets, and `host`
//! is the service's side.
//!
//! *Invariant:* a browser that cannot be jailed as configured does not start. There is no fallback here. Whether
//! browsers may run without a jail is decided once, at the start of the service, from [`NetworkJail`].

mod handover;
mod host;
mod launcher;
mod loopback;

pub(crate) use host::{Launcher, Sockets};
pub use launcher::launcher;

/// The first argument of a program that is started as the launcher.
const COMMAND: &str = "jailed-browser";

/// Port of the deny-all proxy inside the jail. It can be fixed because the namespace is empty.
pub(crate) const DENY_PORT: u16 = 3128;

/// Whether browsers are to be jailed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkJail {
    /// If possible, which the first browser's start shows.
    Auto,
    /// Always. Without a jail the start fails.
    Required,
    /// Never. The egress proxy and the browser's flags are the only protection.
    Off,
}

/// Whether browsers are jailed, and why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Jail {
    /// Browsers are jailed.
    Jailed,
    /// Disabled by configuration.
    Disabled,
    /// Jails cannot be created on this machine.
    Unavailable {
        /// The cause.
        why: String,
    },
}

impl Jail {
    /// What to do if jails are unavailable.
    pub const REMEDY: &'static str = "Allow unprivileged user and network namespaces (user.max_user_namespaces, \
        user.max_net_namespaces, a container's seccomp profile, AppArmor), or keep the browser's user off the network \
        with nftables; docs/OPERATING.md says how.";
}

impl std::fmt::Display for Jail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Jailed => f.write_str("each browser has a network of its own that leads to the egress proxy alone"),
            Self::Disabled => f.write_str("off by configuration: browsers are in this machine's network"),
            Self::Unavailable { why } => write!(f, "not here, so browsers are in this machine's network: {why}"),
        }
    }
}
