//! Grabs by their ids: reads several, and streams their states until all have ended.

use futures::stream::{BoxStream, SelectAll, StreamExt as _, select_all};
use grabd_domain::Fault;
use grabd_domain::credentials::Caller;
use grabd_domain::faults::Field;
use grabd_domain::grabs::Grab;
use grabd_domain::ids::GrabId;
use grabd_domain::limits::PAGE_SIZE;

use super::watch::{Follow, WatchInterrupted, states_from};
use crate::error::Error;
use crate::queue::watchers::GrabUpdate;
use crate::service::Core;

/// The ids of a request: 1 to 100, each once, in the order of the request.
///
/// # Errors
/// [`Fault::BadRequest`] for `ids`.
pub fn parse_ids(texts: &[String]) -> Result<Vec<GrabId>, Fault> {
    let most = PAGE_SIZE.end();
    let invalid = |seen: &str| Fault::BadRequest(Field::new("ids", seen, format!("1 to {most} ids of grabs")));
    let mut ids = Vec::new();
    for text in texts {
        let id = text.parse().map_err(|_| invalid(&format!("\"{text}\"")))?;
        if !ids.contains(&id) {
            ids.push(id);
        }
        if i64::try_from(ids.len()).is_ok_and(|count| count > *most) {
            return Err(invalid(&format!("{} ids", texts.len())));
        }
    }
    if ids.is_empty() { Err(invalid("none")) } else { Ok(ids) }
}

/// The caller's grabs with these ids, in this order. Unknown ids are left out.
///
/// # Errors
/// Errors of the database.
#[tracing::instrument(name = "grabs.get_several", skip_all)]
pub async fn get_several(core: &Core, caller: Caller, ids: &[GrabId]) -> Result<Vec<Grab>, Error> {
    let mut found = core.store.grabs().find_grabs_of(caller.team, caller.environment, ids).await?;
    found.sort_by_key(|grab| ids.iter().position(|id| *id == grab.id));
    Ok(found)
}

/// Streams the current state of each grab and each later one, until all have ended. Unknown ids are left out.
///
/// # Errors
/// Errors of the database.
#[tracing::instrument(name = "grabs.watch_several", skip_all)]
pub async fn watch_several(
    core: &Core,
    caller: Caller,
    ids: &[GrabId],
) -> Result<SelectAll<BoxStream<'static, Result<GrabUpdate, WatchInterrupted>>>, Error> {
    // Subscribe before reading, so that no change is missed.
    let mut subscribed: Vec<_> = ids.iter().map(|id| (*id, core.queue.watchers.subscribe(*id))).collect();
    let streams = get_several(core, caller, ids).await?.into_iter().filter_map(|grab| {
        let at = subscribed.iter().position(|(id, _)| *id == grab.id)?;
        let (_, states) = subscribed.swap_remove(at);
        Some(states_from(core, states, grab, 0, Follow::Revisions).boxed())
    });
    Ok(select_all(streams.collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_counted_once_and_reported_with_what_is_allowed() {
        let id = |number: u128| uuid::Uuid::from_u128(number).to_string();
        let seen = |texts: &[String]| parse_ids(texts).map(|ids| ids.len()).map_err(|fault| fault.to_string());
        assert_eq!(seen(&[id(1), id(2), id(1)]), Ok(2));
        assert_eq!(seen(&(1..=100).map(id).collect::<Vec<_>>()), Ok(100));
        for (texts, named) in
            [(vec![], "none"), (vec!["x".to_owned()], "\"x\""), ((1..=101).map(id).collect(), "101 ids")]
        {
            let error = seen(&texts).unwrap_err();
            assert!(error.contains("ids") && error.contains(named) && error.contains("1 to 100"), "{error}");
        }
    }
}
