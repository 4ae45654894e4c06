//! Receives an image and the attachments in parts, which are written to disk as they arrive.

use bytes::Bytes;
use grabd_domain::capture::{AttachmentName, FileKind, SliceNumber, StepImageNumber, Viewport, ViewportNumber};
use grabd_domain::grabs::{ImageKey, SlicePlace, StepImage, ViewportSize};
use grabd_domain::ids::LeaseToken;
use grabd_images::{Images, Upload};

use crate::grabs::finish::{
    ReceivedFile, ReceivedFiles, ReceivedImage, ReceivedSlice, ReceivedStepImage, ReceivedViewport,
};
use crate::image_digest::ImageDigest;
use crate::queue::RequestedFiles;
use crate::service::Core;

/// An image that is being received, followed by the files that its grab asks for, its slices from top to bottom, the
/// images in further viewports, and those that steps took.
pub struct ImageReceiver {
    images: Images,
    key: ImageKey,
    /// The files that have not begun yet.
    missing: Vec<FileKind>,
    slices: SliceCheck,
    viewports: ViewportCheck,
    step_images: StepImageCheck,
    digest: ImageDigest,
    /// None before the first attachment is uploaded.
    current: Option<Receiving>,
    ended: Ended,
}

/// An image that the renderer reports as uploaded to the object store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadedImage {
    size_bytes: u64,
    sha256: String,
}

impl UploadedImage {
    /// An image of this size with this SHA-256. `None` unless that is 64 lower-case hexadecimal digits.
    pub fn new(size_bytes: u64, sha256: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let is_sha256 = sha256.len() == 64 && sha256.bytes().all(is_digit);
        is_sha256.then(|| Self { size_bytes, sha256: sha256.to_owned() })
    }
}

/// What is expected of the slices.
struct SliceCheck {
    /// The largest height of a slice in pixels. None: no slices.
    slice_height: Option<u32>,
    /// The slices that have begun.
    begun: usize,
    /// The first row of the next one.
    y: u32,
    /// The bytes that they may still have.
    bytes_left: u64,
}

/// What is expected of the images in further viewports.
struct ViewportCheck {
    /// All of them, in the order in which they come.
    asked: Vec<Viewport>,
    /// Those that have begun.
    begun: usize,
    /// The bytes that they may still have.
    bytes_left: u64,
}

/// What is expected of the images that steps take.
struct StepImageCheck {
    /// The names of all of them, in the order in which they come.
    asked: Vec<String>,
    /// Those that have begun.
    begun: usize,
    /// The bytes that they may still have.
    bytes_left: u64,
}

/// What has been received.
#[derive(Default)]
struct Ended {
    image: Option<EndedImage>,
    files: ReceivedFiles,
}

/// The image, when all of it is there.
enum EndedImage {
    Received(Upload),
    Uploaded(UploadedImage),
}

/// What the next parts belong to.
struct Receiving {
    part: Part,
    size_bytes: u64,
    upload: Upload,
}

enum Part {
    Image,
    File(FileKind),
    Slice(SlicePlace),
    Viewport(ViewportSize),
    Step(StepImage),
}

