//! The cells of an image that changed, and the regions that they form.

use super::sheet::CELL;
use crate::region::Region;

/// Changed cells that are at most this many cells apart, as a power of two, are in one region: words of a changed
/// paragraph, for example.
const FIRST_LEVEL: u32 = 1;

/// What does not count as a change of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tolerance {
    /// Parts of the later image. A cell does not count if it is in one of them, also with a part of it.
    pub ignored: Vec<Region>,
    /// Regions of connected cells that have fewer pixels do not count.
    pub min_region_px: u32,
}

/// The cells of an image.
pub struct Grid {
    width: u32,
    height: u32,
    columns: usize,
    rows: usize,
    changed: Vec<bool>,
}

impl Grid {
    /// For an image of this size, of which nothing has changed yet.
    pub(super) fn new(width: u32, height: u32) -> Self {
        let cells = |pixels: u32| usize::try_from(pixels.div_ceil(CELL)).unwrap_or_default();
        let (columns, rows) = (cells(width), cells(height));
        Self { width, height, columns, rows, changed: vec![false; columns * rows] }
    }

    /// The memory of a grid and of the search for its regions in bytes.
    pub fn memory_bytes(width: u32, height: u32) -> u64 {
        u64::from(width.div_ceil(CELL)) * u64::from(height.div_ceil(CELL)) * 16
    }

    /// Marks the cell of this column at this row of pixels. Cells outside of the image are ignored.
    pub(super) fn mark(&mut self, column: usize, y: usize) {
        let row = y / usize::try_from(CELL).unwrap_or(1);
        if column < self.columns
            && let Some(cell) = self.changed.get_mut(row * self.columns + column)
        {
            *cell = true;
        }
    }

    /// Marks the cells from this column on, at this row of pixels.
    pub(super) fn mark_from(&mut self, column: usize, y: usize) {
        (column..self.columns).for_each(|column| self.mark(column, y));
    }

    /// Takes back the marks of what does not count.
    pub fn apply_tolerance(&mut self, tolerance: &Tolerance) {
        tolerance.ignored.iter().for_each(|region| self.unmark(*region));
        if tolerance.min_region_px > 0 {
            self.unmark_small(tolerance.min_region_px.into());
        }
    }

    /// Takes back the marks of the cells that a part of the image touches.
    fn unmark(&mut self, Region { x, y, width, height }: Region) {
        let cell = |pixels: u32| usize::try_from(pixels).unwrap_or(usize::MAX);
        let (left, top) = (cell(x / CELL), cell(y / CELL));
        let right = cell(x.saturating_add(width).div_ceil(CELL)).min(self.columns);
        let bottom = cell(y.saturating_add(height).div_ceil(CELL)).min(self.rows);
        for (row, column) in (top..bottom).flat_map(|row| (left..right).map(move |column| (row, column))) {
            if let Some(cell) = self.changed.get_mut(row * self.columns + column) {
                *cell = false;
            }
        }
    }

    /// Takes back the marks of groups of cells that have fewer pixels together.
    fn unmark_small(&mut self, min_pixels: u64) {
        let groups = self.groups(FIRST_LEVEL);
        let mut areas = vec![0_u64; groups.count];
        for (column, row) in self.marked() {
            if let Some(area) = groups.number(column, row).and_then(|number| areas.get_mut(number)) {
                *area += self.area(column, row);
            }
        }
        let columns = self.columns.max(1);
        for (at, cell) in self.changed.iter_mut().enumerate() {
            let number = groups.number(at % columns, at / columns);
            let area = number.and_then(|number| areas.get(number));
            *cell &= area.is_none_or(|area| *area >= min_pixels);
        }
    }

    /// The pixels of a cell.
    fn area(&self, column: usize, row: usize) -> u64 {
        let Region { width, height, .. } = self.pixels(Bounds::of(column, row));
        u64::from(width) * u64::from(height)
    }

    /// The number of columns.
    pub(super) const fn columns(&self) -> usize {
        self.columns
    }

    /// The changed part of the image in millionths, rounded down, but not to nothing.
    pub fn changed_ppm(&self) -> u32 {
        let area: u64 = self.marked().map(|(column, row)| self.area(column, row)).sum();
        let total = (u64::from(self.width) * u64::from(self.height)).max(1);
        let ppm = u32::try_from(area.saturating_mul(1_000_000) / total).unwrap_or(u32::MAX).min(1_000_000);
        if area > 0 { ppm.max(1) } else { 0 }
    }

    /// At most `most` boxes around all changed cells, largest first. The distance at which cells belong together grows until
    /// there are few enough.
    pub fn regions(&self, most: usize) -> Vec<Region> {
        let mut level = FIRST_LEVEL;
        let mut bounds = self.components(level);
        while bounds.len() > most {
            level += 1;
            bounds = self.components(level);
        }
        let mut regions: Vec<Region> = bounds.into_iter().map(|bounds| self.pixels(bounds)).collect();
        let area = |region: &Region| u64::from(region.width) * u64::from(region.height);
        regions.sort_by_key(|region| (std::cmp::Reverse(area(region)), region.y, region.x));
        regions
    }

