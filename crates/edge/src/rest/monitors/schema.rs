//! Schemas of request bodies.

use grabd_options::{RECTANGLE_MAX_SIDE, RECTANGLE_MAX_START};
use serde_json::json;
use utoipa::openapi::schema::{AdditionalProperties, AllOfBuilder, SchemaType};
use utoipa::openapi::{ArrayBuilder, Object, ObjectBuilder, OneOfBuilder, Ref, Schema, SchemaFormat, Type};

use super::super::openapi::parts::{integer, text};

/// A monitor to create.
pub(in super::super) fn create_monitor() -> Object {
    let about = "The monitor to create. It needs either `every` or `cron`. Unknown members are refused.";
    settings(about, PAGE).required("capture").build()
}

/// Monitors to create for several pages.
pub(in super::super) fn create_monitor_batch() -> Object {
    let about = "The monitors to create. They need either `every` or `cron`. Unknown members are refused.";
    let capture = "The capture options of all pages, without `url` and `html`. `compare_to`, `max_age` and `upload_url` are refused.";
    let url = text().format(Some(SchemaFormat::Custom("uri".to_owned()))).min_length(Some(1)).max_length(Some(4096));
    let urls = ArrayBuilder::new()
        .items(url)
        .min_items(Some(1))
        .max_items(Some(50))
        .unique_items(true)
        .description(Some("The URLs of the pages, each of them once."));
    let name = text().min_length(Some(1)).max_length(Some(100)).description(Some(
        "A name, for people. Each monitor has it, followed by the host and the path of its page, which are its name by default. \
         A name that becomes too long is cut.",
    ));
    settings(about, capture).property("urls", urls).property("name", name).required("urls").build()
}

/// Changes of a monitor.
pub(in super::super) fn update_monitor() -> Object {
    let paused = boolean().description(Some("Whether it is paused. The end of a pause begins its schedule now."));
    let about = "The members to change. A new `capture` or `compare` replaces the former one as a whole. Unknown members are \
                 refused.";
    settings(about, PAGE).property("paused", paused).build()
}

/// The capture to accept.
pub(in super::super) fn accept_baseline() -> Object {
    let grab = or_null(Type::String).format(Some(SchemaFormat::Custom("uuid".to_owned()))).description(Some(
        "Id of a grab of one of the monitor's runs. Default, also if it is null: that of the latest done run.",
    ));
    ObjectBuilder::new()
        .description(Some("The capture to accept. Unknown members are refused."))
        .property("grab_id", grab)
        .build()
}

/// What a capture is that names its page.
const PAGE: &str =
    "The capture options, of which `url` or `html` is required. `compare_to`, `max_age` and `upload_url` are refused.";

fn settings(about: &str, about_capture: &str) -> ObjectBuilder {
    let capture = AllOfBuilder::new().item(Ref::from_schema_name("CreateGrabRequest")).description(Some(about_capture));
    let every = or_null(Type::String)
        .pattern(Some("^[0-9]{1,5}[mhd]$"))
        .description(Some(
            "The interval: an integer, and `m`, `h` or `d`, from `5m` to `30d`. It excludes `cron`. Null is as left out.",
        ))
        .examples([json!("1h")]);
    let cron = or_null(Type::String)
        .max_length(Some(100))
        .description(Some(
            "A cron expression with five fields: minute, hour, day of the month, month and day of the week. A local time that \
             daylight saving skips is replaced by the first one after it, and one that happens twice counts once.",
        ))
        .examples([json!("0 9 * * 1-5")]);
    let zone = or_null(Type::String)
        .max_length(Some(64))
        .default(Some(json!("UTC")))
        .description(Some("The IANA time zone of `cron`."))
        .examples([json!("Europe/Berlin")]);
    let name = text()
        .min_length(Some(1))
        .max_length(Some(100))
        .description(Some("A name, for people. Default: the host of the URL."));
    let alert_after = integer(1, 10)
        .default(Some(json!(1)))
        .description(Some("After how many runs in a row that differ from the baseline an alert is sent."));
    let keep = integer(1, 1000).default(Some(json!(100))).description(Some("How many runs are kept."));
    ObjectBuilder::new()
        .description(Some(about))
        .property("name", name)
        .property("capture", capture)
        .property("every", every)
        .property("cron", cron)
        .property("time_zone", zone)
        .property("compare", compare())
        .property("alert_after", alert_after)
        .property("notify", notify())
        .property("keep", keep)
        .property("quiet", quiet())
}

