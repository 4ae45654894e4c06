//! Four small landscapes for the showcase page.

use std::f32::consts::TAU;

use image::{Rgb, RgbImage};

use super::images::scatter;
use crate::pixels::Colour;

const WIDTH: u32 = 720;
const HEIGHT: u32 = 540;
/// Number of ridges, drawn from the furthest to the nearest.
const RIDGES: u32 = 5;

/// The light at one time of day.
struct Hour {
    /// Colours overhead and at the horizon.
    sky: [Colour; 2],
    /// Colours of the furthest and the nearest ridge.
    hills: [Colour; 2],
    /// Sun or moon: position as fractions of width and height, radius as a fraction of the width, colour.
    disc: ([f32; 2], f32, Colour),
    /// Reach of the disc's light, as a fraction of the width.
    glow: f32,
    stars: bool,
}

const DAWN: Hour = Hour {
    sky: [[0x5f, 0x7f, 0xb8], [0xff, 0xc9, 0xa3]],
    hills: [[0xd9, 0x9a, 0x94], [0x3b, 0x2f, 0x52]],
    disc: ([0.32, 0.5], 0.05, [0xff, 0xf0, 0xd0]),
    glow: 0.45,
    stars: false,
};
const NOON: Hour = Hour {
    sky: [[0x2f, 0x86, 0xc9], [0xd4, 0xee, 0xf7]],
    hills: [[0x9f, 0xc7, 0xc0], [0x1f, 0x5b, 0x45]],
    disc: ([0.68, 0.2], 0.045, [0xff, 0xff, 0xf4]),
    glow: 0.3,
    stars: false,
};
const DUSK: Hour = Hour {
    sky: [[0x3d, 0x2a, 0x66], [0xff, 0x8a, 0x4c]],
    hills: [[0xb5, 0x52, 0x5b], [0x24, 0x16, 0x33]],
    disc: ([0.6, 0.55], 0.07, [0xff, 0xd9, 0x8a]),
    glow: 0.5,
    stars: false,
};
const NIGHT: Hour = Hour {
    sky: [[0x07, 0x0d, 0x22], [0x2a, 0x3f, 0x72]],
    hills: [[0x24, 0x35, 0x5e], [0x05, 0x09, 0x14]],
    disc: ([0.3, 0.24], 0.04, [0xf2, 0xf4, 0xe8]),
    glow: 0.22,
    stars: true,
};

pub(super) fn paint(name: &str) -> Option<RgbImage> {
    match name {
        "dawn" => Some(landscape(&DAWN)),
        "noon" => Some(landscape(&NOON)),
        "dusk" => Some(landscape(&DUSK)),
        "night" => Some(landscape(&NIGHT)),
        _ => None,
    }
}

fn landscape(hour: &Hour) -> RgbImage {
    RgbImage::from_fn(WIDTH, HEIGHT, |x, y| Rgb(pixel(hour, x, y)))
}

fn pixel(hour: &Hour, x: u32, y: u32) -> Colour {
    let [across, down] = [x as f32 / WIDTH as f32, y as f32 / HEIGHT as f32];
    let nearest = (0..RIDGES).rev().find(|ridge| down > horizon(*ridge, across));
    match nearest {
        Some(ridge) => {
            let near = ridge as f32 / (RIDGES - 1) as f32;
            // Mist in the valleys: each ridge fades downwards into the one behind it.
            let depth = (down - horizon(ridge, across)) * 1.6;
            mix(mix(hour.hills[0], hour.hills[1], near), hour.hills[0], (depth * (1.0 - near)).min(0.6))
        }
        None => sky(hour, [x, y], across, down),
    }
}

/// Height of a ridge as a fraction of the image, from the top.
fn horizon(ridge: u32, across: f32) -> f32 {
    let near = ridge as f32;
    let wave = |times: f32, phase: f32| (TAU * (across * times + phase)).sin();
    let shape = wave(0.9 + near * 0.31, near * 0.37)
        + 0.5 * wave(2.3 + near * 0.2, near * 0.71)
        + 0.18 * wave(6.1, near * 0.13);
    0.52 + near * 0.1 + shape * (0.045 + near * 0.006)
}

fn sky(hour: &Hour, [x, y]: [u32; 2], across: f32, down: f32) -> Colour {
    let ([disc_x, disc_y], radius, light) = hour.disc;
    let upright = HEIGHT as f32 / WIDTH as f32;
    let distance = (across - disc_x).hypot((down - disc_y) * upright);
    let base = mix(hour.sky[0], hour.sky[1], (down / 0.6).min(1.0));
    let lit = mix(base, light, (1.0 - distance / hour.glow).max(0.0).powi(2) * 0.55);
    let edge = ((radius - distance) * WIDTH as f32 + 0.5).clamp(0.0, 1.0);
    let star = if hour.stars && scatter(x, y).is_multiple_of(1400) { 0.75 } else { 0.0 };
    mix(mix(lit, [255, 255, 255], star), light, edge)
}

fn mix(from: Colour, to: Colour, part: f32) -> Colour {
    std::array::from_fn(|at| (f32::from(from[at]) * (1.0 - part) + f32::from(to[at]) * part).round() as u8)
}