    /// The columns and rows of the changed cells.
    fn marked(&self) -> impl Iterator<Item = (usize, usize)> {
        let columns = self.columns.max(1);
        let marked = self.changed.iter().enumerate().filter(|(_, changed)| **changed);
        marked.map(move |(at, _)| (at % columns, at / columns))
    }

    /// The bounds of the changed cells of each group of adjacent blocks, where a block has 2^level cells in each
    /// direction.
    fn components(&self, level: u32) -> Vec<Bounds> {
        let groups = self.groups(level);
        let mut found: Vec<Option<Bounds>> = vec![None; groups.count];
        for (column, row) in self.marked() {
            if let Some(bounds) = groups.number(column, row).and_then(|number| found.get_mut(number)) {
                *bounds = Some(bounds.map_or(Bounds::of(column, row), |bounds| bounds.with(column, row)));
            }
        }
        found.into_iter().flatten().collect()
    }

    /// The groups of adjacent blocks with changed cells.
    fn groups(&self, level: u32) -> Groups {
        let blocks = |cells: usize| (cells >> level) + 1;
        let (columns, rows) = (blocks(self.columns), blocks(self.rows));
        let mut groups = Groups { level, columns, blocks: vec![Group::Unchanged; columns * rows], count: 0 };
        for (column, row) in self.marked() {
            let at = groups.block(column, row);
            if let Some(group) = groups.blocks.get_mut(at) {
                *group = Group::Unknown;
            }
        }
        for start in 0..groups.blocks.len() {
            if groups.blocks.get(start) == Some(&Group::Unknown) {
                fill(&mut groups.blocks, columns, start, groups.count);
                groups.count += 1;
            }
        }
        groups
    }

    /// The pixels of some cells: those at the right and at the bottom may be cut.
    fn pixels(&self, Bounds { left, top, right, bottom }: Bounds) -> Region {
        let pixels = |cells: usize| u32::try_from(cells).unwrap_or(u32::MAX).saturating_mul(CELL);
        let (x, y) = (pixels(left), pixels(top));
        let (end_x, end_y) = (pixels(right + 1).min(self.width), pixels(bottom + 1).min(self.height));
        Region { x, y, width: end_x.saturating_sub(x), height: end_y.saturating_sub(y) }
    }
}

/// The group of adjacent blocks that a block belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    Unchanged,
    Unknown,
    Number(usize),
}

/// The groups of adjacent blocks of cells.
struct Groups {
    level: u32,
    columns: usize,
    blocks: Vec<Group>,
    count: usize,
}

impl Groups {
    const fn block(&self, column: usize, row: usize) -> usize {
        (row >> self.level) * self.columns + (column >> self.level)
    }

    /// The number of the group of a cell. `None` if nothing near it has changed.
    fn number(&self, column: usize, row: usize) -> Option<usize> {
        match self.blocks.get(self.block(column, row)) {
            Some(Group::Number(number)) => Some(*number),
            Some(Group::Unchanged | Group::Unknown) | None => None,
        }
    }
}

/// Gives the blocks that are connected with this one their number, diagonally adjacent ones included.
fn fill(groups: &mut [Group], columns: usize, start: usize, number: usize) {
    let mut open = vec![start];
    while let Some(at) = open.pop() {
        let Some(group @ Group::Unknown) = groups.get_mut(at) else { continue };
        *group = Group::Number(number);
        let (column, row) = (at % columns, at / columns);
        for row in row.saturating_sub(1)..=row + 1 {
            let adjacent = column.saturating_sub(1)..=(column + 1).min(columns - 1);
            open.extend(adjacent.map(|column| row * columns + column));
        }
    }
}

/// A rectangle of cells. All sides are inclusive.
#[derive(Clone, Copy)]
struct Bounds {
    left: usize,
    top: usize,
    right: usize,
    bottom: usize,
}

impl Bounds {
    const fn of(column: usize, row: usize) -> Self {
        Self { left: column, top: row, right: column, bottom: row }
    }

