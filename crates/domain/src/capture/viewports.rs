//! Further viewports that a page is captured in.

use grabd_options::{Object, Value};

use super::Viewport;

/// The viewports of valid objects. `None` if a member is missing or impossible.
pub(super) fn read(objects: &[Object]) -> Option<Vec<Viewport>> {
    let side = |object: &Object, name: &str| match object.get(name) {
        Some(Value::Integer(pixels)) => u32::try_from(*pixels).ok(),
        _ => None,
    };
    objects
        .iter()
        .map(|object| Some(Viewport { width: side(object, "width")?, height: side(object, "height")? }))
        .collect()
}

/// What [`read`] reads. `None` if there are none.
pub(super) fn to_objects(viewports: &[Viewport]) -> Option<Vec<Object>> {
    let object = |viewport: &Viewport| {
        let sides = [("width", viewport.width), ("height", viewport.height)];
        sides.into_iter().map(|(name, pixels)| (name.to_owned(), Value::Integer(pixels.into()))).collect()
    };
    (!viewports.is_empty()).then(|| viewports.iter().map(object).collect())
}

#[cfg(test)]
mod tests {
    use crate::capture::{CaptureRequest, CaptureSpec};
    use crate::faults::{Code, Fault};

    fn parse(json: &str) -> Result<CaptureSpec, Fault> {
        let mut request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
        assert!(request.set("viewports", serde_json::from_str(json).unwrap()), "{json}");
        CaptureSpec::parse(&request)
    }

    #[test]
    fn viewports_are_stored_in_their_order_and_left_out_if_there_are_none() {
        let spec = parse(r#"[{"width": 768, "height": 1024}, {"width": 390, "height": 844}]"#).unwrap();
        let widths: Vec<u32> = spec.viewports.iter().map(|viewport| viewport.width()).collect();
        assert_eq!(widths, [768, 390]);
        let stored = serde_json::to_string(&spec).unwrap();
        assert!(
            stored.ends_with(r#""viewports":[{"height":1024,"width":768},{"height":844,"width":390}]}"#),
            "{stored}"
        );
        assert_eq!(serde_json::from_str::<CaptureSpec>(&stored).unwrap(), spec);
        assert!(!serde_json::to_string(&parse("[]").unwrap()).unwrap().contains("viewports"));
    }

    #[test]
    fn viewport_out_of_bounds_is_an_invalid_viewport() {
        for json in
            [r#"[{"width": 319, "height": 844}]"#, r#"[{"width": 390}]"#, r#"[{"width": 390, "height": "tall"}]"#]
        {
            let fault = parse(json).unwrap_err();
            assert_eq!((fault.code(), fault.field().unwrap().name), (Code::InvalidViewport, "viewports"), "{fault}");
        }
    }
}
