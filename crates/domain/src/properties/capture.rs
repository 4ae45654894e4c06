use serde_json::{Map, Value};

use super::invalid_field;
use crate::Code;
use crate::capture::{CaptureRequest, CaptureSpec};

/// A valid spec is within the contract's limits, matches the request and round-trips through its stored form. An error
/// names a field and has the code of that field. The input is the JSON of a create request.
pub fn capture(data: &[u8]) {
    let Ok(Value::Object(members)) = serde_json::from_slice(data) else { return };
    let request = request(&members);
    match CaptureSpec::parse(&request) {
        Ok(spec) => assert_matches_request(&spec, &request),
        Err(fault) => {
            let code = match invalid_field(&fault) {
                "width" | "height" => Code::InvalidViewport,
                "url" | "format" | "full_page" | "delay_ms" | "selector" => Code::BadRequest,
                other => panic!("{other} is not a member of a create request"),
            };
            assert_eq!(fault.code(), code, "{fault:?}");
        }
    }
}

fn assert_matches_request(spec: &CaptureSpec, request: &CaptureRequest) {
    assert!(request.unparsed.is_empty(), "{request:?}");
    let (width, height) = (spec.viewport.width(), spec.viewport.height());
    assert!((320..=1920).contains(&width) && (240..=1080).contains(&height), "{spec:?}");
    assert_eq!((i64::from(width), i64::from(height)), (request.width.unwrap_or(1280), request.height.unwrap_or(720)));
    assert!(spec.delay.as_millis() <= 10_000, "{spec:?}");
    assert_eq!(i64::try_from(spec.delay.as_millis()).ok(), Some(request.delay_ms.unwrap_or(0)));
    assert_eq!(spec.format.as_str(), request.format.as_deref().unwrap_or("png"));
    assert_eq!(spec.full_page, request.full_page == Some(true));
    assert_eq!(spec.reported_height(), if spec.full_page { 3240 } else { height });
    let selector = spec.selector.as_ref().map(crate::capture::Selector::as_str);
    assert_eq!(selector, request.selector.as_deref());
    assert!(selector.is_none_or(|text| (1..=1024).contains(&text.chars().count())), "{spec:?}");

    let stored = serde_json::to_string(spec).expect("a spec can be serialized");
    let restored: CaptureSpec = serde_json::from_str(&stored).expect("a stored spec can be deserialized");
    assert_eq!(restored, *spec, "{stored}");
}

/// Converts members as the API servers do: values of the wrong type become `unparsed`.
fn request(members: &Map<String, Value>) -> CaptureRequest {
    let mut request = CaptureRequest::default();
    for (name, value) in members {
        let text = value.as_str().map(str::to_owned);
        let is_valid = match name.as_str() {
            "url" => set(&mut request.url, text),
            "format" => set(&mut request.format, text),
            "selector" => set(&mut request.selector, text),
            "width" => set(&mut request.width, value.as_i64()),
            "height" => set(&mut request.height, value.as_i64()),
            "delay_ms" => set(&mut request.delay_ms, value.as_i64()),
            "full_page" => set(&mut request.full_page, value.as_bool()),
            _ => true,
        };
        if !is_valid {
            request.unparsed.push((name.clone(), value.to_string()));
        }
    }
    request
}

fn set<T>(field: &mut Option<T>, value: Option<T>) -> bool {
    *field = value;
    field.is_some()
}
