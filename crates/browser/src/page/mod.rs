//! Captures one grab in a prepared tab: loads the page, waits until it has settled, takes the image and checks the
//! result.
//!
//! [`capture()`] is the whole procedure. Another procedure would be a function with the same signature.

mod capture;
mod capture_limits;
mod change;
mod context;
mod error;
mod findings;
mod frame_calls;
mod identity;
mod load;
mod picture;
mod script;
mod selectors;
mod tab;

pub(crate) use capture::capture;
pub(crate) use capture_limits::Limits;
pub(crate) use error::{CaptureError, UNRESPONSIVE};
pub(crate) use findings::metadata::failure_metadata;
pub(crate) use identity::Identity;
pub(crate) use load::clock::TimeMode;
pub(crate) use load::frame_drawing::{DrawLock, Frames};
pub(crate) use load::watch::{Excess, Watch};
pub(crate) use load::workers::report_workers;
pub(crate) use script::call as call_script;
pub(crate) use tab::{Tab, metrics};
