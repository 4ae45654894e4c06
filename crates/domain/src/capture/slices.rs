//! The slices of an image: its full width, and some of its rows.

use std::borrow::Cow;

use super::{FileKind, Format, StepImageNumber, ViewportNumber};

/// The number of a slice, counted from the top of the image: 1 to 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SliceNumber(u8);

impl SliceNumber {
    /// The most slices of an image: as many as the highest image has if its slices are as low as possible.
    pub const MAX: u8 = 64;

    /// `None` unless it is from 1 to 64.
    pub fn new(number: usize) -> Option<Self> {
        u8::try_from(number).ok().filter(|number| (1..=Self::MAX).contains(number)).map(Self)
    }

    /// The number, from 1.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// All numbers.
    pub fn all() -> impl Iterator<Item = Self> {
        (1..=Self::MAX).map(Self)
    }
}

/// Which of the attachments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AttachmentName {
    /// One that `also` asks for.
    Also(FileKind),
    /// A slice.
    Slice(SliceNumber),
    /// The image in a further viewport.
    Viewport(ViewportNumber),
    /// An image that a step took.
    Step(StepImageNumber),
}

impl AttachmentName {
    /// The kind of all slices in the APIs.
    pub const SLICE: &str = "slice";
    /// The kind of all images in further viewports in the APIs.
    pub const VIEWPORT: &str = "viewport";
    /// The kind of all images that steps took in the APIs.
    pub const STEP: &str = "capture";

    /// All names.
    pub fn all() -> impl Iterator<Item = Self> {
        let also = FileKind::ALL.into_iter().map(Self::Also);
        let images = ViewportNumber::all().map(Self::Viewport).chain(StepImageNumber::all().map(Self::Step));
        also.chain(SliceNumber::all().map(Self::Slice)).chain(images)
    }

    /// The last part of the URL. `format` is that of the image.
    pub fn file_name(self, format: Format) -> Cow<'static, str> {
        match self {
            Self::Also(kind) => kind.file_name().into(),
            Self::Slice(number) => format!("slice-{:02}.{}", number.get(), format.as_str()).into(),
            Self::Viewport(number) => format!("viewport-{}.{}", number.get(), format.as_str()).into(),
            Self::Step(number) => format!("capture-{}.{}", number.get(), format.as_str()).into(),
        }
    }

    /// The media type. `format` is that of the image.
    pub const fn media_type(self, format: Format) -> &'static str {
        match self {
            Self::Also(kind) => kind.media_type(),
            Self::Slice(_) | Self::Viewport(_) | Self::Step(_) => format.media_type(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn slices_are_numbered_from_1_to_64() {
        for (number, expected) in [(0, None), (1, Some(1)), (64, Some(64)), (65, None), (257, None)] {
            assert_eq!(SliceNumber::new(number).map(SliceNumber::get), expected);
        }
        assert_eq!(SliceNumber::all().count(), 64);
    }

    #[test]
    fn attachments_an_image_have_different_names() {
        let names: HashSet<_> = AttachmentName::all().map(|name| name.file_name(Format::Png)).collect();
        assert_eq!(names.len(), FileKind::ALL.len() + 64 + 6 + 5);
        let first = AttachmentName::Slice(SliceNumber(1));
        assert_eq!(
            (first.file_name(Format::Jpeg), first.media_type(Format::Jpeg)),
            ("slice-01.jpeg".into(), "image/jpeg")
        );
    }
}
