//! Sends alerts: enqueues their webhook messages, and finds who gets mail.

use grabd_domain::Timestamp;
use grabd_domain::accounts::Email;
use grabd_domain::ids::{DeliveryId, EndpointId, GrantId};
use grabd_domain::monitor::{Monitor, Run};
use grabd_domain::webhooks::Event;
use uuid::Uuid;

use crate::Result;
use crate::database::Tx;
use crate::low_balance::find_recipients;
use crate::team_name::team_name;
use crate::webhooks::enqueue::enqueue_for_team;

/// An alert about a monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorAlert {
    /// What has happened.
    pub event: Event,
    /// The monitor after the run.
    pub monitor: Monitor,
    /// The run.
    pub run: Run,
}

/// Composes the webhook message of an alert.
pub type AlertText = fn(&MonitorAlert, DeliveryId, Timestamp) -> String;

/// Alerts whose webhook messages are enqueued.
pub(super) struct Sent {
    pub(super) alerts: Vec<MonitorAlert>,
    /// The name of the team. Empty if nobody gets mail.
    pub(super) team_name: String,
    /// Who gets mail about them.
    pub(super) recipients: Vec<Email>,
}

/// Enqueues the webhook messages of alerts, and finds who gets mail.
pub(super) async fn send(
    tx: &Tx,
    monitor: &Monitor,
    events: Vec<(Event, Run)>,
    text: AlertText,
    now: Timestamp,
) -> Result<Sent> {
    let alert = |(event, run)| MonitorAlert { event, monitor: monitor.clone(), run };
    let alerts: Vec<MonitorAlert> = events.into_iter().map(alert).collect();
    if monitor.spec.notify.webhook {
        for alert in &alerts {
            enqueue(tx, alert, text, now).await?;
        }
    }
    let has_mail = monitor.spec.notify.email && !alerts.is_empty();
    let recipients = if has_mail { find_recipients(tx, monitor.team).await? } else { Vec::new() };
    let team_name = if has_mail { team_name(tx, monitor.team).await? } else { String::new() };
    Ok(Sent { alerts, team_name, recipients })
}

/// Enqueues the webhook messages of an alert.
async fn enqueue(tx: &Tx, alert: &MonitorAlert, text: AlertText, now: Timestamp) -> Result<()> {
    let message = |endpoint: EndpointId| {
        // A deterministic id: the same event of a run always gets the same one.
        let name = [alert.event.as_str().as_bytes(), alert.run.id.0.as_bytes()].concat();
        let id = DeliveryId(Uuid::new_v5(&endpoint.0, &name));
        (id, text(alert, id, now))
    };
    // An app sees only the monitors that it has created.
    let creator = alert.monitor.creator.grant();
    let may_get = |app: Option<GrantId>| app.is_none() || app == creator;
    enqueue_for_team(tx, alert.monitor.team, alert.event, may_get, message, now).await
}