fn compare() -> ObjectBuilder {
    let threshold = ObjectBuilder::new()
        .schema_type(Type::Number)
        .minimum(Some(0.0))
        .maximum(Some(1.0))
        .default(Some(json!(0.001)))
        .description(Some("The part of the image that may differ. A larger part is a change."));
    let ignore = ArrayBuilder::new()
        .items(OneOfBuilder::new().item(text().min_length(Some(1)).pattern(Some(r"\S"))).item(area()))
        .max_items(Some(40))
        .description(Some(
            "What never differs: at most 20 CSS selectors of elements, which are made invisible, and at most 20 parts of the \
             image.",
        ));
    let min_region = integer(0, 1_000_000).default(Some(json!(0))).description(Some(
        "Changes of connected regions with fewer pixels of the image do not count. Regions consist of squares of 16 pixels.",
    ));
    let image = or_null(Type::Object)
        .description(Some(
            "How images are compared. Null is as left out. If neither this nor `status` nor `text` nor `elements` is there, \
             they are compared.",
        ))
        .property("threshold_ratio", threshold)
        .property("ignore", ignore)
        .property("min_region_px", min_region);
    let status = boolean().default(Some(json!(false))).description(Some("Whether another HTTP status is a change."));
    let pattern = text().min_length(Some(1)).max_length(Some(200));
    let patterns = ArrayBuilder::new().items(pattern).max_items(Some(20)).description(Some(
        "Regular expressions, without look-around and back-references. What they match in a line is left out of both texts.",
    ));
    let texts = or_null(Type::Object)
        .description(Some(
            "How the visible texts of the page are compared, line by line. Null: they are not. Not with the option `mask`.",
        ))
        .property("ignore_patterns", patterns);
    let elements = boolean().default(Some(json!(false))).description(Some(
        "Whether elements with a name are compared: links, buttons, fields and others that a user can operate. They differ if they \
         are added or removed, if their name, state or target changes, and if they move or grow by more than 4 CSS pixels. \
         Not with the option `mask`.",
    ));
    let baseline = text().enum_values(Some(["latest", "accepted"])).default(Some(json!("latest"))).description(Some(
        "`latest`: a change that was reported becomes the baseline. `accepted`: only a capture that somebody accepts does, and \
         a change is reported once until the page is the same again.",
    ));
    ObjectBuilder::new()
        .description(Some("What counts as a change. Unknown members are refused."))
        .property("image", image)
        .property("status", status)
        .property("text", texts)
        .property("elements", elements)
        .property("baseline", baseline)
}

/// A part of the image.
fn area() -> ObjectBuilder {
    let object = ObjectBuilder::new()
        .schema_type(Type::Object)
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
        .description(Some("A part of the image, in CSS pixels from its top left corner."));
    let sides = [
        ("x", integer(0, RECTANGLE_MAX_START)),
        ("y", integer(0, RECTANGLE_MAX_START)),
        ("width", integer(1, RECTANGLE_MAX_SIDE)),
        ("height", integer(1, RECTANGLE_MAX_SIDE)),
    ];
    sides.into_iter().fold(object, |object, (name, side)| object.property(name, side).required(name))
}

fn quiet() -> ObjectBuilder {
    let time = |about| text().pattern(Some("^([01][0-9]|2[0-3]):[0-5][0-9]$")).description(Some(about));
    let zone = text()
        .max_length(Some(64))
        .description(Some("The IANA time zone of both. Default: that of the schedule."))
        .examples([json!("Europe/Berlin")]);
    or_null(Type::Object)
        .description(Some(
            "Hours of each day in which no alerts are sent. Those of these hours are sent when the hours end: at most one about \
             changes and one about failures. Null: alerts are sent at any time.",
        ))
        .property("from", time("When they begin."))
        .required("from")
        .property("to", time("When they end. They may include midnight."))
        .required("to")
        .property("time_zone", zone)
}

fn notify() -> ObjectBuilder {
    let by = |about| boolean().default(Some(json!(true))).description(Some(about));
    ObjectBuilder::new()
        .description(Some("How alerts are sent. Unknown members are refused."))
        .property("webhook", by("By webhooks that have subscribed to the events of monitors."))
        .property("email", by("By e-mail, to the members who get the alerts of the team."))
}

/// A member that a monitor returns as null, so that what a read returns can be sent back.
fn or_null(of: Type) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::from_iter([of, Type::Null]))
}

fn boolean() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Boolean)
}
