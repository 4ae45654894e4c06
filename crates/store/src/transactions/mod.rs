//! All changes, one file each. The state transitions of a grab are numbered:
//!
//! | transition | from, to | file |
//! |---|---|---|
//! | T0 | placeholder, created in its final state | `placeholder.rs` |
//! | T1 | created as pending, or as processing if a slot is free | `create.rs` |
//! | T2 | pending to processing | `lease.rs` |
//! | T3 | processing to done | `complete.rs` |
//! | T4 | processing to failed | `fail.rs` |
//! | T5 | processing back to pending | `release.rs`, in bulk for lost leases `reclaim.rs` |
//! | T6 | open to failed, deadline passed | `fail.rs`, in bulk `expire_jobs.rs` |
//! | T7 | open to failed, cancelled by the caller | `fail.rs` |

pub(crate) mod accounts;
pub(crate) mod audit;
pub(crate) mod cancel;
pub(crate) mod claw_back;
pub(crate) mod complete;
pub(crate) mod create;
pub(crate) mod delay;
pub(crate) mod delete;
pub(crate) mod devices;
pub(crate) mod domains;
pub(crate) mod erase;
pub(crate) mod expire_jobs;
pub(crate) mod expire_lots;
pub(crate) mod fail;
pub(crate) mod files;
pub(crate) mod grant;
pub(crate) mod idempotency;
pub(crate) mod images;
pub(crate) mod lease;
pub(crate) mod links;
pub(crate) mod oauth;
pub(crate) mod operators;
pub(crate) mod passwords;
pub(crate) mod people;
pub(crate) mod placeholder;
pub(crate) mod reclaim;
pub(crate) mod release;
pub(crate) mod reseal;
pub(crate) mod retention;
pub(crate) mod reuse;
pub(crate) mod suspend;
pub(crate) mod suspend_person;
pub(crate) mod teams;
pub(crate) mod trial;
pub(crate) mod verification;
pub(crate) mod webhooks;
