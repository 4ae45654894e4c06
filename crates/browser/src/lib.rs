//! Chromium: processes kept running and replaced, prepared contexts, pages driven until they are ready, captures judged,
//! and the egress proxy that is the browser's only way out.
//!
//! `process` starts and ends one browser, `jail` keeps it off the network, `cdp` speaks with it, `supervisor` keeps one
//! running and lends tabs, `page` takes one tab through one grab, `proxy` stands in front, `probe` looks whether all that
//! works here, and `selftest` whether a page could get past it. To add a way to capture, put it beside `page`'s `drive`
//! behind `page::capture`; to add a reason why a picture is not one, add it to `page::verdict` with a row in its table.
//!
//! *Invariant:* a context serves one grab and is never used again; nothing here runs a browser as root, without its
//! sandbox, or with a way to the network beside the proxy.
#![warn(missing_docs)]

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

pub use chromium::Chromium;
pub use jail::{Jail, NetworkJail, launcher};
pub use options::Options;
pub use probe::{Finding, probe};
pub use process::{BrowserUser, find_executable, short_name};
#[cfg(any(test, feature = "fuzzing"))]
pub use proxy::properties;
pub use selftest::{Held, SelfTestError};
pub use supervisor::{Health, StartError};
