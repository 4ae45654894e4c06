//! The names of image files.

/// The secret part of an image URL: 22 base62 characters and the file extension.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ImageKey(String);

const IMAGE_KEY_CHARS: usize = 22;

impl ImageKey {
    /// Creates a key from 128 random bits and the file extension.
    pub fn new(random: u128, extension: &str) -> Self {
        let mut text = base62(random, IMAGE_KEY_CHARS);
        text.push('.');
        text.push_str(extension);
        Self(text)
    }

    /// Parses a key from the store or a URL. Returns `None` if it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let (random, extension) = text.split_once('.')?;
        let well_formed = random.len() == IMAGE_KEY_CHARS
            && random.bytes().all(|b| b.is_ascii_alphanumeric())
            && ["png", "jpeg", "webp"].contains(&extension);
        well_formed.then(|| Self(text.to_owned()))
    }

    /// `{22}.{extension}`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path below the image root: `i/{2}/{2}/{22}.{extension}`. The subdirectories limit the directory size.
    pub fn path(&self) -> String {
        format!("i/{}/{}/{}", &self.0[..2], &self.0[2..4], self.0)
    }

    /// The format, from the file extension.
    pub fn format(&self) -> crate::capture::Format {
        self.0.split_once('.').and_then(|(_, extension)| crate::capture::Format::parse(extension)).unwrap_or_default()
    }
}

/// The last digits of a number in base 62.
pub(super) fn base62(number: u128, digits: usize) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut rest = number;
    (0..digits)
        .map(|_| {
            let digit = usize::try_from(rest % 62).unwrap_or(0);
            rest /= 62;
            char::from(DIGITS[digit])
        })
        .collect()
}
