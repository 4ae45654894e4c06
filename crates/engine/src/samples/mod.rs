//! Captures for visitors without an account: of the pages that come with grabd, and of the live pages that the operator
//! allows.
//!
//! Each is rendered once for each set of options, and kept: those of live pages for some minutes. A render takes an idle slot
//! that accounts which never paid may use, and is refused while grabs wait for one. So visitors never delay customers.
//!
//! *Invariant:* a visitor cannot name a page. A [`SampleSite`] is a place in the list of the configuration, and nothing else
//! creates one.

mod cache;
mod capture;
mod image;
mod sample;
pub(crate) mod state;

pub use self::capture::{capture, find_cached};
pub use self::image::{SampleError, SampleImage};
pub use self::sample::{Sample, SamplePage, SampleSite};
