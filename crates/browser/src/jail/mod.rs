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

/// Linux counts the processes and threads of a user in each user namespace since this version.
const COUNTS_TASKS: (u32, u32) = (5, 14);

/// Whether the kernel limits the number of processes and threads of each jail.
pub(crate) fn counts_tasks() -> bool {
    is_at_least(rustix::system::uname().release().to_str().unwrap_or_default(), COUNTS_TASKS)
}

fn is_at_least(release: &str, (major, minor): (u32, u32)) -> bool {
    let mut numbers = release.split(|of: char| !of.is_ascii_digit()).map_while(|number| number.parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (major, minor)
}

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
        with nftables; docs/operating/browser.md says how.";
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_releases_are_compared_by_their_numbers() {
        for (release, expected) in [
            ("6.18.44-fc-v657", true),
            ("5.14.0", true),
            ("5.13.9-x", false),
            ("5.4", false),
            ("10", true),
            ("", false),
        ] {
            assert_eq!(is_at_least(release, COUNTS_TASKS), expected, "{release}");
        }
    }
}
