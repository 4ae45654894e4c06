//! The attachments of an image, and their numbers.

use std::borrow::Cow;

use super::{FileKind, Format};

/// The number of an attachment among those of its kind: 1 to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttachmentNumber<const MAX: u8>(u8);

/// The number of a slice, counted from the top of the image. The highest image has 64 slices if they are as low as possible.
pub type SliceNumber = AttachmentNumber<64>;

/// The number of a further viewport, in the order of the request.
pub type ViewportNumber = AttachmentNumber<6>;

/// The number of an image that a step took, in the order of the steps.
pub type StepImageNumber = AttachmentNumber<5>;

impl<const MAX: u8> AttachmentNumber<MAX> {
    /// The highest number.
    pub const MAX: u8 = MAX;

    /// `None` unless it is from 1 to [`Self::MAX`].
    pub fn new(number: usize) -> Option<Self> {
        u8::try_from(number).ok().filter(|number| (1..=MAX).contains(number)).map(Self)
    }

    /// The number, from 1.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// All numbers.
    pub fn all() -> impl Iterator<Item = Self> {
        (1..=MAX).map(Self)
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
    fn numbers_are_from_1_to_the_highest() {
        for (number, expected) in [(0, None), (1, Some(1)), (64, Some(64)), (65, None), (257, None)] {
            assert_eq!(SliceNumber::new(number).map(SliceNumber::get), expected);
        }
        assert_eq!(StepImageNumber::new(5).map(StepImageNumber::get), Some(5));
        assert_eq!(StepImageNumber::new(6), None);
        let counts = (SliceNumber::all().count(), ViewportNumber::all().count(), StepImageNumber::all().count());
        assert_eq!(counts, (64, 6, 5));
    }

    #[test]
    fn attachments_of_an_image_have_different_names() {
        let names: HashSet<_> = AttachmentName::all().map(|name| name.file_name(Format::Png)).collect();
        assert_eq!(names.len(), FileKind::ALL.len() + 64 + 6 + 5);
        let first = AttachmentName::Slice(SliceNumber::new(1).unwrap());
        assert_eq!(
            (first.file_name(Format::Jpeg), first.media_type(Format::Jpeg)),
            ("slice-01.jpeg".into(), "image/jpeg")
        );
    }
}
