//! A monitor and its runs, as REST and webhooks show them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::words::{baseline_schema, element_change_schema, ignored_schema, monitor_state_schema, run_outcome_schema};

/// A capture that is repeated by a schedule, and compared with a baseline. Further members may appear.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Monitor<'a> {
    /// Id of the monitor. Ids sort by creation time.
    #[schema(format = "uuid")]
    pub id: Cow<'a, str>,
    /// Its name, for people.
    #[schema(max_length = 100)]
    pub name: Cow<'a, str>,
    /// The capture options that differ from their defaults, without those whose values are never returned.
    #[schema(value_type = Object)]
    pub capture: Map<String, Value>,
    /// The interval, such as `1h`. Null with `cron`.
    pub every: Option<Cow<'a, str>>,
    /// The cron expression. Null with `every`.
    pub cron: Option<Cow<'a, str>>,
    /// The IANA time zone of the expression. Null with `every`.
    pub time_zone: Option<Cow<'a, str>>,
    /// What counts as a change.
    #[schema(inline)]
    pub compare: MonitorCompare<'a>,
    /// After how many runs in a row that differ from the baseline an alert is sent.
    #[schema(minimum = 1, maximum = 10)]
    pub alert_after: u32,
    /// How alerts are sent.
    #[schema(inline)]
    pub notify: MonitorNotify,
    /// How many runs are kept.
    #[schema(minimum = 1, maximum = 1000)]
    pub keep: u32,
    /// When no alerts are sent. Null: they are sent at any time.
    #[schema(inline)]
    pub quiet: Option<MonitorQuiet<'a>>,
    /// Whether it runs: `active`, `paused` by somebody, or `out_of_credits` until the team has credits again.
    #[schema(schema_with = monitor_state_schema)]
    pub state: Cow<'a, str>,
    /// Time of creation.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Cow<'a, str>,
    /// Time of the last change by a caller.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Cow<'a, str>,
    /// When it is due. Null if it is paused.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub next_run_at: Option<Cow<'a, str>>,
    /// Id of the grab that later ones are compared with. Null before the first run.
    #[schema(format = "uuid")]
    pub baseline_grab_id: Option<Cow<'a, str>>,
    /// The latest run. Null before the first one.
    pub last_run: Option<MonitorRun<'a>>,
    /// Whether its grabs are live. Those of monitors of test keys are placeholders, which spend no credits and cause no alerts.
    pub live: bool,
    /// Whether its feed and badge have a public address.
    pub has_feed: bool,
}

/// What counts as a change.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MonitorCompare<'a> {
    /// How images are compared. Null if they are not.
    #[schema(inline)]
    pub image: Option<MonitorImageCompare<'a>>,
    /// Whether another HTTP status of the page is a change.
    pub status: bool,
    /// How texts are compared. Null if they are not.
    #[schema(inline)]
    pub text: Option<MonitorTextCompare<'a>>,
    /// Whether the elements with a name are compared.
    pub elements: bool,
    /// Whether a change that was reported becomes the baseline (`latest`), or only a capture that somebody accepts
    /// (`accepted`).
    #[schema(schema_with = baseline_schema)]
    pub baseline: Cow<'a, str>,
}

/// How images are compared.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MonitorImageCompare<'a> {
    /// The part of the image that may differ. A larger part is a change.
    #[schema(minimum = 0, maximum = 1)]
    pub threshold_ratio: f64,
    /// What never differs: CSS selectors of elements, which are made invisible, and parts of the image.
    #[schema(schema_with = ignored_schema)]
    pub ignore: Vec<MonitorIgnored<'a>>,
    /// Changes of connected regions with fewer pixels do not count.
    #[schema(minimum = 0, maximum = 1000000)]
    pub min_region_px: u32,
}

/// Something that never differs.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MonitorIgnored<'a> {
    /// A CSS selector of elements that are made invisible.
    Selector(Cow<'a, str>),
    /// A part of the image.
    Area(MonitorArea),
}

/// A rectangle of an image, in CSS pixels from its top left corner.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct MonitorArea {
    /// The left edge.
    pub x: i64,
    /// The top edge.
    pub y: i64,
    /// The width.
    pub width: i64,
    /// The height.
    pub height: i64,
}

/// Hours of each day in which no alerts are sent.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MonitorQuiet<'a> {
    /// When they begin, such as `22:00`.
    pub from: Cow<'a, str>,
    /// When they end, such as `07:00`.
    pub to: Cow<'a, str>,
    /// The IANA time zone of both.
    pub time_zone: Cow<'a, str>,
}

/// How texts are compared.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MonitorTextCompare<'a> {
    /// Regular expressions. What they match in a line is left out of both texts.
    #[schema(max_items = 20)]
    pub ignore_patterns: Vec<Cow<'a, str>>,
}

