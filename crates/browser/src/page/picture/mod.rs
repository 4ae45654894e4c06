//! Takes the picture: finds the part of the page, lays it out, and captures it.

pub(super) mod area;
pub(super) mod cancel;
pub(super) mod looks;
pub(super) mod scaled;
pub(super) mod scripts_disabled;
pub(super) mod shot;
pub(super) mod shown;
pub(super) mod slices;
pub(super) mod smaller;
pub(super) mod step_image;
pub(super) mod taken_images;
pub(super) mod viewports;
