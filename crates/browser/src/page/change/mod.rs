//! Changes the page as the caller asks: clicks, steps, scripts, consent dialogs, hidden elements, stopped motion.

pub(super) mod conditions;
pub(super) mod consent;
pub(super) mod fixed_clock;
pub(super) mod frame_sessions;
pub(super) mod freeze;
pub(super) mod hiding;
pub(super) mod interact;
pub(super) mod requested;
pub(super) mod steps;