/// How alerts are sent.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub struct MonitorNotify {
    /// By webhooks.
    pub webhook: bool,
    /// By e-mail, to the members who get the alerts of the team.
    pub email: bool,
}

/// A run of a monitor: the result of one due time.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MonitorRun<'a> {
    /// Id of the run.
    #[schema(format = "uuid")]
    pub id: Cow<'a, str>,
    /// When it was due.
    #[schema(value_type = String, format = DateTime)]
    pub due_at: Cow<'a, str>,
    /// The result: its capture is the baseline (`first`), nothing has changed (`same`), something differs from the
    /// baseline (`changed`), there is no capture (`failed`), or nothing was captured at this time and until the next run
    /// (`missed`).
    #[schema(schema_with = run_outcome_schema)]
    pub outcome: Cow<'a, str>,
    /// Id of its grab. Null if it was missed, and before there is one.
    #[schema(format = "uuid")]
    pub grab_id: Option<Cow<'a, str>>,
    /// Id of the grab that it was compared with. Null if there was none.
    #[schema(format = "uuid")]
    pub compared_to: Option<Cow<'a, str>>,
    /// The changed part of the image. Null unless images were compared.
    #[schema(minimum = 0, maximum = 1)]
    pub difference_ratio: Option<f64>,
    /// What has changed: `image`, `status`, `text`, `elements`.
    pub what_changed: Vec<Cow<'a, str>>,
    /// The lines of the text that have changed. Empty unless texts were compared and differ.
    #[schema(inline, max_items = 20)]
    pub text_changes: Vec<MonitorTextChange<'a>>,
    /// The elements that have changed. Empty unless elements were compared and differ.
    #[schema(inline, max_items = 20)]
    pub element_changes: Vec<MonitorElementChange<'a>>,
    /// Whether an alert about the change was sent, or is sent when the quiet hours end.
    pub alerted: bool,
    /// When it ended. Null before.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub finished_at: Option<Cow<'a, str>>,
    /// Why it failed or was missed, or why the text or the elements were not compared. Null otherwise.
    #[schema(inline)]
    pub error: Option<MonitorRunError<'a>>,
}

/// A line of the text that was replaced, added or removed.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MonitorTextChange<'a> {
    /// The line of the baseline, shortened. Null if a line was added.
    #[schema(max_length = 200)]
    pub before: Option<Cow<'a, str>>,
    /// The line of the run, shortened. Null if a line was removed.
    #[schema(max_length = 200)]
    pub after: Option<Cow<'a, str>>,
}

/// An element that was added, removed, changed or moved.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MonitorElementChange<'a> {
    /// What has happened to it.
    #[schema(schema_with = element_change_schema)]
    pub change: Cow<'a, str>,
    /// Its role, such as `button`.
    #[schema(max_length = 200)]
    pub role: Cow<'a, str>,
    /// Its name in the run, or in the baseline if it was removed.
    #[schema(max_length = 200)]
    pub name: Cow<'a, str>,
    /// What it was: its name, its state, or its place. Null if it was added or removed.
    #[schema(max_length = 200)]
    pub before: Option<Cow<'a, str>>,
    /// What it is now. Null if it was added or removed.
    #[schema(max_length = 200)]
    pub after: Option<Cow<'a, str>>,
}

/// Why a run failed or was missed, or why the text or the elements were not compared.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MonitorRunError<'a> {
    /// A code of the errors of this API, `missed`, `text_not_compared`, or `elements_not_compared`.
    pub code: Cow<'a, str>,
    /// What happened, for people.
    #[schema(max_length = 200)]
    pub message: Cow<'a, str>,
}

/// The addresses of a monitor's feed and badge. Whoever knows them can read both.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MonitorFeed<'a> {
    /// The Atom feed with the newest runs.
    #[schema(format = "uri")]
    pub feed_url: Cow<'a, str>,
    /// The badge with the state and the last change, as SVG.
    #[schema(format = "uri")]
    pub badge_url: Cow<'a, str>,
}

/// The monitors of the key's team and environment, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MonitorList<'a> {
    /// The monitors.
    pub data: Vec<Monitor<'a>>,
    /// Whether there are older ones.
    pub has_more: bool,
}

/// Monitors that were created together.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MonitorBatch<'a> {
    /// One for each URL, in the order of the request.
    pub monitors: Vec<Monitor<'a>>,
}

/// The runs of a monitor, newest first.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MonitorRunList<'a> {
    /// The runs.
    pub data: Vec<MonitorRun<'a>>,
    /// Whether there are older ones.
    pub has_more: bool,
}

/// What a message about a monitor has.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MonitorEvent<'a> {
    /// The monitor after the run.
    pub monitor: Monitor<'a>,
    /// The run that caused the message.
    pub run: MonitorRun<'a>,
}