    fn with(self, column: usize, row: usize) -> Self {
        let Self { left, top, right, bottom } = self;
        Self { left: left.min(column), top: top.min(row), right: right.max(column), bottom: bottom.max(row) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAX_REGIONS: usize = 50;

    fn region(x: u32, y: u32, width: u32, height: u32) -> Region {
        Region { x, y, width, height }
    }

    #[test]
    fn one_cell_is_one_region_that_ends_with_the_image() {
        let mut grid = Grid::new(100, 50);
        assert_eq!((grid.changed_ppm(), grid.regions(MAX_REGIONS)), (0, vec![]));
        grid.mark(6, 49);
        assert_eq!(grid.regions(MAX_REGIONS), [region(96, 48, 4, 2)]);
        assert_eq!(grid.changed_ppm(), 1600);
        grid.mark(7, 0);
        grid.mark(0, 64);
        assert_eq!(grid.regions(MAX_REGIONS).len(), 1, "cells outside are ignored");
    }

    #[test]
    fn near_cells_are_one_region_and_regions_are_sorted_by_size() {
        let mut grid = Grid::new(1600, 1600);
        grid.mark(0, 0);
        grid.mark(2, 0);
        grid.mark(50, 800);
        grid.mark_from(97, 1599);
        let expected = [region(0, 0, 48, 16), region(1552, 1584, 48, 16), region(800, 800, 16, 16)];
        assert_eq!(grid.regions(MAX_REGIONS), expected);
    }

    #[test]
    fn smallest_change_of_a_large_image_is_not_nothing() {
        let mut grid = Grid::new(30_000, 30_000);
        grid.mark(0, 0);
        assert_eq!(grid.changed_ppm(), 1);
        let mut all = Grid::new(33, 17);
        (0..17).for_each(|y| all.mark_from(0, y));
        assert_eq!((all.changed_ppm(), all.regions(MAX_REGIONS)), (1_000_000, vec![region(0, 0, 33, 17)]));
    }

    #[test]
    fn many_scattered_cells_become_few_regions() {
        let mut grid = Grid::new(4096, 4096);
        for at in 0..4096 {
            grid.mark(at % 64 * 4, at / 64 * 64);
        }
        let regions = grid.regions(MAX_REGIONS);
        assert!((1..=MAX_REGIONS).contains(&regions.len()), "{}", regions.len());
    }

    #[test]
    fn ignored_parts_and_small_regions_do_not_count() {
        let marked = || {
            let mut grid = Grid::new(320, 320);
            // One cell, and three that are one region.
            grid.mark(0, 0);
            (10..13).for_each(|column| grid.mark(column, 160));
            grid
        };
        let remaining = |ignored: &[Region], min_region_px| {
            let mut grid = marked();
            grid.apply_tolerance(&Tolerance { ignored: ignored.to_vec(), min_region_px });
            grid.regions(MAX_REGIONS)
        };
        let (small, large) = (region(0, 0, 16, 16), region(160, 160, 48, 16));
        assert_eq!(remaining(&[], 0), [large, small]);
        assert_eq!(remaining(&[], 256), [large, small], "as many pixels as needed");
        assert_eq!(remaining(&[], 257), [large]);
        assert_eq!(remaining(&[], 768), [large]);
        assert_eq!(remaining(&[], 769), []);
        assert_eq!(remaining(&[region(15, 15, 1, 1)], 0), [large], "a cell that is touched");
        assert_eq!(remaining(&[region(16, 0, 304, 160)], 0), [large, small], "beside both");
        assert_eq!(remaining(&[region(170, 170, u32::MAX, 1)], 0), [small]);
        assert_eq!(remaining(&[region(u32::MAX, u32::MAX, u32::MAX, u32::MAX)], 0), [large, small]);
        // What is left of a region counts alone.
        assert_eq!(remaining(&[region(176, 160, 1, 1)], 600), []);
        let mut nothing = Grid::new(0, 0);
        nothing.apply_tolerance(&Tolerance { ignored: vec![small], min_region_px: 1 });
        assert_eq!(nothing.changed_ppm(), 0);
    }

    #[test]
    fn image_without_pixels_has_no_cells() {
        let mut grid = Grid::new(0, 10);
        grid.mark_from(0, 0);
        assert_eq!((grid.changed_ppm(), grid.regions(MAX_REGIONS)), (0, vec![]));
    }

    proptest! {
        #[test]
        fn regions_cover_all_changed_cells_and_stay_in_the_image(
            width in 1_u32..900,
            height in 1_u32..900,
            marks in prop::collection::vec((0_usize..60, 0_usize..900), 0..200),
        ) {
            let mut grid = Grid::new(width, height);
            marks.iter().filter(|mark| mark.1 < height as usize).for_each(|(column, y)| grid.mark(*column, *y));
            let regions = grid.regions(MAX_REGIONS);
            prop_assert!(regions.len() <= MAX_REGIONS);
            prop_assert_eq!(regions.is_empty(), grid.marked().next().is_none());
            for Region { x, y, width: wide, height: high } in &regions {
                prop_assert!(*wide > 0 && *high > 0 && x + wide <= width && y + high <= height);
            }
            for (column, row) in grid.marked() {
                let cell = grid.pixels(Bounds::of(column, row));
                let covers = |of: &Region| {
                    of.x <= cell.x && of.y <= cell.y
                        && of.x + of.width >= cell.x + cell.width && of.y + of.height >= cell.y + cell.height
                };
                prop_assert!(regions.iter().any(covers));
            }
        }
    }
}