/// Why an image was not received.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The renderer sent something else than it announced, or than was asked for.
    #[error("{0}")]
    Invalid(&'static str),
    /// The image could not be stored.
    #[error(transparent)]
    NotStored(#[from] grabd_images::Error),
}

impl ImageReceiver {
    /// Begins with an image of this size. `None` when no session holds the lease.
    ///
    /// # Errors
    /// [`ReceiveError::NotStored`].
    pub async fn begin(core: &Core, token: LeaseToken, size_bytes: u64) -> Result<Option<Self>, ReceiveError> {
        let Some(mut receiver) = Self::new(core, token) else { return Ok(None) };
        let upload = receiver.images.begin(&receiver.key).await?;
        receiver.current = Some(Receiving { part: Part::Image, size_bytes, upload });
        Ok(Some(receiver))
    }

    /// Begins with the attachment that was uploaded. `None` when no session holds the lease.
    pub fn begin_uploaded(core: &Core, token: LeaseToken, image: UploadedImage) -> Option<Self> {
        let mut receiver = Self::new(core, token)?;
        receiver.ended.image = Some(EndedImage::Uploaded(image));
        Some(receiver)
    }

    fn new(core: &Core, token: LeaseToken) -> Option<Self> {
        let key = core.queue.dispatcher.upload_key(token)?;
        let RequestedFiles { also: missing, slice_height, viewports, step_images } =
            core.queue.dispatcher.requested_files(token);
        let bytes_left = core.image_max_bytes();
        let slices = SliceCheck { slice_height, begun: 0, y: 0, bytes_left };
        let viewports = ViewportCheck { asked: viewports, begun: 0, bytes_left };
        let step_images = StepImageCheck { asked: step_images, begun: 0, bytes_left };
        let images = core.grabs.images.clone();
        let (digest, ended) = (ImageDigest::default(), Ended::default());
        Some(Self { images, key, missing, slices, viewports, step_images, digest, current: None, ended })
    }

    /// Writes the next part.
    ///
    /// # Errors
    /// [`ReceiveError`].
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), ReceiveError> {
        let current = self.current.as_mut().ok_or(ReceiveError::Invalid("a part of an image that was uploaded"))?;
        let Receiving { part, size_bytes, upload } = current;
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if upload.bytes().saturating_add(length) > *size_bytes {
            return Err(ReceiveError::Invalid("more bytes than the header says"));
        }
        if matches!(part, Part::Image) {
            self.digest.update(&bytes);
        }
        Ok(upload.write(bytes).await?)
    }

    /// Ends the current file, and begins the next one.
    ///
    /// # Errors
    /// [`ReceiveError`].
    pub async fn next_file(&mut self, kind: &str, size_bytes: u64) -> Result<(), ReceiveError> {
        let kind = FileKind::parse(kind).ok_or(ReceiveError::Invalid("kind"))?;
        let expected = self.missing.iter().position(|of| *of == kind);
        self.missing.remove(expected.ok_or(ReceiveError::Invalid("a file that was not requested"))?);
        if size_bytes > kind.max_bytes() {
            return Err(ReceiveError::Invalid("a file that is too large"));
        }
        self.next(AttachmentName::Also(kind), Part::File(kind), size_bytes).await
    }

    /// Ends the current file, and begins the next slice.
    ///
    /// # Errors
    /// [`ReceiveError`].
    pub async fn next_slice(&mut self, place: SlicePlace, size_bytes: u64) -> Result<(), ReceiveError> {
        let number = self.slices.next(&place, size_bytes).map_err(ReceiveError::Invalid)?;
        self.next(AttachmentName::Slice(number), Part::Slice(place), size_bytes).await
    }

    /// Ends the current file, and begins the image in the next viewport.
    ///
    /// # Errors
    /// [`ReceiveError`].
    pub async fn next_viewport(&mut self, size: ViewportSize, size_bytes: u64) -> Result<(), ReceiveError> {
        let number = self.viewports.next(&size, size_bytes).map_err(ReceiveError::Invalid)?;
        self.next(AttachmentName::Viewport(number), Part::Viewport(size), size_bytes).await
    }

    /// Ends the current file, and begins the image that the next step took.
    ///
    /// # Errors
    /// [`ReceiveError`].
    pub async fn next_step_image(&mut self, image: StepImage, size_bytes: u64) -> Result<(), ReceiveError> {
        let number = self.step_images.next(&image, size_bytes).map_err(ReceiveError::Invalid)?;
        self.next(AttachmentName::Step(number), Part::Step(image), size_bytes).await
    }

    async fn next(&mut self, name: AttachmentName, part: Part, size_bytes: u64) -> Result<(), ReceiveError> {
        let upload = self.images.begin_file(&self.key, name).await?;
        match self.current.replace(Receiving { part, size_bytes, upload }) {
            Some(previous) => self.ended.add(previous).await,
            None => Ok(()),
        }
    }

    /// Ends the last file. The image has `image_height` rows.
    ///
    /// # Errors
    /// [`ReceiveError`], also when something is missing.
    pub async fn finish(self, image_height: Option<u32>) -> Result<(ReceivedImage, ReceivedFiles), ReceiveError> {
        let Self { images: _, key: _, missing, slices, viewports, step_images, digest, current, mut ended } = self;
        if let Some(current) = current {
            ended.add(current).await?;
        }
        let are_images_complete = viewports.are_complete() && step_images.are_complete();
        let is_complete = missing.is_empty() && slices.are_complete(image_height) && are_images_complete;
        let image = match ended.image.filter(|_| is_complete).ok_or(ReceiveError::Invalid("a file is missing"))? {
            EndedImage::Received(upload) => ReceivedImage::Parts(Box::new(upload), digest),
            EndedImage::Uploaded(UploadedImage { size_bytes, sha256 }) => {
                ReceivedImage::Uploaded { size_bytes, sha256 }
            }
        };
        Ok((image, ended.files))
    }
}

