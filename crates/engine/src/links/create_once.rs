//! Creates the grab of a link once, however many requests for its image arrive at the same time.

use std::collections::hash_map::Entry;

use grabd_domain::grabs::Class;
use tokio::sync::watch;
use tokio::time::Instant;

use super::in_flight::{Capture, LinkError, LinkResult, Outcome};
use super::link_limits;
use super::signed::SignedLink;
use crate::error::Error;
use crate::grabs::{self, CreateRequest, Validated};
use crate::service::Core;

/// Answers with an earlier image, or creates a grab within the limits of links.
///
/// # Errors
/// Those of a create, and of the limits.
pub(super) async fn create(core: &Core, link: &SignedLink, request: &CreateRequest) -> Outcome {
    let (caller, started) = (link.caller, Instant::now());
    let create = match grabs::validate(core, caller, request, Class::Sync).await? {
        Validated::Fresh(create) => *create,
        Validated::Repeated(result) => return Ok(LinkResult { result: *result, counted: None }),
    };
    let counted =
        link_limits::take(core, caller, link.key).map_err(|(fault, refused)| LinkError::new(fault, Some(refused)))?;
    let failed = |error: Error| LinkError::new(error.into_fault(), Some(counted));
    let _turn = link_limits::turn(core, caller, started).await.map_err(failed)?;
    let result = grabs::perform(core, caller, create, started).await.map_err(failed)?;
    Ok(LinkResult { result, counted: Some(counted) })
}

/// Does the same, or waits for another request for the same image that is doing it.
///
/// # Errors
/// As [`create`].
pub(super) async fn create_once(core: &Core, link: SignedLink, request: CreateRequest) -> Outcome {
    let Some(fingerprint) = grabs::fingerprint_of(&request)? else {
        return create(core, &link, &request).await;
    };
    let capture = Capture {
        team: link.caller.team,
        environment: link.caller.environment,
        only_of: (!request.may_read).then_some(link.key),
        fingerprint,
    };
    let mut outcome = match core.links.in_flight.lock().entry(capture) {
        Entry::Occupied(entry) => entry.get().clone(),
        Entry::Vacant(entry) => {
            let (ended, outcome) = watch::channel(None);
            entry.insert(outcome.clone());
            let core = core.clone();
            core.clone().spawn(async move {
                // Removed also if the task panics. Requests that come later find the image.
                let removal = Removal { core: &core, capture };
                let result = create(&core, &link, &request).await;
                drop(removal);
                ended.send_replace(Some(result));
            });
            outcome
        }
    };
    let ended = outcome.wait_for(Option::is_some).await?;
    ended.clone().unwrap_or_else(|| Err(Error::state("a task ended without a result").into()))
}

/// Removes a capture when it is dropped.
struct Removal<'a> {
    core: &'a Core,
    capture: Capture,
}

impl Drop for Removal<'_> {
    fn drop(&mut self) {
        self.core.links.in_flight.lock().remove(&self.capture);
    }
}
