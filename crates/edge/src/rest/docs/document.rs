//! An OpenAPI document, and the page of the reference on which each of its parts is.

use std::collections::HashMap;

use serde_json::Value;

use super::super::paths::API_REFERENCE;
use super::schema::{component, count_members};
use super::text::slug;

/// The methods of operations, in the order of the reference.
const METHODS: [&str; 5] = ["post", "get", "patch", "put", "delete"];
/// An operation whose body has more members has a page of its own.
const MANY_MEMBERS: usize = 20;
/// The last part of the path of the page with the objects.
pub(super) const OBJECTS: &str = "objects";

/// An OpenAPI document whose references can be resolved.
pub(super) struct Document<'a> {
    pub(super) json: &'a Value,
    pub(super) groups: Vec<Group<'a>>,
    /// The address of each schema, by its name.
    places: HashMap<&'a str, String>,
}

/// The operations of one page.
pub(super) struct Group<'a> {
    /// The last part of the path of the page.
    pub(super) slug: String,
    pub(super) title: &'a str,
    pub(super) about: &'a str,
    pub(super) operations: Vec<Operation<'a>>,
}

/// An operation.
#[derive(Clone, Copy)]
pub(super) struct Operation<'a> {
    pub(super) method: &'static str,
    pub(super) path: &'a str,
    pub(super) json: &'a Value,
}

impl<'a> Operation<'a> {
    pub(super) fn id(self) -> &'a str {
        text(&self.json["operationId"])
    }

    pub(super) fn summary(self) -> &'a str {
        text(&self.json["summary"])
    }

    /// The schema of the request's body.
    pub(super) fn body(self) -> &'a Value {
        &self.json["requestBody"]["content"]["application/json"]["schema"]
    }
}

impl<'a> Document<'a> {
    pub(super) fn new(json: &'a Value) -> Self {
        let groups = groups(json);
        let mut places = HashMap::new();
        for group in &groups {
            // The body of an operation is described there.
            for name in group.operations.iter().filter_map(|operation| component(operation.body())) {
                places.entry(name).or_insert_with(|| format!("{}#{}", path_of(&group.slug), anchor(name)));
            }
        }
        for (name, _) in schemas(json) {
            places.entry(name).or_insert_with(|| format!("{}#{}", path_of(OBJECTS), anchor(name)));
        }
        Self { json, groups, places }
    }

    /// Resolves a reference. Returns any other value unchanged.
    pub(super) fn resolve(&self, value: &'a Value) -> &'a Value {
        resolve(self.json, value)
    }

    /// The address of a schema.
    pub(super) fn place(&self, name: &str) -> &str {
        self.places.get(name).map_or("", String::as_str)
    }

    /// Whether the body of this operation is described with it, and not with an earlier one.
    pub(super) fn describes_body(&self, group: &Group<'a>, name: &str) -> bool {
        self.place(name) == format!("{}#{}", path_of(&group.slug), anchor(name))
    }

    /// The schemas that are described on the page with the objects.
    pub(super) fn objects(&self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        let prefix = format!("{}#", path_of(OBJECTS));
        schemas(self.json).filter(move |(name, _)| self.place(name).starts_with(&prefix))
    }
}

/// The path of a page of the reference. The first page has no `slug`.
pub(super) fn path_of(slug: &str) -> String {
    if slug.is_empty() { API_REFERENCE.to_owned() } else { format!("{API_REFERENCE}/{slug}") }
}

/// The anchor of a schema.
pub(super) fn anchor(name: &str) -> String {
    format!("schema-{}", name.to_ascii_lowercase())
}

fn resolve<'a>(json: &'a Value, value: &'a Value) -> &'a Value {
    let target = value["$ref"].as_str().and_then(|reference| json.pointer(reference.strip_prefix('#')?));
    target.unwrap_or(value)
}

fn schemas(json: &Value) -> impl Iterator<Item = (&str, &Value)> {
    json["components"]["schemas"].as_object().into_iter().flatten().map(|(name, schema)| (name.as_str(), schema))
}

/// The operations by tag. Those with a large body are groups of their own, before the others of their tag.
fn groups(json: &Value) -> Vec<Group<'_>> {
    let mut groups = Vec::new();
    for tag in json["tags"].as_array().into_iter().flatten() {
        let (title, about) = (text(&tag["name"]), text(&tag["description"]));
        let is_large = |operation: &Operation<'_>| count_members(resolve(json, operation.body())) > MANY_MEMBERS;
        let (large, rest): (Vec<_>, Vec<_>) = operations(json, title).partition(is_large);
        groups.extend(large.into_iter().map(|operation| {
            let (slug, title) = (slug(operation.summary()), operation.summary());
            Group { slug, title, about: "", operations: vec![operation] }
        }));
        groups.push(Group { slug: slug(title), title, about, operations: rest });
    }
    groups
}

/// The operations of a tag.
fn operations<'a>(json: &'a Value, tag: &'a str) -> impl Iterator<Item = Operation<'a>> {
    let paths = json["paths"].as_object().into_iter().flatten();
    let all = paths.flat_map(|(path, item)| {
        METHODS.iter().map(move |method| Operation { method, path: path.as_str(), json: &item[method] })
    });
    all.filter(move |operation| operation.json["tags"][0] == tag)
}

/// The text of a value, or an empty one.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
