//! The images that steps have taken.

use std::sync::{Mutex, MutexGuard, PoisonError};

use grabd_domain::render::CapturedStepImage;
use grabd_memory::Reservation;

/// The images that steps have taken so far, in all documents of a capture.
#[derive(Default)]
pub(in crate::page) struct TakenImages(Mutex<Taken>);

#[derive(Default)]
struct Taken {
    images: Vec<CapturedStepImage>,
    /// Reserved for the first image, the further ones, and all that is made after them.
    memory: Option<Reservation>,
}

impl TakenImages {
    /// Adds an image, and the memory for what is made after it.
    pub(in crate::page) fn add(&self, image: CapturedStepImage, memory: Option<Reservation>) {
        let mut taken = self.lock();
        taken.images.push(image);
        taken.memory = memory;
    }

    /// The images, in the order in which they were taken.
    pub(in crate::page) fn images(&self) -> Vec<CapturedStepImage> {
        self.lock().images.clone()
    }

    /// The bytes of all images.
    pub(in crate::page) fn bytes(&self) -> u64 {
        let lengths = self.lock().images.iter().map(|taken| taken.content.len()).sum::<usize>();
        u64::try_from(lengths).unwrap_or(u64::MAX)
    }

    /// Takes the memory for what is made next. `None` before the first image.
    pub(in crate::page) fn take_memory(&self) -> Option<Reservation> {
        self.lock().memory.take()
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
