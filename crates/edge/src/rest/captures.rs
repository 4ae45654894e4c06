//! The captures of a batch, read from its body.

use grabd_options::unknown;
use grabd_proto::v1::CreateGrabRequest;
use http::HeaderMap;
use serde_json::value::RawValue;

use super::fields::Fields;
use super::json::{self, Members};
use super::{idempotency_key, options};

/// The members of a batch.
const MEMBERS: [&str; 2] = ["grabs", "options"];
/// Maximum number of captures in one request.
pub(super) const MAX_GRABS: usize = 50;
/// Maximum length of the idempotency key, to which the position of the capture is appended.
pub(super) const MAX_KEY_CHARS: usize = 250;

/// The captures of a request. Their messages are made one at a time: shared options may be large.
pub(super) struct Captures<'a> {
    key: Option<String>,
    shared: Members<'a>,
    pub(super) own: Vec<Members<'a>>,
    /// Names of unknown members of the batch itself.
    unknown: Vec<String>,
}

impl<'a> Captures<'a> {
    /// Parses the body of a batch.
    ///
    /// # Errors
    /// A message for the caller, without values of the body: they may be secret.
    pub(super) fn parse(headers: &HeaderMap, body: &'a [u8]) -> Result<Self, String> {
        let members = json::object(body).map_err(|seen| match seen.as_bytes().first() {
            Some(b'a'..=b'z' | b'A'..=b'Z') => format!("The body must be a JSON object; got {seen}."),
            _ => "The body must be a JSON object.".to_owned(),
        })?;
        let key = batch_key(headers)?;
        let object = |member: &'a RawValue, name: &str| {
            json::object(member.get().as_bytes()).map_err(|_| format!("`{name}` must be an object."))
        };
        let grabs = list(members.get("grabs").copied())?.into_iter().enumerate();
        let own: Result<_, String> = grabs.map(|(index, grab)| object(grab, &format!("grabs[{index}]"))).collect();
        let own = own?;
        let shared =
            members.get("options").map_or_else(|| Ok(Members::default()), |member| object(member, "options"))?;
        let names = members.keys().map(String::as_str);
        let unknown = unknown::shortened(names.filter(|name| !MEMBERS.contains(name)));
        Ok(Self { key, shared, own, unknown })
    }

    /// The create of one capture.
    pub(super) fn request(&self, index: usize) -> CreateGrabRequest {
        let mut fields = self.fields(index);
        let options = options::read(&mut fields);
        let unknown = self.unknown_of(&fields);
        CreateGrabRequest {
            options: Some(options),
            idempotency_key: self.key.as_ref().map(|key| format!("{key}#{index}")),
            unparsed: fields.unparsed,
            unknown,
            ..CreateGrabRequest::default()
        }
    }

    /// Names of members of one capture that are no options, and of such members of the batch.
    pub(super) fn unknown(&self, index: usize) -> Vec<String> {
        self.unknown_of(&self.fields(index))
    }

    /// The members of one capture, which win over the shared ones.
    fn fields(&self, index: usize) -> Fields<'a> {
        let own = self.own.get(index).into_iter().flatten();
        let all: Members<'a> = self.shared.iter().chain(own).map(|(name, value)| (name.clone(), *value)).collect();
        Fields::from(all)
    }

    fn unknown_of(&self, fields: &Fields<'_>) -> Vec<String> {
        let own = fields.no_options();
        unknown::shortened(self.unknown.iter().chain(&own).map(String::as_str))
    }
}

fn list(member: Option<&RawValue>) -> Result<Vec<&RawValue>, String> {
    let message = |got: String| format!("`grabs` must be a list of 1 to {MAX_GRABS} objects; got {got}.");
    let Some(member) = member else { return Err(message("nothing".to_owned())) };
    let grabs: Vec<&RawValue> = serde_json::from_str(member.get()).map_err(|_| message("another type".to_owned()))?;
    match grabs.len() {
        1..=MAX_GRABS => Ok(grabs),
        count => Err(message(count.to_string())),
    }
}

fn batch_key(headers: &HeaderMap) -> Result<Option<String>, String> {
    let mut rejected = Vec::new();
    let key = idempotency_key::from_headers(headers, &mut rejected);
    let is_valid = |key: &String| (1..=MAX_KEY_CHARS).contains(&key.len());
    match rejected.is_empty() && key.as_ref().is_none_or(is_valid) {
        true => Ok(key),
        false => Err(format!("`Idempotency-Key` of a batch must be 1 to {MAX_KEY_CHARS} visible ASCII characters.")),
    }
}
