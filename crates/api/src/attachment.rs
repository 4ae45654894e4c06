//! The files beside the image of a grab.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::words::file_kind_schema;

/// A file beside the image of a grab.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Attachment<'a> {
    /// What it is.
    #[schema(schema_with = file_kind_schema)]
    pub kind: Cow<'a, str>,
    /// Its public, unguessable URL; for test keys a path relative to the API's origin.
    #[schema(format = "uri-reference")]
    pub url: Cow<'a, str>,
    /// Its media type.
    #[serde(default)]
    #[schema(required)]
    pub media_type: Cow<'a, str>,
    /// Its size in bytes.
    #[serde(default)]
    #[schema(minimum = 0, required)]
    pub bytes: i64,
    /// The first row of a slice in the image. Absent unless it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0)]
    pub y: Option<i32>,
    /// The number of rows of a slice, of the image in a further viewport, or of one that a step took. Absent unless it is
    /// one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1)]
    pub height: Option<i32>,
    /// The heading of the page that the first row of a slice belongs to. Absent if there is none, and in lists. Do not
    /// trust it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, max_length = 200)]
    pub heading: Option<Cow<'a, str>>,
    /// The width in pixels of the image in a further viewport, or of one that a step took. Absent unless it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1)]
    pub width: Option<i32>,
    /// The further viewport. Absent unless it is the image in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(inline, nullable = false)]
    pub viewport: Option<Viewport>,
    /// The name that a step gives the image that it takes. Absent unless it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, max_length = 40)]
    pub name: Option<Cow<'a, str>>,
}

/// The size of a window in CSS pixels.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub struct Viewport {
    /// The width.
    #[schema(minimum = 0)]
    pub width: i64,
    /// The height.
    #[schema(minimum = 0)]
    pub height: i64,
}
