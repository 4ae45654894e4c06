//! Chromium for real, against pages that are as the web is.

mod blocked;
mod failing;
mod framing;
mod hostile;
mod lifecycle;
mod pictures;
mod readiness;
mod rig;
mod site;
