//! Capture options in JSON: how they are read, and their schemas for OpenAPI and MCP.

use grabd_options::{
    CaptureOption, CaptureRequest, FAILURE_STATUSES, HIDDEN, Kind, Member, NO_ANSWER, RECTANGLE_MAX_SIDE,
    RECTANGLE_MAX_START, Rectangle, STATUS_CLASSES, TABLE, Value,
};
use grabd_proto::options;
use grabd_proto::v1::CaptureOptions;
use serde_json::value::RawValue;
use utoipa::openapi::schema::{AdditionalProperties, SchemaType};
use utoipa::openapi::{ArrayBuilder, Object, ObjectBuilder, OneOfBuilder, RefOr, Schema, SchemaFormat, Type};

use super::call;
use super::fields::Fields;
use super::json;

/// Reads the capture options. Members of the wrong type are collected in `fields.unparsed`.
pub(crate) fn read(fields: &mut Fields<'_>) -> CaptureOptions {
    let mut request = CaptureRequest::default();
    for option in TABLE {
        let before = fields.unparsed.len();
        if let Some(Some(value)) = fields.read(option.name, |member| read_value(option.kind, member)) {
            // A message cannot hold every object, so that the core would not see what is wrong with it.
            match option.kind.invalid_part(&value) {
                Some(part) => {
                    let field = format!("{}{part}", option.name);
                    fields.unparsed.push(call::unparsed(&field, &value.to_string()));
                }
                None => _ = request.set(option.name, value),
            }
        }
        if option.is_secret {
            fields.unparsed.iter_mut().skip(before).for_each(|unparsed| HIDDEN.clone_into(&mut unparsed.seen));
        }
    }
    let (options, unparsed) = options::encode(&request);
    fields.unparsed.extend(unparsed.iter().map(|of| match invalid_member(&request, &of.field) {
        Some((member, seen)) => call::unparsed(&format!("{}.{member}", of.field), &seen),
        None => call::unparsed(&of.field, &of.seen),
    }));
    options
}

/// The member of an option because of which the message cannot hold it, and its value.
fn invalid_member(request: &CaptureRequest, name: &str) -> Option<(&'static str, String)> {
    let problem = grabd_options::find(name)?.check(&request.get(name)?).err()?;
    Some((problem.member?, problem.seen))
}

/// The value of a member. `Some(None)` for `null` where that is no value, `None` for another type.
fn read_value(kind: Kind, member: &RawValue) -> Option<Option<Value>> {
    match kind {
        Kind::Integer { .. } => json::integer(member).map(Value::Integer).map(Some),
        Kind::Number { .. } => json::number(member).map(Value::Number).map(Some),
        Kind::Flag => json::boolean(member).map(Value::Flag).map(Some),
        Kind::Word(_)
        | Kind::Url
        | Kind::Text { .. }
        | Kind::TimeZone
        | Kind::Locale
        | Kind::Chars { .. }
        | Kind::PageRanges
        | Kind::GrabId
        | Kind::ProxyId => json::string(member).map(Value::Text).map(Some),
        Kind::Selector => json::nullable_string(member).map(|text| text.map(Value::Text)),
        Kind::Selectors { .. } | Kind::Words(_) | Kind::Patterns { .. } => {
            json::strings(member).map(Value::Texts).map(Some)
        }
        Kind::Object { .. } | Kind::Headers { .. } | Kind::Labels { .. } => {
            json::members(member).map(Value::Object).map(Some)
        }
        Kind::Objects { members, .. } | Kind::Sizes { members, .. } | Kind::Choices { members, .. } => {
            let objects = json::objects(member)?;
            Some(Some(Value::Objects(objects.into_iter().map(|object| with_statuses(members, object)).collect())))
        }
        Kind::RequestFailure => {
            json::string(member).or_else(|| Some(json::integer(member)?.to_string())).map(Value::Text).map(Some)
        }
        Kind::Statuses { .. } => json::strings_and_integers(member).map(Value::Texts).map(Some),
        Kind::Rectangle => rectangle(member).map(Value::Rectangle).map(Some),
    }
}

/// An object whose members with statuses are texts, as messages have them.
fn with_statuses(members: &[Member], mut object: grabd_options::Object) -> grabd_options::Object {
    for member in members.iter().filter(|member| member.kind == Kind::RequestFailure) {
        if let Some(status) = object.get_mut(member.name)
            && let Value::Integer(number) = *status
        {
            *status = Value::Text(number.to_string());
        }
    }
    object
}