impl SliceCheck {
    /// The number of the next slice.
    fn next(&mut self, place: &SlicePlace, size_bytes: u64) -> Result<SliceNumber, &'static str> {
        let slice_height = self.slice_height.ok_or("a slice that was not requested")?;
        let number = SliceNumber::new(self.begun + 1).ok_or("too many slices")?;
        if place.y != self.y || !(1..=slice_height).contains(&place.height) {
            return Err("a slice with other rows than requested");
        }
        self.bytes_left = self.bytes_left.checked_sub(size_bytes).ok_or("slices that are too large")?;
        self.y = self.y.saturating_add(place.height);
        self.begun += 1;
        Ok(number)
    }

    /// Whether the slices are the whole image, if there are to be some.
    fn are_complete(&self, image_height: Option<u32>) -> bool {
        self.slice_height.is_none() || Some(self.y) == image_height
    }
}

impl ViewportCheck {
    /// The number of the next image.
    fn next(&mut self, size: &ViewportSize, size_bytes: u64) -> Result<ViewportNumber, &'static str> {
        let viewport = self.asked.get(self.begun).ok_or("a viewport that was not requested")?;
        if (viewport.width(), viewport.height()) != (size.viewport_width, size.viewport_height) {
            return Err("another viewport than requested");
        }
        if size.width == 0 || size.height == 0 {
            return Err("an image in a viewport without a size");
        }
        self.bytes_left = self.bytes_left.checked_sub(size_bytes).ok_or("images in viewports that are too large")?;
        self.begun += 1;
        ViewportNumber::new(self.begun).ok_or("too many viewports")
    }

    /// Whether there is an image in each viewport.
    fn are_complete(&self) -> bool {
        self.begun == self.asked.len()
    }
}

impl StepImageCheck {
    /// The number of the next image.
    fn next(&mut self, image: &StepImage, size_bytes: u64) -> Result<StepImageNumber, &'static str> {
        let name = self.asked.get(self.begun).ok_or("an image of a step that was not requested")?;
        if *name != image.name {
            return Err("an image of another step than requested");
        }
        if image.width == 0 || image.height == 0 {
            return Err("an image of a step without a size");
        }
        self.bytes_left = self.bytes_left.checked_sub(size_bytes).ok_or("images of steps that are too large")?;
        self.begun += 1;
        StepImageNumber::new(self.begun).ok_or("too many images of steps")
    }

    /// Whether there is an image of each step that takes one.
    fn are_complete(&self) -> bool {
        self.begun == self.asked.len()
    }
}

