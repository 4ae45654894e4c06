//! Text of the files that are JSON, with a line for each thing, so that it can be cut between lines and takes few tokens.

use grabd_api::elements::{elements, quoted};
use serde_json::Value;

/// The text of the file `elements`. Another file is left as it is.
pub(super) fn of_elements(file: &str) -> String {
    let Ok(parsed) = serde_json::from_str::<Value>(file) else { return file.to_owned() };
    let (found, [width, height]) = elements(&parsed);
    let mut text = format!(
        "{} elements in an image of {width}x{height} pixels. Each line: number, role, name, left,top and width x height, and more.",
        found.len()
    );
    // Files of earlier versions say nothing about it.
    if parsed["elements"].as_array().into_iter().flatten().any(|element| element.get("covered_by").is_some()) {
        text.push_str(" Elements with something in front of them have covered_by.");
    }
    text.push('\n');
    for (at, element) in found.iter().enumerate() {
        let selector = element.selector.as_ref().map(|selector| format!(" selector={}", quoted(selector)));
        text.push_str(&format!("{} {}{}\n", at + 1, element.line(), selector.unwrap_or_default()));
    }
    text
}

/// The text of a file that is an object: each member on a line, and each item of the lists in it.
pub(super) fn of_object(file: &str) -> String {
    let Ok(Value::Object(members)) = serde_json::from_str(file) else { return file.to_owned() };
    let mut text = String::new();
    for (name, value) in &members {
        match value {
            Value::Array(items) if !items.is_empty() => {
                text.push_str(&format!("{name}:\n"));
                items.iter().for_each(|item| text.push_str(&format!("- {item}\n")));
            }
            Value::Array(_) | Value::Object(_) | Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {
                text.push_str(&format!("{name}: {value}\n"));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn elements_have_a_line_each() {
        let file = json!({
            "image": { "width": 1280, "height": 720 },
            "elements": [
                {
                    "role": "link", "name": "Our\nprices", "selector": "#menu > a", "url": "https://example.com/",
                    "box": { "x": 212, "y": 24, "width": 64, "height": 20 }
                },
                { "role": "checkbox", "name": "", "box": { "x": 0, "y": 0, "width": 1, "height": 1 }, "checked": false }
            ]
        });
        assert_eq!(
            of_elements(&file.to_string()),
            "2 elements in an image of 1280x720 pixels. Each line: number, role, name, left,top and width x height, and more.\n\
             1 link \"Our\\nprices\" 212,24 64x20 url=\"https://example.com/\" selector=\"#menu > a\"\n\
             2 checkbox \"\" 0,0 1x1 checked=false\n"
        );
        assert_eq!(of_elements("no JSON"), "no JSON");
    }

    #[test]
    fn what_is_in_front_of_an_element_is_on_its_line() {
        let place = json!({ "x": 1, "y": 2, "width": 3, "height": 4 });
        let front = json!({ "selector": "#dialog", "name": "Cookies" });
        let element = |front: Value| json!({ "role": "button", "name": "Buy", "box": place, "covered_by": front });
        let elements = [element(front), element(Value::Null), element("unknown".into())];
        let file = json!({ "image": { "width": 10, "height": 20 }, "elements": elements });
        let text = of_elements(&file.to_string());
        let (head, lines) = text.split_once('\n').unwrap();
        assert!(head.ends_with(" and more. Elements with something in front of them have covered_by."), "{head}");
        assert_eq!(
            lines,
            "1 button \"Buy\" 1,2 3x4 covered_by={\"selector\":\"#dialog\",\"name\":\"Cookies\"}\n\
             2 button \"Buy\" 1,2 3x4\n3 button \"Buy\" 1,2 3x4 covered_by=\"unknown\"\n"
        );
    }

    #[test]
    fn objects_have_a_line_for_each_member_and_item() {
        let file = json!({ "navigation": [{ "url": "a", "ms": 1 }, 2], "console": [], "settled_by": "quiet", "a": { "b": 1 } });
        assert_eq!(
            of_object(&file.to_string()),
            "navigation:\n- {\"url\":\"a\",\"ms\":1}\n- 2\nconsole: []\nsettled_by: \"quiet\"\na: {\"b\":1}\n"
        );
        assert_eq!(of_object("[1]"), "[1]");
    }
}
