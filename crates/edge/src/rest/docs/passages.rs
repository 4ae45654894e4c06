//! What the search of the documentation finds in the reference.

use serde_json::Value;

use super::super::openapi;

/// What the search of the documentation finds in the reference: the anchor, the heading and the text of each operation and
/// object.
pub fn reference_passages() -> Vec<(String, String, String)> {
    let json = serde_json::to_value(openapi::document("", "")).expect("an OpenAPI document has string keys");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let members = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let operations = members(&json["paths"]).into_iter().flat_map(|(path, methods)| {
        let methods = members(&methods).into_iter().filter(|(_, operation)| operation["operationId"].is_string());
        let passages = methods.map(|(method, operation)| {
            let about = format!("{} {path} {}", method.to_uppercase(), text(&operation["description"]));
            (text(&operation["operationId"]), text(&operation["summary"]), about)
        });
        passages.collect::<Vec<_>>()
    });
    let objects = members(&json["components"]["schemas"]).into_iter().map(|(name, schema)| {
        let properties = members(&schema["properties"]).into_iter();
        let properties = properties.map(|(name, property)| format!("{name}: {}", text(&property["description"])));
        let about = format!("{} {}", text(&schema["description"]), properties.collect::<Vec<_>>().join(" "));
        (format!("schema-{}", name.to_ascii_lowercase()), name, about)
    });
    operations.chain(objects).collect()
}

#[cfg(test)]
mod tests {
    use super::super::page;
    use super::*;

    #[test]
    fn passages_have_anchors_of_the_page() {
        let passages = reference_passages();
        let page = page::render(&serde_json::to_value(openapi::document("", "")).unwrap());
        assert!(passages.len() > 20, "{}", passages.len());
        for (anchor, heading, text) in &passages {
            assert!(page.contains(&format!("id=\"{anchor}\"")), "{anchor}");
            assert!(!heading.is_empty() && text.len() > 5, "{anchor}");
        }
        assert!(passages.iter().any(|(anchor, _, text)| anchor == "listGrabs" && text.contains("GET /grabs")));
    }
}
