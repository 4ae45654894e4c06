//! The network jail: every browser in a network namespace of its own, whose only ways out are sockets of the proxy.
//!
//! A namespace has to be entered by the process itself, before it becomes the browser. So the service starts a
//! *launcher*, which is its own program called in another way ([`launcher`]) and runs as the browser's user from its
//! first instruction. It makes the namespaces, raises their loopback interface, binds the proxy's sockets there, hands
//! them to the service, gives up what it was for, and becomes the browser. A socket stays in the namespace it was made
//! in, so the service accepts on it from outside, and dials from outside.
//!
//! `launcher` is the process inside, `loopback` raises the interface, `handover` carries the sockets, `cell` is what the
//! service knows of it.
//!
//! *Invariant:* a browser that cannot be jailed as it should be does not start; nothing here falls back. Whether one
//! may run without a jail is decided once, at the start of the service, from [`NetworkJail`].

mod cell;
mod handover;
mod launcher;
mod loopback;

pub(crate) use cell::{Launcher, Sockets};
pub use launcher::launcher;

/// The first argument by which a program knows that it is called as the launcher.
const COMMAND: &str = "jailed-browser";

/// Where the proxy that refuses everything listens inside: the namespace is empty, so its port can be known before.
pub(crate) const DENY_PORT: u16 = 3128;

/// Whether browsers are to be jailed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkJail {
    /// Where it works, which is tried with the first browser.
    Auto,
    /// Or there is no browser.
    Required,
    /// Not at all: the egress proxy and the browser's flags stand alone.
    Off,
}

/// Whether browsers are jailed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Jail {
    /// They are.
    Jailed,
    /// They are not, because nobody wants it.
    Unwanted,
    /// They are not, because it does not work here.
    Impossible {
        /// What stands in the way.
        why: String,
    },
}

impl Jail {
    /// What to do where it does not work.
    pub const REMEDY: &'static str = "Allow unprivileged user and network namespaces (user.max_user_namespaces, \
        user.max_net_namespaces, a container's seccomp profile, AppArmor), or keep the browser's user off the network \
        with nftables; docs/OPERATING.md says how.";
}

impl std::fmt::Display for Jail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Jailed => f.write_str("each browser has a network of its own that leads to the egress proxy alone"),
            Self::Unwanted => f.write_str("off by configuration: browsers are in this machine's network"),
            Self::Impossible { why } => write!(f, "not here, so browsers are in this machine's network: {why}"),
        }
    }
}
