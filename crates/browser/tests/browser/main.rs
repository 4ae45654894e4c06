//! Tests with a real Chromium, against pages like those on the web.

#[cfg(test)]
mod archives;
#[cfg(test)]
mod behaviour;
#[cfg(test)]
mod blocked;
#[cfg(test)]
mod blocking;
#[cfg(test)]
mod burning;
#[cfg(test)]
mod conditions;
#[cfg(test)]
mod consent;
#[cfg(test)]
mod discussions;
#[cfg(test)]
mod domains;
#[cfg(test)]
mod dragging;
#[cfg(test)]
mod elements;
#[cfg(test)]
mod failing;
#[cfg(test)]
mod files;
#[cfg(test)]
mod framing;
#[cfg(test)]
mod frozen;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod images;
#[cfg(test)]
mod jail;
#[cfg(test)]
mod lifecycle;
#[cfg(test)]
mod markdown;
#[cfg(test)]
mod masks;
#[cfg(test)]
mod names;
#[cfg(test)]
mod network;
mod options;
#[cfg(test)]
mod paper;
#[cfg(test)]
mod pdf_target;
#[cfg(test)]
mod program_copy;
#[cfg(test)]
mod readiness;
#[cfg(test)]
mod rig;
#[cfg(test)]
mod selectors;
#[cfg(test)]
mod selftest;
#[cfg(test)]
mod signed;
#[cfg(test)]
mod site;
#[cfg(test)]
mod slices;
#[cfg(test)]
mod step_frames;
#[cfg(test)]
mod step_images;
#[cfg(test)]
mod steps;
#[cfg(test)]
mod supervision;
#[cfg(test)]
mod viewports;
mod workers;
