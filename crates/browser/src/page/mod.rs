//! Captures one grab in a prepared tab: loads the page, waits until it has settled, takes the image and checks the
//! result.
//!
//! [`capture()`] is the whole procedure. Another procedure would be a function with the same signature.

mod area;
mod capture;
mod clock;
mod consent;
mod drive;
mod error;
mod extract;
mod frames;
mod freeze;
mod hiding;
mod identity;
mod interact;
mod intercept;
mod limits;
mod metadata;
mod navigate;
mod outside;
mod report;
mod requested;
mod scaled;
mod script;
mod scripts_disabled;
mod settle;
mod shot;
mod shown;
mod slices;
mod state;
mod tab;
mod verdict;
mod viewports;
mod watch;
mod workers;

pub(crate) use capture::{Picture, capture};
pub(crate) use clock::TimeMode;
pub(crate) use error::{CaptureError, UNRESPONSIVE};
pub(crate) use frames::{DrawLock, Frames};
pub(crate) use identity::Identity;
pub(crate) use limits::Limits;
pub(crate) use metadata::failure_metadata;
pub(crate) use script::call as call_script;
pub(crate) use tab::{Tab, metrics};
pub(crate) use watch::{Excess, Watch};
pub(crate) use workers::report_workers;
