//! The style sheet, font, scripts and images of the pages.

mod files;
mod serve;

pub(crate) use files::Assets;
pub(crate) use serve::{
    capture, compare, copy, docs, font, gallery, icon, key, passkey, phone, picture, script, site, start, style,
};