impl Ended {
    /// Adds a file that has ended.
    async fn add(&mut self, Receiving { part, size_bytes, mut upload }: Receiving) -> Result<(), ReceiveError> {
        if upload.bytes() != size_bytes {
            return Err(ReceiveError::Invalid("fewer bytes than the header says"));
        }
        upload.close().await?;
        match part {
            Part::Image => self.image = Some(EndedImage::Received(upload)),
            Part::File(kind) => self.files.also.push(ReceivedFile { kind, upload }),
            Part::Slice(place) => self.files.slices.push(ReceivedSlice { place, upload }),
            Part::Viewport(size) => self.files.viewports.push(ReceivedViewport { size, upload }),
            Part::Step(image) => self.files.step_images.push(ReceivedStepImage { image, upload }),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::capture::{CaptureRequest, CaptureSpec};

    use super::*;

    #[test]
    fn uploaded_image_needs_a_sha256_as_it_is_shown() {
        let digest = "0123456789abcdef".repeat(4);
        assert_eq!(UploadedImage::new(5, &digest), Some(UploadedImage { size_bytes: 5, sha256: digest.clone() }));
        for refused in ["", &digest[1..], &format!("{digest}0"), &digest.to_uppercase(), &digest.replace('f', "g")] {
            assert_eq!(UploadedImage::new(5, refused), None, "{refused}");
        }
    }

    #[test]
    fn images_in_viewports_are_accepted_only_as_requested() {
        let viewport = |width, height| {
            let (url, width, height) = (Some("https://example.com/".into()), Some(width), Some(height));
            CaptureSpec::parse(&CaptureRequest { url, width, height, ..CaptureRequest::default() }).unwrap().viewport
        };
        let size =
            |viewport_width, viewport_height, width| ViewportSize { viewport_width, viewport_height, width, height: 9 };
        let check = |asked| ViewportCheck { asked, begun: 0, bytes_left: 100 };
        assert!(check(Vec::new()).are_complete() && check(Vec::new()).next(&size(390, 844, 1), 1).is_err());
        let mut viewports = check(vec![viewport(768, 1024), viewport(390, 844)]);
        for (refused, bytes) in [(size(390, 844, 1), 1), (size(768, 1024, 0), 1), (size(768, 1024, 1), 101)] {
            assert!(viewports.next(&refused, bytes).is_err(), "{refused:?}");
        }
        assert_eq!(viewports.next(&size(768, 1024, 1), 60).map(ViewportNumber::get), Ok(1));
        assert!(!viewports.are_complete());
        assert!(viewports.next(&size(390, 844, 1), 41).is_err(), "more bytes than an image may have");
        assert_eq!(viewports.next(&size(390, 844, 1), 40).map(ViewportNumber::get), Ok(2));
        assert!(viewports.are_complete() && viewports.next(&size(390, 844, 1), 0).is_err());
    }

    #[test]
    fn images_of_steps_are_accepted_only_as_requested() {
        let image = |name: &str, width| StepImage { name: name.to_owned(), width, height: 9 };
        let check = |asked: &[&str]| {
            let asked = asked.iter().map(|name| (*name).to_owned()).collect();
            StepImageCheck { asked, begun: 0, bytes_left: 100 }
        };
        assert!(check(&[]).are_complete() && check(&[]).next(&image("menu", 1), 1).is_err());
        let mut images = check(&["menu", "cart"]);
        for (refused, bytes) in [(image("cart", 1), 1), (image("menu", 0), 1), (image("menu", 1), 101)] {
            assert!(images.next(&refused, bytes).is_err(), "{refused:?}");
        }
        assert_eq!(images.next(&image("menu", 1), 60).map(StepImageNumber::get), Ok(1));
        assert!(!images.are_complete() && images.next(&image("cart", 1), 41).is_err());
        assert_eq!(images.next(&image("cart", 1), 40).map(StepImageNumber::get), Ok(2));
        assert!(images.are_complete() && images.next(&image("cart", 1), 0).is_err());
    }

    #[test]
    fn slices_are_accepted_only_as_the_rows_of_the_whole_image() {
        let slice = |y, height| SlicePlace::new(y, height, None);
        let check = |slice_height| SliceCheck { slice_height, begun: 0, y: 0, bytes_left: 100 };
        let mut slices = check(Some(300));
        for (refused, bytes) in [(slice(1, 300), 1), (slice(0, 301), 1), (slice(0, 0), 1), (slice(0, 300), 101)] {
            assert!(slices.next(&refused, bytes).is_err(), "{refused:?}");
        }
        assert_eq!(slices.next(&slice(0, 290), 60).map(SliceNumber::get), Ok(1));
        assert!(slices.next(&slice(300, 20), 1).is_err(), "rows are left out");
        assert!(slices.next(&slice(290, 20), 41).is_err(), "more bytes than an image may have");
        assert!(!slices.are_complete(Some(310)));
        assert_eq!(slices.next(&slice(290, 20), 40).map(SliceNumber::get), Ok(2));
        assert!(slices.are_complete(Some(310)) && !slices.are_complete(Some(311)) && !slices.are_complete(None));

        assert!(check(None).next(&slice(0, 1), 1).is_err() && check(None).are_complete(Some(9)));
        let mut many = check(Some(256));
        for number in 0..64 {
            assert!(many.next(&slice(number, 1), 1).is_ok());
        }
        assert!(many.next(&slice(64, 1), 1).is_err());
    }
}
