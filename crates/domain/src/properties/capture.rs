use serde_json::{Map, Value};

use super::named;
use crate::Code;
use crate::capture::{CaptureRequest, CaptureSpec};

/// A spec is within the contract's bounds, says what was asked for, and survives being kept; a refusal names a field,
/// with a code that this field can have. The input is the JSON of a create.
pub fn capture(data: &[u8]) {
    let Ok(Value::Object(members)) = serde_json::from_slice(data) else { return };
    let asked = request(&members);
    match CaptureSpec::parse(&asked) {
        Ok(spec) => is_what_was_asked_for(&spec, &asked),
        Err(fault) => {
            let code = match named(&fault) {
                "width" | "height" => Code::InvalidViewport,
                "url" | "format" | "full_page" | "delay_ms" | "selector" => Code::BadRequest,
                other => panic!("{other} is not a member of a create"),
            };
            assert_eq!(fault.code(), code, "{fault:?}");
        }
    }
}

fn is_what_was_asked_for(spec: &CaptureSpec, asked: &CaptureRequest) {
    assert!(asked.unparsed.is_empty(), "{asked:?}");
    let (width, height) = (spec.viewport.width(), spec.viewport.height());
    assert!((320..=1920).contains(&width) && (240..=1080).contains(&height), "{spec:?}");
    assert_eq!((i64::from(width), i64::from(height)), (asked.width.unwrap_or(1280), asked.height.unwrap_or(720)));
    assert!(spec.delay.as_millis() <= 10_000, "{spec:?}");
    assert_eq!(i64::try_from(spec.delay.as_millis()).ok(), Some(asked.delay_ms.unwrap_or(0)));
    assert_eq!(spec.format.as_str(), asked.format.as_deref().unwrap_or("png"));
    assert_eq!(spec.full_page, asked.full_page == Some(true));
    assert_eq!(spec.reported_height(), if spec.full_page { 3240 } else { height });
    let selector = spec.selector.as_ref().map(crate::capture::Selector::as_str);
    assert_eq!(selector, asked.selector.as_deref());
    assert!(selector.is_none_or(|text| (1..=1024).contains(&text.chars().count())), "{spec:?}");

    let kept = serde_json::to_string(spec).expect("a spec can be kept");
    let back: CaptureSpec = serde_json::from_str(&kept).expect("what was kept can be read");
    assert_eq!(back, *spec, "{kept}");
}

/// As any face would read it: each member as its type, or as what was seen instead.
fn request(members: &Map<String, Value>) -> CaptureRequest {
    let mut request = CaptureRequest::default();
    for (name, value) in members {
        let text = value.as_str().map(str::to_owned);
        let read = match name.as_str() {
            "url" => put(&mut request.url, text),
            "format" => put(&mut request.format, text),
            "selector" => put(&mut request.selector, text),
            "width" => put(&mut request.width, value.as_i64()),
            "height" => put(&mut request.height, value.as_i64()),
            "delay_ms" => put(&mut request.delay_ms, value.as_i64()),
            "full_page" => put(&mut request.full_page, value.as_bool()),
            _ => true,
        };
        if !read {
            request.unparsed.push((name.clone(), value.to_string()));
        }
    }
    request
}

fn put<T>(field: &mut Option<T>, value: Option<T>) -> bool {
    *field = value;
    field.is_some()
}