/// A rectangle: an object with four integers and nothing else.
pub(crate) fn rectangle(member: &RawValue) -> Option<Rectangle> {
    let members = json::object(member.get().as_bytes()).ok().filter(|members| members.len() == 4)?;
    let side = |name: &str| json::integer(members.get(name)?);
    Some(Rectangle { x: side("x")?, y: side("y")?, width: side("width")?, height: side("height")? })
}

/// The JSON schema of an option.
pub(crate) fn schema(option: &CaptureOption) -> Schema {
    let description = format!("{} {}", option.help, option.description).trim_end().to_owned();
    let description = if option.is_secret { format!("{description} Never returned.") } else { description };
    // Clients that are generated from the schema send the defaults in it. One that depends on another option would win over
    // that option, so it is only described.
    match option.default_of {
        "" => schema_of(option.kind, &description, option.default, option.example),
        other => {
            let description = format!("{description} Default: {}, or that of `{other}`.", option.default);
            schema_of(option.kind, &description, "", option.example)
        }
    }
}

/// The schema of values of a kind. `default` and `example` are JSON text, or empty.
fn schema_of(kind: Kind, description: &str, default: &str, example: &str) -> Schema {
    let text = || ObjectBuilder::new().schema_type(Type::String);
    let parse = |text: &str| serde_json::from_str(text).ok();
    let common = |schema: ObjectBuilder| {
        schema.default(parse(default)).description(Some(description)).examples(parse(example)).into()
    };
    let list = |items: RefOr<Schema>, max: usize| {
        ArrayBuilder::new().items(items).max_items(Some(max)).description(Some(description)).examples(parse(example))
    };
    match kind {
        Kind::Integer { min, max, .. } => {
            common(ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(min)).maximum(Some(max)))
        }
        Kind::Number { min, max } => {
            common(ObjectBuilder::new().schema_type(Type::Number).minimum(Some(min)).maximum(Some(max)))
        }
        Kind::Flag => common(ObjectBuilder::new().schema_type(Type::Boolean)),
        Kind::Word(words) => common(text().enum_values(Some(words.iter().copied()))),
        Kind::Url => common(
            text()
                .format(Some(SchemaFormat::Custom("uri".to_owned())))
                .min_length(Some(1))
                .max_length(Some(4096))
                .pattern(Some("^[hH][tT][tT][pP][sS]?://")),
        ),
        Kind::Selector => common(selector(kind).schema_type(SchemaType::from_iter([Type::String, Type::Null]))),
        Kind::Text { .. } | Kind::TimeZone | Kind::Locale | Kind::PageRanges => {
            common(text().min_length(Some(1)).max_length(kind.max_chars()))
        }
        Kind::GrabId | Kind::ProxyId => common(text().format(Some(SchemaFormat::Custom("uuid".to_owned())))),
        Kind::Chars { min, max, .. } => common(text().min_length(Some(min)).max_length(Some(max))),
        Kind::Selectors { max } | Kind::Patterns { max } => {
            list(Schema::from(Object::from(selector(kind))).into(), max).into()
        }
        Kind::Words(words) => {
            let word = text().enum_values(Some(words.iter().copied()));
            list(Schema::from(Object::from(word)).into(), words.len()).unique_items(true).into()
        }
        Kind::Object { members, .. } => common(object(members)),
        Kind::Objects { max, members } | Kind::Sizes { max, members } => {
            list(Schema::from(Object::from(object(members))).into(), max).into()
        }
        Kind::Choices { max, members } => {
            let item = object(members).min_properties(Some(1)).max_properties(Some(1));
            list(Schema::from(Object::from(item)).into(), max).into()
        }
        Kind::Headers { max, max_chars } | Kind::Labels { max, max_chars } => {
            let value = Schema::from(Object::from(text().max_length(Some(max_chars))));
            let headers = ObjectBuilder::new().schema_type(Type::Object).max_properties(Some(max));
            common(headers.additional_properties(Some(AdditionalProperties::RefOr(value.into()))))
        }
        Kind::Statuses { max } => list(Schema::from(status(&STATUS_CLASSES).build()).into(), max).into(),
        Kind::RequestFailure => {
            let words = [&STATUS_CLASSES[..], &[NO_ANSWER]].concat();
            status(&words).description(Some(description)).build().into()
        }
        Kind::Rectangle => {
            let side = |min: i64, max: i64| {
                ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(min)).maximum(Some(max))
            };
            let sides = [
                ("x", side(0, RECTANGLE_MAX_START)),
                ("y", side(0, RECTANGLE_MAX_START)),
                ("width", side(1, RECTANGLE_MAX_SIDE)),
                ("height", side(1, RECTANGLE_MAX_SIDE)),
            ];
            let object = ObjectBuilder::new()
                .schema_type(Type::Object)
                .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)));
            common(sides.into_iter().fold(object, |object, (name, side)| object.property(name, side).required(name)))
        }
    }
}

