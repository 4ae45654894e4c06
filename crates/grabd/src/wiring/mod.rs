//! Builds all components, which are passed by argument.

mod browser;
mod client_packages;
mod core_parts;
mod database;
mod egress;
mod images;
mod services;

pub use browser::{browser, browser_options, browser_user, filter_lists, filter_lists_dir};
pub use client_packages::client_packages;
pub use core_parts::start_core;
pub use database::{describe_database, lock_service, open_store};
pub use egress::guard;
pub use images::{
    check_images, describe_images, image_memory, image_options, image_places, images_dir, images_location, place_name,
    signed_uploads, uploader,
};
pub use services::{key_file, mail, open_vault, outgoing, pricing, stripe};
