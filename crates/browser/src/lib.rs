//! The Chromium renderer: browser processes, prepared contexts, page capture, and the egress proxy, which is the
//! browser's only route to the network.
//!
//! `process` starts and ends one browser process. `jail` isolates it from the network. `cdp` is the DevTools protocol
//! client. `supervisor` keeps browsers running and leases tabs. `page` captures one grab in one tab. `proxy` is the
//! egress proxy. `blocklists` are the operator's filter lists. `probe` checks whether browsers can run on this machine, and
//! `selftest` whether a page can bypass the guard. Add a new way to capture to `page`, beside `page::capture`. Add a
//! new reason to reject an image to `page::findings::verdict`, with a row in its table.
//!
//! *Invariant:* a context serves one grab and is never reused. No browser runs as root, without its sandbox, or with
//! network access that bypasses the proxy.
#![warn(missing_docs)]

mod blocklists;
mod cdp;
mod chromium;
mod jail;
mod options;
mod page;
mod probe;
mod process;
mod proxy;
mod selftest;
mod supervisor;
mod writing_systems;

pub use blocklists::{FilterLists, ListError, ListReport};
pub use chromium::Chromium;
pub use jail::{Jail, NetworkJail, launcher};
pub use options::{FrameMode, Options};
pub use probe::{Finding, probe};
pub use process::{BrowserUser, find_executable, short_name};
#[cfg(any(test, feature = "fuzzing"))]
pub use proxy::properties;
pub use selftest::{SelfTestError, SelfTestReport};
pub use supervisor::{Health, StartError};