fn object(members: &[Member]) -> ObjectBuilder {
    let object = ObjectBuilder::new().schema_type(Type::Object);
    let object = object.additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)));
    members.iter().fold(object, |object, member| {
        let object = object.property(member.name, schema_of(member.kind, member.help, "", ""));
        if member.is_required { object.required(member.name) } else { object }
    })
}

/// A failure status, or one of these words.
fn status(words: &[&'static str]) -> OneOfBuilder {
    let class = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words.iter().copied()));
    let number = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(*FAILURE_STATUSES.start()))
        .maximum(Some(*FAILURE_STATUSES.end()));
    OneOfBuilder::new().item(class).item(number)
}

fn selector(kind: Kind) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).max_length(kind.max_chars()).pattern(Some(r"\S"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_body(body: &str) -> (CaptureOptions, Vec<(String, String)>) {
        let mut fields = Fields::parse(body.as_bytes()).unwrap();
        let options = read(&mut fields);
        (options, fields.unparsed.into_iter().map(|of| (of.field, of.seen)).collect())
    }

    #[test]
    fn objects_and_lists_are_read() {
        let (options, unparsed) = read_body(
            r#"{"headers": {"x-a": "1"}, "cookies": [{"name": "a", "value": "b", "expires": 9}],
                "basic_auth": {"username": "u", "password": "p"}, "geolocation": {"latitude": 48, "longitude": 1.5},
                "block_types": ["image"], "block_urls": []}"#,
        );
        assert_eq!(unparsed, []);
        assert_eq!(options.headers.get("x-a").map(String::as_str), Some("1"));
        assert_eq!(options.cookies[0].expires, Some(9));
        assert_eq!(options.basic_auth.unwrap().password.as_deref(), Some("p"));
        assert_eq!(options.geolocation.unwrap().latitude, Some(48.0));
        assert_eq!(options.block_types, ["image"]);
    }

    #[test]
    fn statuses_of_requests_are_words_or_numbers() {
        let (options, unparsed) = read_body(
            r#"{"fail_on_request": [{"url": "*/api/*", "status": 404}, {"url": "*", "status": "5xx"}, {"url": "*.js"}]}"#,
        );
        assert_eq!(unparsed, []);
        let seen: Vec<_> = options.fail_on_request.iter().map(|of| (of.url.as_deref(), of.status.as_deref())).collect();
        assert_eq!(seen, [(Some("*/api/*"), Some("404")), (Some("*"), Some("5xx")), (Some("*.js"), None)]);
        let (options, unparsed) = read_body(r#"{"fail_on_request": [{"url": "*", "status": true}]}"#);
        assert_eq!(options, CaptureOptions::default());
        assert_eq!(unparsed, [("fail_on_request".to_owned(), r#"[{"status": true, "url": "*"}]"#.to_owned())]);
    }

    #[test]
    fn values_of_secret_options_are_not_reported() {
        let (options, unparsed) = read_body(
            r#"{"headers": {"x-a": ["hidden"]}, "cookies": "hidden", "basic_auth": {"token": "hidden"},
                "geolocation": {"latitude": "north"}, "steps": [{"press": "Tab"}, {"type": {"into": 5, "text": "hidden"}}]}"#,
        );
        assert_eq!(options, CaptureOptions::default());
        let names: Vec<&str> = unparsed.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["cookies", "steps[1].type.into", "headers", "basic_auth", "geolocation.latitude"]);
        assert!(unparsed.iter().all(|(_, seen)| !seen.contains("hidden")), "{unparsed:?}");
    }
}
