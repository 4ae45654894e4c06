//! Enqueues deliveries when an asynchronous live grab ends, or something else has happened to a team.

use std::collections::{BTreeSet, HashMap};

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Class, Difference, Grab, State};
use grabd_domain::ids::{DeliveryId, EndpointId, GrabId, TeamId};
use grabd_domain::webhooks::{DeliveryStatus, Event, Events};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::LockType;
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QuerySelect};
use uuid::Uuid;

use super::creators::Inactive;
use crate::Result;
use crate::database::Tx;
use crate::entities::delivery;
use crate::entities::webhook_endpoint::{self, read_events};

/// Enqueues a delivery for each subscribed endpoint, in the transaction that ends the grabs (transactional outbox).
pub(crate) async fn enqueue_deliveries<'a>(
    tx: &Tx,
    ended: impl IntoIterator<Item = (&'a Grab, Timestamp)>,
) -> Result<()> {
    let reported: Vec<_> = ended.into_iter().filter_map(|(grab, now)| Some((grab, events_of(grab)?, now))).collect();
    let teams: BTreeSet<_> = reported.iter().map(|(grab, ..)| grab.team).collect();
    let Some(latest) = reported.iter().map(|(_, _, now)| *now).max() else { return Ok(()) };
    let receivers = receivers(tx, &teams, Environment::Live, latest).await?;
    let mut deliveries = Vec::new();
    for (grab, happened, now) in reported {
        for (endpoint, events) in receivers.get(&grab.team).into_iter().flatten() {
            for event in happened.into_iter().flatten().filter(|event| events.contains(*event)) {
                let id = delivery_id(*endpoint, grab.id, event);
                deliveries.push(new(id, endpoint.0, Some(grab.id.0), event, now));
            }
        }
    }
    insert(tx, deliveries).await
}

/// What has happened with the end of a grab. `None`: nothing that is delivered.
fn events_of(grab: &Grab) -> Option<[Option<Event>; 2]> {
    match (grab.environment, grab.class, &grab.state) {
        (Environment::Live, Class::Async, State::Done { metadata, .. }) => {
            let has_changes = metadata.difference.as_ref().is_some_and(Difference::has_changes);
            Some([Some(Event::GrabDone), has_changes.then_some(Event::GrabChanged)])
        }
        (Environment::Live, Class::Async, State::Failed { .. }) => Some([Some(Event::GrabFailed), None]),
        (Environment::Live, Class::Async, State::Pending | State::Processing)
        | (Environment::Live, Class::Sync, _)
        | (Environment::Test, ..) => None,
    }
}

/// Enqueues a delivery about no grab for each subscribed live endpoint of a team. `message` gives the id and the body.
pub(crate) async fn enqueue_for_team(
    tx: &Tx,
    team: TeamId,
    event: Event,
    message: impl Fn(EndpointId) -> (DeliveryId, String),
    now: Timestamp,
) -> Result<()> {
    let mut receivers = receivers(tx, &BTreeSet::from([team]), Environment::Live, now).await?;
    let endpoints = receivers.remove(&team).unwrap_or_default();
    let subscribed = endpoints.into_iter().filter(|(_, events)| events.contains(event));
    let deliveries = subscribed.map(|(endpoint, _)| {
        let (id, body) = message(endpoint);
        delivery::ActiveModel { body: Set(Some(body)), ..new(id, endpoint.0, None, event, now) }
    });
    insert(tx, deliveries.collect()).await
}

/// The enabled endpoints of each team, except those of apps without access, and the events that they are subscribed to.
async fn receivers(
    tx: &Tx,
    teams: &BTreeSet<TeamId>,
    environment: Environment,
    now: Timestamp,
) -> Result<HashMap<TeamId, Vec<(EndpointId, Events)>>> {
    // A shared lock serializes with removing and disabling the endpoint: either those see the delivery and cancel it,
    // or none is enqueued.
    let endpoints = webhook_endpoint::of_teams(teams, environment)
        .filter(webhook_endpoint::Column::Disabled.is_null())
        .lock(LockType::Share)
        .all(tx)
        .await?;
    let inactive = Inactive::find(tx, &endpoints, now).await?;
    let mut receivers: HashMap<_, Vec<_>> = HashMap::new();
    for endpoint in endpoints.into_iter().filter(|endpoint| !inactive.contains(endpoint)) {
        match read_events(&endpoint.events) {
            Ok(events) => {
                let of_team = receivers.entry(TeamId(endpoint.team_id)).or_default();
                of_team.push((EndpointId(endpoint.id), events));
            }
            // Otherwise none of the team's grabs could end.
            Err(error) => {
                tracing::error!(endpoint.id = %endpoint.id, %error, "an endpoint cannot be read and gets no webhooks");
            }
        }
    }
    Ok(receivers)
}

async fn insert(tx: &Tx, deliveries: Vec<delivery::ActiveModel>) -> Result<()> {
    if !deliveries.is_empty() {
        delivery::Entity::insert_many(deliveries).exec_without_returning(tx).await?;
    }
    Ok(())
}

/// A delivery that is due at once.
pub(super) fn new(
    id: DeliveryId,
    endpoint: Uuid,
    grab: Option<Uuid>,
    event: Event,
    now: Timestamp,
) -> delivery::ActiveModel {
    let (event, changed) = delivery::event(event);
    delivery::ActiveModel {
        id: Set(id.0),
        endpoint_id: Set(endpoint),
        grab_id: Set(grab),
        event: Set(event),
        changed: Set(changed),
        body: Set(None),
        state: Set(delivery::state(DeliveryStatus::Pending)),
        attempt: Set(0),
        next_at: Set(Some(now.as_ms())),
        last_code: Set(None),
        no_answer: Set(None),
        took_ms: Set(None),
        attempted_at: Set(None),
        created_at: Set(now.as_ms()),
    }
}

/// A deterministic id (UUIDv5): the same event always gets the same delivery id.
fn delivery_id(endpoint: EndpointId, grab: GrabId, event: Event) -> DeliveryId {
    let name = [grab.0.as_bytes(), event.as_str().as_bytes()].concat();
    DeliveryId(Uuid::new_v5(&endpoint.0, &name))
}
