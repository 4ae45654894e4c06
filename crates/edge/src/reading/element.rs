//! The elements of a page, from the file `elements`.

use serde_json::Value;

/// An element.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) role: String,
    pub(super) name: String,
    pub(super) selector: Option<String>,
    /// Left edge, top edge, width and height in pixels of the image.
    pub(super) place: [i64; 4],
    /// The other members, such as `url` and `checked`, as `name=value` with values in JSON.
    pub(super) more: String,
    /// What is in front of it, as JSON. It is not part of the element, so that it is not compared.
    pub(super) covered_by: Option<String>,
}

impl Element {
    /// Reads a member of the array `elements`.
    fn read(value: &Value) -> Self {
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        let side = |name: &str| value["box"][name].as_f64().map_or(0, |pixels| pixels.round() as i64);
        let others = value.as_object().into_iter().flatten();
        let others =
            others.filter(|(name, _)| !["role", "name", "selector", "box", "covered_by"].contains(&name.as_str()));
        let more: Vec<String> = others.map(|(name, value)| format!("{name}={value}")).collect();
        Self {
            role: text("role").unwrap_or_default(),
            name: text("name").unwrap_or_default(),
            selector: text("selector"),
            place: [side("x"), side("y"), side("width"), side("height")],
            more: more.join(" "),
            covered_by: Some(&value["covered_by"]).filter(|front| !front.is_null()).map(Value::to_string),
        }
    }

    /// What it is and where: on one line.
    pub(super) fn line(&self) -> String {
        let [x, y, width, height] = self.place;
        let mut line = format!("{} {} {x},{y} {width}x{height}", self.role, quoted(&self.name));
        if !self.more.is_empty() {
            line.push(' ');
            line.push_str(&self.more);
        }
        if let Some(front) = &self.covered_by {
            line.push_str(" covered_by=");
            line.push_str(front);
        }
        line
    }
}

/// The elements of the file, and the width and height of its image.
pub(super) fn elements(file: &Value) -> (Vec<Element>, [i64; 2]) {
    let found = file["elements"].as_array().into_iter().flatten().map(Element::read).collect();
    (found, ["width", "height"].map(|side| file["image"][side].as_i64().unwrap_or(0)))
}

/// A text as JSON, so that it stays on its line.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}
