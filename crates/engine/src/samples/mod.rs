//! Captures of the pages that come with grabd, for visitors without an account.
//!
//! Each is rendered once for each set of options, and kept. A render takes an idle slot that accounts which never paid may
//! use, and is refused while grabs wait for one. So visitors never delay customers.

mod capture;
mod sample;
pub(crate) mod state;

pub use self::capture::{SampleError, capture};
pub use self::sample::{Sample, SamplePage};
pub use self::state::SampleImage;
