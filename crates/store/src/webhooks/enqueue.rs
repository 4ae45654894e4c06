//! Enqueues deliveries when an asynchronous live grab ends, or something else has happened to a team.

use std::collections::{BTreeSet, HashMap};

use grabd_domain::Timestamp;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{Class, Difference, Grab, State};
use grabd_domain::ids::{DeliveryId, EndpointId, GrabId, GrantId, TeamId};
use grabd_domain::webhooks::{DeliveryStatus, Event, Events};
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{ExprTrait, LockType};
use sea_orm::{ColumnTrait, EntityTrait, FromQueryResult, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

use super::creators::Inactive;
use super::open::{TOO_MANY_OPEN, full, may_be_full};
use crate::Result;
use crate::database::Tx;
use crate::entities::delivery;
use crate::entities::webhook_endpoint::{self, read_events};
use crate::padded::padded;

/// Messages about no grab that are kept for each endpoint.
const MESSAGES_KEPT: u64 = 25;
/// The most that are deleted at a time. Usually it is one.
const MESSAGES_DELETED: u64 = 100;

/// Enqueues a delivery for each subscribed endpoint, in the transaction that ends the grabs (transactional outbox). Returns
/// their number.
pub(crate) async fn enqueue_deliveries<'a>(
    tx: &Tx,
    ended: impl IntoIterator<Item = (&'a Grab, Timestamp)>,
) -> Result<usize> {
    let reported: Vec<_> = ended.into_iter().filter_map(|(grab, now)| Some((grab, events_of(grab)?, now))).collect();
    let teams: BTreeSet<_> = reported.iter().map(|(grab, ..)| grab.team).collect();
    let Some(latest) = reported.iter().map(|(_, _, now)| *now).max() else { return Ok(0) };
    let receivers = receivers(tx, &teams, Environment::Live, latest).await?;
    let mut deliveries = Vec::new();
    for (grab, happened, now) in reported {
        for receiver in receivers.get(&grab.team).into_iter().flatten() {
            for event in happened.into_iter().flatten().filter(|event| receiver.events.contains(*event)) {
                let id = delivery_id(receiver.endpoint, grab.id, event);
                deliveries.push(receiver.delivery(new(id, receiver.endpoint.0, Some(grab.id.0), event, now)));
            }
        }
    }
    let number = deliveries.len();
    insert(tx, deliveries).await?;
    Ok(number)
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

/// Enqueues a delivery about no grab for each subscribed live endpoint of a team that may get it, which is decided by the grant of
/// the app that registered it, if one did. `message` gives the id and the body.
pub(crate) async fn enqueue_for_team(
    tx: &Tx,
    team: TeamId,
    event: Event,
    may_get: impl Fn(Option<GrantId>) -> bool,
    message: impl Fn(EndpointId) -> (DeliveryId, String),
    now: Timestamp,
) -> Result<()> {
    let mut receivers = receivers(tx, &BTreeSet::from([team]), Environment::Live, now).await?;
    let endpoints = receivers.remove(&team).unwrap_or_default();
    let is_sent = |receiver: &Receiver| receiver.events.contains(event) && may_get(receiver.grant);
    let subscribed: Vec<_> = endpoints.into_iter().filter(is_sent).collect();
    let deliveries = subscribed.iter().map(|receiver| {
        let (id, body) = message(receiver.endpoint);
        let new = new(id, receiver.endpoint.0, None, event, now);
        receiver.delivery(delivery::ActiveModel { body: Set(Some(body)), ..new })
    });
    insert(tx, deliveries.collect()).await?;
    for receiver in subscribed {
        delete_old_messages(tx, receiver.endpoint).await?;
    }
    Ok(())
}

/// An enabled endpoint.
struct Receiver {
    endpoint: EndpointId,
    /// The grant of the app that registered it.
    grant: Option<GrantId>,
    events: Events,
    /// Whether too many deliveries to it are open.
    is_full: bool,
}

impl Receiver {
    /// The delivery, which is not sent if too many are open.
    fn delivery(&self, delivery: delivery::ActiveModel) -> delivery::ActiveModel {
        if self.is_full { not_sent(delivery) } else { delivery }
    }
}

/// A delivery that is stored, and only sent on request, because too many are open.
pub(super) fn not_sent(delivery: delivery::ActiveModel) -> delivery::ActiveModel {
    delivery::ActiveModel {
        state: Set(delivery::state(DeliveryStatus::Exhausted)),
        next_at: Set(None),
        not_sent: Set(Some(TOO_MANY_OPEN)),
        ..delivery
    }
}

/// Deletes messages about no grab, which cost nothing, except the newest ones to an endpoint and those that are open.
pub(super) async fn delete_old_messages(tx: &Tx, endpoint: EndpointId) -> Result<()> {
    let of_endpoint = || {
        let endpoint = delivery::Column::EndpointId.eq(endpoint.0);
        delivery::Column::GrabId.is_null().and(endpoint).and(delivery::Column::NextAt.is_null())
    };
    let old: Vec<Uuid> = delivery::Entity::find()
        .select_only()
        .column(delivery::Column::Id)
        .filter(of_endpoint())
        .order_by_desc(delivery::Column::CreatedAt)
        .order_by_desc(delivery::Column::Id)
        .offset(MESSAGES_KEPT)
        .limit(MESSAGES_DELETED)
        .into_tuple()
        .all(tx)
        .await?;
    if !old.is_empty() {
        delivery::Entity::delete_many().filter(delivery::Column::Id.is_in(padded(old))).exec(tx).await?;
    }
    Ok(())
}

/// The enabled endpoints of each team, except those of apps without access.
async fn receivers(
    tx: &Tx,
    teams: &BTreeSet<TeamId>,
    environment: Environment,
    now: Timestamp,
) -> Result<HashMap<TeamId, Vec<Receiver>>> {
    if teams.is_empty() {
        return Ok(HashMap::new());
    }
    // A shared lock serializes with removing and disabling the endpoint: either those see the delivery and cancel it,
    // or none is enqueued.
    let endpoints = webhook_endpoint::of_teams(teams, environment)
        .filter(webhook_endpoint::Column::Disabled.is_null())
        .select_only()
        .columns([webhook_endpoint::Column::Id, webhook_endpoint::Column::TeamId, webhook_endpoint::Column::Events])
        .column(webhook_endpoint::Column::GrantId)
        .expr_as(may_be_full(), "may_be_full")
        .lock(LockType::Share)
        .into_model::<ReceiverRow>()
        .all(tx)
        .await?;
    let inactive = Inactive::find(tx, endpoints.iter().map(|endpoint| endpoint.grant_id), now).await?;
    let full = full(tx, endpoints.iter().filter(|endpoint| endpoint.may_be_full).map(|endpoint| endpoint.id)).await?;
    let mut receivers: HashMap<_, Vec<_>> = HashMap::new();
    for endpoint in endpoints.into_iter().filter(|endpoint| !inactive.contains(endpoint.grant_id)) {
        match read_events(&endpoint.events) {
            Ok(events) => {
                let of_team = receivers.entry(TeamId(endpoint.team_id)).or_default();
                let (endpoint, grant) = (EndpointId(endpoint.id), endpoint.grant_id.map(GrantId));
                of_team.push(Receiver { endpoint, grant, events, is_full: full.contains(&endpoint) });
            }
            // Otherwise none of the team's grabs could end.
            Err(error) => {
                tracing::error!(endpoint.id = %endpoint.id, %error, "an endpoint cannot be read and gets no webhooks");
            }
        }
    }
    Ok(receivers)
}

#[derive(FromQueryResult)]
struct ReceiverRow {
    id: Uuid,
    team_id: Uuid,
    events: String,
    grant_id: Option<Uuid>,
    may_be_full: bool,
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
    let (event, changed, monitor_event) = delivery::event(event);
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
        not_sent: Set(None),
        monitor_event: Set(monitor_event),
    }
}

/// A deterministic id (UUIDv5): the same event always gets the same delivery id.
fn delivery_id(endpoint: EndpointId, grab: GrabId, event: Event) -> DeliveryId {
    let name = [grab.0.as_bytes(), event.as_str().as_bytes()].concat();
    DeliveryId(Uuid::new_v5(&endpoint.0, &name))
}
