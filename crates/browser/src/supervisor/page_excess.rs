//! What a page may use of its browser, while the browser has no other page.

use crate::page::CaptureError;
use crate::process::Exceeded;

impl From<Exceeded> for CaptureError {
    fn from(exceeded: Exceeded) -> Self {
        Self::failed(match exceeded {
            Exceeded::Memory => "The page uses more memory than a capture may.",
            Exceeded::Tasks => "The page starts more processes and threads than a capture may.",
        })
    }
}
