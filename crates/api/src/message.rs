//! The messages that webhooks receive.

use std::borrow::Cow;

use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::grab::Grab;
use crate::monitor::MonitorEvent;
use crate::site::SiteEvent;

/// A message.
#[derive(Clone, Debug, Serialize)]
pub struct WebhookMessage<'a> {
    /// Id of the message, the same at each attempt.
    pub id: Cow<'a, str>,
    /// Name of the event.
    pub r#type: Cow<'a, str>,
    /// When it happened, as RFC 3339 in UTC with milliseconds.
    pub timestamp: Cow<'a, str>,
    /// `live` or `test`.
    pub environment: Cow<'a, str>,
    /// What it is about.
    pub data: MessageData<'a>,
}

/// What a message is about.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum MessageData<'a> {
    /// A grab has ended, or its image has changed.
    Grab(#[serde(serialize_with = "in_order_of_messages")] Box<Grab<'a>>),
    /// The balance of a team is low.
    Balance(LowBalance<'a>),
    /// A run of a monitor caused an alert.
    Monitor(Box<MonitorEvent<'a>>),
    /// A site job has ended.
    Site(Box<SiteEvent<'a>>),
    /// A test was requested.
    Test(TestedWebhook<'a>),
}

/// The balance of a team is low.
#[derive(Clone, Debug, Serialize)]
pub struct LowBalance<'a> {
    /// Id of the team.
    pub team_id: Cow<'a, str>,
    /// Unspent credits, with those reserved for open grabs.
    pub credits: u64,
    /// The number of credits that the owners chose.
    pub alert_below: u32,
}

/// The webhook that is tested.
#[derive(Clone, Debug, Serialize)]
pub struct TestedWebhook<'a> {
    /// Its id.
    pub webhook_id: Cow<'a, str>,
}

/// The members that stand last in messages. Messages had this order before they shared their members with responses, and
/// keep it for receivers that compare bytes.
const LAST: [&str; 12] = [
    "image_sha256",
    "files",
    "error_code",
    "error_cause",
    "metadata",
    "challenge",
    "consent",
    "blocked",
    "blank",
    "difference",
    "phash",
    "words",
];

fn in_order_of_messages<S: Serializer>(grab: &Grab<'_>, serializer: S) -> Result<S::Ok, S::Error> {
    let Value::Object(mut members) = serde_json::to_value(grab).map_err(S::Error::custom)? else {
        return Err(S::Error::custom("a grab is an object"));
    };
    move_to_end(&mut members, &LAST);
    for file in members.get_mut("files").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(file) = file.as_object_mut().filter(|file| file.contains_key("viewport")) {
            move_to_end(file, &["width", "height", "viewport"]);
        }
    }
    members.serialize(serializer)
}

fn move_to_end(members: &mut Map<String, Value>, names: &[&str]) {
    for name in names {
        if let Some((name, value)) = members.shift_remove_entry(*name) {
            members.insert(name, value);
        }
    }
}
